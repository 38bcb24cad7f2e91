"""Learning M, the matrix of f, from true responses and their negatives (Bak and Oh 2020, section 3.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.evaluators.bilinear.config import BilinearConfig
from ssrem.evaluators.bilinear.encoded_candidates import ABSENT, EncodedCandidates
from ssrem.samples import Floats, Rows
from ssrem.training.trainer import Group, Loss, Step, shuffled_epochs


def row_scores(context: torch.Tensor, matrix: torch.Tensor, responses: torch.Tensor) -> torch.Tensor:
    """cᵀMr of each row's own candidates: (b, d), (d, d), (b, k, d) → (b, k). Nothing is of size b × b."""
    return torch.einsum("bd,bkd->bk", context @ matrix, responses)


def row_loss(scores: torch.Tensor, present: torch.Tensor, logits: str, loss: str = "softmax") -> torch.Tensor:
    """Mean over the rows of scores (b, k); the true response is column 0, absent ones take no part.

    logits: 'tanh' puts f into the softmax as the paper writes it, 'raw' puts cᵀMr as the authors' code does.
    loss: 'softmax' is -log p(true response), eq. (4) and (5); 'ranking' is -log p(the columns in their order) in the
    model of Plackett and Luce (ListMLE, Xia et al. 2008, section 4.3), a product with that p as its first factor.
    """
    values = torch.tanh(scores) if logits == "tanh" else scores
    values = values.masked_fill(~present, ABSENT)
    if loss == "softmax":
        return -torch.log_softmax(values, dim=1)[:, 0].mean()
    rest = torch.logcumsumexp(values.flip(1), dim=1).flip(1)  # of each column and all after it
    return (rest - values).masked_fill(~present, 0).sum(dim=1).mean()


class MatrixObjective:
    """M, learned from `cases` and judged on `valid`."""

    def __init__(self, cases: EncodedCandidates, valid: EncodedCandidates, config: BilinearConfig) -> None:
        self.cases, self.valid, self.config = cases, valid, config
        self.matrix = torch.nn.Parameter(torch.from_numpy(initial(cases.vectors.shape[1], config)))

    def groups(self) -> Sequence[Group]:
        return [Group({"matrix": self.matrix}, self.config.learning_rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        return shuffled_epochs(len(self.cases), self.config.batch_size, [self.config.seed])

    def loss(self, rows: Rows, step: Step) -> Loss:
        scores, present = self._scores(self.cases, rows)
        return Loss.averaged(row_loss(scores, present, self.config.logits, self.config.loss), len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        """Loss, and the share of negatives that the true response outranks (ties count half)."""
        loss = above = pairs = 0.0
        for first in range(0, len(self.valid), self.config.batch_size):
            rows = np.arange(first, min(first + self.config.batch_size, len(self.valid)))
            scores, present = self._scores(self.valid, rows)
            loss += float(row_loss(scores, present, self.config.logits, self.config.loss)) * len(rows)
            difference = scores[:, :1] - scores[:, 1:]
            wins = (difference > 0).double() + 0.5 * (difference == 0).double()
            above += float((wins * present[:, 1:]).sum())
            pairs += float(present[:, 1:].sum())
        return {"valid_loss": loss / len(self.valid), "valid_gt_above": above / pairs}

    def learned(self) -> Floats:
        """M, float64 (d, d)."""
        return self.matrix.detach().numpy().astype(np.float64)

    def _scores(self, cases: EncodedCandidates, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores of the candidates of each row, and which of them are present, (b, k) each."""
        responses, present = cases.responses(rows)
        context = torch.from_numpy(cases.contexts(rows))
        return row_scores(context, self.matrix, torch.from_numpy(responses)), torch.from_numpy(present)


def initial(dimensions: int, config: BilinearConfig) -> NDArray[np.float32]:
    """M before training, float32 (d, d): zeros, the identity / d, or N(0, 1) as in the authors' code."""
    if config.init == "zero":
        return np.zeros((dimensions, dimensions), dtype=np.float32)
    if config.init == "identity":
        return np.eye(dimensions, dtype=np.float32) / np.float32(dimensions)
    generator = np.random.default_rng([config.seed, 1])
    return generator.standard_normal((dimensions, dimensions)).astype(np.float32)
