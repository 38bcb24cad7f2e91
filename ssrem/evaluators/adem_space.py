"""How ADEM turns dialogues into vectors, and vectors into scores (Lowe et al. 2017, section 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.encoders.recurrent import Words
from ssrem.errors import EvaluatorError
from ssrem.samples import Candidates, Floats, Rows, Sample

LOWEST, HIGHEST = 1.0, 5.0
"""Ends of the scale of human scores in the paper; ADEM's scores are on the same scale."""
MATRICES = {"f": "M", "g": "N"}
"""Part of the score → name of its matrix."""
PREFIX = "encoder."
"""Prefix of the recurrent encoder's weights among the tensors."""

_CENTRAL = (1, 99)
_TURNS = 256
_DIALOGUES = 2_048


@dataclass(frozen=True)
class Dialogues:
    """Dialogues to encode: contexts, and responses or references as dialogues of one turn.

    texts: the distinct turns. turns: int64 (n, t), rows of `texts`, the oldest turn first, -1 after the last turn.
    """

    texts: Sequence[str]
    turns: Rows

    @classmethod
    def of(cls, dialogues: Sequence[tuple[str, ...]]) -> Dialogues:
        """Build it from dialogues that are tuples of turns."""
        places: dict[str, int] = {}
        turns = np.full((len(dialogues), max(map(len, dialogues), default=1) or 1), -1, dtype=np.int64)
        for row, dialogue in enumerate(dialogues):
            for column, turn in enumerate(dialogue):
                turns[row, column] = places.setdefault(turn, len(places))
        return cls(list(places), turns)

    @classmethod
    def among(cls, texts: Sequence[str], turns: Rows) -> Dialogues:
        """Build it from rows of `texts`, int64 (n, t), -1 where there is no turn; unused texts are left out."""
        used, places = np.unique(turns[turns >= 0], return_inverse=True)
        renamed = np.full_like(turns, -1)
        renamed[turns >= 0] = places
        return cls([texts[row] for row in used.tolist()], renamed)

    def mask(self, true: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The value of `true`, bool (texts,), for each turn; bool (n, t), False where there is no turn."""
        result = np.zeros(self.turns.shape, dtype=bool)
        result[self.turns >= 0] = true[self.turns[self.turns >= 0]]
        return result


def context_rows(candidates: Candidates, rows: Rows, turns: int) -> Rows:
    """The last `turns` turns before each response at `rows`, as rows of the candidates' texts, int64 (n, turns).

    The oldest turn comes first; -1 fills the places behind the last one.
    """
    stop = candidates.context_stop[rows]
    at = np.maximum(candidates.context_start[rows], stop - turns)[:, None] + np.arange(turns)
    return np.where(at < stop[:, None], at, -1)


@dataclass(frozen=True)
class Encoded:
    """Dialogues as vectors, float64 (n, h).

    known: bool (n,), whether the dialogue has a known word; otherwise its vector is zero. cut: bool (n,), whether known
    words were cut off.
    """

    vectors: Floats
    known: NDArray[np.bool_]
    cut: NDArray[np.bool_]

    @classmethod
    def of(cls, dialogues: Dialogues, encoder: Encoder, net: Any, turn_words: int) -> Encoded:
        """Encode the dialogues: the last state of `net`, a GruNetwork over the vectors of their words.

        If `net` is None, a dialogue's vector is the mean of the encoder's vectors of its turns. The network reads the
        first `turn_words` known words of each turn. A turn without a known word is skipped. No dialogue's vector
        depends on the others. Each text is read once, in batches of about equal length.
        """
        turns, texts = dialogues.turns, list(dialogues.texts) or [""]
        if net is None:
            vectors = np.asarray(encoder.encode(texts), dtype=np.float64)
            read = dialogues.mask(np.asarray(vectors.any(axis=1)))
            sums = np.zeros((len(turns), vectors.shape[1]))
            for column in range(turns.shape[1]):
                sums += np.where(read[:, column, None], vectors[turns[:, column]], 0.0)
            means = sums / np.maximum(read.sum(axis=1), 1)[:, None]
            return cls(means, np.asarray(read.any(axis=1)), np.zeros(len(turns), dtype=bool))
        import torch

        from ssrem.training.trainer import one_thread

        words = Words.of(texts, encoder)
        stretches = words.first(len(texts), turn_words)
        read = dialogues.mask(stretches.lengths > 0)
        last = torch.zeros(len(texts), net.norm.normalized_shape[0])
        order = np.argsort(stretches.lengths, kind="stable")
        order = order[stretches.lengths[order] > 0]
        states = np.zeros((len(turns), net.turns.hidden_size))
        with torch.no_grad(), one_thread():
            for first in range(0, len(order), _TURNS):
                batch = order[first : first + _TURNS]
                last[torch.from_numpy(batch)] = net.utterances(stretches.of(batch).packed(words))
            for first in range(0, len(turns), _DIALOGUES):
                at = slice(first, first + _DIALOGUES)
                inputs = last[torch.from_numpy(np.maximum(turns[at], 0))]
                states[at] = net.states(inputs, torch.from_numpy(read[at]))[:, -1].numpy()
        cut = dialogues.mask(stretches.cut)
        return cls(states, np.asarray(read.any(axis=1)), np.asarray(cut.any(axis=1)))


@dataclass(frozen=True)
class Vectors:
    """Vectors of n samples on both sides of M and N, float64 (n, k) each.

    left: part → vectors of contexts ("f") or references ("g"). right: of responses. cut: bool (n,), truncated samples.
    """

    left: Mapping[str, Floats]
    right: Floats
    cut: NDArray[np.bool_]

    def part(self, rows: Rows) -> Vectors:
        """The samples at `rows`."""
        left = {part: vectors[rows] for part, vectors in self.left.items()}
        return Vectors(left, self.right[rows], self.cut[rows])


@dataclass(frozen=True)
class Space:
    """What is learned besides the recurrent encoder: principal components, matrices, and constants.

    mean: float32 (h,), mean of the vectors. axes: float32 (h, k), the principal components as orthonormal columns, that
    of the largest variance first. matrices: part → M or N, float32 (k, k). alpha, beta: the constants α and β of
    score = (cᵀMr̂ + rᵀNr̂ - α) / β (eq. 1).
    """

    mean: NDArray[np.float32]
    axes: NDArray[np.float32]
    matrices: Mapping[str, NDArray[np.float32]]
    alpha: float = 0.0
    beta: float = 1.0

    @classmethod
    def around(cls, vectors: Floats, components: int, parts: Sequence[str]) -> Self:
        """The principal components of vectors (n, h), with M = N = I; k is the least of `components`, n and h.

        The sign of an axis is arbitrary: it is chosen so that the entry of largest absolute value is positive.
        """
        mean = vectors.mean(axis=0)
        _, _, rows = np.linalg.svd(vectors - mean, full_matrices=False)
        rows = rows[:components]
        signs = np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)])
        identity = np.eye(len(rows), dtype=np.float32)
        axes = (rows * signs[:, None]).T.astype(np.float32)
        return cls(mean.astype(np.float32), axes, dict.fromkeys(parts, identity))

    @classmethod
    def of(cls, tensors: Mapping[str, NDArray[Any]], parts: Sequence[str], size: int) -> Self:
        """The space in saved tensors, for vectors of `size` dimensions; EvaluatorError for shapes that do not fit."""
        axes = tensors["pca.axes"]
        k = axes.shape[-1]
        wanted = {"pca.axes": (size, k), "pca.mean": (size,), "constants": (2,)}
        for name, shape in {**wanted, **{MATRICES[part]: (k, k) for part in parts}}.items():
            if tensors[name].shape != shape:
                raise EvaluatorError(f"{name} of shape {tensors[name].shape} is not {shape}, train it again")
        mean, axes = tensors["pca.mean"].astype(np.float32), axes.astype(np.float32)
        matrices = {part: tensors[MATRICES[part]].astype(np.float32) for part in parts}
        return cls(mean, axes, matrices, *tensors["constants"].astype(np.float64).tolist())

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """All tensors of the space to save, by name; `of` reads them."""
        matrices = {MATRICES[part]: matrix for part, matrix in self.matrices.items()}
        constants = np.array([self.alpha, self.beta])
        return {"pca.mean": self.mean, "pca.axes": self.axes, **matrices, "constants": constants}

    def project(self, encoded: Encoded) -> Floats:
        """Project the dialogues' vectors, float64 (n, k); zero, the mean, for a dialogue without a known word."""
        projected: Floats = (encoded.vectors - self.mean.astype(np.float64)) @ self.axes.astype(np.float64)
        return np.where(encoded.known[:, None], projected, 0.0)

    def unexplained(self, encoded: Encoded) -> float:
        """Share of the variance around the mean that the principal components do not explain."""
        centred = (encoded.vectors - self.mean.astype(np.float64))[encoded.known]
        total = float((centred**2).sum())
        projected = float(((centred @ self.axes.astype(np.float64)) ** 2).sum())
        return max(0.0, 1 - projected / total) if total > 0 else 0.0

    def read(self, samples: Sequence[Sample], encoder: Encoder, net: Any, settings: Any) -> Vectors:
        """The vectors of the samples that the matrices need; a missing reference is read as an empty text."""
        read: dict[str, list[tuple[str, ...]]] = {"right": [(sample.response,) for sample in samples]}
        if "f" in self.matrices:
            read["f"] = [sample.context[-settings.context_turns :] for sample in samples]
        if "g" in self.matrices:
            read["g"] = [(sample.reference or "",) for sample in samples]
        place: dict[tuple[str, ...], int] = {}
        rows = {
            side: np.array([place.setdefault(d, len(place)) for d in dialogues], dtype=np.int64)
            for side, dialogues in read.items()
        }
        encoded = Encoded.of(Dialogues.of(list(place)), encoder, net, settings.turn_words)
        projected = self.project(encoded)
        cut = np.any([encoded.cut[at] for at in rows.values()], axis=0)
        right = projected[rows.pop("right")]
        return Vectors({side: projected[at] for side, at in rows.items()}, right, np.asarray(cut))

    def products(self, vectors: Vectors) -> dict[str, Floats]:
        """Part → its product for each sample, cᵀMr̂ for f and rᵀNr̂ for g, float64 (n,)."""
        return {
            part: np.einsum("nk,nk->n", vectors.left[part] @ matrix.astype(np.float64), vectors.right)
            for part, matrix in self.matrices.items()
        }

    def score(self, products: Mapping[str, Floats]) -> Floats:
        """(cᵀMr̂ + rᵀNr̂ - α) / β, eq. (1), float64 of the products' shape."""
        total: Floats = np.asarray(sum(products.values()))
        return (total - self.alpha) / self.beta

    def shares(self, products: Mapping[str, Floats]) -> dict[str, Floats]:
        """Part → f = cᵀMr̂ / β or g = rᵀNr̂ / β; where there is only one part, α / β is subtracted from it."""
        if len(products) == 1:
            return {part: self.score({part: values}) for part, values in products.items()}
        return {part: values / self.beta for part, values in products.items()}


def spanning(products: Floats) -> tuple[float, float]:
    """α and β with which the 1st percentile of the finite products gets the score 1 and the 99th the score 5.

    If the two percentiles are equal, both get 3. The lowest and highest product would not do: products grow with the
    vectors' lengths, so one pair of long vectors would squeeze all others into a small range.
    """
    finite = products[np.isfinite(products)]
    low, high = (float(value) for value in np.percentile(finite, _CENTRAL)) if finite.size else (0.0, 0.0)
    if high <= low:
        return low - (LOWEST + HIGHEST) / 2, 1.0
    beta = (high - low) / (HIGHEST - LOWEST)
    return low - LOWEST * beta, beta
