"""Learning a table of token vectors together with M, from true responses, their negatives and those of the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy, embedding_bag, normalize

from ssrem.encoders.tables import LearnedTable
from ssrem.evaluators.bilinear.config import COPY_COST
from ssrem.evaluators.bilinear.encoded_candidates import ABSENT
from ssrem.evaluators.bilinear.objective import VectorObjective, copy_cost
from ssrem.samples import TRAIN, VALID, Candidates, Rows

if TYPE_CHECKING:
    from ssrem.encoders.words import WordAverage
    from ssrem.evaluators.bilinear.config import TableConfig

# Tokens of a text that are learned from: enough for nine turns in ten, and long texts do not slow training down.
_TOKENS = 64


class Texts:
    """Token rows of texts, cut after _TOKENS, one after another. start (m + 1,): where each text begins in `tokens`."""

    def __init__(self, table: WordAverage, texts: Sequence[str]) -> None:
        rows = [row[:_TOKENS] for row in table.rows(texts)]
        self.start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        self.tokens = np.fromiter((token for row in rows for token in row), np.int64, int(self.start[-1]))

    def bags(self, texts: Rows) -> tuple[Rows, Rows]:
        """Tokens of these texts, one after another, and where each text begins."""
        lengths = self.start[texts + 1] - self.start[texts]
        begin = np.cumsum(lengths) - lengths
        return self.tokens[np.repeat(self.start[texts] - begin, lengths) + np.arange(lengths.sum())], begin


class LearnedRows:
    """The rows of `start` that occur in `texts`, as a parameter.

    Those learn that occur `min_count` times in the texts with the numbers `seen`.
    """

    def __init__(self, start: WordAverage, texts: Texts, seen: Rows, min_count: int) -> None:
        self.start, self.texts = start, texts
        self.used, texts.tokens = np.unique(texts.tokens, return_inverse=True)
        self.frequent = np.bincount(texts.bags(seen)[0], minlength=len(self.used)) >= min_count
        vectors = start.vectors[self.used]
        # Steps of Adam are of one size, so the table is brought to one scale.
        self.scale = float(np.sqrt(np.square(vectors).sum(axis=1).mean())) or 1.0
        self.table = torch.nn.Parameter(torch.from_numpy(vectors / np.float32(self.scale)))
        learns = torch.from_numpy(self.frequent[:, None].astype(np.float32))
        self.table.register_hook(lambda gradient: gradient * learns)  # type: ignore[no-untyped-call]
        self.weights = torch.from_numpy(start.weights[self.used])

    def vectors(self, texts: Rows) -> torch.Tensor:
        """V of the texts, of unit length: (…) → (…, d)."""
        distinct, places = np.unique(texts, return_inverse=True)
        tokens, begin = self.texts.bags(distinct)
        chosen = torch.from_numpy(tokens)
        sums = embedding_bag(
            chosen, self.table, torch.from_numpy(begin), mode="sum", per_sample_weights=self.weights[chosen]
        )
        return normalize(sums, dim=1)[torch.from_numpy(places.reshape(texts.shape))]

    def learned(self) -> tuple[Rows, NDArray[np.float32]]:
        """The rows that learn (k,) and their vectors now (k, d)."""
        vectors = self.table.detach().numpy()[self.frequent] * np.float32(self.scale)
        return self.used[self.frequent], vectors


class TableObjective(VectorObjective):
    """The rows of `start` that occur often enough learn with M."""

    config: TableConfig

    def __init__(
        self,
        start: WordAverage,
        candidates: Candidates,
        wanted: Rows,
        usable: Mapping[int, Rows],
        config: TableConfig,
    ) -> None:
        super().__init__(candidates, wanted, usable, config, start)
        self.start = start
        seen = np.unique(self.rows[TRAIN][self.rows[TRAIN] >= 0])
        self.learning = LearnedRows(start, Texts(start, self.texts), seen, config.min_count)

    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        return {"table": self.learning.table}

    def data(self) -> list[NDArray[Any]]:
        texts = self.learning.texts
        return [
            self.rows[TRAIN],
            self.rows[VALID],
            texts.start,
            texts.tokens,
            self.learning.used,
            self.content,
        ]

    def encoder(self, share: float) -> LearnedTable:
        rows, learned = self.learning.learned()
        mixed = self.start.vectors[rows] + np.float32(share) * (learned - self.start.vectors[rows])
        return LearnedTable.of(self.start, rows, mixed)

    def scores(self, batch: Rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        count = self.config.context_turns
        present = torch.from_numpy(batch >= 0)
        vectors = self.learning.vectors(np.maximum(batch, 0)) * present[:, :, None]
        turns, responses = vectors[:, :count], vectors[:, count:]
        context = normalize(torch.einsum("t,btd->bd", torch.exp(self.turns), turns), dim=1) @ self.matrix
        nearest = torch.einsum("btd,bkd->bkt", turns, responses).max(dim=2).values
        cost = copy_cost(nearest)
        every = context @ responses.reshape(-1, responses.shape[2]).T
        size, width = responses.shape[:2]
        place = torch.arange(size)[:, None] * width + torch.arange(width)
        own = every.gather(1, place) - cost
        copied = torch.einsum("bd,btd->bt", context, turns) - COPY_COST
        # Another's candidate, or a turn, with the text of the true response is no negative.
        content = np.where(batch >= 0, self.content[np.maximum(batch, 0)], -1)
        true = content[:, count, None]
        wrong = (content[:, count:].reshape(1, -1) != true) & (batch[:, count:].reshape(1, -1) >= 0)
        wrong_copied = (content[:, :count] != true) & (batch[:, :count] >= 0)
        values = every.scatter(1, place, own).masked_fill(~torch.from_numpy(wrong), ABSENT)
        values = values.scatter(1, place[:, :1], own[:, :1])
        values = torch.cat([values, copied.masked_fill(~torch.from_numpy(wrong_copied), ABSENT)], dim=1)
        return cross_entropy(values * torch.exp(self.sharpness), place[:, 0]), own.detach(), copied.detach()
