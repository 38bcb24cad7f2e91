"""Fits RUBER's unreferenced part on a corpus, and tunes it on human scores."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Training
from ssrem.evaluators.core.human_scores import check_enough, held_out, on_scale
from ssrem.evaluators.core.scaling import Bounds
from ssrem.evaluators.core.word_sequences import lay_candidates, lay_samples, pooled_cosine
from ssrem.evaluators.ruber.config import RuberConfig
from ssrem.evaluators.ruber.model import Examples, Plan, RuberNet, learn, scores
from ssrem.evaluators.ruber.ruber import State
from ssrem.samples import TRAIN, VALID, Candidates, Encode, Floats, Progress, Rows, Sample

_FIGURES = ("valid_loss", "valid_gt_above")
_HELD_OUT = 0.1


def fit(
    name: str,
    candidates: Candidates,
    encode: Encode,
    dimensions: int,
    config: RuberConfig,
    progress: Progress | None,
) -> tuple[State, Training]:
    """Margin ranking loss against one random negative a response (Tao et al. 2018)."""
    began = time.perf_counter()
    train, valid = (_rows(name, candidates, split) for split in (TRAIN, VALID))
    valid_rows = len(valid)
    if valid_rows > config.max_valid:
        chosen = np.random.default_rng([config.seed, 5]).choice(valid, config.max_valid, replace=False)
        valid = np.sort(chosen)
    rows = np.concatenate([train, valid])
    wanted = np.column_stack([candidates.response[rows], candidates.negatives["Rand"][rows]])
    laid = lay_candidates(candidates, rows, wanted, encode, config)
    examples = Examples(np.arange(len(rows)), wanted)
    first, second = (examples.part(split) for split in np.split(np.arange(len(rows)), [len(train)]))
    net = RuberNet.seeded(dimensions, config)
    plan = Plan(config.epochs, config.batch_size, config.learning_rate, config.max_train)
    history, best_epoch = learn(net, laid, first, second, plan, config, progress)
    there = second.response >= 0
    at = np.nonzero(there)[0]
    f = scores(net, laid, np.column_stack([second.context[at], second.response[there]]))
    g = _negative_similarity(candidates, valid, encode)
    taken = min(config.max_train, len(train))
    notes = []
    if taken < len(train):
        notes.append(
            f"an epoch takes {taken} of {len(train)} responses, the next one goes on from there (max_train)"
        )
    if len(valid) < valid_rows:
        notes.append(f"validation takes {len(valid)} of {valid_rows} responses, drawn once (max_valid)")
    training = Training(
        history=history,
        best_epoch=best_epoch,
        seconds=time.perf_counter() - began,
        rows={"train": len(train), "train_an_epoch": taken, "valid": len(valid)},
        figures={figure: history[best_epoch - 1][figure] for figure in _FIGURES},
        notes=tuple(notes),
    )
    return State(net.weights(), Bounds.of(f), Bounds.of(g)), training


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
    low, high = scale
    on_scale(name, annotated, scale)
    # Sorted, so that the rows' order in a file does not show.
    ordered = sorted(annotated, key=lambda pair: (pair[0].context, pair[0].response, pair[1]))
    samples = [sample for sample, _ in ordered]
    check_enough(name, samples, aim="tune on")
    out = held_out(samples, _HELD_OUT, [config.seed, 6])
    laid, pairs = lay_samples(samples, encode, config)
    targets = (np.array([score for _, score in ordered]) - low) / (high - low)
    examples = Examples(pairs[:, 0], pairs[:, 1:], targets.astype(np.float32))
    net = RuberNet.of(state.weights, dimensions, config)
    plan = Plan(config.tune_epochs, config.tune_batch_size, config.tune_learning_rate, len(ordered))
    train, valid = examples.part(np.flatnonzero(~out)), examples.part(np.flatnonzero(out))
    history, best_epoch = learn(net, laid, train, valid, plan, config, progress)
    training = Training(
        history=history,
        best_epoch=best_epoch,
        seconds=time.perf_counter() - began,
        rows={
            "train": len(train),
            "valid": len(valid),
            "contexts": len({sample.context for sample in samples}),
        },
        figures={"valid_loss": history[best_epoch - 1]["valid_loss"]},
        notes=(f"tuned on human scores from {low:g} to {high:g}; validation has contexts of its own",),
    )
    bounds = Bounds.of(scores(net, laid, pairs))
    return State(net.weights(), bounds, state.g_bounds, tuned=len(ordered)), training


def _rows(name: str, candidates: Candidates, split: int) -> Rows:
    """Responses of the split that have a random negative."""
    rows, random = candidates.rows(split), candidates.negatives.get("Rand")
    if random is None or random.shape[1] < 1:
        raise EvaluatorError(
            f"{name} learns from a negative of kind Rand a response, the candidates have none; draw one"
        )
    rows = rows[(random[rows] >= 0).any(axis=1)]
    if len(rows) == 0:
        word = "training" if split == TRAIN else "validation"
        raise EvaluatorError(
            f"{name}: no response of the {word} split has a negative of kind Rand; "
            "more conversations are needed"
        )
    return rows


def _negative_similarity(candidates: Candidates, rows: Rows, encode: Encode) -> Floats:
    """g of true responses and their first random negative: what bounds g, for few responses are the true one."""
    random = candidates.negatives["Rand"][rows]
    first = random[np.arange(len(rows)), (random >= 0).argmax(axis=1)]
    responses = [candidates.texts[int(row)] for row in first]
    references = [candidates.texts[int(row)] for row in candidates.response[rows]]
    return pooled_cosine(responses, references, encode)
