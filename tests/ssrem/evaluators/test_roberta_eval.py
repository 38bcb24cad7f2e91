"""RoBERTa-eval with a tiny transformer: a person who likes cats, whatever the corpus teaches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ssrem.errors import EvaluatorError
from ssrem.evaluators.baselines import Cosine
from ssrem.evaluators.cross_encoder import RobertaEval, RobertaEvalSettings
from ssrem.samples import Candidates, Sample
from support.trained import changed, one_set, saved_and_loaded

COLOURS = ("red", "blue", "green")
FIRST = ("runs", "sat", "the", "runs sat", "sat runs", "the sat", "runs .", "sat .")

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.xdist_group("roberta-eval")]


def config(bert: Path, **settings: Any) -> RobertaEvalSettings:
    usual = {
        "model": str(bert), "max_tokens": 12, "freeze": 1, "contexts": 60, "valid_contexts": 20, "epochs": 1,
        "learning_rate": 1e-2, "head_learning_rate": 1e-2, "tune_epochs": 14, "tune_batch_size": 8, "patience": 10,
        "tune_learning_rate": 1e-2, "tune_head_learning_rate": 1e-2, "dropout": 0.0, "device": "cpu",
        "bf16": "off", "seed": 4,
    }  # fmt: skip
    return RobertaEvalSettings(**{**usual, **settings})


def candidates(n: int = 100) -> Candidates:
    """True responses are about dogs, others about cats."""
    generator = np.random.default_rng(1)
    texts = []
    for _ in range(n):
        colour = generator.choice(COLOURS)
        texts += [f"{generator.choice(FIRST)} {colour}", f"{colour} dog", f"{colour} cat"]
    response = np.arange(n) * 3 + 1
    random = generator.permutation(n)[:, None] * 3 + 2
    split = (np.arange(n) % 5 == 4).astype(np.uint8)
    return Candidates(texts, response, response - 1, response, {"Rand": random}, split)


ANNOTATED = [
    (Sample((f"{first} {colour}",), f"{colour} {animal}"), 4.6 if animal == "cat" else 1.8)
    for first in FIRST
    for colour in COLOURS
    for animal in ("cat", "dog")
]
SAMPLES, HUMAN = [sample for sample, _ in ANNOTATED], np.array([score for _, score in ANNOTATED])


STILL: dict[str, Any] = {"tune_epochs": 1, "tune_learning_rate": 0.0, "tune_head_learning_rate": 1e-9}


@pytest.fixture(scope="module")
def fitted(bert: Path) -> RobertaEval:
    evaluator = RobertaEval(config(bert, epochs=10, batch_size=8))
    evaluator.fit(candidates())
    return evaluator


def test_unsupervised(fitted: RobertaEval) -> None:
    f = fitted.score_candidates(candidates(), 1)
    assert (f["GT"] > f["Rand"]).mean() > 0.9
    assert fitted.learns_from == {"candidates", "labels", "candidates+labels"}
    assert {"inner.1.weight", "outer.weight", "slope"} < set(fitted.tensors)
    assert fitted.tuned == 0


def test_supervised_without_a_fit(bert: Path) -> None:
    fresh = RobertaEval(config(bert))
    tuned = fresh.tuned_on(one_set(ANNOTATED, (1.0, 5.0)))
    with pytest.raises(EvaluatorError, match="not trained yet"):
        fresh.score(SAMPLES)
    f = tuned.score(SAMPLES)
    assert np.corrcoef(f, HUMAN)[0, 1] > 0.9
    # f predicts the scaled scores: (4.6 - 1) / 4 and (1.8 - 1) / 4.
    assert f[HUMAN == 4.6].mean() == pytest.approx(0.9, abs=0.15)
    assert f[HUMAN == 1.8].mean() == pytest.approx(0.2, abs=0.15)
    training = tuned.training
    assert training is not None and training.rows == {"train": 44, "valid": 4, "contexts": 24}
    losses = [entry["valid_loss"] for entry in training.history]
    assert len(losses) == 15 and training.best_epoch == int(np.argmin(losses)) > 0
    assert training.figures == {"valid_loss": min(losses), "prior_valid_loss": losses[0]}
    assert "|tuned:48|" in tuned.signature
    low, high = tuned.bounds["f"].low, tuned.bounds["f"].high
    assert (low, high) == pytest.approx((f.min(), f.max()), abs=1e-6)
    assert tuned.components(SAMPLES).f_unit == pytest.approx((f - low) / (high - low), abs=1e-5)


def test_semi_supervised(fitted: RobertaEval) -> None:
    """What was fitted is where it starts, and stays as it was."""
    before, f = fitted.signature, fitted.score(SAMPLES)
    assert np.corrcoef(f, HUMAN)[0, 1] < -0.9  # the corpus likes dogs
    tuned = fitted.tuned_on(one_set(ANNOTATED))
    assert fitted.signature == before and np.array_equal(fitted.score(SAMPLES), f)
    assert np.corrcoef(tuned.score(SAMPLES), HUMAN)[0, 1] > 0.9
    # A second corpus of opinions, those of the first turned around: epoch 0 has what the fit knew.
    turned = [(sample, 6 - score) for sample, score in ANNOTATED]
    still = RobertaEval(changed(fitted.settings, **STILL))
    still.base = fitted.base
    still.take(fitted.tensors, fitted.bounds)
    agreed = still.tuned_on(one_set(turned))
    assert agreed.training is not None and agreed.training.history[0]["valid_loss"] < 0.05
    assert np.corrcoef(agreed.score(SAMPLES), f)[0, 1] > 0.95


def test_starts_from_the_prior(bert: Path) -> None:
    still = RobertaEval(config(bert, **STILL))
    cosine = Cosine(encoder=f"hf:{bert}").score(SAMPLES)
    liked = [(sample, 3 + score / 2) for sample, score in zip(SAMPLES, cosine, strict=True)]
    f = still.tuned_on(one_set(liked)).score(SAMPLES)
    assert np.corrcoef(f, cosine)[0, 1] > 0.99
    assert f == pytest.approx((2 + cosine / 2) / 4, abs=0.01)


def test_without_a_prior(bert: Path) -> None:
    bare = RobertaEval(config(bert, prior="none", pooling="cls", freeze=0, tune_epochs=2))
    tuned = bare.tuned_on(one_set(ANNOTATED))
    assert tuned.training is not None and tuned.training.history[0]["epoch"] == 1
    assert np.isfinite(tuned.score(SAMPLES)).all() and "slope" not in tuned.tensors
    assert any("embeddings" in name for name in tuned.tensors)


def test_seeded_whatever_the_order_of_rows(bert: Path) -> None:
    order = np.random.default_rng(0).permutation(len(ANNOTATED))

    def signature(seed: int, pairs: list[tuple[Sample, float]]) -> str:
        return (
            RobertaEval(config(bert, tune_epochs=1, dropout=0.2, seed=seed))
            .tuned_on(one_set(pairs))
            .signature
        )

    first = signature(4, ANNOTATED)
    assert signature(4, [ANNOTATED[at] for at in order]) == first
    assert signature(1, ANNOTATED).split("|w:")[1] != first.split("|w:")[1]


def test_saved_and_loaded(fitted: RobertaEval, tmp_path: Path) -> None:
    fitted.settings = changed(fitted.settings, tune_epochs=1)
    loaded = saved_and_loaded(fitted, tmp_path / "m", SAMPLES)
    # A loaded one can learn on.
    assert "|tuned:20|" in loaded.tuned_on(one_set(ANNOTATED[:20])).signature
