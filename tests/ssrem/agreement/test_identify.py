"""Similarity of sets against the pairs themselves, and identification from tables small enough to check by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ssrem.agreement import identify, mean_interval
from ssrem.agreement.identify import SetMeans, identification, set_similarity, share_above, summarise

NAN = math.nan


def test_a_tiny_table_by_hand_and_the_share_of_negatives_below_the_true_response() -> None:
    random = np.array([[0.1, 0.3], [0.4, NAN], [NAN, NAN]])
    columns = {"GT": np.array([[0.5], [0.2], [0.9]]), "SC": np.array([[0.1], [0.2], [1.0]]), "Rand": random}
    rows = identification(columns)
    truth, conversation, drawn = rows
    assert [row.kind for row in rows] == ["GT", "SC", "Rand"]
    assert (truth.mean, truth.n, truth.above) == (pytest.approx(1.6 / 3), 3, None)
    assert conversation.above == pytest.approx(0.5)  # one win, one tie, one loss
    # Responses 1 and 2 have negatives: means .2 and .4; two wins and a loss over three pairs.
    assert (drawn.mean, drawn.n, drawn.above) == (pytest.approx(0.3), 2, pytest.approx(2 / 3))
    half = 1.959964 * math.sqrt(0.02) / math.sqrt(2)
    assert (drawn.low, drawn.high) == pytest.approx((0.3 - half, 0.3 + half), abs=1e-6)
    f = {
        "GT": np.array([[2.0], [1.0], [0.0], [5.0]]),
        "SC": np.array([[1.0], [1.0], [3.0], [NAN]]),
        "Rand": np.array([[1.0, 3.0], [0.0, NAN], [3.0, 3.0], [NAN, NAN]]),
        "Context": np.full((4, 1), -9.0),
    }
    shares = [2 / 3, 0.75, 0.0]  # a tie counts half; the fourth response has no negative
    mean, half = np.mean(shares), 1.959964 * np.std(shares, ddof=1) / np.sqrt(3)
    assert share_above(f) == pytest.approx((mean, mean - half, mean + half, 3))
    assert share_above({"GT": np.ones((2, 1))}) == (None, None, None, 0)


def test_a_kind_without_any_response_has_no_figures_and_shapes_are_checked() -> None:
    row = identification({"GT": np.array([[0.5]]), "SP": np.array([[NAN]])})[1]
    assert (row.mean, row.low, row.n, row.above) == (None, None, 0, None)
    assert mean_interval(np.array([2.0])) == (2.0, None, None)
    for kinds, message in (({"SC": 2}, "'GT'"), ({"GT": 2, "SC": 3}, "SC")):
        with pytest.raises(ValueError, match=message):
            identification({kind: np.zeros((rows, 1)) for kind, rows in kinds.items()})


def brute_force(vectors: np.ndarray) -> float:
    vectors = vectors.astype(np.float64)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    return float(cosines[np.triu_indices(len(units), 1)].mean())


@pytest.mark.parametrize("chunk", [1, 3, 7, 1000])
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
        assert (n, mean) == (len(members), pytest.approx(brute_force(members), abs=1e-9))


def test_sets_of_fewer_than_two_known_texts_are_left_out_and_scattered_ones_refused() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    means = set_similarity(vectors, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 2]))
    assert (means.set_id.tolist(), means.mean.tolist()) == ([1], [0.0])
    nothing = np.array([], dtype=np.int64)
    assert len(set_similarity(vectors, nothing, nothing).mean) == 0
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
    assert (rows["SC"].speakers, rows["SC"].sets, rows["SC"].pairs) == (2, 3, 3 + 1 + 1)
    assert rows["SS"].high == pytest.approx(0.2 + 1.959964 * np.sqrt(0.02 / 2), abs=1e-6)
    nobody = np.array([], dtype=np.int64)  # a kind that nobody has leaves the others
    rows = summarise({"SC": sets([0.2], [3]), "SP": sets([], [])}, {"SC": np.array([1]), "SP": nobody})
    assert (rows["SC"].mean, rows["SC"].speakers) == (pytest.approx(0.2), 1)
    assert (rows["SP"].mean, rows["SP"].low, rows["SP"].speakers, rows["SP"].pairs) == (None, None, 0, 0)
