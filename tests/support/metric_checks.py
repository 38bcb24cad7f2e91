"""What must hold of every evaluator without training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Evaluator
from ssrem.evaluators.metric import Metric
from ssrem.samples import Floats, Sample

ODD = (
    *("", "  \n", "…?! --", "xqzzyx", "这是 什么。", "हिन्दी भाषा", "مرحبا بك", "🙂🙂", "a\ud800b"),
    *("x" * 3_000, "the cat. " * 90),
)
"""Texts that are empty, unknown, not Latin, broken or very long."""


def computed(metric: Evaluator, samples: Sequence[Sample]) -> Floats:
    """The scores of samples of which a side may be empty, for which `score` gives no number."""
    return metric.compute(samples).score


def odd_samples(known: str) -> list[Sample]:
    """Each odd text against itself and, either way round, against a text that the evaluator knows."""
    pairs = [pair for odd in ODD for pair in ((odd, odd), (odd, known), (known, odd))]
    return [Sample((reference,), response, reference) for response, reference in pairs]


def check_independent(metric: Metric, samples: list[Sample]) -> None:
    """Scores are finite, within the range, and the same whatever the batch and the order."""
    together = computed(metric, samples)
    assert together.dtype == np.float64 and together.shape == (len(samples),)
    assert np.isfinite(together).all()
    assert metric.range[0] <= together.min() and together.max() <= metric.range[1]
    alone = [computed(metric, [sample])[0] for sample in samples]
    assert np.abs(together - alone).max() < 1e-5
    order = np.random.default_rng(0).permutation(len(samples))
    mixed = computed(metric, [samples[at] for at in order])
    assert np.abs(together[order] - mixed).max() < 1e-5
    assert computed(metric, []).shape == (0,)


def check_parts(metric: Metric, samples: list[Sample]) -> None:
    """One part, f or g, is the score; without a reference g is NaN, and the samples beside it keep theirs."""
    scores, parts = computed(metric, samples), metric.compute(samples)
    part, others = (
        (parts.g, (parts.f, parts.h)) if "reference" in metric.needs else (parts.f, (parts.g, parts.h))
    )
    assert np.array_equal(part, scores)
    assert all(np.isnan(other).all() for other in others)
    bare = [Sample(sample.context, sample.response) for sample in samples]
    between = [sample for pair in zip(samples, bare, strict=True) for sample in pair]
    mixed = computed(metric, between)
    assert np.abs(mixed[::2] - scores).max() < 1e-5
    if "reference" in metric.needs:
        assert np.isnan(mixed[1::2]).all() and not metric.compute(bare).truncated.any()
    else:
        assert np.abs(mixed[1::2] - scores).max() < 1e-5


def check_saved(metric: Metric, samples: list[Sample], folder: Path) -> None:
    """What is loaded scores as what was saved, and what would score otherwise is refused."""
    metric.save(folder)
    loaded = type(metric).load(folder)
    assert loaded.signature == metric.signature and metric.signature.startswith(f"{metric.name}|")
    assert np.array_equal(computed(loaded, samples), computed(metric, samples))
    manifest = json.loads((folder / "evaluator.json").read_text())
    (folder / "evaluator.json").write_text(json.dumps(manifest | {"signature": manifest["signature"] + "x"}))
    with pytest.raises(EvaluatorError, match="was saved as") as error:
        type(metric).load(folder)
    assert "\n" not in str(error.value)
    (folder / "evaluator.json").write_text(json.dumps(manifest | {"name": "another"}))
    with pytest.raises(EvaluatorError, match=f"not {metric.name}"):
        type(metric).load(folder)
