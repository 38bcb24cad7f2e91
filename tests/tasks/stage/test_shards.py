"""Shards, which bound memory: that they change no figure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ssrem.agreement.identify import set_similarity
from ssrem.evaluators import load_evaluator
from ssrem.samples import TEST, Candidates
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


def test_a_part_of_candidates_says_the_same_of_its_rows() -> None:
    generator = np.random.default_rng(1)
    n, texts = 40, [f"text {number}" for number in range(200)]
    start = generator.integers(0, 190, n)
    candidates = Candidates(
        texts=texts,
        response=generator.integers(0, 200, n),
        context_start=start,
        context_stop=start + generator.integers(0, 6, n),
        negatives={"SC": generator.integers(-1, 200, (n, 2)), "Rand": generator.integers(-1, 200, (n, 1))},
        split=np.full(n, TEST, dtype=np.uint8),
    )
    rows = np.array([3, 17, 18, 30])
    part = candidates.part(rows)
    assert len(part.texts) < 60

    def said(given: Candidates, row: int) -> Any:
        drawn = {
            k: [given.texts[at] if at >= 0 else None for at in v[row]] for k, v in given.negatives.items()
        }
        context = [given.texts[at] for at in range(given.context_start[row], given.context_stop[row])]
        return given.texts[given.response[row]], context, drawn

    for at, row in enumerate(rows.tolist()):
        assert said(part, at) == said(candidates, row)


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
