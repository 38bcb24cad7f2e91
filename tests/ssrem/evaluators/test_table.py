"""SSREM whose table learns, on a corpus whose answer is known: a response repeats the topic of its context."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ssrem.encoders import load_encoder, load_saved
from ssrem.encoders.tables import LearnedTable
from ssrem.encoders.words import WordAverage
from ssrem.errors import EvaluatorError
from ssrem.evaluators.bilinear import SSREM
from ssrem.evaluators.bilinear_inputs import Cases, SSREMSettings
from ssrem.evaluators.bilinear_training import TableObjective
from ssrem.samples import TEST, TRAIN, VALID, Candidates, Rows, Sample
from support.topical import topical_candidates, topical_encoder, topical_samples
from support.trained import other_topics, saved_and_loaded

TOPICS = 6
CONFIG = SSREMSettings(epochs=12, batch_size=32, learning_rate=0.03, patience=12, share=1.0, seed=3)
SAMPLES = topical_samples(TOPICS)


@cache
def corpus() -> Candidates:
    def negatives(generator: np.random.Generator, topics: Rows) -> dict[str, Rows]:
        drawn = dict.fromkeys(("SC", "SP", "SS"), other_topics(generator, topics, 1))
        drawn["SC"] = np.where(np.arange(len(topics))[:, None] % 3, drawn["SC"], -1)
        return {**drawn, "Rand": other_topics(generator, topics, 4)}

    return topical_candidates(300, TOPICS, negatives)


@pytest.fixture(scope="module")
def fitted() -> SSREM:
    evaluator = SSREM(CONFIG, topical_encoder(TOPICS))
    evaluator.fit(corpus())
    return evaluator


def test_learns_what_the_corpus_teaches_and_that_a_copy_is_no_answer(fitted: SSREM) -> None:
    f = fitted.score_candidates(corpus(), TEST)
    for kind in ("SC", "SP", "SS", "Rand", "Context"):
        assert (f["GT"] > f[kind])[~np.isnan(f[kind])].mean() > 0.9, kind
    assert fitted.training is not None
    assert fitted.training.figures["valid_gt_above"] > 0.9
    assert fitted.training.figures["valid_gt_above_copied"] > 0.9
    losses = [epoch["valid_loss"] for epoch in fitted.training.history]
    assert min(losses) < losses[0]


def test_f_does_not_saturate_and_an_empty_side_has_none(fitted: SSREM) -> None:
    nonsense = [Sample(("a1 " * 500,), "b1 " * 500), Sample(("a1",) * 9, "a1 b1 x2 x3 x3 x3")]
    scores = fitted.components([*SAMPLES, *nonsense])
    assert np.abs(scores.f).max() < 0.999
    f = scores.f[: len(SAMPLES)]
    assert np.std(f) > 0.05 and np.abs(f).max() > 0.8
    assert np.isnan(fitted.score([Sample((), "b1"), Sample(("  ",), "b1"), Sample(("a1",), "")])).all()


def test_training_scores_are_those_of_scoring() -> None:
    candidates, start = corpus(), topical_encoder(TOPICS)
    wanted = np.concatenate(
        [candidates.response[:, None], *(n[:, :1] for n in candidates.negatives.values())], 1
    )
    usable = {split: candidates.rows(split) for split in (TRAIN, VALID)}
    objective = TableObjective(candidates, wanted, usable, CONFIG, start)
    with torch.no_grad():
        _, own, copied = objective.scored(objective.rows[VALID])
    encoder, learned, _ = objective.learned(Any)  # type: ignore[arg-type]
    rows = usable[VALID]
    end = candidates.context_stop[rows]
    columns = np.concatenate([wanted[rows], end[:, None] - 1, end[:, None] - 2], axis=1)
    cases = Cases.of(candidates, rows, columns, CONFIG.context_turns, encoder)
    expected = SSREM(CONFIG, encoder).products(learned, cases)
    present = wanted[rows] >= 0
    assert np.allclose(own.numpy()[present], expected[:, :-2][present], atol=2e-3)
    assert np.allclose(copied.numpy()[:, :2], expected[:, -2:], atol=2e-3)


def test_rare_rows_and_the_share_stay_with_the_start() -> None:
    start, candidates = topical_encoder(TOPICS), corpus()
    texts = [f"{candidates.texts[0]} rare", *candidates.texts[1:]]
    names, vectors = [*start.vocabulary, "rare", "unseen"], np.vstack([start.vectors, np.eye(10)[:2]])
    start = WordAverage("topics", names, vectors)
    moved = []
    for share in (1.0, 0.5):
        evaluator = SSREM(CONFIG.model_copy(update={"share": share, "epochs": 2}), start)
        evaluator.fit(replace(candidates, texts=texts))
        assert isinstance(evaluator.encoder, LearnedTable)
        assert evaluator.encoder.rows.tolist() == list(range(2 * TOPICS + 4))
        moved.append(evaluator.encoder.change * evaluator.encoder.steps[:, None])
    assert np.abs(moved[0]).max() > 0.1
    assert np.allclose(moved[1], moved[0] / 2, atol=0.01 * np.abs(moved[0]).max())


def test_saved_and_loaded_and_g_compares_with_the_table_before_learning(
    fitted: SSREM, tmp_path: Path
) -> None:
    other = SSREM(CONFIG.model_copy(update={"epochs": 1}), topical_encoder(TOPICS))
    other.fit(corpus())
    assert np.array_equal(other.components(SAMPLES).g, fitted.components(SAMPLES).g)
    assert not np.array_equal(other.components(SAMPLES).f, fitted.components(SAMPLES).f)
    loaded = saved_and_loaded(other, tmp_path, SAMPLES)
    assert loaded.signature != fitted.signature
    loaded.fit(corpus())  # from the table as it was before learning
    assert loaded.signature == other.signature


def test_only_the_learned_rows_of_a_packaged_table_are_saved(tmp_path: Path) -> None:
    start = load_encoder("wordllama")
    assert isinstance(start, WordAverage)
    rows = np.array([5, 9], dtype=np.int32)
    vectors = np.random.default_rng(0).normal(size=(2, 256))
    table = LearnedTable.of(start, rows, vectors)
    assert np.abs(table.table.vectors[rows] - vectors).max() < np.abs(vectors).max() / 100
    table.save(tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*")) < 5_000
    loaded = load_saved(tmp_path)
    assert loaded.signature == table.signature
    texts = ["See you on Friday, then!", " \n", "</s>", "\ud800 half a pair"]
    assert np.array_equal(loaded.encode(texts), table.encode(texts))
    assert np.allclose(np.linalg.norm(loaded.encode(texts), axis=1), [1, 0, 1, 1], atol=1e-3)
    with pytest.raises(EvaluatorError, match="do not fit"):
        LearnedTable(start, rows, np.ones((2, 8), dtype=np.int8), np.ones(2, dtype=np.float32))


def test_an_encoder_that_it_cannot_have() -> None:
    letters = load_encoder("glove-6b-50d+wordllama")
    with pytest.raises(EvaluatorError, match=r"has none: give the encoder wordllama.*or train ssrem-paper"):
        SSREM(encoder=letters)
