"""Fits ADEM on a corpus: the encoder, the projection, and the constants that put scores on the scale."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ssrem.errors import EvaluatorError
from ssrem.evaluators.adem.config import AdemConfig
from ssrem.evaluators.adem.encode import Encoded, context_rows, encode_rows, lay_turns
from ssrem.evaluators.adem.state import Constants, Projection, State, bilinear
from ssrem.evaluators.base import Training
from ssrem.evaluators.core.scaling import Bounds
from ssrem.evaluators.core.word_sequences import Words
from ssrem.samples import TRAIN, VALID, Candidates, Encode, Floats, Progress, Rows

if TYPE_CHECKING:
    from ssrem.evaluators.adem.model import HierarchicalEncoder
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

    def encoded(self, turns: Rows, net: HierarchicalEncoder | None) -> Encoded:
        return encode_rows(self.candidates, turns, self.encode, self.config, net)

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
) -> tuple[State, Training]:
    """M and N are the identity; the validation split chooses the encoder's epoch, and gives α, β and the bounds.

    parts: of "f" and "g", those that the score is made of.
    """
    began = time.perf_counter()
    train, valid = (_rows(name, candidates, split) for split in (TRAIN, VALID))
    drawn = _draw(valid, config.max_valid, config.seed, 5)
    corpus = _Corpus(name, candidates, encode, config, train, drawn)
    rows = {"train": len(train), "valid": len(drawn)}
    notes = []
    if len(drawn) < len(valid):
        notes.append(f"validation takes {len(drawn)} of {len(valid)} responses, drawn once (max_valid)")
    if config.pretrained == "encoder":
        state, figures = _calibrated(corpus, parts, None)
        history: tuple[dict[str, float], ...] = (
            {"epoch": 1, "train_loss": figures["train_lost"], "valid_loss": figures["valid_lost"]},
        )
        best_epoch = 1
        notes.append("the encoder is off the shelf; loss: share of variance that the projection leaves out")
        if progress is not None:
            progress(1, 1)
    else:
        from ssrem.evaluators.adem.model import HierarchicalEncoder

        found, dimensions = _pretrained(corpus, progress)
        net = HierarchicalEncoder.of(found.weights, dimensions, config)
        state, figures = _calibrated(corpus, parts, net)
        history, best_epoch = found.history, found.best_epoch
        state = replace(state, encoder=found.weights)
        figures["valid_loss_untrained"] = found.untrained_loss
        rows["train_an_epoch"] = min(config.max_train, found.stretches)
        if config.max_train < found.stretches:
            notes.append(
                f"an epoch takes {config.max_train} of {found.stretches} stretches of conversation, "
                "the next one goes on from there (max_train)"
            )
    figures |= {key: value for key, value in history[best_epoch - 1].items() if key.startswith("valid_")}
    seconds = time.perf_counter() - began
    return state, Training(history, best_epoch, seconds, rows, figures, tuple(notes))


def _pretrained(corpus: _Corpus, progress: Progress | None) -> tuple[Pretrained, int]:
    """The trained encoder, and the word vectors' dimensions."""
    from ssrem.evaluators.adem.model import Batch
    from ssrem.evaluators.adem.pretrain import pretrain

    train, valid = (corpus.stretches(rows) for rows in (corpus.train, corpus.valid))
    needed = np.zeros(len(corpus.candidates.texts), dtype=bool)
    for stretches in (train, valid):
        needed[stretches[stretches >= 0]] = True
    words = Words.of(corpus.candidates.texts, corpus.encode, needed)
    texts = lay_turns(words, corpus.config.turn_words)
    kept = []
    for split, stretches in (("training", train), ("validation", valid)):
        kept.append(stretches[Batch(words, texts, stretches).wanted.any(axis=1)])
        if not len(kept[-1]):
            raise EvaluatorError(
                f"{corpus.name}: no conversation of the {split} split has two turns with a known word; "
                "give more conversations, or an encoder that knows their words"
            )
    found = pretrain(words, texts, kept[0], kept[1], corpus.config, progress)
    return found, words.vectors.shape[1]


def _calibrated(
    corpus: _Corpus, parts: tuple[str, ...], net: HierarchicalEncoder | None
) -> tuple[State, dict[str, float]]:
    """The projection from the training split, α, β and the bounds from the validation split.

    Figures: share of the variance that the projection leaves out (`_lost`), and how often f of the true
    response is above that of a negative.
    """
    candidates, config = corpus.candidates, corpus.config
    chosen = _draw(corpus.train, config.pca_rows, config.seed, 6)
    contexts = corpus.encoded(context_rows(candidates, chosen, config.context_turns), net)
    responses = corpus.encoded(candidates.response[chosen, None], net)
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
    encoded = corpus.encoded(rows.reshape(-1, 1), net)
    vectors = projection.apply(encoded).reshape(*rows.shape, -1)
    context = projection.apply(
        corpus.encoded(context_rows(candidates, corpus.valid, config.context_turns), net)
    )
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


def _products(left: Floats, matrix: np.ndarray, right: Floats, there: np.ndarray) -> Floats:
    """leftᵀ matrix right, float64 (n, k), from (n, d) and (n, k, d); NaN where `there`, bool (n, k), is false."""
    columns = [bilinear(left, matrix, right[:, column]) for column in range(right.shape[1])]
    return np.where(there, np.stack(columns, axis=1), np.nan)


def _above(f: Floats) -> float | None:
    """Share of the negatives, columns from 1, that the true response, column 0, outranks; a tie counts half."""
    difference = f[:, :1] - f[:, 1:]
    difference = difference[np.isfinite(difference)]
    wins = (difference > 0) + 0.5 * (difference == 0)
    return float(wins.mean()) if wins.size else None


def _rows(name: str, candidates: Candidates, split: int) -> Rows:
    """Responses of the split that have a context."""
    rows = candidates.rows(split)
    rows = rows[candidates.context_stop[rows] > candidates.context_start[rows]]
    if len(rows) == 0:
        word = "training" if split == TRAIN else "validation"
        raise EvaluatorError(
            f"{name}: no response of the {word} split has a context; give more conversations"
        )
    return rows


def _draw(rows: Rows, count: int, seed: int, stream: int) -> Rows:
    """`count` of them in order, or all where there are no more."""
    if len(rows) <= count:
        return rows
    return np.sort(np.random.default_rng([seed, stream]).choice(rows, count, replace=False))
