"""Contexts, responses and references as the vectors that ADEM multiplies: encoded, then projected."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ssrem.evaluators.adem.config import AdemConfig
from ssrem.evaluators.core.word_sequences import Stretches, Words
from ssrem.samples import Candidates, Encode, Floats, Rows, Sample

if TYPE_CHECKING:
    from ssrem.evaluators.adem.model import HierarchicalEncoder
    from ssrem.evaluators.adem.state import Projection

_TURNS = 256
_DIALOGUES = 2_048


@dataclass(frozen=True)
class Dialogues:
    """What is encoded: a context is a dialogue, and a response or a reference is one of a single turn.

    texts: distinct turns. turns: int64 (n, t), rows of `texts`, oldest first, -1 behind the last turn.
    """

    texts: Sequence[str]
    turns: Rows

    @classmethod
    def of(cls, dialogues: Sequence[tuple[str, ...]]) -> Dialogues:
        """Of dialogues given as turns."""
        places: dict[str, int] = {}
        turns = np.full((len(dialogues), max(map(len, dialogues), default=1) or 1), -1, dtype=np.int64)
        for row, dialogue in enumerate(dialogues):
            for column, turn in enumerate(dialogue):
                turns[row, column] = places.setdefault(turn, len(places))
        return cls(list(places), turns)

    @classmethod
    def among(cls, texts: Sequence[str], turns: Rows) -> Dialogues:
        """Of rows of longer `texts`, int64 (n, t), of which the others are left out; -1 anywhere: no turn."""
        used, places = np.unique(turns[turns >= 0], return_inverse=True)
        renamed = np.full_like(turns, -1)
        renamed[turns >= 0] = places
        return cls([texts[row] for row in used.tolist()], renamed)


@dataclass(frozen=True)
class Encoded:
    """Dialogues as vectors, float64 (n, h).

    known: bool (n,), whether there is a known word; else the vector is zero. cut: bool (n,), whether known
    words fell away.
    """

    vectors: Floats
    known: NDArray[np.bool_]
    cut: NDArray[np.bool_]

    def and_then(self, other: Encoded) -> Encoded:
        """These, then the others."""
        return Encoded(
            np.concatenate([self.vectors, other.vectors]),
            np.concatenate([self.known, other.known]),
            np.concatenate([self.cut, other.cut]),
        )


@dataclass(frozen=True)
class Vectors:
    """What M and N stand between, float64 (n, k) each.

    left: part → contexts ("f") or references ("g"). right: responses. cut: bool (n,), whether words fell away.
    """

    left: Mapping[str, Floats]
    right: Floats
    cut: NDArray[np.bool_]

    def part(self, rows: Rows) -> Vectors:
        """Those at `rows`."""
        left = {part: vectors[rows] for part, vectors in self.left.items()}
        return Vectors(left, self.right[rows], self.cut[rows])


def lay_turns(words: Words, turn_words: int) -> Stretches:
    """The first known words of each text."""
    first, last = words.ends[:-1], words.ends[1:]
    kept = np.minimum(last, first + turn_words)
    return Stretches(first, kept, kept < last)


def encode_dialogues(
    dialogues: Dialogues, encode: Encode, config: AdemConfig, net: HierarchicalEncoder | None
) -> Encoded:
    """With a network its last state (Lowe et al. 2017, section 4), else the mean of the turns' vectors.

    A turn without a known word is passed over. No dialogue's vector depends on the others.
    """
    turns = dialogues.turns
    if net is None:
        texts = list(dialogues.texts)
        vectors = np.asarray(encode(texts or [""]), dtype=np.float64)
        found = _where(turns, np.asarray(vectors.any(axis=1)))
        sums = np.zeros((len(turns), vectors.shape[1]))
        for column in range(turns.shape[1]):
            sums += np.where(found[:, column, None], vectors[turns[:, column]], 0.0)
        means = sums / np.maximum(found.sum(axis=1), 1)[:, None]
        return Encoded(means, np.asarray(found.any(axis=1)), np.zeros(len(turns), dtype=bool))
    words = Words.of(list(dialogues.texts) or [""], encode)
    texts_at = lay_turns(words, config.turn_words)
    found = _where(turns, texts_at.lengths > 0)
    known, cut = (np.asarray(there.any(axis=1)) for there in (found, _where(turns, texts_at.cut)))
    return Encoded(_last_states(net, words, texts_at, turns, found), known, cut)


def _where(turns: Rows, true: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether there is a turn and it is one for which `true`, bool (texts,), holds; bool (n, t)."""
    found = np.zeros(turns.shape, dtype=bool)
    found[turns >= 0] = true[turns[turns >= 0]]
    return found


def _last_states(
    net: HierarchicalEncoder, words: Words, texts: Stretches, turns: Rows, known: NDArray[np.bool_]
) -> Floats:
    """Each text is read once; batches are of texts that are about as long."""
    import torch

    from ssrem.evaluators.bilinear.training import one_thread

    vectors = torch.zeros(len(texts.lengths), net.norm.normalized_shape[0])
    order = np.argsort(texts.lengths, kind="stable")
    order = order[texts.lengths[order] > 0]
    states = np.zeros((len(turns), net.turns.hidden_size))
    with torch.no_grad(), one_thread():
        for first in range(0, len(order), _TURNS):
            batch = order[first : first + _TURNS]
            vectors[torch.from_numpy(batch)] = net.utterances(words, texts.of(batch))
        for first in range(0, len(turns), _DIALOGUES):
            at = slice(first, first + _DIALOGUES)
            read = vectors[torch.from_numpy(np.maximum(turns[at], 0))]
            states[at] = net.states(read, torch.from_numpy(known[at]))[:, -1].numpy()
    return states


def context_rows(candidates: Candidates, rows: Rows, turns: int) -> Rows:
    """The last turns before each response, rows of the candidates' texts, int64 (n, turns); -1 behind them."""
    stop = candidates.context_stop[rows]
    at = np.maximum(candidates.context_start[rows], stop - turns)[:, None] + np.arange(turns)
    return np.where(at < stop[:, None], at, -1)


def encode_rows(
    candidates: Candidates,
    turns: Rows,
    encode: Encode,
    config: AdemConfig,
    net: HierarchicalEncoder | None,
) -> Encoded:
    """Dialogues given as rows of the candidates' texts, int64 (n, t), -1 anywhere: no turn."""
    return encode_dialogues(Dialogues.among(candidates.texts, turns), encode, config, net)


def encode_samples(
    samples: Sequence[Sample],
    parts: Collection[str],
    encode: Encode,
    config: AdemConfig,
    net: HierarchicalEncoder | None,
    projection: Projection,
) -> Vectors:
    """What the `parts`, "f" and "g", are made of; a reference that is missing is a text without words."""
    read: dict[str, list[tuple[str, ...]]] = {"right": [(sample.response,) for sample in samples]}
    if "f" in parts:
        read["f"] = [sample.context[-config.context_turns :] for sample in samples]
    if "g" in parts:
        read["g"] = [(sample.reference or "",) for sample in samples]
    place: dict[tuple[str, ...], int] = {}
    rows = {
        side: np.array([place.setdefault(d, len(place)) for d in dialogues], dtype=np.int64)
        for side, dialogues in read.items()
    }
    encoded = encode_dialogues(Dialogues.of(list(place)), encode, config, net)
    projected = projection.apply(encoded)
    cut = np.any([encoded.cut[at] for at in rows.values()], axis=0)
    right = projected[rows.pop("right")]
    return Vectors({side: projected[at] for side, at in rows.items()}, right, np.asarray(cut))
