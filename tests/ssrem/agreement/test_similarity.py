"""Similarity of sets against the pairs themselves."""

from __future__ import annotations

import numpy as np
import pytest

from ssrem.agreement import identify
from ssrem.agreement.identify import SetMeans, set_similarity, summarise


def brute_force(vectors: np.ndarray) -> float:
    vectors = vectors.astype(np.float64)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    return float(cosines[np.triu_indices(len(units), 1)].mean())


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 1000])
def test_equals_the_mean_over_pairs_whatever_the_chunk(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(identify, "_CHUNK", chunk)
    monkeypatch.setattr(identify, "_PIECE", chunk)
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(30, 5)).astype(np.float32)
    vectors[3] = 0
    rows = generator.permutation(30)[:24].astype(np.int64)
    rows[5] = 3
    set_id = np.repeat([4, 1, 9, 7, 2], [6, 1, 10, 2, 5]).astype(np.int64)
    means = set_similarity(vectors, set_id, rows)
    assert means.set_id.tolist() == [4, 9, 7, 2]
    for set_at, mean, n in zip(means.set_id, means.mean, means.n, strict=True):
        members = vectors[rows[set_id == set_at]]
        members = members[members.any(axis=1)]
        assert n == len(members)
        assert mean == pytest.approx(brute_force(members), abs=1e-9)


def test_sets_of_fewer_than_two_known_texts_are_left_out() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    means = set_similarity(vectors, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 2]))
    assert means.set_id.tolist() == [1]
    assert means.mean.tolist() == [0.0]
    empty = set_similarity(vectors, np.array([], dtype=np.int64), np.array([], dtype=np.int64))
    assert len(empty.mean) == 0


def test_scattered_sets_are_refused() -> None:
    with pytest.raises(ValueError, match="grouped"):
        set_similarity(np.eye(3), np.array([0, 1, 0]), np.array([0, 1, 2]))


def sets(means: list[float], sizes: list[int]) -> SetMeans:
    return SetMeans(np.arange(len(means)), np.array(means), np.array(sizes, dtype=np.int64))


def test_a_speaker_counts_once_and_only_with_sets_of_every_kind() -> None:
    kinds = {"SC": sets([0.2, 0.4, 0.9, 0.5], [3, 2, 5, 2]), "SS": sets([0.1, 0.3], [5, 2])}
    owners = {"SC": np.array([7, 7, 8, 9]), "SS": np.array([7, 9])}  # 8 has no SS
    rows = summarise(kinds, owners)
    assert rows["SC"].mean == pytest.approx(((0.2 + 0.4) / 2 + 0.5) / 2)
    assert rows["SS"].mean == pytest.approx(0.2)
    assert (rows["SC"].speakers, rows["SC"].sets, rows["SC"].pairs) == (
        2,
        3,
        3 + 1 + 1,
    )
    assert rows["SS"].high == pytest.approx(0.2 + 1.959964 * np.sqrt(0.02 / 2), abs=1e-6)


def test_a_kind_that_nobody_has_leaves_the_others() -> None:
    nobody = np.array([], dtype=np.int64)
    rows = summarise({"SC": sets([0.2], [3]), "SP": sets([], [])}, {"SC": np.array([1]), "SP": nobody})
    assert (rows["SC"].mean, rows["SC"].speakers) == (pytest.approx(0.2), 1)
    assert (
        rows["SP"].mean,
        rows["SP"].low,
        rows["SP"].speakers,
        rows["SP"].pairs,
    ) == (None, None, 0, 0)
