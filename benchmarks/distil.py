"""Writes ssrem/packaged/wordllama-minilm: WordLlama's table, moved towards the packaged sentence encoder.

python -m benchmarks.distil [--texts 32768] [--epochs 4] [--vectors FOLDER]

The texts are turns of the training split of the default corpus, drawn once; --vectors keeps the sentence encoder's
vectors of them, which take an hour on two cores, for the next time. What is learned are the rows of tokens that occur
five times or more. The loss of a batch is 1 - r, Pearson's r between the cosines of all pairs of its texts by the table
and by the sentence encoder. 2,048 texts are held out and choose the epoch.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.encoders import read_turns
from ssrem.encoders import load_encoder
from ssrem.encoders.hub import MINILM
from ssrem.encoders.store import VectorStore
from ssrem.encoders.tables import DISTILLED, LearnedTable, packaged_tokens
from ssrem.encoders.transformer import Transformer
from ssrem.evaluators import PACKAGED
from ssrem.evaluators.bilinear_training import LearnedRows, Texts
from ssrem.samples import TRAIN, Rows
from ssrem.training.trainer import Group, Loss, Schedule, Step, has_bf16, shuffled_epochs, train

BATCH, HELD_OUT, MIN_COUNT, TOKENS = 512, 2_048, 5, 64


class Similarity:
    """The rows of the table, learned from the vectors (n, d) that a teacher gives the texts (n)."""

    def __init__(self, texts: Sequence[str], teacher: NDArray[np.float32]) -> None:
        self.teacher = torch.nn.functional.normalize(torch.from_numpy(teacher), dim=1)
        self.count = len(texts) - HELD_OUT
        self.rows = LearnedRows(
            packaged_tokens(), Texts(packaged_tokens(), texts), np.arange(self.count), MIN_COUNT
        )

    def groups(self) -> Sequence[Group]:
        return [Group({"table": self.rows.table}, 2e-3)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        return (
            [rows for rows in epoch if len(rows) == BATCH]
            for epoch in shuffled_epochs(self.count, BATCH, [0])
        )

    def loss(self, rows: Rows, step: Step) -> Loss:
        return Loss.averaged(self._distance(rows), len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        return {"valid_loss": float(self._distance(np.arange(self.count, self.count + HELD_OUT)))}

    def _distance(self, rows: Rows) -> torch.Tensor:
        """1 - Pearson's r between the cosines of all pairs of texts by the table and by the teacher."""
        other = ~torch.eye(len(rows), dtype=torch.bool)
        vectors, teacher = self.rows.vectors(rows), self.teacher[torch.from_numpy(rows)]
        cosines = torch.stack([(vectors @ vectors.T)[other], (teacher @ teacher.T)[other]])
        return 1 - torch.corrcoef(cosines)[0, 1]


def teacher_vectors(texts: Sequence[str], folder: Path | None) -> NDArray[np.float32]:
    """The sentence encoder's vectors of the texts, of their first tokens; `folder` has those of an earlier time."""
    encoder = load_encoder(MINILM)
    assert isinstance(encoder, Transformer)
    encoder.max_length = TOKENS
    with torch.autocast("cpu", torch.bfloat16, enabled=has_bf16(torch.device("cpu"))):
        return VectorStore(folder).encode(encoder, texts) if folder else encoder.encode(texts)


def main() -> None:
    """Learn the table and write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=32_768)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--vectors", type=Path)
    options = parser.parse_args()
    turns = read_turns("chitchat")
    distinct = sorted({text for text, split in zip(turns.text, turns.split, strict=True) if split == TRAIN})
    drawn = np.random.default_rng(0).permutation(len(distinct))[: options.texts]
    texts = [distinct[at] for at in drawn.tolist()]
    objective = Similarity(texts, teacher_vectors(texts, options.vectors))
    curve = train(objective, Schedule(options.epochs, 0, clip=None, from_0=True))
    for epoch in curve.history:
        print({name: round(value, 4) for name, value in epoch.items()})
    rows, vectors = objective.rows.learned()
    table = LearnedTable.of(packaged_tokens(), rows, vectors)
    table.save(PACKAGED / DISTILLED)
    print(table.signature)


if __name__ == "__main__":
    main()
