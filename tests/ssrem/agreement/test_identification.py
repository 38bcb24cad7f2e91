"""Identification figures from tables small enough to check by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ssrem.agreement import mean_interval
from ssrem.agreement.identify import identification, share_above

NAN = math.nan


def test_tiny_table_by_hand() -> None:
    rows = identification(
        {
            "GT": np.array([[0.5], [0.2], [0.9]]),
            "SC": np.array([[0.1], [0.2], [1.0]]),
            "Rand": np.array([[0.1, 0.3], [0.4, NAN], [NAN, NAN]]),
        }
    )
    truth, conversation, random = rows
    assert [row.kind for row in rows] == ["GT", "SC", "Rand"]
    assert (truth.mean, truth.n, truth.above) == (pytest.approx(1.6 / 3), 3, None)
    # One win, one tie, one loss.
    assert conversation.above == pytest.approx(0.5)
    # Responses 1 and 2 have negatives: means .2 and .4; two wins and a loss over three pairs.
    assert (random.mean, random.n) == (pytest.approx(0.3), 2)
    assert random.above == pytest.approx(2 / 3)
    half = 1.959964 * math.sqrt(0.02) / math.sqrt(2)
    assert (random.low, random.high) == pytest.approx((0.3 - half, 0.3 + half), abs=1e-6)


def test_a_kind_without_any_response_has_no_figures() -> None:
    row = identification({"GT": np.array([[0.5]]), "SP": np.array([[NAN]])})[1]
    assert (row.mean, row.low, row.n, row.above) == (None, None, 0, None)
    assert mean_interval(np.array([2.0])) == (2.0, None, None)


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match="'GT'"):
        identification({"SC": np.zeros((2, 1))})
    with pytest.raises(ValueError, match="SC"):
        identification({"GT": np.zeros((2, 1)), "SC": np.zeros((3, 1))})


def test_share_of_negatives_below_the_true_response() -> None:
    f = {
        "GT": np.array([[2.0], [1.0], [0.0], [5.0]]),
        "SC": np.array([[1.0], [1.0], [3.0], [np.nan]]),
        "Rand": np.array([[1.0, 3.0], [0.0, np.nan], [3.0, 3.0], [np.nan, np.nan]]),
        "Context": np.full((4, 1), -9.0),
    }
    shares = [2 / 3, 0.75, 0.0]  # a tie counts half; the fourth response has no negative
    share, low, high, n = share_above(f)
    assert (share, n) == (pytest.approx(np.mean(shares)), 3)
    half = 1.959964 * np.std(shares, ddof=1) / np.sqrt(3)
    assert (low, high) == (pytest.approx(np.mean(shares) - half), pytest.approx(np.mean(shares) + half))
    assert share_above({"GT": np.ones((2, 1))}) == (None, None, None, 0)
