"""Learning M, the matrix of f, from true responses and their negatives (Bak and Oh 2020, section 3.3)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Training
from ssrem.evaluators.bilinear.cases import EncodedCandidates
from ssrem.samples import Floats, Progress, Rows

if TYPE_CHECKING:
    from ssrem.evaluators.bilinear.config import BilinearConfig


# As good as minus infinity in a softmax, and without its gradients that are no numbers.
_ABSENT = -1e30


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
    values = values.masked_fill(~present, _ABSENT)
    if loss == "softmax":
        return -torch.log_softmax(values, dim=1)[:, 0].mean()
    rest = torch.logcumsumexp(values.flip(1), dim=1).flip(1)  # of each column and all after it
    return (rest - values).masked_fill(~present, 0).sum(dim=1).mean()


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: sums in the same order on every machine, and no oversubscription."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _batch(cases: EncodedCandidates, rows: Rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    responses, present = cases.responses(rows)
    return torch.from_numpy(cases.contexts(rows)), torch.from_numpy(responses), torch.from_numpy(present)


def _evaluate(cases: EncodedCandidates, matrix: torch.Tensor, config: BilinearConfig) -> tuple[float, float]:
    """Loss, and the share of negatives that the true response outranks (ties count half), over `cases`."""
    loss = above = pairs = 0.0
    for first in range(0, len(cases), config.batch_size):
        rows = np.arange(first, min(first + config.batch_size, len(cases)))
        context, responses, present = _batch(cases, rows)
        scores = row_scores(context, matrix, responses)
        loss += float(row_loss(scores, present, config.logits, config.loss)) * len(rows)
        difference = scores[:, :1] - scores[:, 1:]
        wins = (difference > 0).double() + 0.5 * (difference == 0).double()
        above += float((wins * present[:, 1:]).sum())
        pairs += float(present[:, 1:].sum())
    return loss / len(cases), above / pairs


def train(
    cases: EncodedCandidates, valid: EncodedCandidates, config: BilinearConfig, progress: Progress | None
) -> tuple[Floats, Training]:
    """The matrix (d, d) of the epoch with the lowest validation loss, and how training went.

    Adam, gradients clipped to norm 1, rows shuffled anew each epoch from the seed, stopped after
    `config.patience` epochs without a lower validation loss.
    """
    began = time.perf_counter()
    generator = np.random.default_rng(config.seed)
    history: list[dict[str, float]] = []
    best_loss, best_epoch, best = float("inf"), 0, None
    with one_thread():
        matrix = torch.nn.Parameter(torch.from_numpy(initial(cases.vectors.shape[1], config)))
        optimiser = torch.optim.Adam(
            [matrix], lr=config.learning_rate, weight_decay=config.weight_decay, foreach=False
        )
        for epoch in range(1, config.epochs + 1):
            total = 0.0
            order = generator.permutation(len(cases))
            for first in range(0, len(order), config.batch_size):
                rows = order[first : first + config.batch_size]
                context, responses, present = _batch(cases, rows)
                loss = row_loss(row_scores(context, matrix, responses), present, config.logits, config.loss)
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_([matrix], 1.0)
                optimiser.step()
                total += float(loss.detach()) * len(rows)
            with torch.no_grad():
                valid_loss, valid_above = _evaluate(valid, matrix, config)
            if not np.isfinite(valid_loss):
                raise EvaluatorError(
                    f"training diverged in epoch {epoch} (loss {valid_loss}); "
                    f"lower learning_rate, now {config.learning_rate}"
                )
            history.append(
                {
                    "epoch": epoch,
                    "train_loss": total / len(cases),
                    "valid_loss": valid_loss,
                    "valid_gt_above": valid_above,
                    "seconds": time.perf_counter() - began,
                }
            )
            if valid_loss < best_loss:
                best_loss, best_epoch, best = valid_loss, epoch, matrix.detach().clone()
            stop = epoch - best_epoch >= config.patience or epoch == config.epochs
            if progress is not None:
                progress(config.epochs if stop else epoch, config.epochs)
            if stop:
                break
    if best is None:
        raise EvaluatorError(f"training needs at least one epoch, epochs is {config.epochs}")
    kept: dict[str, Any] = history[best_epoch - 1]
    training = Training(
        history=tuple(history),
        best_epoch=best_epoch,
        seconds=time.perf_counter() - began,
        rows={"train": len(cases), "valid": len(valid)},
        figures={name: kept[name] for name in ("valid_loss", "valid_gt_above")},
    )
    return best.numpy().astype(np.float64), training


def initial(dimensions: int, config: BilinearConfig) -> NDArray[np.float32]:
    """M before training, float32 (d, d): zeros, the identity / d, or N(0, 1) as in the authors' code."""
    if config.init == "zero":
        return np.zeros((dimensions, dimensions), dtype=np.float32)
    if config.init == "identity":
        return np.eye(dimensions, dtype=np.float32) / np.float32(dimensions)
    generator = np.random.default_rng([config.seed, 1])
    return generator.standard_normal((dimensions, dimensions)).astype(np.float32)
