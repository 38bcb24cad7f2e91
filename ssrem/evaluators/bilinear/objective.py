"""What the objectives of SSREM share: the vectors of texts learn with M, the weights of the turns and a temperature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.evaluators.bilinear.config import COPY_COST, COPY_FROM, FitConfig
from ssrem.evaluators.bilinear.encoded_candidates import last_turns
from ssrem.evaluators.core.candidate_columns import contents
from ssrem.samples import TRAIN, VALID, Candidates, Rows
from ssrem.training.trainer import Group, Loss, Step, shuffled_epochs

_TEMPERATURE = 0.05


class VectorObjective(ABC):
    """True responses against their negatives and those of the batch, judged on the validation split.

    wanted: rows (n, 1 + k) of the true response and its negatives, -1 for one that is missing. usable: split →
    positions of the responses that are learned from or validated on.
    rows: split → (n, turns + 1 + k), of the last turns, the newest first, then as in `wanted`, as positions in `texts`.
    content: of `texts`, as `contents` gives it.
    """

    def __init__(
        self,
        candidates: Candidates,
        wanted: Rows,
        usable: Mapping[int, Rows],
        config: FitConfig,
        start: Encoder,
    ) -> None:
        self.config = config
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
        self.texts = [candidates.texts[row] for row in needed.tolist()]
        self.content = contents(self.texts)
        self.matrix = torch.nn.Parameter(torch.eye(start.dimensions))
        self.turns = torch.nn.Parameter(-torch.arange(config.context_turns) * float(np.log(2)))
        self.sharpness = torch.nn.Parameter(torch.tensor([float(-np.log(_TEMPERATURE))]))

    @abstractmethod
    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        """What V learns, by name."""

    @abstractmethod
    def data(self) -> list[NDArray[Any]]:
        """Everything that is learned from."""

    @abstractmethod
    def encoder(self, share: float) -> Encoder:
        """The encoder that was learned, `share` of the way from where it started."""

    @abstractmethod
    def scores(self, batch: Rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Mean loss of the batch (b, turns + 1 + k); scores of each row's own candidates (b, 1 + k), and of its turns
        as responses (b, turns)."""

    def groups(self) -> Sequence[Group]:
        rate = self.config.learning_rate
        slow = {**self.parameters(), "matrix": self.matrix}
        return [Group(slow, rate), Group({"turns": self.turns, "sharpness": self.sharpness}, rate * 10)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        return shuffled_epochs(len(self.rows[TRAIN]), self.config.batch_size, [self.config.seed])

    def loss(self, rows: Rows, step: Step) -> Loss:
        return Loss.averaged(self.scores(self.rows[TRAIN][rows])[0], len(rows))

    def validation(self) -> Rows:
        """The rows of the validation split in the order in which batches are made of them."""
        # Shuffled, so that a batch's other responses are not those of the same conversation.
        return np.random.default_rng(self.config.seed).permutation(self.rows[VALID])

    def validate(self, epoch: int) -> dict[str, float]:
        """Loss, and the share of negatives, and of copied turns, that the true response outranks (ties half)."""
        rows, loss = self.validation(), 0.0
        above, pairs = np.zeros(2), np.zeros(2)
        for first in range(0, len(rows), self.config.batch_size):
            batch = rows[first : first + self.config.batch_size]
            mean, own, copied = self.scores(batch)
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

    def learned(self, share: float) -> dict[str, NDArray[Any]]:
        """M, float32 (d, d), `share` of the way from the identity, and the weights of the turns, float32 (turns,)."""
        matrix = self.matrix.detach().cpu().numpy()
        identity = np.eye(len(matrix), dtype=np.float32)
        return {
            "matrix": identity + np.float32(share) * (matrix - identity),
            "turns": torch.exp(self.turns.detach()).cpu().numpy().copy(),
        }


def copy_cost(nearest: torch.Tensor) -> torch.Tensor:
    """copied(c, r) of the highest cosine of r with a turn of c."""
    return COPY_COST * ((nearest - COPY_FROM) / (1 - COPY_FROM)).clamp(0, 1)
