"""Learns ADEM's M and N from human scores (Lowe et al. 2017, eq. 2, section 5.1 and appendix D)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.evaluators.adem.config import AdemConfig
from ssrem.evaluators.adem.state import HIGHEST, LOWEST, Constants, Reader, State, Vectors
from ssrem.evaluators.core.human_scores import HeldOutSplit
from ssrem.evaluators.core.scaling import Bounds
from ssrem.evaluators.core.state import Run
from ssrem.samples import Floats, Progress, Rows, Sample
from ssrem.tokenize import words
from ssrem.training import Training
from ssrem.training.trainer import Curve, Group, Loss, Plan, Step, shuffled_epochs, train

Matrices = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class Labelled:
    """Vectors of n samples with their human scores on ADEM's scale, float64 (n,)."""

    vectors: Vectors
    targets: Floats

    def part(self, rows: Rows) -> Labelled:
        """The samples at `rows`."""
        return Labelled(self.vectors.part(rows), self.targets[rows])


def tune(
    name: str,
    annotated: Sequence[tuple[Sample, float]],
    scale: tuple[float, float],
    state: State,
    reader: Reader,
    run: Run,
) -> tuple[State, Training]:
    """Mean squared error + γ(‖M‖ + ‖N‖) on human scores, laid linearly on 1 to 5 and over-sampled by length and score.

    α and β are set so that learning starts at the mean of the human scores. Held-out contexts choose the epoch. Samples
    without a reference are left out if N is learned.
    """
    config, referenced = reader.config, "g" in state.matrices
    usable = [pair for pair in annotated if not referenced or pair[0].reference is not None]
    kind = "annotated responses with a reference" if referenced else "annotated responses"
    human = HeldOutSplit.of(name, usable, scale, share=config.held_out, seed=[config.seed, 7], kind=kind)
    vectors = reader.samples(human.samples, state.matrices, state.projection)
    labelled = Labelled(vectors, LOWEST + human.unit * (HIGHEST - LOWEST))
    learned, valid = (labelled.part(rows) for rows in human.split)
    lengths = np.array([len(words(sample.response)) for sample in human.samples], dtype=np.int64)
    drawn = over_sampled(lengths[~human.held_out], learned.targets, config.length_bins, config.seed)
    start = np.asarray(sum(state.products(learned.vectors).values()))
    before = replace(state, constants=Constants.around(start, float(learned.targets.mean())))
    matrices, curve = learn(before, learned.part(drawn), valid, config, run.progress)
    tuned = replace(before, matrices=matrices, tuned=len(usable))
    shares = tuned.shares(tuned.products(labelled.vectors))
    error = _error(tuned, valid)
    figures = {"valid_loss": error, "valid_loss_untuned": _error(before, valid), "valid_rmse": error**0.5}
    notes = [human.note]
    if len(usable) < len(annotated):
        notes.append(f"{len(annotated) - len(usable)} annotated responses have no reference and are left out")
    training = curve.training(run.began, {**human.counts, "train_over_sampled": len(drawn)}, figures, notes)
    return replace(tuned, bounds={part: Bounds.of(share) for part, share in shares.items()}), training


def over_sampled(lengths: Rows, scores: Floats, bins: int, seed: int) -> Rows:
    """Rows, in order and each at least once, repeated so that all lengths are equally frequent within each score.

    lengths: words of the responses, int64 (n,), cut into `bins` bins of about equal size. scores: float64 (n,), rounded
    to whole numbers. Within a score, every bin that has a response is filled up to the size of the largest; how often
    two rows of a bin are repeated differs by at most one.
    """
    generator = np.random.default_rng([seed, 8])
    edges = np.quantile(lengths, np.linspace(0, 1, bins + 1)[1:-1])
    by_length = np.searchsorted(edges, lengths, side="left")
    by_score = np.floor(scores + 0.5).astype(np.int64)
    drawn = []
    for score in np.unique(by_score):
        in_bins = [np.flatnonzero((by_score == score) & (by_length == length)) for length in range(bins)]
        wanted = max(map(len, in_bins))
        for rows in in_bins:
            if len(rows):
                more = generator.choice(rows, wanted % len(rows), replace=False)
                drawn += [np.tile(rows, wanted // len(rows)), more]
    return np.sort(np.concatenate(drawn))


def learn(
    state: State, learned: Labelled, valid: Labelled, config: AdemConfig, progress: Progress | None
) -> tuple[Matrices, Curve]:
    """M and N of the epoch with the lowest mean squared error on `valid`; epoch 0 has those of `state`.

    Adam; training stops after `config.tune_patience` epochs without a lower error.
    """
    objective = MatricesObjective(state, learned, valid, config)
    plan = Plan(config.tune_epochs, config.seed, patience=config.tune_patience, from_0=True, clip=None)
    curve = train(objective, plan, progress=progress)
    return objective.matrices(), curve


class MatricesObjective:
    """M and N as the trainer sees them: learned in float64."""

    def __init__(self, state: State, learned: Labelled, valid: Labelled, config: AdemConfig) -> None:
        self.state, self.valid, self.config = state, valid, config
        self.parameters = {
            part: torch.nn.Parameter(torch.from_numpy(matrix.astype(np.float64)))
            for part, matrix in state.matrices.items()
        }
        vectors = learned.vectors
        self.left = {part: torch.from_numpy(vectors.left[part]) for part in self.parameters}
        self.right, self.targets = torch.from_numpy(vectors.right), torch.from_numpy(learned.targets)

    def groups(self) -> Sequence[Group]:
        return [Group(self.parameters, self.config.tune_learning_rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        return shuffled_epochs(len(self.targets), self.config.tune_batch_size, [self.config.seed, 9])

    def loss(self, rows: Rows, step: Step) -> Loss:
        at, constants = torch.from_numpy(rows), self.state.constants
        products = [
            ((self.left[part][at] @ matrix) * self.right[at]).sum(dim=1)
            for part, matrix in self.parameters.items()
        ]
        scores = (torch.stack(products).sum(dim=0) - constants.alpha) / constants.beta
        penalty = sum(torch.linalg.norm(matrix) for matrix in self.parameters.values())
        squared = ((scores - self.targets[at]) ** 2).mean()
        return Loss.averaged(squared + self.config.gamma * penalty, len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        return {"valid_loss": _error(replace(self.state, matrices=self.matrices()), self.valid)}

    def matrices(self) -> Matrices:
        """M and N, float32 (k, k), as in the state."""
        return {part: matrix.detach().numpy().astype(np.float32) for part, matrix in self.parameters.items()}


def _error(state: State, labelled: Labelled) -> float:
    """Mean squared error of the scores."""
    scores = state.score(state.products(labelled.vectors))
    return float(((scores - labelled.targets) ** 2).mean())
