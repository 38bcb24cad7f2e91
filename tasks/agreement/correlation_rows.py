"""Rows of `correlations` from pairs of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ssrem.agreement.correlation import kendall, pearson, spearman


def correlation_row(
    where: Mapping[str, Any], pairs: Sequence[tuple[float, float]], *, excluded: int
) -> dict[str, Any]:
    """One row of `correlations`: `where` names it, `pairs` are (score, human score), `excluded` were left out."""
    scores = [pair[0] for pair in pairs]
    humans = [pair[1] for pair in pairs]
    r, rho, tau = pearson(scores, humans), spearman(scores, humans), kendall(scores, humans)
    return {
        **where,
        "pearson": r.statistic,
        "pearson_p": r.p,
        "pearson_low": r.low,
        "pearson_high": r.high,
        "spearman": rho.statistic,
        "spearman_p": rho.p,
        "spearman_low": rho.low,
        "spearman_high": rho.high,
        "kendall": tau.statistic,
        "kendall_p": tau.p,
        "n": r.n,
        "excluded": excluded,
        "outcome": r.outcome,
    }
