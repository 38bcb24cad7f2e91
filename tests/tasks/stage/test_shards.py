"""Shards, which bound memory: that they change no figure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ssrem.agreement.identify import set_similarity
from ssrem.evaluators import load_evaluator
from ssrem.samples import TEST
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.score import score_candidates
from ssrem.tasks.warehouse.home import Warehouse


def test_a_set_has_the_same_mean_wherever_chunks_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit."""
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(400, 20)).astype(np.float16)
    set_id = np.sort(generator.integers(0, 60, 3_000))
    rows = generator.integers(0, 400, 3_000)
    together = set_similarity(vectors, set_id, rows)
    monkeypatch.setattr("ssrem.agreement.identify._CHUNK", 100)
    assert np.array_equal(set_similarity(vectors, set_id, rows).mean, together.mean)


@pytest.mark.parametrize("slow", [True, False])
def test_scores_in_shards_are_the_evaluators(
    copy: Warehouse, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    monkeypatch.setattr("ssrem.encoders.tables.LearnedTable.slow", slow)
    monkeypatch.setattr("ssrem.tasks.score.SHARD", 7)
    cached = set(copy.vectors.rglob("*.parquet"))
    with copy.reader() as reader:
        candidates = load_candidates(reader, ["tiny"])
    part = candidates.part(candidates.rows(TEST)[:7])
    assert len(part.response) == 7 and len(part.texts) < len(candidates.texts) / 2
    evaluator: Any = load_evaluator(copy.models / "ssrem" / "1")
    expected = evaluator.score_candidates(candidates, TEST)
    found = score_candidates(copy, evaluator, candidates)
    assert list(found) == list(expected)
    for kind, scores in expected.items():
        assert found[kind].shape == scores.shape
        np.testing.assert_allclose(found[kind], scores, atol=1e-12)
    # Vectors are cached where encoding is slow.
    assert (set(copy.vectors.rglob("*.parquet")) > cached) == slow
