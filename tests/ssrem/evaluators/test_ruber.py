"""RUBER by hand, and on a corpus whose answer is known: a response repeats the topic of its context."""

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
from ssrem.evaluators.ruber import COMBINATIONS, Ruber, RuberRef, RuberSettings, RuberUnref
from ssrem.evaluators.ruber_training import LabelledPairs, RuberNet, lay_samples, losses, scores
from ssrem.evaluators.similarity import pooled_cosine
from ssrem.samples import TEST, VALID, Candidates, Rows, Sample
from support import trained
from support.topical import topical_candidates, topical_encoder, topical_samples

pytestmark = pytest.mark.xdist_group("ruber")

TOPICS = 6
CONFIG = RuberSettings(
    hidden=16, mlp=16, epochs=8, batch_size=24, learning_rate=0.01, context_words=12, response_words=4, seed=5
)


def negatives(generator: np.random.Generator, topics: Rows) -> dict[str, Rows]:
    """Responses of other topics, some of them missing."""
    drawn = {
        "SC": trained.other_topics(generator, topics, 1),
        "Rand": trained.other_topics(generator, topics, 3),
    }
    drawn["SC"][::3] = -1
    drawn["Rand"][::4, 0] = -1
    return drawn


@cache
def candidates_of(n: int = 240) -> Candidates:
    return topical_candidates(n, TOPICS, negatives)


@pytest.fixture(scope="module")
def fitted() -> Ruber:
    evaluator = Ruber(CONFIG, topical_encoder(TOPICS))
    evaluator.fit(candidates_of())
    return evaluator


def like(fitted: Ruber, kind: type[RuberUnref] = Ruber, **settings: Any) -> Any:
    """With the same encoder and weights."""
    evaluator = kind(trained.changed(CONFIG, **settings), fitted.encoder)
    bounds = {part: bounds for part, bounds in fitted.bounds.items() if part in kind.parts}
    evaluator.take(fitted.tensors, bounds)
    return evaluator


SAMPLES = topical_samples(TOPICS)


# --- the referenced part


def by_words(**vectors: Sequence[float]) -> WordAverage:
    return WordAverage("by-hand", list(vectors), np.array(list(vectors.values())), weighting="uniform")


def test_pooled_cosine_by_hand() -> None:
    encoder = by_words(up=(0, 1), down=(0, -1), both=(2, 3), left=(-1, 0))
    # [max; min]: "up down" is (0, 1, 0, -1), "both left" (2, 3, -1, 0), "both" (2, 3, 2, 3).
    responses, references = ["up down", "up down", "both", "up"], ["both left", "both", "both left", "down"]
    expected = [3 / np.sqrt(2 * 14), 0, 11 / np.sqrt(26 * 14), -1]
    assert pooled_cosine(responses, references, encoder) == pytest.approx(expected, abs=1e-12)


def test_padding_takes_no_part_in_pooling() -> None:
    # All coordinates are negative: a zero of padding would be the maximum of the shorter text.
    encoder = by_words(low=(-1, -2), lower=(-3, -1))
    together = pooled_cosine(["low", "lower"], ["lower low low lower", "low unknown low"], encoder)
    expected = (np.array([-1, -2, -1, -2]) @ [-1, -1, -3, -2]) / np.sqrt(10 * 15)
    assert together[0] == pytest.approx(expected, abs=1e-12)
    assert together[0] == pooled_cosine(["low"], ["lower low low lower"], encoder)[0]
    # "low" is (-1, -2, -1, -2), "lower" (-3, -1, -3, -1).
    assert together[1] == pytest.approx(10 / np.sqrt(20 * 10), abs=1e-12)


def test_ruber_ref(tmp_path: Path) -> None:
    assert RuberRef().settings.encoder == "glove-6b-50d"
    vectors = tmp_path / "few.txt"
    vectors.write_text("the 1 1\ncat 2 -1\nsat 0 3\na 1 2\ndog 3 -2\nbarked 1 0\n")
    metric = RuberRef(encoder=f"file:{vectors}")
    responses = ("the cat sat", "a dog barked loudly", "", "qqqqzzzz", "你好 мир")
    samples = [Sample((), response, "the cat sat") for response in responses]
    samples += [Sample((), "the cat sat", ""), Sample((), "cat " * 20_000, "cat"), Sample((), "the cat sat")]
    parts = metric.compute(samples)
    scores = parts.score
    assert scores[[0, 6]] == pytest.approx([1, 1], abs=1e-9)
    assert 0 < scores[1] < 0.99
    assert scores[2:6].tolist() == [0, 0, 0, 0] and np.isnan(scores[7])
    backwards = np.concatenate([metric.compute([sample]).score for sample in samples[::-1]])[::-1]
    assert np.array_equal(scores, backwards, equal_nan=True)
    assert np.array_equal(parts.g, scores, equal_nan=True) and np.isnan(parts.f).all()
    assert not parts.truncated.any()
    metric.save(tmp_path / "m")
    assert RuberRef.load(tmp_path / "m").signature == metric.signature


# --- the unreferenced part


def test_learns_what_the_corpus_teaches(fitted: Ruber) -> None:
    candidates = candidates_of()
    f = fitted.score_candidates(candidates, TEST)
    for kind in ("SC", "Rand"):
        assert (f["GT"] > f[kind])[~np.isnan(f[kind])].mean() > 0.9
    training = fitted.training
    assert training is not None and training.figures["valid_gt_above"] > 0.95
    assert training.rows == {"train": 192, "train_an_epoch": 192, "valid": 24}
    assert {"epoch", "train_loss", "valid_loss", "seconds"} <= set(training.history[0])
    losses = [epoch["valid_loss"] for epoch in training.history]
    assert training.best_epoch == int(np.argmin(losses)) + 1
    assert training.notes == ()


def test_scores_do_not_depend_on_batch_or_order(fitted: Ruber, monkeypatch: pytest.MonkeyPatch) -> None:
    # Lengths from 0 to 30 words, so that batches are padded.
    mixed = [
        replace(sample, response=sample.response + " b1" * (7 * n % 31)) for n, sample in enumerate(SAMPLES)
    ]
    limits = {"ruber_training._ENCODED": 3, "ruber_training._SCORED": 5, "ruber._CHUNK": 7}
    trained.check_scores_stand_alone(fitted, mixed, limits, monkeypatch)


def test_the_network_by_hand() -> None:
    """Against PyTorch's GRU without padding or packing, one text at a time."""
    encoder, config = topical_encoder(TOPICS), CONFIG
    net = RuberNet.seeded(encoder.dimensions, config)
    samples = [Sample(("x1 a2", "x3"), "b1"), Sample(("a0",), "b2 x1 x0 x2")]
    laid, pairs = lay_samples(samples, encoder, config)
    for sample, (context, response) in zip(samples, pairs, strict=True):
        q, r = (
            torch.cat(list(gru(torch.from_numpy(encoder.encode(text.split()))[None])[1][:, 0]))
            for gru, text in ((net.context, " ".join(sample.context)), (net.response, sample.response))
        )
        inner = torch.tanh(net.inner(torch.cat([q, (q @ net.matrix @ r)[None], r])))
        expected = float(torch.sigmoid(net.outer(inner)).detach())
        states = [
            net.encode("context", laid.words, laid.contexts.of(np.array([context]))),
            net.encode("response", laid.words, laid.responses.of(np.array([response]))),
        ]
        assert float(net(*states, torch.ones(1)).detach()) == pytest.approx(expected, abs=1e-6)


def test_margin_loss_by_hand() -> None:
    encoder, config = topical_encoder(TOPICS), CONFIG
    net = RuberNet.seeded(encoder.dimensions, config)
    samples = [Sample(("a1",), text) for text in ("b1", "b2", "unknown")]
    laid, pairs = lay_samples(samples, encoder, config)
    high, low, unknown = scores(net, laid, pairs).tolist()
    assert unknown == 0.5
    examples = LabelledPairs(pairs[:1, 0], np.array([[0, -1, 1, 2]]))
    for turn, other in ((0, low), (1, 0.5), (2, low)):
        loss, above = losses(net, laid, examples, np.array([0]), turn, 0.5)
        assert float(loss.detach()) == pytest.approx(max(0, 0.5 - high + other), abs=1e-6)
        assert float(above) == (high > other)
    targets = LabelledPairs(pairs[:1, 0], pairs[:1, 1:], np.array([0.25], dtype=np.float32))
    loss, above = losses(net, laid, targets, np.array([0]), 0, 0.5)
    assert float(loss.detach()) == pytest.approx((high - 0.25) ** 2, abs=1e-6) and torch.isnan(above).all()


def test_a_response_is_told_from_all_others_of_its_batch() -> None:
    encoder, config = topical_encoder(TOPICS), CONFIG
    net = RuberNet.seeded(encoder.dimensions, config)
    texts = ["b1 x1", "b2", "b3 b3", "unknown"]
    contexts = [("a1",), ("a2", "x3"), ("a3",)]
    laid, pairs = lay_samples(
        [Sample(context, text) for context in contexts for text in texts], encoder, config
    )
    f = scores(net, laid, pairs).reshape(3, 4)
    # Texts 0, 1 and 2 are the true responses; their negatives are texts 3, 0 and 0. A text is not compared with itself.
    own = pairs[:, 1].reshape(3, 4)[0]
    examples = LabelledPairs(pairs[::4, 0], np.column_stack([own[[0, 1, 2]], own[[3, 0, 0]]]))
    loss, above = losses(net, laid, examples, np.arange(3), 0, 0.5)
    others = [[1, 2, 3], [0, 2, 3, 0, 0], [0, 1, 3, 0, 0]]
    expected = [
        np.mean([max(0, 0.5 - f[row, row] + f[row, other]) for other in columns])
        for row, columns in enumerate(others)
    ]
    assert loss.detach().numpy() == pytest.approx(expected, abs=1e-6)
    assert above.tolist() == [f[0, 0] > f[0, 3], f[1, 1] > f[1, 0], f[2, 2] > f[2, 0]]


def test_texts_without_a_known_word_score_a_half(fitted: Ruber) -> None:
    texts: Any = (((), "b1"), (("a1",), ""), (("?", ""), "b1"), (("a1",), "unknown"), (("a1",), "你好 мир"))
    odd = [Sample(context, response, "b1") for context, response in texts]
    parts = fitted.compute(odd)
    assert parts.f.tolist() == [0.5] * 5
    assert parts.g.tolist() == pytest.approx([1, 0, 1, 0, 0])
    assert np.isfinite(parts.h).all() and not parts.truncated.any()
    assert fitted.score([]).shape == (0,)
    assert RuberUnref.score(fitted, [Sample(("?",), "!")]).tolist() == [0.5]


def test_what_is_cut_is_said(fitted: Ruber) -> None:
    """The last 12 words of the context's last 5 turns and the first 4 of the response are read."""
    full = Sample(("a1 " * 6, "a2 " * 6), "b1 b2 b3 b4", "b1")
    more = [
        replace(full, context=("a1 " * 7, "a2 " * 6)),
        replace(full, response="b1 b2 b3 b4 b5"),
        replace(full, context=("a1 " * 6 + " ? unknown", "a2 " * 6)),
        replace(full, response="b1 b2 ! unknown b3 b4"),
        replace(full, context=("a5", *full.context)),
        replace(full, context=("a4", "", "", "", *full.context)),
        replace(full, context=("a1 " * 20_000, "a2 " * 6), response="b1 b2 b3 b4 " * 20_000),
    ]
    parts = fitted.compute([full, *more])
    assert parts.truncated.tolist() == [False, True, True, False, False, True, False, True]
    assert np.abs(parts.f - parts.f[0]).max() < 1e-6
    other = fitted.compute([replace(full, context=("a2 " * 6, "a1 " * 6)), replace(full, response="b4 b2")])
    assert np.abs(other.f - parts.f[0]).min() > 1e-6


def test_training_is_shuffled_seeded_and_whatever_the_threads() -> None:
    def made(seed: int) -> RuberUnref:
        return RuberUnref(trained.changed(CONFIG, epochs=1, seed=seed), topical_encoder(TOPICS))

    trained.check_seeded_whatever_the_threads(made, candidates_of(120))


def test_stops_early_and_slows_down_on_a_plateau() -> None:
    calls: list[tuple[int, int]] = []
    # A random response is never told from the true one: both are drawn from the same texts.
    candidates = candidates_of(120)
    hopeless = replace(candidates, negatives={"Rand": np.roll(candidates.response, 7)[:, None]})
    hopeless = replace(hopeless, texts=["a1", "x1", "b1"] * 120)
    config = trained.changed(CONFIG, epochs=40, decay_patience=1, patience=4)
    ruber = RuberUnref(config, topical_encoder(TOPICS))
    training = ruber.fit(hopeless, progress=lambda *at: calls.append(at))
    # Equal texts are not compared, so there is no loss, and the first epoch stays the best.
    assert [epoch["valid_loss"] for epoch in training.history] == [0.0] * 5
    assert training.best_epoch == 1 and training.figures["valid_gt_above"] == 0.5
    rates = [epoch["learning_rate"] for epoch in training.history]
    assert rates == pytest.approx([0.01, 0.01, 0.01, 0.001, 0.001])
    assert calls[-1] == (160, 160)


def test_epochs_take_the_responses_in_turn() -> None:
    config, calls = trained.changed(CONFIG, epochs=1, max_train=60, max_valid=20), list[tuple[int, int]]()
    limited = RuberUnref(config, topical_encoder(TOPICS))
    training = limited.fit(candidates_of(), progress=lambda *at: calls.append(at))
    assert calls == [(1, 3), (2, 3), (3, 3)]
    assert training.rows == {"train": 192, "train_an_epoch": 60, "valid": 20}
    assert training.notes[:2] == (
        "an epoch takes 60 of 192 responses, the next one goes on from there (max_train)",
        "validation takes 20 of 24 responses, drawn once (max_valid)",
    )


# --- the hybrid


def test_components(fitted: Ruber) -> None:
    parts = fitted.compute(SAMPLES)
    assert np.array_equal(parts.f_unit, fitted.bounds["f"].unit(parts.f))
    assert np.array_equal(parts.g_unit, fitted.bounds["g"].unit(parts.g))
    assert np.allclose(parts.h, (parts.f_unit + parts.g_unit) / 2)
    assert np.array_equal(fitted.score(SAMPLES), parts.h)
    responses, references = [s.response for s in SAMPLES], [s.reference or "" for s in SAMPLES]
    assert np.array_equal(parts.g, pooled_cosine(responses, references, fitted.encoder))
    unreferenced = [replace(sample, reference=None) for sample in SAMPLES[:3]]
    partly = fitted.compute([*unreferenced, SAMPLES[3]])
    assert np.isnan(partly.g[:3]).all() and np.isnan(partly.h[:3]).all() and np.isfinite(partly.f).all()
    assert partly.h[3] == pytest.approx(parts.h[3], abs=1e-6)
    # The bounds are those of the validation split.
    f = fitted.score_candidates(candidates_of(), VALID)
    seen = np.concatenate([f["GT"], f["Rand"]], axis=1)
    assert (fitted.bounds["f"].low, fitted.bounds["f"].high) == pytest.approx(
        (np.nanmin(seen), np.nanmax(seen)), abs=1e-6
    )
    unref = like(fitted, RuberUnref)
    alone = unref.compute(SAMPLES)
    assert np.allclose(alone.f, parts.f, atol=1e-5) and np.allclose(unref.score(SAMPLES), alone.f)
    assert np.isnan(alone.g).all() and np.isnan(alone.h).all()
    lowest = like(fitted, combine="min")
    assert np.array_equal(lowest.score(SAMPLES), np.minimum(parts.f_unit, parts.g_unit))
    assert lowest.signature != fitted.signature


def test_combine_by_hand() -> None:
    f, g = np.array([0.25, 1.0, np.nan]), np.array([1.0, 0.0, 0.5])
    expected = {"min": [0.25, 0], "max": [1, 1], "arithmetic": [0.625, 0.5], "geometric": [0.5, 0]}
    assert COMBINATIONS.keys() == expected.keys()
    for how, values in expected.items():
        mixed = COMBINATIONS[how](f, g)
        assert mixed[:2].tolist() == values and np.isnan(mixed[2])


# --- human scores


def judged() -> list[tuple[Sample, float]]:
    """A person who likes chatter and does not care for the topic: the opposite of what the corpus teaches."""
    generator = np.random.default_rng(7)
    return [
        (Sample((f"x{a} a{topic}",), f"b{answer}" + (" x1 x1" if liked else "")), 5.0 if liked else 1.5)
        for a in range(4)
        for topic in range(TOPICS)
        for answer, liked in zip(generator.integers(0, TOPICS, 6), [True, False] * 3, strict=True)
    ]


def test_fine_tuned_follows_human_scores(fitted: Ruber) -> None:
    annotated, fast = judged(), like(fitted, tune_epochs=15, tune_learning_rate=0.015)
    before = fast.signature
    tuned = fast.tuned_on(trained.one_set(annotated))
    assert fast.signature == before and fast.training is None
    assert type(tuned) is Ruber and "tuned:144" in tuned.signature
    samples, human = [sample for sample, _ in annotated], np.array([score for _, score in annotated])
    untuned_f, f = (evaluator.compute(samples).f for evaluator in (fast, tuned))
    assert abs(np.corrcoef(untuned_f, human)[0, 1]) < 0.5
    assert np.corrcoef(f, human)[0, 1] > 0.9
    # f predicts the scaled scores: (1.5 - 1) / 4 and 1.
    assert f[human == 1.5].mean() == pytest.approx(0.125, abs=0.1)
    assert f[human == 5].mean() == pytest.approx(1, abs=0.1)
    training = tuned.training
    assert training is not None and training.rows["contexts"] == 24
    assert (training.rows["train"], training.rows["valid"]) == (132, 12)  # two contexts of six
    assert training.figures["valid_loss"] == min(epoch["valid_loss"] for epoch in training.history)
    assert tuned.bounds["g"] == fast.bounds["g"]
    assert (tuned.bounds["f"].low, tuned.bounds["f"].high) == pytest.approx((f.min(), f.max()), abs=1e-6)


# --- kept and loaded


def test_saved_and_loaded(fitted: Ruber, tmp_path: Path) -> None:
    tuned = like(fitted, tune_epochs=1).tuned_on(trained.one_set(judged()))
    for evaluator in (fitted, tuned):
        loaded = trained.saved_and_loaded(evaluator, tmp_path, SAMPLES)
        assert loaded.settings == evaluator.settings
        assert loaded.training.rows == evaluator.training.rows
    # The order of the human scores does not count.
    again = like(fitted, tune_epochs=1).tuned_on(trained.one_set(judged()[::-1]))
    assert again.signature == tuned.signature != like(fitted, tune_epochs=1).signature
    for damage in (
        trained.manifest_with("tuned", value=720),
        trained.manifest_with("config", "hidden", value=4),
    ):
        trained.check_damage_is_refused(fitted, tmp_path, damage)


def test_candidates_that_cannot_be_learned_from() -> None:
    evaluator, candidates = Ruber(CONFIG, topical_encoder(TOPICS)), candidates_of()
    for spoilt, message in (
        ({"negatives": {"SC": candidates.negatives["SC"]}}, "of kind Rand a response"),
        ({"negatives": {"Rand": np.full((240, 1), -1)}}, "no response of the training split"),
    ):
        with pytest.raises(EvaluatorError, match=message):
            evaluator.fit(replace(candidates, **spoilt))  # type: ignore[arg-type]
