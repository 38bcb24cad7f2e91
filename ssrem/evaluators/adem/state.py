"""How ADEM turns texts into vectors and vectors into a score, and what it learns for that."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.encoders.recurrent import PREFIX, Dialogues, Encoded, encode_dialogues
from ssrem.errors import EvaluatorError
from ssrem.evaluators.adem.config import AdemConfig
from ssrem.evaluators.core.scaling import Bounds
from ssrem.samples import Candidates, Encode, Floats, Rows, Sample

if TYPE_CHECKING:
    from ssrem.encoders.gru import GruNetwork

LOWEST, HIGHEST = 1.0, 5.0
"""The scale of the paper's human scores, which ADEM's scores are on."""

MATRICES = {"f": "M", "g": "N"}
"""Which matrix a part has."""

_CENTRAL = (1, 99)


@dataclass(frozen=True)
class Vectors:
    """The vectors on both sides of M and N, float64 (n, k) each.

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
class Projection:
    """Principal components: mean float32 (h,), axes float32 (h, k), orthonormal columns, the widest first."""

    mean: NDArray[np.float32]
    axes: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: Floats, components: int) -> Projection:
        """Of vectors (n, h); k is the least of `components`, n and h.

        The sign of an axis is arbitrary: it is chosen so that the largest entry is positive.
        """
        mean = vectors.mean(axis=0)
        _, _, rows = np.linalg.svd(vectors - mean, full_matrices=False)
        rows = rows[:components]
        signs = np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)])
        return cls(mean.astype(np.float32), (rows * signs[:, None]).T.astype(np.float32))

    def apply(self, encoded: Encoded) -> Floats:
        """Float64 (n, k); zero, the mean of all vectors, for a dialogue without a known word."""
        projected: Floats = self._centred(encoded) @ self.axes.astype(np.float64)
        return np.where(encoded.known[:, None], projected, 0.0)

    def unexplained(self, encoded: Encoded) -> float:
        """Share of the variance around the mean that the projection leaves out."""
        centred = self._centred(encoded)[encoded.known]
        total = float((centred**2).sum())
        projected = float(((centred @ self.axes.astype(np.float64)) ** 2).sum())
        return max(0.0, 1 - projected / total) if total > 0 else 0.0

    def _centred(self, encoded: Encoded) -> Floats:
        return np.asarray(encoded.vectors - self.mean.astype(np.float64))


@dataclass(frozen=True)
class Reader:
    """Turns texts into vectors. net: the recurrent encoder over the units of `encoder`; None: `encode` alone, the
    encoder's own or a cache."""

    encoder: Encoder
    encode: Encode
    config: AdemConfig
    net: GruNetwork | None

    def dialogues(self, dialogues: Dialogues) -> Encoded:
        """The network's last states; without a network the means of the turns' vectors.

        Turns without a known word are skipped. A dialogue's vector does not depend on the other dialogues.
        """
        if self.net is not None:
            return encode_dialogues(dialogues, self.encoder, self.net, self.config.turn_words)
        turns = dialogues.turns
        vectors = np.asarray(self.encode(list(dialogues.texts) or [""]), dtype=np.float64)
        read = dialogues.mask(np.asarray(vectors.any(axis=1)))
        sums = np.zeros((len(turns), vectors.shape[1]))
        for column in range(turns.shape[1]):
            sums += np.where(read[:, column, None], vectors[turns[:, column]], 0.0)
        means = sums / np.maximum(read.sum(axis=1), 1)[:, None]
        return Encoded(means, np.asarray(read.any(axis=1)), np.zeros(len(turns), dtype=bool))

    def rows(self, candidates: Candidates, turns: Rows) -> Encoded:
        """Of dialogues given as rows of the candidates' texts, int64 (n, t); -1 is no turn."""
        return self.dialogues(Dialogues.among(candidates.texts, turns))

    def samples(self, samples: Sequence[Sample], parts: Collection[str], projection: Projection) -> Vectors:
        """The vectors that the `parts`, "f" and "g", need; a missing reference is read as an empty text."""
        read: dict[str, list[tuple[str, ...]]] = {"right": [(sample.response,) for sample in samples]}
        if "f" in parts:
            read["f"] = [sample.context[-self.config.context_turns :] for sample in samples]
        if "g" in parts:
            read["g"] = [(sample.reference or "",) for sample in samples]
        place: dict[tuple[str, ...], int] = {}
        rows = {
            side: np.array([place.setdefault(d, len(place)) for d in dialogues], dtype=np.int64)
            for side, dialogues in read.items()
        }
        encoded = self.dialogues(Dialogues.of(list(place)))
        projected = projection.apply(encoded)
        cut = np.any([encoded.cut[at] for at in rows.values()], axis=0)
        right = projected[rows.pop("right")]
        return Vectors({side: projected[at] for side, at in rows.items()}, right, np.asarray(cut))


def context_rows(candidates: Candidates, rows: Rows, turns: int) -> Rows:
    """The last `turns` turns before each response, rows of the candidates' texts, int64 (n, turns), -1 after them."""
    stop = candidates.context_stop[rows]
    at = np.maximum(candidates.context_start[rows], stop - turns)[:, None] + np.arange(turns)
    return np.where(at < stop[:, None], at, -1)


@dataclass(frozen=True)
class Constants:
    """α and β of score = (cᵀMr̂ + rᵀNr̂ - α) / β (eq. 1)."""

    alpha: float
    beta: float

    @classmethod
    def spanning(cls, products: Floats) -> Constants:
        """The 1st percentile of the finite products gets the score 1, the 99th 5; both 3 if they are equal.

        The extremes would not do: products grow with the vectors' lengths, so one long pair would squeeze all others
        into a small range.
        """
        finite = products[np.isfinite(products)]
        if not finite.size:
            return cls(-(LOWEST + HIGHEST) / 2, 1.0)
        low, high = (float(value) for value in np.percentile(finite, _CENTRAL))
        if high <= low:
            return cls(low - (LOWEST + HIGHEST) / 2, 1.0)
        beta = (high - low) / (HIGHEST - LOWEST)
        return cls(low - LOWEST * beta, beta)

    @classmethod
    def around(cls, products: Floats, mean: float) -> Constants:
        """β as in `spanning`, and α so that the mean of the scores is `mean`."""
        beta = cls.spanning(products).beta
        return cls(float(products.mean()) - mean * beta, beta)


@dataclass(frozen=True)
class State:
    """What is learned.

    encoder: weights of the recurrent encoder, empty without one. matrices: part → M or N, float32 (k, k). bounds: of
    each part. tuned: number of human scores.
    """

    encoder: Mapping[str, NDArray[np.float32]]
    projection: Projection
    matrices: Mapping[str, NDArray[np.float32]]
    constants: Constants
    bounds: Mapping[str, Bounds]
    tuned: int = 0

    @property
    def tensors(self) -> dict[str, NDArray[np.floating]]:
        """Everything learned but the bounds, by name."""
        return {
            **{PREFIX + name: array for name, array in self.encoder.items()},
            "pca.mean": self.projection.mean,
            "pca.axes": self.projection.axes,
            **{MATRICES[part]: matrix for part, matrix in self.matrices.items()},
            "constants": np.array([self.constants.alpha, self.constants.beta]),
        }

    @classmethod
    def of(
        cls, tensors: Mapping[str, NDArray[np.floating]], bounds: Mapping[str, Bounds], tuned: int
    ) -> State:
        """From saved tensors; `bounds` has the evaluator's parts. EvaluatorError for shapes that do not fit."""
        if tensors["pca.axes"].ndim != 2:
            raise EvaluatorError(
                f"pca.axes of shape {tensors['pca.axes'].shape} is no matrix, train it again"
            )
        length, size = tensors["pca.axes"].shape
        wanted: dict[str, tuple[int, ...]] = {"pca.mean": (length,), "constants": (2,)}
        wanted |= {MATRICES[part]: (size, size) for part in bounds}
        for name, shape in wanted.items():
            if tensors[name].shape != shape:
                raise EvaluatorError(f"{name} of shape {tensors[name].shape} is not {shape}, train it again")
        encoder = {name.removeprefix(PREFIX): a for name, a in tensors.items() if name.startswith(PREFIX)}
        return cls(
            {name: array.astype(np.float32) for name, array in encoder.items()},
            Projection(tensors["pca.mean"].astype(np.float32), tensors["pca.axes"].astype(np.float32)),
            {part: tensors[MATRICES[part]].astype(np.float32) for part in bounds},
            Constants(*tensors["constants"].astype(np.float64).tolist()),
            bounds,
            tuned,
        )

    def shares(self, products: Mapping[str, Floats]) -> dict[str, Floats]:
        """f = cᵀMr̂ / β and g = rᵀNr̂ / β; an evaluator with one part subtracts α / β from it."""
        if len(products) == 1:
            return {part: self.score({part: values}) for part, values in products.items()}
        return {part: values / self.constants.beta for part, values in products.items()}

    def products(self, vectors: Vectors) -> dict[str, Floats]:
        """cᵀMr̂ and rᵀNr̂ of each row, float64 (n,) a part."""
        left, right = vectors.left, vectors.right
        return {part: bilinear(left[part], matrix, right) for part, matrix in self.matrices.items()}

    def score(self, products: Mapping[str, Floats]) -> Floats:
        """(cᵀMr̂ + rᵀNr̂ - α) / β, eq. (1), float64 of the products' shape."""
        total: Floats = np.asarray(sum(products.values()))
        return (total - self.constants.alpha) / self.constants.beta


def bilinear(left: Floats, matrix: NDArray[np.float32], right: Floats) -> Floats:
    """leftᵀ matrix right of each row, float64 (n,), from (n, k) each."""
    products: Floats = np.einsum("nk,nk->n", left @ matrix.astype(np.float64), right)
    return products
