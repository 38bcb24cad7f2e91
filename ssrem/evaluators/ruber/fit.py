"""Fits RUBER's unreferenced part on a corpus, and tunes it on human scores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Training
from ssrem.evaluators.core.candidate_columns import draw, usable_rows
from ssrem.evaluators.core.human_scores import HumanScores
from ssrem.evaluators.core.scaling import Bounds
from ssrem.evaluators.ruber.config import RuberConfig
from ssrem.evaluators.ruber.layout import lay_candidates, lay_samples
from ssrem.evaluators.ruber.model import RuberNet, scores
from ssrem.evaluators.ruber.referenced import pooled_cosine
from ssrem.evaluators.ruber.state import State
from ssrem.evaluators.ruber.training import Examples, RuberObjective
from ssrem.samples import TRAIN, VALID, Candidates, Encode, Floats, Progress, Rows, Sample
from ssrem.training.checkpoint import Checkpoint
from ssrem.training.trainer import Plan, train

_HELD_OUT = 0.1


def fit(
    name: str,
    candidates: Candidates,
    encode: Encode,
    dimensions: int,
    config: RuberConfig,
    progress: Progress | None,
    checkpoint: Path | None,
) -> tuple[State, Training]:
    """Margin ranking loss against one random negative a response (Tao et al. 2018)."""
    began = time.perf_counter()
    random = candidates.negatives.get("Rand")
    if random is None or random.shape[1] < 1:
        raise EvaluatorError(
            f"{name} learns from a negative of kind Rand a response, the candidates have none; draw one"
        )
    learned, usable = (
        usable_rows(name, candidates, split, np.any(random >= 0, axis=1), "a negative of kind Rand")
        for split in (TRAIN, VALID)
    )
    valid = draw(usable, config.max_valid, [config.seed, 5])
    rows = np.concatenate([learned, valid])
    wanted = np.column_stack([candidates.response[rows], random[rows]])
    laid = lay_candidates(candidates, rows, wanted, encode, config)
    examples = Examples(np.arange(len(rows)), wanted)
    first, second = (examples.part(part) for part in np.split(np.arange(len(rows)), [len(learned)]))
    net = RuberNet.seeded(dimensions, config)
    objective = RuberObjective(
        net, laid, first, second, config.margin, config.batch_size, config.learning_rate, config.max_train,
        config.seed,
    )  # fmt: skip
    unfinished = Checkpoint.of(checkpoint, [name, asdict(config)], objective.data())
    curve = train(objective, _plan(config.epochs, config), progress=progress, checkpoint=unfinished)
    present = second.response >= 0
    f = scores(net, laid, np.column_stack([second.context[np.nonzero(present)[0]], second.response[present]]))
    g = _negative_similarity(candidates, valid, encode)
    taken = min(config.max_train, len(learned))
    notes = []
    if taken < len(learned):
        notes.append(
            f"an epoch takes {taken} of {len(learned)} responses, the next one goes on from there (max_train)"
        )
    if len(valid) < len(usable):
        notes.append(f"validation takes {len(valid)} of {len(usable)} responses, drawn once (max_valid)")
    counts = {"train": len(learned), "train_an_epoch": taken, "valid": len(valid)}
    figures = {figure: curve.best[figure] for figure in ("valid_loss", "valid_gt_above")}
    state = State(net.weights(), Bounds.of(f), Bounds.of(g))
    return state, curve.training(began, counts, figures, notes)


def tune(
    name: str,
    annotated: Sequence[tuple[Sample, float]],
    scale: tuple[float, float],
    state: State,
    encode: Encode,
    dimensions: int,
    config: RuberConfig,
    progress: Progress | None,
) -> tuple[State, Training]:
    """Mean squared error on human scores scaled to the unit range (Zhao et al. 2020, section 5.2)."""
    began = time.perf_counter()
    human = HumanScores.of(name, annotated, scale, share=_HELD_OUT, seed=[config.seed, 6])
    laid, pairs = lay_samples(human.samples, encode, config)
    examples = Examples(pairs[:, 0], pairs[:, 1:], human.unit.astype(np.float32))
    first, second = (examples.part(np.flatnonzero(human.held_out == out)) for out in (False, True))
    net = RuberNet.of(state.tensors, dimensions, config)
    objective = RuberObjective(
        net, laid, first, second, config.margin, config.tune_batch_size, config.tune_learning_rate,
        len(annotated), config.seed,
    )  # fmt: skip
    curve = train(objective, _plan(config.tune_epochs, config), progress=progress)
    figures = {"valid_loss": curve.best["valid_loss"]}
    training = curve.training(began, human.counts, figures, [human.note])
    bounds = Bounds.of(scores(net, laid, pairs))
    return State(net.weights(), bounds, state.g_bounds, tuned=len(annotated)), training


def _plan(epochs: int, config: RuberConfig) -> Plan:
    """Adam, gradients clipped to norm 1, learning rate × 0.1 on a plateau."""
    return Plan(epochs, config.seed, patience=config.patience, decay_patience=config.decay_patience)


def _negative_similarity(candidates: Candidates, rows: Rows, encode: Encode) -> Floats:
    """g of true responses and their first random negative: what bounds g, for few responses are the true one."""
    random = candidates.negatives["Rand"][rows]
    first = random[np.arange(len(rows)), (random >= 0).argmax(axis=1)]
    responses = [candidates.texts[int(row)] for row in first]
    references = [candidates.texts[int(row)] for row in candidates.response[rows]]
    return pooled_cosine(responses, references, encode)
