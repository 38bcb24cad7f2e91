"""Learns ADEM's M and N from human scores (Lowe et al. 2017, eq. 2, section 5.1 and appendix D)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.encoders.tokenize import words
from ssrem.errors import EvaluatorError
from ssrem.evaluators.adem.config import AdemConfig
from ssrem.evaluators.adem.encode import Vectors, encode_samples
from ssrem.evaluators.adem.state import HIGHEST, LOWEST, Constants, State
from ssrem.evaluators.base import Training
from ssrem.evaluators.bilinear.training import one_thread
from ssrem.evaluators.core.human_scores import check_enough, held_out, on_scale
from ssrem.evaluators.core.scaling import Bounds
from ssrem.samples import Encode, Floats, Progress, Rows, Sample

if TYPE_CHECKING:
    from ssrem.evaluators.adem.model import HierarchicalEncoder

Matrices = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Labelled:
    """Vectors of n samples with their human scores on ADEM's scale, float64 (n,)."""

    vectors: Vectors
    targets: Floats

    def part(self, rows: Rows) -> Labelled:
        """Those at `rows`."""
        return Labelled(self.vectors.part(rows), self.targets[rows])


def tune(
    name: str,
    annotated: Sequence[tuple[Sample, float]],
    scale: tuple[float, float],
    state: State,
    encode: Encode,
    config: AdemConfig,
    net: HierarchicalEncoder | None,
    progress: Progress | None,
) -> tuple[State, Training]:
    """Squared error and γ(‖M‖ + ‖N‖), over-sampled by length and score; held-out contexts choose the epoch."""
    began = time.perf_counter()
    low, high = scale
    on_scale(name, annotated, scale)
    usable = [pair for pair in annotated if "g" not in state.matrices or pair[0].reference is not None]
    # Sorted, so that the rows' order in a file does not show.
    usable.sort(key=lambda pair: (pair[0].context, pair[0].response, pair[0].reference or "", pair[1]))
    samples = [sample for sample, _ in usable]
    kind = "annotated responses with a reference" if "g" in state.matrices else "annotated responses"
    check_enough(name, samples, kind)
    out = held_out(samples, config.held_out, [config.seed, 7])
    targets = LOWEST + (np.array([score for _, score in usable]) - low) * (HIGHEST - LOWEST) / (high - low)
    vectors = encode_samples(samples, state.matrices, encode, config, net, state.projection)
    labelled = Labelled(vectors, targets)
    train, valid = labelled.part(np.flatnonzero(~out)), labelled.part(np.flatnonzero(out))
    lengths = np.array([len(words(sample.response)) for sample in samples], dtype=np.int64)[~out]
    drawn = over_sampled(lengths, train.targets, config.length_bins, config.seed)
    start = state.total(state.products(train.vectors))
    constants = Constants.around(start, float(train.targets.mean()))
    before = replace(state, constants=constants)
    matrices, history, best_epoch = learn(before, train.part(drawn), valid, config, progress)
    tuned = replace(before, matrices=matrices, tuned=len(samples))
    shares = tuned.shares(tuned.products(labelled.vectors))
    error = _error(tuned, valid)
    figures = {"valid_loss": error, "valid_loss_untuned": _error(before, valid), "valid_rmse": error**0.5}
    notes = [f"tuned on human scores from {low:g} to {high:g}; validation has contexts of its own"]
    if len(usable) < len(annotated):
        notes.append(f"{len(annotated) - len(usable)} annotated responses have no reference and are left out")
    training = Training(
        history=history,
        best_epoch=best_epoch,
        seconds=time.perf_counter() - began,
        rows={
            **{"train": len(train.targets), "train_over_sampled": len(drawn)},
            **{"valid": len(valid.targets), "contexts": len({sample.context for sample in samples})},
        },
        figures=figures,
        notes=tuple(notes),
    )
    return replace(tuned, bounds={part: Bounds.of(share) for part, share in shares.items()}), training


def over_sampled(lengths: Rows, scores: Floats, bins: int, seed: int) -> Rows:
    """Rows, in order, so often that within each score all lengths count alike; each is there once at least.

    lengths: words of the responses, int64 (n,), cut into `bins` bins of about as many responses. scores:
    float64 (n,), a bin each whole number. Every bin that has a response gets as many as the fullest one of its
    score, drawn evenly: no row of a bin is there more than once more than another.
    """
    generator = np.random.default_rng([seed, 8])
    edges = np.quantile(lengths, np.linspace(0, 1, bins + 1)[1:-1])
    by_length = np.searchsorted(edges, lengths, side="left")
    by_score = np.floor(scores + 0.5).astype(np.int64)
    drawn = []
    for score in np.unique(by_score):
        found = [np.flatnonzero((by_score == score) & (by_length == length)) for length in range(bins)]
        wanted = max(map(len, found))
        for rows in found:
            if len(rows):
                more = generator.choice(rows, wanted % len(rows), replace=False)
                drawn += [np.tile(rows, wanted // len(rows)), more]
    return np.sort(np.concatenate(drawn))


def learn(
    state: State, train: Labelled, valid: Labelled, config: AdemConfig, progress: Progress | None
) -> tuple[Matrices, tuple[dict[str, float], ...], int]:
    """M and N of the epoch with the least squared error on `valid`, 0 for those of `state`, and the history.

    Adam, rows shuffled from the seed; stopped after `config.tune_patience` epochs without a lower error.
    """
    began = time.perf_counter()
    generator = np.random.default_rng([config.seed, 9])
    constants, n = state.constants, len(train.targets)
    history: list[dict[str, float]] = []
    best_error, best_epoch, best = _error(state, valid), 0, dict(state.matrices)
    with one_thread():
        learned = {
            part: torch.nn.Parameter(torch.from_numpy(matrix.astype(np.float64)))
            for part, matrix in state.matrices.items()
        }
        left = {part: torch.from_numpy(train.vectors.left[part]) for part in learned}
        right, targets = torch.from_numpy(train.vectors.right), torch.from_numpy(train.targets)
        optimiser = torch.optim.Adam(learned.values(), lr=config.tune_learning_rate, foreach=False)
        for epoch in range(1, config.tune_epochs + 1):
            total = 0.0
            order = torch.from_numpy(generator.permutation(n))
            for first in range(0, n, config.tune_batch_size):
                rows = order[first : first + config.tune_batch_size]
                products = [
                    ((left[part][rows] @ matrix) * right[rows]).sum(dim=1) for part, matrix in learned.items()
                ]
                scores = (torch.stack(products).sum(dim=0) - constants.alpha) / constants.beta
                penalty = sum(torch.linalg.norm(matrix) for matrix in learned.values())
                loss = ((scores - targets[rows]) ** 2).mean() + config.gamma * penalty
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                total += float(loss.detach()) * len(rows)
            now = {part: matrix.detach().numpy().astype(np.float32) for part, matrix in learned.items()}
            error = _error(replace(state, matrices=now), valid)
            if not np.isfinite(error):
                raise EvaluatorError(
                    f"learning from human scores diverged in epoch {epoch}; "
                    f"lower tune_learning_rate, now {config.tune_learning_rate}"
                )
            seconds = time.perf_counter() - began
            history.append({"epoch": epoch, "train_loss": total / n, "valid_loss": error, "seconds": seconds})
            if error < best_error:
                best_error, best_epoch, best = error, epoch, now
            stop = epoch - best_epoch >= config.tune_patience or epoch == config.tune_epochs
            if progress is not None:
                progress(config.tune_epochs if stop else epoch, config.tune_epochs)
            if stop:
                break
    return best, tuple(history), best_epoch


def _error(state: State, labelled: Labelled) -> float:
    """Mean squared error of the scores."""
    scores = state.whole(state.products(labelled.vectors))
    return float(((scores - labelled.targets) ** 2).mean())
