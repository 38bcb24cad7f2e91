"""SSREM and RSREM on a corpus whose answer is known: a response repeats the topic of its context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ssrem.encoders.words import WordAverage
from ssrem.errors import EvaluatorError
from ssrem.evaluators import EVALUATORS, evaluator_class
from ssrem.evaluators.base import Bounds
from ssrem.evaluators.bilinear import RSREM, SSREMPaper
from ssrem.evaluators.bilinear_inputs import Cases, PaperSettings, last_turns, mean_turn
from ssrem.evaluators.bilinear_training import row_loss
from ssrem.samples import TEST, Candidates, Sample
from support import trained

TOPICS = 8
CONFIG = PaperSettings(epochs=8, batch_size=32, learning_rate=0.05, seed=5)


def topical_encoder() -> WordAverage:
    """Words a0…a7 for contexts, b0…b7 for responses, unrelated until M relates them."""
    vectors = np.random.default_rng(0).normal(size=(2 * TOPICS, 12))
    names = [f"{side}{topic}" for side in "ab" for topic in range(TOPICS)]
    return WordAverage("topics", names, vectors, weighting="uniform")


@cache
def topical_candidates(n: int = 300) -> Candidates:
    """Pairs of turns: 'aT', then 'bT'; negatives are responses on another topic, some of them missing."""
    generator = np.random.default_rng(1)
    topics = generator.integers(0, TOPICS, n)
    texts = [f"{side}{topic}" for topic in topics for side in "ab"]
    response = np.arange(n) * 2 + 1

    def other(k: int) -> np.ndarray:
        return np.array([generator.choice(np.flatnonzero(topics != one), k) * 2 + 1 for one in topics])

    negatives = {"SC": other(1), "SP": other(1), "SS": other(1), "Rand": other(4)}
    negatives["SC"][::3] = -1
    negatives["SP"][::2] = -1
    split = (np.arange(n) % 10 >= 8).astype(np.uint8) + (np.arange(n) % 10 == 9).astype(np.uint8)
    return Candidates(texts, response, response - 1, response, negatives, split)


def made(kind: type[SSREMPaper] = SSREMPaper, **settings: Any) -> Any:
    return kind(CONFIG.model_copy(update=settings), topical_encoder())


@pytest.fixture(scope="module")
def fitted() -> SSREMPaper:
    evaluator = made()
    evaluator.fit(topical_candidates())
    return evaluator  # type: ignore[no-any-return]


SAMPLES = [
    Sample((f"a{topic}",), f"b{answer}", f"b{topic}") for topic in range(TOPICS) for answer in range(TOPICS)
]


def test_learns_what_the_corpus_teaches(fitted: SSREMPaper) -> None:
    f = fitted.score_candidates(topical_candidates(), TEST)
    assert set(f) == {"GT", "SC", "SP", "SS", "Rand", "Context"}
    assert f["GT"].shape == (30, 1) and f["Rand"].shape == (30, 4)
    for kind in ("SC", "SP", "SS", "Rand"):
        present = ~np.isnan(f[kind])
        assert (f["GT"] > f[kind])[present].mean() > 0.95
    missing = topical_candidates().negatives["SC"][topical_candidates().rows(TEST)] < 0
    assert np.array_equal(np.isnan(f["SC"]), missing) and missing.any()
    assert fitted.training is not None
    assert fitted.training.figures["valid_gt_above"] > 0.95
    assert fitted.training.notes == ()


def test_training_stops_early() -> None:
    training = made(epochs=40, patience=2, learning_rate=0.5).fit(topical_candidates())
    losses = [epoch["valid_loss"] for epoch in training.history]
    assert training.best_epoch == int(np.argmin(losses)) + 1
    assert len(training.history) == training.best_epoch + 2 < 40


def test_the_result_does_not_depend_on_threads() -> None:
    trained.check_seeded_whatever_the_threads(lambda seed: made(epochs=1, seed=seed), topical_candidates())


def test_score_equals_score_candidates(fitted: SSREMPaper) -> None:
    candidates = topical_candidates()
    rows, texts = candidates.rows(TEST), candidates.texts
    samples = [Sample((texts[row - 1],), texts[row]) for row in candidates.response[rows]]
    tested, everything = (fitted.score_candidates(candidates, split)["GT"] for split in (TEST, None))
    assert np.array_equal(fitted.score(samples), tested[:, 0])
    assert np.array_equal(everything[rows], tested)


def test_scores_do_not_depend_on_batch_or_order(fitted: SSREMPaper, monkeypatch: pytest.MonkeyPatch) -> None:
    trained.check_scores_stand_alone(fitted, SAMPLES, {"bilinear._CHUNK": 7}, monkeypatch)


def test_components(fitted: SSREMPaper) -> None:
    scores = fitted.components(SAMPLES)
    assert np.allclose(scores.h, (scores.f_unit + scores.g_unit) / 2)
    assert np.array_equal(scores.f_unit, fitted.bounds["f"].unit(scores.f))
    assert not scores.truncated.any()
    assert ((scores.f > -1) & (scores.f < 1)).all()
    # Only sms of a text with itself is 1.
    same = np.array([sample.response == sample.reference for sample in SAMPLES])
    assert np.allclose(scores.g[same], 1) and (scores.g[~same] < 1).all()
    unreferenced = [Sample(sample.context, sample.response) for sample in SAMPLES[:3]]
    partly = fitted.components([*unreferenced, SAMPLES[3]])
    assert np.isnan(partly.g[:3]).all() and np.isfinite(partly.f).all()
    assert np.isnan(partly.h).tolist() == [True] * 3 + [False]
    assert np.array_equal(fitted.score([*unreferenced, SAMPLES[3]]), partly.f)
    assert np.array_equal(fitted.score(SAMPLES), scores.h)


def test_texts_without_a_known_word_score_zero_and_blank_ones_nothing(fitted: SSREMPaper) -> None:
    assert fitted.score([Sample(("?",), "b1"), Sample(("a1",), "unknown")]).tolist() == [0, 0]
    blank = fitted.components([Sample((), "b1"), Sample((" ",), "b1"), Sample(("a1",), " \n", "b1")])
    assert np.isnan([blank.f, blank.g, blank.h]).all()
    assert fitted.score([]).shape == (0,)
    # One blank response does not change which part is the score of the others.
    mixed = fitted.components([*SAMPLES, Sample((), "b1", "b1")])
    assert np.array_equal(mixed.score[:-1], fitted.score(SAMPLES)) and np.isnan(mixed.score[-1])
    # A turn without a known word takes no part in the context's mean.
    assert fitted.score([Sample(("a1", "!"), "b1")]) == fitted.score([Sample(("a1",), "b1")])


def test_only_the_last_turns_count(fitted: SSREMPaper) -> None:
    assert fitted.settings.context_turns == 3
    long = fitted.score([Sample(("a5", "a1", "a2", "a2"), "b1")])
    assert long == fitted.score([Sample(("a1", "a2", "a2"), "b1")])
    assert long != fitted.score([Sample(("a5", "a2", "a2"), "b1")])


def test_saved_and_loaded(fitted: SSREMPaper, tmp_path: Path) -> None:
    loaded = trained.saved_and_loaded(fitted, tmp_path / "m", SAMPLES)
    assert loaded.training is not None and fitted.training is not None
    assert loaded.training.figures == fitted.training.figures and loaded.training.rows == fitted.training.rows
    with pytest.raises(EvaluatorError, match="expected rsrem"):
        RSREM.load(tmp_path / "m")


@pytest.mark.parametrize("damage", trained.DAMAGES.values(), ids=trained.DAMAGES.keys())
def test_changed_folders_are_refused(fitted: SSREMPaper, tmp_path: Path, damage: trained.Damage) -> None:
    trained.check_damage_is_refused(fitted, tmp_path, damage)


def test_registry() -> None:
    for name in EVALUATORS:
        assert evaluator_class(name).name == name


def test_rsrem_learns_from_four_random_negatives() -> None:
    evaluator, candidates = made(RSREM), topical_candidates()
    assert evaluator.fit(candidates).figures["valid_gt_above"] > 0.95
    assert "neg:Randx4" in evaluator.signature
    few = replace(candidates, negatives={**candidates.negatives, "Rand": candidates.negatives["Rand"][:, :3]})
    with pytest.raises(EvaluatorError, match="have 3"):
        evaluator.fit(few)


def test_missing_sets_are_masked_and_said() -> None:
    candidates = topical_candidates()
    nothing = {kind: np.full((300, 1), -1) for kind in candidates.negatives}
    some = {**candidates.negatives, "SP": nothing["SP"], "SS": nothing["SS"]}
    training = made(epochs=1).fit(replace(candidates, negatives=some))
    assert training.notes[0] == "no response has a negative of kind SP, SS: learned from SC, Rand"
    with pytest.raises(EvaluatorError, match="no response of the training split"):
        made().fit(replace(candidates, negatives=nothing))
    with pytest.raises(EvaluatorError, match="validation split"):
        made().fit(replace(candidates, split=np.zeros(300, dtype=np.uint8)))


def test_before_training_and_bad_settings() -> None:
    fresh = made()
    for use in (
        lambda: fresh.score(SAMPLES),
        lambda: fresh.signature,
        lambda: fresh.score_candidates(topical_candidates()),
        lambda: fresh.save(Path("nowhere")),
    ):
        with pytest.raises(EvaluatorError, match="not trained"):
            use()
    with pytest.raises(EvaluatorError, match="no setting lr"):
        PaperSettings(lr=1)
    with pytest.raises(EvaluatorError, match="diverged"):
        made(learning_rate=1e37).fit(topical_candidates())


@pytest.mark.parametrize("logits", ["raw", "tanh"])
def test_row_loss_by_hand(logits: str) -> None:
    scores = torch.tensor([[1.0, 0.0, 9.0], [0.5, 0.5, 0.5]])
    present = torch.tensor([[True, True, False], [True, True, True]])
    first = np.tanh(1.0) if logits == "tanh" else 1.0
    expected = (-np.log(np.exp(first) / (np.exp(first) + 1)) + np.log(3)) / 2
    assert float(row_loss(scores, present, logits)) == pytest.approx(expected, rel=1e-6)


def test_ranking_loss_by_hand() -> None:
    scores = torch.tensor([[2.0, 1.0, 0.5], [1.0, 7.0, 0.0]], requires_grad=True)
    present = torch.tensor([[True, True, True], [True, False, True]])
    e = np.exp([2.0, 1.0, 0.5])
    first = -np.log(e[0] / e.sum()) - np.log(e[1] / e[1:].sum())
    second = -np.log(np.e / (np.e + 1))
    loss = row_loss(scores, present, "raw", "ranking")
    assert float(loss.detach()) == pytest.approx((first + second) / 2, rel=1e-6)
    loss.backward()  # type: ignore[no-untyped-call]
    assert scores.grad is not None and torch.isfinite(scores.grad).all()
    assert scores.grad[1, 1] == 0 < scores.grad[0, 2]  # the last in the order goes down


def test_ranking_learns_the_order_of_the_kinds_and_needs_one(fitted: SSREMPaper) -> None:
    ranked = made(loss="ranking")
    assert ranked.fit(topical_candidates()).figures["valid_gt_above"] > 0.95
    assert "loss:raw-ranking" in ranked.signature
    assert ranked.signature.split("|w:")[1] != fitted.signature.split("|w:")[1]
    with pytest.raises(EvaluatorError, match="needs an order"):
        made(RSREM, loss="ranking").fit(topical_candidates())


def test_contexts_are_means_over_known_turns(fitted: SSREMPaper) -> None:
    texts, split = ["a", "b", "c", "d"], np.zeros(4, dtype=np.uint8)
    start, stop = np.array([0, 0, 2, 0]), np.array([3, 3, 2, 1])
    turns = last_turns(Candidates(texts, np.full(4, 3), start, stop, {}, split), 3)
    assert turns.tolist() == [[2, 1, 0], [2, 1, 0], [-1, -1, -1], [0, -1, -1]]
    vectors = np.array([[1, 0], [0, 0], [0, 2], [4, 4]], dtype=np.float16)
    cases = Cases(vectors, turns, np.array([[3, -1]] * 4))
    gathered, known, _ = cases.gathered()
    assert mean_turn(gathered, known).tolist() == [[0.5, 1], [0.5, 1], [0, 0], [1, 0]]
    values = fitted.products({"matrix": np.eye(2)}, cases)
    assert values[:, 0].tolist() == [6, 6, 0, 4] and np.isnan(values[:, 1]).all()


def test_unit_range() -> None:
    scaled = Bounds.of(np.array([1.0, 3.0, np.nan])).unit(np.array([1.0, 2.0, 3.0, 0.0, 9.0, np.nan]))
    assert scaled[:5].tolist() == [0, 0.5, 1, 0, 1] and np.isnan(scaled[5])
    assert Bounds(2, 2).unit(np.array([4.0])).tolist() == [0.5]
    assert Bounds.of(np.array([])) == Bounds(0, 1)


def test_candidates_are_checked() -> None:
    good = topical_candidates()
    bad: Sequence[dict[str, Any]] = (
        *({"response": np.full(300, 600)}, {"negatives": {"SC": np.full((300, 1), 600)}}),
        *({"context_start": np.zeros(299, dtype=np.int64)}, {"context_start": np.full(300, 700)}),
        {"negatives": {"XX": np.zeros((300, 1), dtype=np.int64)}},
    )
    for values in bad:
        with pytest.raises(EvaluatorError, match="candidates"):
            replace(good, **values)
