"""Turns contexts, responses and references into the vectors that ADEM multiplies: encoded, then projected."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ssrem.encoders.hierarchical_gru import Dialogues, Encoded, encode_dialogues, holds_of
from ssrem.evaluators.adem.config import AdemConfig
from ssrem.evaluators.adem.state import Projection, Vectors
from ssrem.samples import Candidates, Encode, Rows, Sample

if TYPE_CHECKING:
    from ssrem.encoders.gru_network import GruNetwork


@dataclass(frozen=True)
class Reader:
    """Turns texts into vectors. net: the recurrent encoder over the word vectors of `encode`; None: `encode` alone."""

    encode: Encode
    config: AdemConfig
    net: GruNetwork | None

    def dialogues(self, dialogues: Dialogues) -> Encoded:
        """The network's last states; without a network the means of the turns' vectors.

        Turns without a known word are skipped. A dialogue's vector does not depend on the other dialogues.
        """
        if self.net is not None:
            return encode_dialogues(dialogues, self.encode, self.net, self.config.turn_words)
        turns = dialogues.turns
        vectors = np.asarray(self.encode(list(dialogues.texts) or [""]), dtype=np.float64)
        read = holds_of(turns, np.asarray(vectors.any(axis=1)))
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
