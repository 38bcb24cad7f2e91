"""Learns RUBER's unreferenced part: from a corpus by a margin loss, from human scores by the squared error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators.core.candidate_columns import contents, learned_and_valid
from ssrem.evaluators.core.fitted import Encoding
from ssrem.evaluators.core.human_scores import HeldOutSplit
from ssrem.evaluators.core.scaling import Bounds
from ssrem.evaluators.core.state import NetworkState, Run
from ssrem.evaluators.ruber.config import RuberConfig
from ssrem.evaluators.ruber.model import Laid, RuberNet, lay_candidates, lay_samples, scores
from ssrem.evaluators.ruber.referenced import pooled_cosine
from ssrem.samples import Candidates, Floats, Progress, Rows, Sample
from ssrem.training import Training
from ssrem.training.checkpoint import Checkpoint
from ssrem.training.trainer import Curve, Group, Loss, Plan, Step, shuffled_epochs, train

_HELD_OUT = 0.1
_MEASURED = 256


def fit(
    evaluator: Encoding[NetworkState],
    candidates: Candidates,
    run: Run,
) -> tuple[NetworkState, Training]:
    """Margin ranking loss against random negatives (Tao et al. 2018): the one drawn for each response, and all other
    responses of its batch."""
    name, config = evaluator.name, evaluator.config
    random = candidates.negatives.get("Rand")
    if random is None or random.shape[1] < 1:
        raise EvaluatorError(
            f"{name} learns from a negative of kind Rand a response, the candidates have none; draw one"
        )
    usable = np.any(random >= 0, axis=1)
    learned, valid, notes = learned_and_valid(name, candidates, usable, "a negative of kind Rand", config)
    rows = np.concatenate([learned, valid])
    wanted = np.column_stack([candidates.response[rows], random[rows]])
    wanted[wanted >= 0] = contents(candidates.texts)[wanted[wanted >= 0]]  # equal texts are one response
    laid = lay_candidates(candidates, rows, wanted, evaluator.encoder, config)
    examples = Examples(np.arange(len(rows)), wanted)
    first, second = (examples.part(part) for part in np.split(np.arange(len(rows)), [len(learned)]))
    net = RuberNet.seeded(evaluator.encoder.dimensions, config)
    objective = RuberObjective(net, laid, first, second, config)
    curve = objective.learn(run.progress, run.unfinished([evaluator.form, asdict(config)], objective.data()))
    present = second.response >= 0
    f = scores(net, laid, np.column_stack([second.context[np.nonzero(present)[0]], second.response[present]]))
    g = _negative_similarity(candidates, valid, evaluator.encoder)
    taken = min(config.max_train, len(learned))
    if taken < len(learned):
        part = f"an epoch takes {taken} of {len(learned)} responses"
        notes.insert(0, f"{part}, the next one goes on from there (max_train)")
    counts = {"train": len(learned), "train_an_epoch": taken, "valid": len(valid)}
    figures = {figure: curve.best[figure] for figure in ("valid_loss", "valid_gt_above")}
    state = NetworkState(net.weights(), {"f": Bounds.of(f), "g": Bounds.of(g)})
    return state, curve.training(run.began, counts, figures, notes)


def tune(
    evaluator: Encoding[NetworkState],
    annotated: Sequence[tuple[Sample, float]],
    scale: tuple[float, float],
    run: Run,
) -> tuple[NetworkState, Training]:
    """Mean squared error of f on human scores scaled to the unit range; all weights learn (Zhao et al. 2020, 5.2).

    A tenth of the contexts is held out. The bounds of g stay as they are.
    """
    config, state = evaluator.config, evaluator.state
    human = HeldOutSplit.of(evaluator.name, annotated, scale, share=_HELD_OUT, seed=[config.seed, 6])
    laid, pairs = lay_samples(human.samples, evaluator.encoder, config)
    examples = Examples(pairs[:, 0], pairs[:, 1:], human.unit.astype(np.float32))
    first, second = (examples.part(rows) for rows in human.split)
    net = RuberNet.of(state.tensors, evaluator.encoder.dimensions, config)
    tuning = replace(
        config,
        epochs=config.tune_epochs,
        batch_size=config.tune_batch_size,
        learning_rate=config.tune_learning_rate,
        max_train=len(annotated),
    )
    curve = RuberObjective(net, laid, first, second, tuning).learn(run.progress)
    figures = {"valid_loss": curve.best["valid_loss"]}
    training = curve.training(run.began, human.counts, figures, [human.note])
    bounds = {**state.bounds, "f": Bounds.of(scores(net, laid, pairs))}
    return NetworkState(net.weights(), bounds, tuned=len(annotated)), training


@dataclass(frozen=True)
class Examples:
    """Examples to learn from, as rows of the contexts and responses of a layout.

    context: (n,). response: (n, 1 + k), the response and, for the margin loss, its negatives: one or more, -1 for a
    missing one. targets: float32 (n,) in [0, 1]; with them the loss is the squared error.
    """

    context: Rows
    response: Rows
    targets: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.context)

    def part(self, rows: Rows) -> Examples:
        """The examples at `rows`."""
        targets = None if self.targets is None else self.targets[rows]
        return Examples(self.context[rows], self.response[rows], targets)

    def negative(self, rows: Rows, turn: int) -> Rows:
        """One negative of each row: the turn-th one that is not missing, starting again after the last."""
        present = self.response[rows, 1:] >= 0
        wanted = turn % present.sum(axis=1)
        column = (np.cumsum(present, axis=1) == (wanted + 1)[:, None]).argmax(axis=1)
        return np.asarray(self.response[rows, 1 + column])


@dataclass(frozen=True)
class RuberObjective:
    """`net`, learned from `train` and judged on `valid`; an epoch takes `config.max_train` examples at most."""

    net: RuberNet
    laid: Laid
    train: Examples
    valid: Examples
    config: RuberConfig

    def learn(self, progress: Progress | None, checkpoint: Checkpoint | None = None) -> Curve:
        """Adam, gradients clipped to norm 1, learning rate × 0.1 on a plateau."""
        config = self.config
        plan = Plan(
            config.epochs, config.seed, patience=config.patience, decay_patience=config.decay_patience
        )
        return train(self, plan, progress=progress, checkpoint=checkpoint)

    def groups(self) -> Sequence[Group]:
        return [Group(dict(self.net.named_parameters()), self.config.learning_rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        n, lengths = len(self.train), self.laid.contexts.lengths[self.train.context]
        taken, seed = min(self.config.max_train, n), [self.config.seed, 3]
        return shuffled_epochs(n, self.config.batch_size, seed, taken=taken, lengths=lengths)

    def loss(self, rows: Rows, step: Step) -> Loss:
        each, _ = losses(self.net, self.laid, self.train, rows, step.epoch - 1, self.config.margin)
        return Loss.of(each)

    def validate(self, epoch: int) -> dict[str, float]:
        """Mean loss and, with negatives, the share of true responses that score above their own first negative."""
        loss = above = 0.0
        order = np.argsort(self.laid.contexts.lengths[self.valid.context], kind="stable")
        for first in range(0, len(order), _MEASURED):
            rows = order[first : first + _MEASURED]
            each, wins = losses(self.net, self.laid, self.valid, rows, 0, self.config.margin)
            loss, above = loss + float(each.sum()), above + float(wins.sum())
        figures = {"valid_loss": loss / len(self.valid), "valid_gt_above": above / len(self.valid)}
        return {name: value for name, value in figures.items() if name == "valid_loss" or not np.isnan(value)}

    def data(self) -> list[NDArray[Any]]:
        """Everything that is learned from."""
        words, contexts = self.laid.words, self.laid.contexts
        laid: list[NDArray[Any]] = [words.ids, words.ends, words.vectors, contexts.start, contexts.stop]
        return [*laid, self.train.response, self.valid.response]


def losses(
    net: RuberNet, laid: Laid, examples: Examples, rows: Rows, turn: int, margin: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss of each row, (b,), and whether its response scores above its negative: 1, 0, 0.5 (tie) or NaN (none).

    The margin loss is the mean over all other responses of the batch, true and negative ones: they are random for this
    context, too, and have been read already.
    """
    context, response = examples.context[rows], examples.response[rows, 0]
    q = net.encode("context", laid.words, laid.contexts.of(context))
    if examples.targets is not None:
        known = torch.from_numpy(laid.known(context, response))
        f = net(q, net.encode("response", laid.words, laid.responses.of(response)), known)
        return (f - torch.from_numpy(examples.targets[rows])) ** 2, torch.full((len(rows),), torch.nan)
    responses = np.concatenate([response, examples.negative(rows, turn)])
    r = net.encode("response", laid.words, laid.responses.of(responses))
    f = net.every_pair(q, r, torch.from_numpy(laid.known(context[:, None], responses)))
    high, low = f.diagonal(), f.diagonal(len(rows))
    others = torch.from_numpy(responses != response[:, None])
    each = (torch.relu(margin - high[:, None] + f) * others).sum(dim=1) / others.sum(dim=1).clamp(min=1)
    above = (high > low).float() + 0.5 * (high == low).float()
    return each, above.detach()


def _negative_similarity(candidates: Candidates, rows: Rows, encoder: Encoder) -> Floats:
    """g of each true response and its first random negative, for the bounds: few scored responses are true ones."""
    random = candidates.negatives["Rand"][rows]
    first = random[np.arange(len(rows)), (random >= 0).argmax(axis=1)]
    responses = [candidates.texts[int(row)] for row in first]
    references = [candidates.texts[int(row)] for row in candidates.response[rows]]
    return pooled_cosine(responses, references, encoder)
