"""Fits ADEM on a corpus: the encoder, the projection, and the constants that put scores on the scale."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ssrem.encoders.recurrent import Words
from ssrem.errors import EvaluatorError
from ssrem.evaluators.adem.config import AdemConfig
from ssrem.evaluators.adem.state import MATRICES, Constants, Projection, Reader, State, bilinear, context_rows
from ssrem.evaluators.core.candidate_columns import draw, learned_and_valid
from ssrem.evaluators.core.fitted import Encoding
from ssrem.evaluators.core.scaling import Bounds
from ssrem.evaluators.core.state import Run
from ssrem.samples import SPLIT_NAMES, TRAIN, VALID, Candidates, Encode, Floats, Rows
from ssrem.training import Training

if TYPE_CHECKING:
    from ssrem.encoders.base import Encoder
    from ssrem.encoders.gru import GruNetwork
    from ssrem.evaluators.adem.vhred import VhredObjective


@dataclass(frozen=True)
class _Corpus:
    """Candidates and how they are read. train, valid: positions of the responses used; valid is a random draw."""

    name: str
    candidates: Candidates
    encoder: Encoder
    encode: Encode
    config: AdemConfig
    train: Rows
    valid: Rows


def fit(
    evaluator: Encoding[State],
    candidates: Candidates,
    run: Run,
) -> tuple[State, Training]:
    """M and N are the identity. The validation split chooses the encoder's epoch and gives α, β and the bounds."""
    name, config = evaluator.name, evaluator.config
    with_context = candidates.context_stop > candidates.context_start
    learned, valid, notes = learned_and_valid(name, candidates, with_context, "a context", config)
    corpus = _Corpus(name, candidates, evaluator.encoder, run.encode, config, learned, valid)
    parts = tuple(part for part in evaluator.parts if part in MATRICES)
    rows = {"train": len(learned), "valid": len(valid)}
    if config.pretrained == "encoder":
        state, figures = _calibrated(corpus, parts, None)
        epoch = {
            "epoch": 1,
            "train_loss": figures["train_unexplained"],
            "valid_loss": figures["valid_unexplained"],
        }
        notes.append("the encoder is off the shelf; loss: share of variance that the projection leaves out")
        if run.progress is not None:
            run.progress(1, 1)
        figures["valid_loss"] = epoch["valid_loss"]
        return state, Training((epoch,), 1, time.perf_counter() - run.began, rows, figures, tuple(notes))
    objective = _vhred(corpus)
    untrained_loss = objective.untrained_loss()
    curve = objective.learn(run)
    state, figures = _calibrated(corpus, parts, objective.net.encoder)
    figures["valid_loss_untrained"] = untrained_loss
    figures |= {key: value for key, value in curve.best.items() if key.startswith("valid_")}
    stretches = len(objective.learned.turns)
    rows["train_an_epoch"] = min(config.max_train, stretches)
    if config.max_train < stretches:
        notes.append(
            f"an epoch takes {config.max_train} of {stretches} stretches of conversation, "
            "the next one goes on from there (max_train)"
        )
    training = curve.training(run.began, rows, figures, notes)
    return replace(state, encoder=objective.net.encoder.weights()), training


def _vhred(corpus: _Corpus) -> VhredObjective:
    """The dialogue model before training, on the stretches of conversation with a turn to predict.

    A stretch is a response with the last `context_turns` turns before it.
    """
    from ssrem.evaluators.adem.vhred import Batch, VhredObjective

    candidates, config = corpus.candidates, corpus.config
    stretches = {
        split: np.column_stack(
            [context_rows(candidates, rows, config.context_turns), candidates.response[rows]]
        )
        for split, rows in ((TRAIN, corpus.train), (VALID, corpus.valid))
    }
    needed = np.zeros(len(candidates.texts), dtype=bool)
    for turns in stretches.values():
        needed[turns[turns >= 0]] = True
    words = Words.of(candidates.texts, corpus.encoder, needed)
    texts = words.first(len(needed), config.turn_words)
    usable = {}
    for split, turns in stretches.items():
        batch = Batch(words, texts, turns)
        usable[split] = batch.part(np.flatnonzero(batch.predicted.any(axis=1)))
        if not len(usable[split].turns):
            raise EvaluatorError(
                f"{corpus.name}: no conversation of the {SPLIT_NAMES[split]} split has two turns with a known word; "
                "give more conversations, or an encoder that knows their words"
            )
    return VhredObjective(usable[TRAIN], usable[VALID], config)


def _calibrated(
    corpus: _Corpus, parts: tuple[str, ...], net: GruNetwork | None
) -> tuple[State, dict[str, float]]:
    """The projection from the training split; α, β and the bounds from the validation split.

    parts: those with a matrix, "f", "g" or both. Figures: the share of the variance that the projection leaves out
    (`_lost`), and how often f of the true response is above that of a negative.
    """
    candidates, config = corpus.candidates, corpus.config
    reader = Reader(corpus.encoder, corpus.encode, config, net)
    chosen = draw(corpus.train, config.pca_rows, [config.seed, 6])
    contexts = reader.rows(candidates, context_rows(candidates, chosen, config.context_turns))
    responses = reader.rows(candidates, candidates.response[chosen, None])
    both = contexts.and_then(responses)
    if not both.known.any():
        raise EvaluatorError(
            f"{corpus.name}: the encoder knows no word of the training split; name another one"
        )
    projection = Projection.of(both.vectors[both.known], config.components)
    # The true response first, then the first negative of each kind.
    negatives = [drawn[corpus.valid, 0] for drawn in candidates.negatives.values() if drawn.shape[1]]
    rows = np.column_stack([candidates.response[corpus.valid], *negatives])
    encoded = reader.rows(candidates, rows.reshape(-1, 1))
    vectors = projection.apply(encoded).reshape(*rows.shape, -1)
    turns = context_rows(candidates, corpus.valid, config.context_turns)
    left = {"f": projection.apply(reader.rows(candidates, turns)), "g": vectors[:, 0]}
    identity = np.eye(projection.axes.shape[1], dtype=np.float32)
    products = {part: _products(left[part], identity, vectors, rows >= 0) for part in parts}
    # Most responses that will be scored are not the true one: with negatives, they alone give the constants.
    measured = slice(1 if (rows[:, 1:] >= 0).any() else 0, None)
    total: Floats = np.sum(list(products.values()), axis=0)
    constants = Constants.spanning(total[:, measured])
    state = State({}, projection, dict.fromkeys(parts, identity), constants, {})
    bounds = {part: Bounds.of(share[:, measured]) for part, share in state.shares(products).items()}
    figures = {
        "train_unexplained": projection.unexplained(both),
        "valid_unexplained": projection.unexplained(encoded),
    }
    if "f" in products and (above := _above(products["f"])) is not None:
        figures["valid_gt_above"] = above
    return replace(state, bounds=bounds), figures


def _products(left: Floats, matrix: np.ndarray, right: Floats, present: np.ndarray) -> Floats:
    """leftᵀ matrix right, float64 (n, k), from (n, d) and (n, k, d); NaN where `present`, bool (n, k), is false."""
    columns = [bilinear(left, matrix, right[:, column]) for column in range(right.shape[1])]
    return np.where(present, np.stack(columns, axis=1), np.nan)


def _above(f: Floats) -> float | None:
    """Share of the negatives, columns 1 and up, with a lower f than the true response, column 0; a tie counts half."""
    difference = f[:, :1] - f[:, 1:]
    difference = difference[np.isfinite(difference)]
    wins = (difference > 0) + 0.5 * (difference == 0)
    return float(wins.mean()) if wins.size else None
