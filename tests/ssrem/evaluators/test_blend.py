"""Blends of parts whose scores stand in the response, so that every weight is known beforehand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import Mock

import numpy as np
import pytest

from ssrem.agreement.correlate import spearman
from ssrem.errors import EvaluatorError
from ssrem.evaluators import EVALUATORS, PACKAGED, load_evaluator
from ssrem.evaluators.base import Evaluator, EvaluatorSettings, Scores
from ssrem.evaluators.baselines import Length
from ssrem.evaluators.blend import (
    Blend,
    BlendBaseSettings,
    BlendFast,
    BlendFastSettings,
    BlendRef,
    BlendSettings,
    LmSumSettings,
    Part,
)
from ssrem.evaluators.blend_learning import _groups, ridge, scales
from ssrem.evaluators.metric import Metric, MetricScores
from ssrem.samples import TEST, VALID, Candidates, Labelled, Labels, Sample, out_of_fold
from ssrem.studies.behaviour import everyday_pairs
from support.trained import one_set


class NumberSettings(EvaluatorSettings):
    position: int = 0
    times: float = 1.0


class Number(Metric):
    """f: the number that stands at `position` of the response's words."""

    name: ClassVar[str] = "number"
    range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    source: ClassVar[str] = "here"
    settings_model: ClassVar[type[EvaluatorSettings]] = NumberSettings
    engine = "1"
    calls: ClassVar[list[int]] = []

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        self.calls.append(len(samples))
        texts = [sample.response.split()[self.settings.position] for sample in samples]
        cut = np.array(["cut" in sample.response for sample in samples], dtype=bool)
        return MetricScores(np.array([float(text) for text in texts]) * self.settings.times, cut)


class Words(Metric):
    """f: how many words the response has."""

    name: ClassVar[str] = "words"
    range: ClassVar[tuple[float, float]] = (0.0, np.inf)
    source: ClassVar[str] = "here"
    engine = "1"

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        return MetricScores(np.array([float(len(s.response.split())) for s in samples]))


class Same(Metric):
    """g: whether response and reference are one."""

    name: ClassVar[str] = "same"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "reference"})
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    source: ClassVar[str] = "here"
    engine = "1"

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        return MetricScores(np.array([float(sample.response == sample.reference) for sample in samples]))


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Number, Words, Same):
        monkeypatch.setitem(EVALUATORS, kind.name, f"{__name__}:{kind.__name__}")


def numbers(*names: str) -> dict[str, Evaluator]:
    return {name: Number(position=at) for at, name in enumerate(names)}


def text(values: Sequence[float], padding: int = 0) -> str:
    return " ".join([*(f"{value:.4f}" for value in values), *["w"] * padding])


def planted(shifts: Sequence[float], n: int = 300, words: tuple[int, int] = (3, 3)) -> Candidates:
    """Two context turns and a response each; its numbers are N(shift, 1), those of its negatives N(0, 1).

    words: mean number of filling words of true responses and of negatives.
    """
    generator = np.random.default_rng(0)
    texts = []
    for row in range(n):
        true, false = generator.poisson(words[0]), generator.poisson(words[1], 2)
        texts += [f"hi {row}", "how are you", text(generator.normal(shifts), true)]
        texts += [text(generator.normal(size=len(shifts)), padding) for padding in false]
    response = np.arange(n) * 5 + 2
    negatives = {"SC": response[:, None] + 1, "Rand": response[:, None] + np.array([2, -2])}
    negatives["SC"][::4] = -1
    # A second random turn that is a context turn, which no generator may give.
    split = np.where(np.arange(n) % 5 == 3, 1, np.where(np.arange(n) % 5 == 4, 2, 0)).astype(np.uint8)
    return Candidates(texts, response, response - 2, response, negatives, split)


CONFIG = BlendSettings(contexts=180, valid_contexts=60, negatives="drawn", l2=0.1, cap=8.0)
SAMPLES = [Sample(("a", "b"), text([at % 7 - 3, at % 5], at % 4)) for at in range(40)]


def changed(**settings: Any) -> BlendSettings:
    return CONFIG.model_copy(update=settings)


def fitted(candidates: Candidates, config: BlendSettings = CONFIG, *names: str) -> Blend:
    blend = Blend(config, members=numbers(*(names or ("good", "noise"))))
    blend.fit(candidates)
    return blend


def usual() -> Blend:
    """A blend of a part that tells true responses well and one that does so a little."""
    return fitted(planted([1.0, 0.3]))


def tuned_by(blend: Blend, pairs: Labelled, scale: tuple[float, float] = (1, 5)) -> Any:
    return blend.tuned_on(one_set(pairs, scale))


# --- without human scores


def test_a_metric_gives_one_number_for_each_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Words, "values", lambda *_: MetricScores(np.array([0.5])))
    with pytest.raises(EvaluatorError, match=r"words: values of shape \(1,\) for 2 samples"):
        Words().score([Sample(("Hi!",), "Hello"), Sample(("Hi!",), "Good day")])


def test_learns_which_part_tells_true_responses() -> None:
    blend = fitted(planted([2.0, 0.0]), CONFIG)
    weights, training = blend.weights, blend.training
    assert training is not None
    assert sum(weights.values()) == pytest.approx(1) and weights["good"] > 0.7
    assert training.figures["weight good"] == pytest.approx(weights["good"])
    assert training.figures["gt_above good"] > 0.85
    assert 0.35 < training.figures["gt_above noise"] < 0.65
    assert training.figures["valid_gt_above"] > training.figures["gt_above prior"]
    assert training.rows["train"] == 180 and training.rows["valid"] == 60
    # Two negatives a response, SC missing of every fourth.
    assert 180 * 1.6 < training.rows["train_negatives"] < 180 * 1.9
    (epoch,) = training.history
    assert {"epoch", "l2", "train_loss", "valid_loss", "valid_gt_above", "seconds"} == set(epoch)


def test_weights_equal_an_independent_regression() -> None:
    """With one negative a response, and no length to tell them by, it is scikit-learn's logistic regression without an
    intercept on the differences; the penalty on w - p Σ w is one on other columns."""
    from sklearn.linear_model import LogisticRegression

    candidates = planted([1.5, 0.8], words=(0, 0))
    candidates = replace(candidates, negatives={"SC": candidates.response[:, None] + 1})
    blend = fitted(candidates, changed(l2=0.05, cap=1e9, clip=1e9, contexts=1000))
    rows = candidates.rows(0)
    said = [[candidates.texts[row + at] for row in candidates.response[rows]] for at in (0, 1)]
    true, false = (np.array([[float(one) for one in text.split()] for text in texts]) for texts in said)
    apart = (true - false) / blend.tensors["spread"]
    # w = s (p + d, p - d): the loss is penalised by 2 l2 s² d², that is (w1 - w2)² l2 / 2, and not along (1, 1).
    along, across = apart.sum(axis=1) / 2, (apart[:, 0] - apart[:, 1]) / 2
    scaled = np.column_stack([along * 1e4, across])  # a column so large that its weight is as good as free
    penalty = 0.05 * len(rows)
    model = LogisticRegression(C=1 / penalty, fit_intercept=False, tol=1e-12, max_iter=10_000)
    model.fit(np.vstack([scaled, -scaled]), np.repeat([1, 0], len(rows)), np.full(2 * len(rows), 0.5))
    total, apart_by = model.coef_[0] * (1e4, 1)
    expected = np.array([total + apart_by, total - apart_by]) / 2
    assert list(blend.weights.values()) == pytest.approx(expected / expected.sum(), abs=2e-3)


def test_length_has_a_weight_from_human_scores_alone() -> None:
    members = {**numbers("good"), "length": Length()}
    blend = Blend(CONFIG, members=members)
    blend.fit(planted([1.0], words=(9, 3)))  # true responses are longer: a giveaway that f must not take
    assert blend.weights == {"good": 1.0, "length": 0.0}
    generator = np.random.default_rng(1)
    pairs = []
    for row in range(120):
        value, words = generator.normal(), int(generator.integers(1, 20))
        sample = Sample((f"hi {row // 3}",), text([value], words))
        pairs.append((sample, float(np.clip(3 + 0.5 * value - 0.8 * (np.log1p(words + 1) - 2.2), 1, 5))))
    backwards = Blend(blend.settings, members=dict(reversed(members.items())))
    assert backwards.settings.parts == blend.settings.parts and list(backwards.members) == list(members)
    for before in (blend, Blend(CONFIG, members=members)):
        weights = tuned_by(before, pairs).weights
        assert weights["length"] < -0.2 < 0.2 < weights["good"]
    assert Length().compute([Sample((), ""), Sample((), "a b")]).score == pytest.approx([0, np.log(3)])


def test_strong_regularisation_gives_the_weights_before_the_fit_which_are_equal() -> None:
    weights = fitted(planted([2.0, 0.5]), changed(l2=100000)).weights
    assert weights == pytest.approx({"good": 0.5, "noise": 0.5}, abs=1e-3)
    shares = zip("abc", (2, 1, 1), strict=True)
    parts = [Part(evaluator="number", name=name, weight=weight) for name, weight in shares]
    assert BlendSettings(parts=[*parts, "length"]).prior == pytest.approx([0.5, 0.25, 0.25, 0])
    blend = fitted(planted([2.0, 0.5, 0.1]), changed(parts=tuple(parts), l2=100000.0), *"abc")
    assert blend.weights == pytest.approx({"a": 0.5, "b": 0.25, "c": 0.25}, abs=1e-3)


def test_where_nothing_separates_the_weights_stay_equal() -> None:
    blend = fitted(planted([-1.0, -1.0]))
    assert blend.weights == {"good": 0.5, "noise": 0.5}
    assert blend.training is not None and "the weights are those before the fit" in blend.training.notes[0]
    # One part that does is not turned against its meaning.
    assert fitted(planted([1.5, -1.5]), changed(l2=0.01)).weights == {"good": 1.0, "noise": 0.0}


def test_the_nearest_in_length_of_a_generators_negatives() -> None:
    texts = ["hi there", "one two three", "a", "b b", "c c c c", "d d d d d d d", "e e"]
    rows, drawn_of = np.array([1]), {"Rand": np.array([[2, 5, 4]]), "SS": np.array([[6]])}
    candidates = Candidates(texts, rows, rows - 1, rows, drawn_of, np.zeros(1, np.uint8))

    def groups(settings: BlendSettings = CONFIG, of: Candidates = candidates, split: int = 0) -> list[Any]:
        return _groups(Blend(settings, members={"number": Number()}), of, split)

    true = Sample(("hi there",), "one two three")
    assert groups() == [(true, ["c c c c", "e e"])]
    ((_, (scrambled, drawn)),) = groups(changed(negatives="shuffle-golden+random-1"))
    assert sorted(scrambled.split()) == ["one", "three", "two"] and drawn == "a"
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"split": VALID}, "no response of the validation split has a negative"),
        ({"settings": changed(negatives="nobody")}, "no negatives 'nobody'"),
        ({"of": replace(candidates, negatives={})}, "the candidates hold no negatives"),
    )
    for arguments, message in wrong:
        with pytest.raises(EvaluatorError, match=message):
            groups(**arguments)


def test_the_same_fit_twice_and_progress_to_the_end() -> None:
    candidates, steps, one = (
        planted([1.0, 0.3]),
        list[tuple[int, int]](),
        Blend(CONFIG, members=numbers("good", "noise")),
    )
    one.fit(candidates, progress=lambda done, total: steps.append((done, total)))
    assert one.signature == fitted(candidates).signature
    assert [done for done, _ in steps] == list(range(1, steps[-1][1] + 1))
    assert fitted(candidates, changed(seed=1, contexts=100)).signature != one.signature


def test_the_correlation_with_length_is_reported() -> None:
    blend = Blend(CONFIG, members={"words": Words()})
    figures = blend.fit(planted([0.0])).figures
    assert figures["length_correlation"] == pytest.approx(1)
    assert figures["length_correlation negatives"] == pytest.approx(1)
    noise = fitted(planted([0.0, 0.0], n=600), changed(valid_contexts=120)).training
    assert noise is not None and abs(noise.figures["length_correlation"]) < 0.3


def test_the_packaged_one_without_a_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """It loads no language model, and scores the better of two everyday responses higher in most categories."""
    from ssrem.evaluators.language_model import likelihood

    monkeypatch.delattr(likelihood, "gemma_folder")
    blend = load_evaluator("blend-fast")
    assert isinstance(blend, BlendFast)
    assert list(blend.weights) == [part.key for part in BlendFastSettings().parts]
    assert list(blend.weights.values()) == pytest.approx(BlendFastSettings().prior, abs=0.03)
    assert json.loads((PACKAGED / "blend-fast" / "card.json").read_text())["human_scores"] == 0
    pairs = everyday_pairs()[::8]
    samples = [Sample(pair.context, said) for pair in pairs for said in (pair.better, pair.worse)]
    better, worse = blend.score(samples).reshape(-1, 2).T
    assert (better > worse).mean() > 0.7
    easy = [pair.category in ("off-topic", "copied", "scrambled", "generic") for pair in pairs]
    assert (better > worse)[easy].mean() > 0.8


@pytest.mark.parametrize("chunk", [1, 1_000])
def test_parts_with_one_encoder_share_its_vectors(
    monkeypatch: pytest.MonkeyPatch, chunk: int, colours: str
) -> None:
    monkeypatch.setattr("ssrem.evaluators.blend._CHUNK", chunk)
    parts = [Part(evaluator="cosine", name=name, settings={"encoder": colours}) for name in ("one", "two")]
    blend, encoded = Blend(BlendSettings(parts=parts)), Mock()
    for encoder in {id(member.encoder): member.encoder for member in blend.members.values()}.values():
        assert encoder is not None
        compute = Mock(side_effect=encoder.compute)
        encoded.attach_mock(compute, "compute")
        monkeypatch.setattr(encoder, "compute", compute)
    blend.part_scores([Sample(("red cat",), "blue"), Sample(("red cat",), "green")])
    texts = [text for call in encoded.mock_calls for text in call.args[0]]
    assert sorted(texts) == ["blue", "green", "red cat"]


def test_a_packaged_part_is_named_and_not_copied(tmp_path: Path) -> None:
    blend = Blend(changed(parts=(Part(evaluator="number"), Part(evaluator="ssrem"))))
    blend.fit(planted([1.0]))
    blend.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evaluator.json", "weights.safetensors"]
    loaded = load_evaluator(tmp_path)
    assert loaded.signature == blend.signature and np.array_equal(loaded.score(SAMPLES), blend.score(SAMPLES))
    manifest = tmp_path / "evaluator.json"
    manifest.write_text(manifest.read_text().replace("ssrem[ssrem|", "ssrem[other|"))
    with pytest.raises(EvaluatorError, match="that it names was changed; copy or train it again"):
        load_evaluator(tmp_path)


# --- scores


def test_scores_by_hand_within_clip_and_cap() -> None:
    blend = usual()
    state = blend.tensors
    values = np.array([[float(word) for word in sample.response.split()[:2]] for sample in SAMPLES])
    z = np.clip((values - state["centre"]) / state["spread"], -8, 8)
    scores = blend.compute(SAMPLES)
    assert scores.score == pytest.approx(z @ state["weights"], abs=1e-12)
    low, high = blend.bounds["f"].low, blend.bounds["f"].high
    assert scores.f_unit == pytest.approx(np.clip((scores.score - low) / (high - low), 0, 1))
    blend = fitted(planted([1.0, 0.3]), changed(cap=2.0))
    wild = blend.score([Sample(("hi",), text([1e9, -1e9])), Sample(("hi",), text([1e9, 1e9]))])
    good, noise = blend.tensors["weights"]
    assert wild == pytest.approx([2 * good - 8 * noise, 2], abs=1e-9)  # down to clip, up to cap
    assert "|clip:8|cap:2|" in blend.signature


def test_scales_leave_the_outer_percent_out_but_not_what_a_part_recognises_rarely() -> None:
    values = np.column_stack([np.append(np.arange(1000.0), 1e9), np.full(1001, 7.0)])
    centre, spread = scales(values, values)
    assert centre == pytest.approx([500, 7], abs=1)
    assert spread == pytest.approx([np.arange(1000).std(), 1], rel=0.02)
    rare, never, little = np.zeros((3, 160))
    rare[7], little[:8] = -0.5, -0.01
    others = np.column_stack([rare, never, little])
    others[:12, 1:] = -0.5
    _, spread = scales(np.column_stack([rare, never, little]), others)
    assert spread == pytest.approx([rare.std(), *others[:, 1:].std(axis=0)])


def test_scores_do_not_depend_on_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    together = usual().score(SAMPLES)
    monkeypatch.setattr("ssrem.evaluators.blend._CHUNK", 7)
    monkeypatch.setattr("ssrem.evaluators.blend._REMEMBERED", 3)
    blend = usual()
    alone = np.concatenate([blend.score([sample]) for sample in SAMPLES])
    assert np.abs(alone - together).max() < 1e-9
    assert np.abs(blend.score(SAMPLES[::-1])[::-1] - together).max() < 1e-9
    assert np.abs(blend.score(SAMPLES + SAMPLES)[40:] - together).max() < 1e-9
    assert [len(of_parts) for of_parts in blend.known.values()] == [3]
    with ThreadPoolExecutor(4) as threads:  # as in a service
        every = threads.map(blend.score, [SAMPLES] * 20)
    assert all(np.abs(scores - together).max() < 1e-9 for scores in every)
    assert blend.score([]).shape == (0,)


def test_a_part_without_weight_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless human scores are learned from, which may give it a weight."""
    blend = Blend(
        changed(parts=(Part(evaluator="number"), Part(evaluator="number", name="control", weight=0)))
    )
    blend.fit(planted([1.0]))
    before = blend.score(SAMPLES)
    blend.known.clear()
    control, compute = blend.members["control"], Number.compute
    asked: list[Evaluator] = []
    monkeypatch.setattr(Number, "compute", lambda self, samples: asked.append(self) or compute(self, samples))
    assert (blend.score(SAMPLES) == before).all() and asked and control not in asked
    blend.part_scores(SAMPLES)
    assert control in asked


def test_what_a_part_cut_is_truncated_and_a_reference_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    blend = usual()
    scores = blend.compute([Sample((), "1 2 cut"), Sample((), "1 2"), Sample((), "1 2", "0 0")])
    assert scores.truncated.tolist() == [True, False, False]
    assert scores.f[1] == scores.f[2] and np.isnan(scores.g).all() and np.isnan(scores.h).all()
    nothing = Scores.of(np.zeros(2, dtype=bool), f=np.array([np.nan, 1.0]))
    monkeypatch.setattr(Number, "compute", lambda *_: nothing)
    with pytest.raises(EvaluatorError, match="part good gives no number for 1 of 2 samples"):
        blend.score([Sample(("hi",), "3 1"), Sample(("hi",), "1 1")])


def test_score_candidates_equals_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssrem.evaluators.base._CANDIDATES", 11)
    candidates = planted([1.0])
    # Context turns hold no number, and neither do the random turns that are context turns.
    texts = [said if said[0] in "-0123456789" else "0 hi" for said in candidates.texts]
    candidates = replace(candidates, texts=texts, negatives={"SC": candidates.negatives["SC"]})
    blend, rows = fitted(candidates, CONFIG, "good"), candidates.rows(TEST)
    scores = blend.score_candidates(candidates, TEST)
    assert {kind: f.shape for kind, f in scores.items()} == dict.fromkeys(("GT", "SC", "Context"), (60, 1))
    assert np.array_equal(np.isnan(scores["SC"]), candidates.negatives["SC"][rows] < 0)
    true = [Sample(tuple(texts[row - 2 : row]), texts[row]) for row in candidates.response[rows]]
    assert scores["GT"][:, 0] == pytest.approx(blend.compute(true).score)
    assert scores["GT"].mean() > np.nanmean(scores["SC"]) + 0.3
    assert scores["Context"][0, 0] == pytest.approx(blend.compute([Sample((), "0 hi")]).score[0])


# --- parts


def test_parts_by_name_as_tables_and_in_toml(tmp_path: Path) -> None:
    twice = Part(evaluator="number", name="twice", settings={"times": 2.0})
    settings = BlendSettings(parts=["number", twice.model_dump()])
    assert settings.parts == (Part(evaluator="number"), twice)
    file = tmp_path / "blend.toml"
    table = '[[parts]]\nevaluator = "number"\n'
    file.write_text(table + table + 'name = "twice"\nsettings = {times = 2.0}\n')
    assert BlendSettings(parts=f"@{file}") == settings
    blend = Blend(settings)
    assert blend.part_scores([Sample((), "3")])[0].tolist() == [[3.0, 6.0]]
    assert blend.settings.parts[0].settings == {"position": 0, "times": 1.0}  # saved in full
    names = "cosine ssrem-minilm repetition fluency retrieval lm-pmi lm-pmi-sum lm-coherence length"
    assert [part.key for part in BlendSettings().parts] == names.split()
    assert (26 * BlendSettings().prior).round(6).tolist() == [6, 1, 12, 1, 2, 2, 2, 0, 0]
    assert (19 * BlendFastSettings().prior).round(6).tolist() == [6, 0, 12, 1, 0]
    assert (22 * BlendBaseSettings().prior).round(6).tolist() == [6, 1, 12, 1, 2, 0]
    assert LmSumSettings().prior.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parts": "number"}, "'number' is no list of parts; give one, or @FILE, a TOML file"),
        ({"parts": "@none.toml"}, "@none.toml is no TOML file with \\[\\[parts\\]\\]"),
        ({"parts": [{"evaluator": "number", "name": "Number/../x"}]}, "name: string should match pattern"),
        ({"parts": ["number", "number"]}, "number stands there twice; give one a name of its own"),
        ({"parts": ["numbr"]}, "no evaluator 'numbr'; did you mean number"),
        ({"parts": ["number", "lm-sum"]}, "a blend is no part of a blend"),
        (
            {"parts": ["length", {"evaluator": "number", "weight": 0}]},
            "controls and guards alone judge nothing",
        ),
        ({"parts": [{"evaluator": "number", "guard": True}]}, "controls and guards alone judge nothing"),
        ({"parts": [{"evaluator": "number", "settings": {"size": 1}}]}, "no setting size"),
        ({"parts": [{"evaluator": "ssrem-minilm", "settings": {"epochs": 3}}]}, "ssrem-minilm has learned"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluatorError, match=message):
        BlendSettings(**settings)


def test_parts_that_cannot_be(tmp_path: Path) -> None:
    Words().save(tmp_path / "words")
    for parts, message in (
        (["number", "rsrem"], "part rsrem has to be trained first"),
        (["same"], "part same needs a reference; leave it out, or use blend-ref"),
        ([{"evaluator": "number", "folder": str(tmp_path / "words")}], "holds words, not number"),
        ([{"evaluator": "number", "folder": "~nouser/x"}], "the home folder ~nouser is not known"),
    ):
        with pytest.raises(EvaluatorError, match=message):
            Blend(BlendSettings(parts=parts))  # type: ignore[arg-type]
    with pytest.raises(EvaluatorError, match="blend is not trained yet; call fit or tuned_on"):
        Blend(members={"number": Number()}).score([Sample(("0",), "1")])


def test_a_part_from_a_folder_is_saved_with_the_blend(tmp_path: Path) -> None:
    Number(position=1).save(tmp_path / "saved")
    second = Part(evaluator="number", name="second", folder=str(tmp_path / "saved"))
    blend = Blend(changed(parts=(Part(evaluator="number"), second)))
    assert blend.part_scores([Sample((), "3 4")])[0].tolist() == [[3.0, 4.0]]
    blend.fit(planted([1.0, 0.3]))
    blend.save(tmp_path / "blend")
    (tmp_path / "saved" / "evaluator.json").unlink()
    assert np.array_equal(load_evaluator(tmp_path / "blend").score(SAMPLES), blend.score(SAMPLES))


def test_a_sample_is_scored_once_for_all_folds() -> None:
    blend, annotated = Blend(CONFIG, members=numbers("one", "two")), human(lambda one, two: one)
    Number.calls.clear()
    out_of_fold(lambda some: tuned_by(blend, some, (-3, 3)), annotated, 5, seed=0)
    # Two parts, each distinct sample once.
    assert sum(Number.calls) == 2 * len({sample for sample, _ in annotated})


# --- with human scores


def human(rule: Callable[[float, float], float], contexts: int = 40, seed: int = 5) -> Any:
    """Three responses a context, with two numbers each, and the human score that the rule gives."""
    drawn = np.random.default_rng(seed).uniform(-1, 1, (contexts, 3, 2)).round(3)
    triples = [(n, one, two) for n, three in enumerate(drawn) for one, two in three]
    return [(Sample((f"c{n}",), f"{one} {two}"), float(rule(one, two))) for n, one, two in triples]


def test_tuned_learns_the_planted_rule() -> None:
    blend = fitted(planted([1.0, 1.0]))
    before = blend.signature
    tuned = tuned_by(blend, human(lambda one, two: 3 + 1.5 * one - 0.5 * two), (1, 5))
    other = human(lambda one, two: (2 + 1.5 * one - 0.5 * two) / 4, seed=6)
    expected = [score for _, score in other]
    assert tuned.score([sample for sample, _ in other]) == pytest.approx(expected, abs=0.01)
    state = tuned.tensors
    assert tuned.weights["noise"] < 0 < tuned.weights["good"]
    assert state["weights"][0] / state["spread"][0] == pytest.approx(1.5 / 4, rel=0.02)
    assert blend.signature == before != tuned.signature
    assert np.array_equal(state["centre"], blend.tensors["centre"]) and "tuned:120" in tuned.signature
    training = tuned.training
    assert training is not None and training.figures["l2"] == 0.001
    assert training.figures["weight good"] == pytest.approx(tuned.weights["good"])
    assert training.rows == {"train": 120, "contexts": 40}


def test_the_figure_out_of_fold_is_that_of_a_cross_validation() -> None:
    blend = fitted(planted([1.0, 1.0]))
    noise = iter(np.random.default_rng(2).normal(size=120))
    pairs = [(sample, one + next(noise)) for sample, one in human(lambda a, b: a - b)]
    training = tuned_by(blend, pairs, (-9, 9)).training
    assert training is not None
    scores = out_of_fold(lambda some: tuned_by(blend, some, (-9, 9)), pairs, CONFIG.folds, CONFIG.seed)
    humans = np.array([one for _, one in pairs])
    assert training.figures["out_of_fold"] == pytest.approx(spearman(scores, humans).statistic)
    before = blend.score([sample for sample, _ in pairs])
    assert training.figures["unlearned"] == pytest.approx(spearman(before, humans).statistic)


def scored_sets(**rules: Callable[[float, float], float]) -> dict[str, Labels]:
    """Annotated sets of one rule each, with means and scales of their own."""
    sets = {}
    for seed, (name, rule) in enumerate(rules.items()):
        pairs = [(s, 10 * seed + (1 + seed) * score) for s, score in human(rule, seed=seed)]
        scores = [score for _, score in pairs]
        sets[name] = Labels(tuple(pairs), (min(scores), max(scores)), "overall", 0)
    return sets


def test_several_sets_teach_the_rule_that_they_share_whatever_their_scales() -> None:
    blend = Blend(CONFIG, members=numbers("good", "noise"))
    sets = scored_sets(**dict.fromkeys("abc", lambda one, two: one - two))
    tuned = blend.tuned_on(sets)
    slopes = tuned.tensors["weights"] / tuned.tensors["spread"]
    assert slopes[0] == pytest.approx(-slopes[1], rel=0.1)
    figures = tuned.training.figures if tuned.training else {}
    assert all(figures[f"left_out {name}"] > 0.99 for name in (*"abc", "mean"))
    assert abs(figures["unlearned mean"]) < 0.3  # equal weights, where the parts pull apart
    f = [float(tuned.score(labels.samples).mean()) for labels in sets.values()]
    assert f == pytest.approx([0, 0, 0], abs=0.2)  # in standard deviations of a set
    assert tuned.tuned == 360 and tuned.signature != blend.tuned_on({"a": sets["a"]}).signature


def test_a_set_left_out_is_judged_by_what_the_others_teach() -> None:
    blend = Blend(CONFIG, members=numbers("good", "noise"))
    rules = {name: (lambda one, two: one) for name in "abc"}
    tuned = blend.tuned_on(scored_sets(**rules, odd=lambda one, two: -one))
    figures = tuned.training.figures if tuned.training else {}
    assert figures["left_out odd"] < -0.9 < 0.5 < min(figures[f"left_out {name}"] for name in "abc")


def test_tuned_without_a_fit_and_from_few_labels() -> None:
    blend = Blend(CONFIG, members=numbers("good", "noise"))
    annotated = human(lambda one, two: one + two, contexts=6)
    tuned = tuned_by(blend, annotated, (-2, 2))
    slopes = tuned.tensors["weights"] / tuned.tensors["spread"]
    assert slopes == pytest.approx([0.25, 0.25], rel=0.05)
    values = np.array([[float(word) for word in sample.response.split()] for sample, _ in annotated])
    assert tuned.tensors["centre"] == pytest.approx(values.mean(axis=0), abs=0.02)
    with pytest.raises(EvaluatorError, match="not trained yet"):
        blend.score(SAMPLES)


def test_a_guard_keeps_its_share_whatever_the_human_scores_are() -> None:
    parts = [
        Part(evaluator="number", name="good"),
        Part(evaluator="number", name="copies", weight=3, guard=True),
    ]
    blend = Blend(changed(parts=parts), members=numbers("good", "copies"))
    tuned = tuned_by(blend, human(lambda one, two: one - two), (-2, 2))
    assert tuned.weights == pytest.approx({"good": 0.25, "copies": 0.75}) and blend.tensors == {}
    samples, scores = zip(*human(lambda one, two: one - two), strict=True)
    assert tuned.score(samples).mean() == pytest.approx((np.mean(scores) + 2) / 4, abs=0.01)


def test_labels_alone_change_the_packaged_weights_of_the_same_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssrem.encoders.layers.use_int8", lambda model: None)  # takes a second for each blend
    packed = load_evaluator("blend-fast")
    things = ("car", "hat", "cat", "dog", "cup")
    good = [Sample((f"what is your {thing}?",), f"my {thing} is red") for thing in things]
    pairs = [*((one, 1.0) for one in good), *((replace(one, response="no"), 0.0) for one in good)]
    tuned, other = (
        tuned_by(BlendFast(settings, members=packed.members), pairs, (0, 1))
        for settings in (BlendFastSettings(), BlendFastSettings(cap=3.0))
    )
    assert np.array_equal(tuned.tensors["spread"], packed.tensors["spread"])
    assert tuned.weights["repetition"] == pytest.approx(packed.weights["repetition"])
    assert not np.allclose(other.tensors["spread"], packed.tensors["spread"])


def test_where_human_scores_are_noise_the_weights_of_before_stay() -> None:
    blend = fitted(planted([2.0, 0.0]), changed(l2=0.01))
    generator = np.random.default_rng(0)
    noisy = [(s, float(np.clip(score + generator.normal(), -9, 9))) for s, score in human(lambda one, _: one)]
    tuned = tuned_by(blend, noisy, (-9, 9))
    assert tuned.training is not None and tuned.training.figures["l2"] >= 1
    assert tuned.weights["good"] == pytest.approx(blend.weights["good"], abs=0.1)


def test_ridge_by_hand() -> None:
    generator = np.random.default_rng(2)
    z, target = generator.normal(size=(50, 3)), generator.normal(size=50)
    prior = np.array([0.5, 0.3, 0.2])
    weak, offset = ridge(z, target, prior, 1e-9)
    design = np.column_stack([z, np.ones(50)])
    assert [*weak, offset] == pytest.approx(np.linalg.lstsq(design, target)[0], abs=1e-5)
    strong, offset = ridge(z, target, prior, 1e9)
    slope, intercept = np.polyfit(z @ prior, target, 1)
    assert strong == pytest.approx(slope * prior, abs=1e-6) and offset == pytest.approx(intercept, abs=1e-6)
    # Between the two: gradient of the loss it minimises, by the weights' part that is not the prior's.
    weights, offset = ridge(z, target, prior, 0.3)
    residual = z @ weights + offset - target
    gradient = z.T @ residual / 50
    assert prior @ gradient == pytest.approx(0, abs=1e-9) and residual.mean() == pytest.approx(0, abs=1e-12)
    moved = -gradient / 0.3
    assert (weights - moved) / prior == pytest.approx(np.full(3, ((weights - moved) / prior)[0]))


def test_labels_that_cannot_be() -> None:
    blend, annotated = usual(), human(lambda one, two: 3.0 + one)
    with pytest.raises(EvaluatorError, match="human scores must lie on the scale, which is 3 to 5"):
        tuned_by(blend, annotated, (3, 5))
    with pytest.raises(EvaluatorError, match="9 annotated responses to 3 contexts are too few"):
        tuned_by(blend, annotated[:9], (1, 5))
    sets = {"a": one_set(annotated)["set"], "few": one_set(annotated[:9])["set"]}
    with pytest.raises(EvaluatorError, match="blend, few: 9 annotated responses"):
        blend.tuned_on(sets)
    sets["few"] = Labels(tuple((sample, 3.0) for sample, _ in sets["a"].pairs), (1, 5), "overall", 0)
    with pytest.raises(EvaluatorError, match="blend, few: all human scores are equal; leave the set out"):
        blend.tuned_on(sets)


def test_blend_ref_reads_the_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    annotated = [
        (Sample(s.context, s.response, s.response if at % 2 else "no"), 3.0 + one + at % 2)
        for at, (s, one) in enumerate(human(lambda one, _: one))
    ]
    blend = tuned_by(BlendRef(members={"number": Number(), "same": Same()}), annotated)
    samples = [sample for sample, _ in annotated]
    scores = blend.compute(samples)
    assert scores.h == pytest.approx([(score - 1) / 4 for _, score in annotated], abs=0.01)
    assert np.isnan(scores.f).all() and np.array_equal(blend.score(samples), scores.h)
    mixed = blend.score([samples[0], Sample((), "1 2"), samples[1]])
    assert np.isnan(mixed[1]) and mixed[[0, 2]] == pytest.approx(scores.h[:2])
    blend.save(tmp_path / "m")
    loaded = load_evaluator(tmp_path / "m")
    assert isinstance(loaded, BlendRef) and np.array_equal(loaded.score(samples), scores.h)
    with pytest.raises(EvaluatorError, match="learns from human scores alone"):
        blend.fit(planted([1.0]))
    with pytest.raises(EvaluatorError, match=r"0 annotated responses .120 of 120 .* no reference"):
        tuned_by(blend, human(lambda one, two: 3.0))


# --- on disk


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    usual().save(tmp_path / "model")
    return tmp_path / "model"


def test_saved_and_loaded(saved: Path) -> None:
    blend = usual()
    loaded = load_evaluator(saved)
    assert isinstance(loaded, Blend)
    assert loaded.signature == blend.signature and loaded.weights == blend.weights
    assert np.array_equal(loaded.score(SAMPLES), blend.score(SAMPLES))
    assert loaded.training is not None and loaded.training.best_epoch == blend.training.best_epoch
    tuned = tuned_by(loaded, human(lambda one, two: one), (-1, 1))
    tuned.save(saved)
    again = Blend.load(saved)
    assert again.tuned == 120 and np.array_equal(again.score(SAMPLES), tuned.score(SAMPLES))


def rewritten(folder: Path, file: str, **content: Any) -> None:
    about = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps({**about, **content}))


def test_a_changed_folder_is_refused(saved: Path, tmp_path: Path) -> None:
    manifest = (saved / "evaluator.json").read_text()
    config = json.loads(manifest)["config"]
    for content, message in (
        ({"config": {**config, "clip": 9.0}}, "clip:8 is now clip:9"),
        ({"config": {**config, "size": 1}}, "no setting size"),
        ({"config": 3}, "not as ssrem writes it"),
        ({"config": {**config, "parts": config["parts"][:1]}}, "does not fit 1 parts"),
        ({"format": "ssrem-blend-1"}, "in format ssrem-blend-1, expected blend in ssrem-blend-3"),
        ({"name": "words"}, "expected blend"),
        ({"sha256": {}}, "weights.safetensors was not saved with it"),
    ):
        rewritten(saved, "evaluator.json", **content)
        with pytest.raises(EvaluatorError, match=message) as caught:
            Blend.load(saved)
        assert "\n" not in str(caught.value)
        (saved / "evaluator.json").write_text(manifest)
    # Another part in the place of one, whole in itself.
    Number(position=1).save(saved / "members" / "good")
    with pytest.raises(EvaluatorError, match="evaluator\\.json was not saved with it"):
        Blend.load(saved)
