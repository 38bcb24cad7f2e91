"""Learning a table of token vectors together with M, from true responses, their negatives and those of the batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy, embedding_bag, normalize

from ssrem.encoders.learned_table import LearnedTable
from ssrem.evaluators.bilinear.config import COPY_COST, COPY_FROM
from ssrem.evaluators.bilinear.encoded_candidates import last_turns
from ssrem.samples import TRAIN, VALID, Candidates, Rows
from ssrem.training.trainer import Group, Loss, Step, shuffled_epochs

if TYPE_CHECKING:
    from ssrem.encoders.word_average import WordAverage
    from ssrem.evaluators.bilinear.config import TableConfig

# Tokens of a text that are learned from: enough for nine turns in ten, and long texts do not slow training down.
_TOKENS = 64
_TEMPERATURE = 0.05
# As good as minus infinity in a softmax, and without its gradients that are no numbers.
_ABSENT = -1e30


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


class TableObjective:
    """The rows of `start` that occur often enough, M, the weights of the turns and the temperature.

    wanted: rows (n, 1 + k) of the true response and its negatives, -1 for one that is missing. usable: split →
    positions of the responses that are learned from or validated on.
    """

    def __init__(
        self,
        start: WordAverage,
        candidates: Candidates,
        wanted: Rows,
        usable: Mapping[int, Rows],
        config: TableConfig,
    ) -> None:
        self.start, self.config = start, config
        turns = last_turns(candidates.context_start, candidates.context_stop, config.context_turns)
        rows = {split: np.concatenate([turns[at], wanted[at]], axis=1) for split, at in usable.items()}
        needed, places = np.unique(np.concatenate([rows[TRAIN], rows[VALID]]), return_inverse=True)
        if needed[0] < 0:
            needed, places = needed[1:], places - 1
        places = places.reshape(-1, turns.shape[1] + wanted.shape[1])
        self.rows: dict[int, Rows] = {
            TRAIN: places[: len(usable[TRAIN])],
            VALID: places[len(usable[TRAIN]) :],
        }
        texts = [candidates.texts[row] for row in needed.tolist()]
        same: dict[str, int] = {}
        self.content = np.array(
            [same.setdefault(" ".join(text.lower().split()), len(same)) for text in texts]
        )
        seen = np.unique(self.rows[TRAIN][self.rows[TRAIN] >= 0])
        self.learning = LearnedRows(start, Texts(start, texts), seen, config.min_count)
        self.matrix = torch.nn.Parameter(torch.eye(start.dimensions))
        self.turns = torch.nn.Parameter(-torch.arange(config.context_turns) * float(np.log(2)))
        self.sharpness = torch.nn.Parameter(torch.tensor([float(-np.log(_TEMPERATURE))]))

    def data(self) -> list[NDArray[Any]]:
        """Everything that is learned from."""
        texts = self.learning.texts
        return [
            self.rows[TRAIN],
            self.rows[VALID],
            texts.start,
            texts.tokens,
            self.learning.used,
            self.content,
        ]

    def groups(self) -> Sequence[Group]:
        rate = self.config.learning_rate
        slow = {"table": self.learning.table, "matrix": self.matrix}
        return [Group(slow, rate), Group({"turns": self.turns, "sharpness": self.sharpness}, rate * 10)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        return shuffled_epochs(len(self.rows[TRAIN]), self.config.batch_size, [self.config.seed])

    def loss(self, rows: Rows, step: Step) -> Loss:
        return Loss.averaged(self._loss(self.rows[TRAIN][rows])[0], len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        """Loss, and the share of negatives, and of copied turns, that the true response outranks (ties half)."""
        # Shuffled, so that a batch's other responses are not those of the same conversation.
        rows, loss = np.random.default_rng(self.config.seed).permutation(self.rows[VALID]), 0.0
        above, pairs = np.zeros(2), np.zeros(2)
        for first in range(0, len(rows), self.config.batch_size):
            batch = rows[first : first + self.config.batch_size]
            mean, own, copied = self._loss(batch)
            loss += float(mean) * len(batch)
            turns = self.config.context_turns
            for at, (scores, present) in enumerate(
                ((own[:, 1:], batch[:, turns + 1 :] >= 0), (copied, batch[:, :turns] >= 0))
            ):
                difference = (own[:, :1] - scores).numpy()
                above[at] += float((((difference > 0) + 0.5 * (difference == 0)) * present).sum())
                pairs[at] += float(present.sum())
        shares = above / np.maximum(pairs, 1)
        return {
            "valid_loss": loss / len(rows),
            "valid_gt_above": float(shares[0]),
            "valid_gt_above_copied": float(shares[1]),
        }

    def encoder(self, share: float) -> LearnedTable:
        """The table with its learned rows, `share` of the way from where they started."""
        rows, learned = self.learning.learned()
        mixed = self.start.vectors[rows] + np.float32(share) * (learned - self.start.vectors[rows])
        return LearnedTable.of(self.start, rows, mixed)

    def learned(self, share: float) -> dict[str, NDArray[Any]]:
        """M, float32 (d, d), `share` of the way from the identity, and the weights of the turns, float32 (turns,)."""
        identity = np.eye(self.start.dimensions, dtype=np.float32)
        return {
            "matrix": identity + np.float32(share) * (self.matrix.detach().numpy() - identity),
            "turns": torch.exp(self.turns.detach()).numpy().copy(),
        }

    def _loss(self, batch: Rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Mean loss of the batch (b, turns + 1 + k); scores of each row's own candidates (b, 1 + k), and of its turns
        as responses (b, turns)."""
        count = self.config.context_turns
        present = torch.from_numpy(batch >= 0)
        vectors = self.learning.vectors(np.maximum(batch, 0)) * present[:, :, None]
        turns, responses = vectors[:, :count], vectors[:, count:]
        context = normalize(torch.einsum("t,btd->bd", torch.exp(self.turns), turns), dim=1) @ self.matrix
        nearest = torch.einsum("btd,bkd->bkt", turns, responses).max(dim=2).values
        cost = COPY_COST * ((nearest - COPY_FROM) / (1 - COPY_FROM)).clamp(0, 1)
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
        values = every.scatter(1, place, own).masked_fill(~torch.from_numpy(wrong), _ABSENT)
        values = values.scatter(1, place[:, :1], own[:, :1])
        values = torch.cat([values, copied.masked_fill(~torch.from_numpy(wrong_copied), _ABSENT)], dim=1)
        return cross_entropy(values * torch.exp(self.sharpness), place[:, 0]), own.detach(), copied.detach()
