"""Fits ADEM on a corpus: the encoder, the projection, and the constants that put scores on the scale."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ssrem.encoders.word_sequences import Words, first_words
from ssrem.errors import EvaluatorError
from ssrem.evaluators.adem.config import AdemConfig
from ssrem.evaluators.adem.encode import Reader, context_rows
from ssrem.evaluators.adem.state import Constants, Projection, State, bilinear
from ssrem.evaluators.base import Training
from ssrem.evaluators.core.candidate_columns import draw, usable_rows
from ssrem.evaluators.core.scaling import Bounds
from ssrem.samples import SPLIT_NAMES, TRAIN, VALID, Candidates, Encode, Floats, Progress, Rows

if TYPE_CHECKING:
    from ssrem.encoders.gru_network import GruNetwork
    from ssrem.evaluators.adem.pretrain import Pretrained


@dataclass(frozen=True)
class _Corpus:
    """Candidates and how they are read. train, valid: positions of the responses used; valid, a draw."""

    name: str
    candidates: Candidates
    encode: Encode
    config: AdemConfig
    train: Rows
    valid: Rows

    def stretches(self, rows: Rows) -> Rows:
        """Contexts with the response behind them, rows of the texts, int64 (n, context_turns + 1)."""
        contexts = context_rows(self.candidates, rows, self.config.context_turns)
        return np.concatenate([contexts, self.candidates.response[rows, None]], axis=1)


def fit(
    name: str,
    parts: tuple[str, ...],
    candidates: Candidates,
    encode: Encode,
    config: AdemConfig,
    progress: Progress | None,
    checkpoint: Path | None,
) -> tuple[State, Training]:
    """M and N are the identity; the validation split chooses the encoder's epoch, and gives α, β and the bounds.

    parts: of "f" and "g", those that the score is made of.
    """
    began = time.perf_counter()
    with_context = candidates.context_stop > candidates.context_start
    learned, valid = (
        usable_rows(name, candidates, split, with_context, "a context") for split in (TRAIN, VALID)
    )
    drawn = draw(valid, config.max_valid, [config.seed, 5])
    corpus = _Corpus(name, candidates, encode, config, learned, drawn)
    rows = {"train": len(learned), "valid": len(drawn)}
    notes = []
    if len(drawn) < len(valid):
        notes.append(f"validation takes {len(drawn)} of {len(valid)} responses, drawn once (max_valid)")
    if config.pretrained == "encoder":
        state, figures = _calibrated(corpus, parts, None)
        lost = {"epoch": 1, "train_loss": figures["train_lost"], "valid_loss": figures["valid_lost"]}
        notes.append("the encoder is off the shelf; loss: share of variance that the projection leaves out")
        if progress is not None:
            progress(1, 1)
        figures["valid_loss"] = lost["valid_loss"]
        return state, Training((lost,), 1, time.perf_counter() - began, rows, figures, tuple(notes))
    from ssrem.encoders.gru_network import GruNetwork

    pretrained, dimensions = _pretrained(corpus, progress, checkpoint)
    net = GruNetwork.of(pretrained.weights, dimensions, config.utterance, config.context)
    state, figures = _calibrated(corpus, parts, net)
    figures["valid_loss_untrained"] = pretrained.untrained_loss
    figures |= {key: value for key, value in pretrained.curve.best.items() if key.startswith("valid_")}
    rows["train_an_epoch"] = min(config.max_train, pretrained.stretches)
    if config.max_train < pretrained.stretches:
        notes.append(
            f"an epoch takes {config.max_train} of {pretrained.stretches} stretches of conversation, "
            "the next one goes on from there (max_train)"
        )
    training = pretrained.curve.training(began, rows, figures, notes)
    return replace(state, encoder=pretrained.weights), training


def _pretrained(
    corpus: _Corpus, progress: Progress | None, checkpoint: Path | None
) -> tuple[Pretrained, int]:
    """The trained encoder, and the word vectors' dimensions."""
    from ssrem.evaluators.adem.model import Batch
    from ssrem.evaluators.adem.pretrain import pretrain

    stretches = {TRAIN: corpus.stretches(corpus.train), VALID: corpus.stretches(corpus.valid)}
    needed = np.zeros(len(corpus.candidates.texts), dtype=bool)
    for turns in stretches.values():
        needed[turns[turns >= 0]] = True
    words = Words.of(corpus.candidates.texts, corpus.encode, needed)
    texts = first_words(words, len(needed), corpus.config.turn_words)
    usable = {}
    for split, turns in stretches.items():
        batch = Batch(words, texts, turns)
        usable[split] = batch.part(np.flatnonzero(batch.wanted.any(axis=1)))
        if not len(usable[split].turns):
            raise EvaluatorError(
                f"{corpus.name}: no conversation of the {SPLIT_NAMES[split]} split has two turns with a known word; "
                "give more conversations, or an encoder that knows their words"
            )
    pretrained = pretrain(usable[TRAIN], usable[VALID], corpus.config, progress, checkpoint)
    return pretrained, words.vectors.shape[1]


def _calibrated(
    corpus: _Corpus, parts: tuple[str, ...], net: GruNetwork | None
) -> tuple[State, dict[str, float]]:
    """The projection from the training split, α, β and the bounds from the validation split.

    Figures: share of the variance that the projection leaves out (`_lost`), and how often f of the true
    response is above that of a negative.
    """
    candidates, config = corpus.candidates, corpus.config
    reader = Reader(corpus.encode, config, net)
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
    rows = np.column_stack(
        [
            candidates.response[corpus.valid],
            *(drawn[corpus.valid, 0] for drawn in candidates.negatives.values() if drawn.shape[1]),
        ]
    )
    encoded = reader.rows(candidates, rows.reshape(-1, 1))
    vectors = projection.apply(encoded).reshape(*rows.shape, -1)
    turns = context_rows(candidates, corpus.valid, config.context_turns)
    context = projection.apply(reader.rows(candidates, turns))
    identity = np.eye(projection.axes.shape[1], dtype=np.float32)
    left = {"f": context, "g": vectors[:, 0]}
    products = {part: _products(left[part], identity, vectors, rows >= 0) for part in parts}
    # Few responses are the true one: where there are negatives, they stand for what will be scored.
    measured = slice(1 if (rows[:, 1:] >= 0).any() else 0, None)
    total: Floats = np.sum(list(products.values()), axis=0)
    constants = Constants.spanning(total[:, measured])
    state = State({}, projection, dict.fromkeys(parts, identity), constants, {})
    bounds = {part: Bounds.of(share[:, measured]) for part, share in state.shares(products).items()}
    figures = {"train_lost": projection.lost(both), "valid_lost": projection.lost(encoded)}
    if "f" in products and (above := _above(products["f"])) is not None:
        figures["valid_gt_above"] = above
    return replace(state, bounds=bounds), figures


def _products(left: Floats, matrix: np.ndarray, right: Floats, present: np.ndarray) -> Floats:
    """leftᵀ matrix right, float64 (n, k), from (n, d) and (n, k, d); NaN where `present`, bool (n, k), is false."""
    columns = [bilinear(left, matrix, right[:, column]) for column in range(right.shape[1])]
    return np.where(present, np.stack(columns, axis=1), np.nan)


def _above(f: Floats) -> float | None:
    """Share of the negatives, columns from 1, that the true response, column 0, outranks; a tie counts half."""
    difference = f[:, :1] - f[:, 1:]
    difference = difference[np.isfinite(difference)]
    wins = (difference > 0) + 0.5 * (difference == 0)
    return float(wins.mean()) if wins.size else None
