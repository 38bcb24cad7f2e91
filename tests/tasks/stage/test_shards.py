"""Shards in this process: their ranges, what they read and leave, and that sharding changes no figure."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ssrem.agreement.identify import set_similarity
from ssrem.errors import RunnerError
from ssrem.evaluators import load_evaluator
from ssrem.samples import TEST, Candidates
from ssrem.tables.candidates import load_candidates
from ssrem.tasks import caches as encoding
from ssrem.tasks import score as scoring
from ssrem.tasks.caches import encode_shard, encoded_in_shards
from ssrem.tasks.stage import shards
from ssrem.tasks.stage.shards import incoming, map_shards, shard_ranges
from ssrem.tasks.tables import bucket_edges, similarity_shard
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import Made


def test_cuts_cover_all_rows_once() -> None:
    assert shard_ranges(0, 3) == []
    assert shard_ranges(3, 3) == [(0, 3)]
    assert shard_ranges(7, 3) == [(0, 3), (3, 6), (6, 7)]


def test_buckets_are_of_whole_sets() -> None:
    set_id = np.repeat([4, 1, 9, 7, 2], [6, 1, 10, 2, 5])
    assert bucket_edges(set_id, 1) == [0, 6, 7, 17, 19, 24]
    assert bucket_edges(set_id, 6) == [0, 6, 17, 19, 24]
    assert bucket_edges(set_id, 7) == [0, 7, 17, 24]
    assert bucket_edges(set_id, 24) == bucket_edges(set_id, 99) == [0, 24]
    assert bucket_edges(set_id[:0], 5) == [0, 0]


def test_without_a_runner_shards_are_worked_on_here_in_order() -> None:
    done = []

    def note(number: int) -> int:
        done.append(number)
        return number * 10

    assert map_shards(note, [{"number": n} for n in (3, 1, 2)]) == [30, 10, 20]
    assert done == [3, 1, 2]


def test_lost_workers_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class KilledWorkerError(Exception):
        __module__ = "distributed.scheduler"

    class Lost:
        def submit(self, *_: Any, **__: Any) -> None:
            pass

        def gather(self, _: Any) -> None:
            raise KilledWorkerError("Attempted to run on 4 workers,\nbut all died")

    monkeypatch.setattr(shards, "_CLIENT", SimpleNamespace(get=Lost))
    with pytest.raises(RunnerError) as caught:
        map_shards(encode_shard, [{}])
    assert str(caught.value).startswith(
        "encode_shard: the workers of its shards were lost (Attempted to run on 4 workers, but all died); nothing"
    )
    assert "\n" not in str(caught.value)


def test_a_worker_that_does_not_see_the_home_folder(tmp_path: Path) -> None:
    for shard in (
        lambda: encode_shard(str(tmp_path / "encoder"), []),
        lambda: similarity_shard(str(tmp_path / "vectors.npy"), np.arange(2), np.arange(2)),
        lambda: scoring.score_shard(str(tmp_path / "model"), "components", ([],)),
    ):
        with pytest.raises(RunnerError, match=r"does not exist on .*; every worker must see the home folder"):
            shard()
    assert incoming(tmp_path) == tmp_path


def test_a_bucket_of_sets_has_the_means_that_they_have_among_all(tmp_path: Path) -> None:
    """To the last bit, wherever buckets and chunks are cut."""
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(400, 20)).astype(np.float16)
    set_id = np.sort(generator.integers(0, 60, 3_000))
    rows = generator.integers(0, 400, 3_000)
    np.save(tmp_path / "vectors.npy", vectors)
    together = set_similarity(vectors, set_id, rows)
    edges = bucket_edges(set_id, 100)
    assert len(edges) > 20
    vectors_file = str(tmp_path / "vectors.npy")
    means = [similarity_shard(vectors_file, set_id[a:b], rows[a:b]).mean for a, b in pairwise(edges)]
    assert np.array_equal(np.concatenate(means), together.mean)


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


def test_encoding_in_shards(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shard's task gives what the encoder gives."""
    monkeypatch.setattr(encoding, "TEXTS", 3)
    evaluator = load_evaluator(made.home.models / "ssrem" / "1")
    assert evaluator.encoder is not None
    texts = ["i cook pizza", "", "my guitar \ud800", "the train", "no", "yes", "cheese"]
    expected = evaluator.encoder.encode(texts)
    assert np.array_equal(encoded_in_shards(evaluator.encoder, texts, tmp_path), expected)
    monkeypatch.setattr(encoding, "distributed", lambda: True)
    assert np.array_equal(encoded_in_shards(evaluator.encoder, texts, tmp_path), expected)


@pytest.mark.parametrize("slow", [True, False])
def test_scores_in_shards_are_the_evaluators(
    copy: Warehouse, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, slow: bool
) -> None:
    monkeypatch.setattr("ssrem.encoders.tables.LearnedTable.slow", slow)
    monkeypatch.setattr("ssrem.evaluators.base.Evaluator.shard", 7)
    folder, cached = copy.models / "ssrem" / "1", set(copy.vectors.rglob("*.parquet"))
    with copy.reader() as reader:
        candidates = load_candidates(reader, ["tiny"])
    with scoring.evaluator_at(folder) as evaluator:
        expected = evaluator.score_candidates(candidates, TEST)
        found = scoring.score_candidates(copy, folder, evaluator, candidates, tmp_path)
    assert list(found) == list(expected)
    for kind, scores in expected.items():
        assert found[kind].shape == scores.shape
        np.testing.assert_allclose(found[kind], scores, atol=1e-12)
    # Vectors are cached where encoding is slow.
    assert (set(copy.vectors.rglob("*.parquet")) > cached) == slow
