"""Published agreement: its figures against the functions, which there are, and who is compared."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ssrem.agreement.correlate import ScoredResponses, View, agreement_at
from ssrem.agreement.raters import krippendorff_alpha
from support.small_home import Made, annotated_rows

PAIRS = """SELECT s.f, h.score, array_to_string(a.context, '|') FROM scores AS s
    INNER JOIN human_scores AS h USING (dataset, response_id)
    INNER JOIN rated_responses AS a USING (dataset, response_id)
    WHERE s.dataset = 'people' AND s.kind = 'response' AND h.aggregation = 'mean' AND NOT a.ground_truth
    AND s.evaluator = 'ssrem' ORDER BY s.response_id::BIGINT"""


def test_figures_by_context_are_those_of_the_library(made: Made) -> None:
    x, y, contexts = zip(*made.home.query(PAIRS), strict=True)
    ((by_context, groups, n, resamples, seed),) = made.home.query(
        "SELECT statistic, groups, n, resamples, seed FROM agreement WHERE evaluator = 'ssrem' AND score = 'f' "
        "AND aggregation = 'mean' AND grouping = 'context' AND measure = 'pearson'"
    )
    direct = agreement_at(ScoredResponses(x, y, contexts), View("pearson", grouping="context"))
    assert (by_context, groups, n) == (pytest.approx(direct.statistic), direct.groups, direct.n)
    assert (resamples, seed) == (1000, 0)


def test_every_level_grouping_and_measure_is_there_once_and_none_is_silent(made: Made) -> None:
    kinds = made.home.query("SELECT DISTINCT level, grouping, measure FROM agreement")
    assert len(kinds) == 4 * 4
    silent = "SELECT * FROM agreement WHERE (statistic IS NULL) <> (outcome <> 'ok' AND reason IS NOT NULL)"
    assert made.home.query(silent) == []
    ((rows, signatures),) = made.home.query("SELECT count(*), count(DISTINCT signature) FROM agreement")
    scores = 2 * 3 + 2 * 1  # of ssrem and rsrem, and of the baselines
    assert rows == signatures == scores * 4 * 16  # aggregations


def test_raters_agree_before_and_after_outliers_are_removed(made: Made) -> None:
    columns = "responses, outliers, measure, value, ratings, removed"
    figures = {tuple(row[:3]): row[3:] for row in made.home.query(f"SELECT {columns} FROM rater_agreement")}
    assert sum(key[:2] == ("compared", "kept") for key in figures) == 7
    rated = [(row["model"], row["annotations"]["overall"]) for row in annotated_rows()]
    every = np.array([scores for _, scores in rated]).T
    compared = np.array([scores for model, scores in rated if model != "ground-truth"]).T
    for responses, table in (("all", every), ("compared", compared)):
        alpha, ratings, removed = figures[responses, "kept", "alpha_interval"]
        assert (ratings, removed) == (table.size, 0)
        assert alpha == pytest.approx(krippendorff_alpha(table, "interval").value)
        far = np.abs(table - np.median(table, axis=0))
        left = np.where(far <= 1.4826 * np.median(far, axis=0), table, np.nan)
        alpha, *counts = figures[responses, "removed", "alpha_interval"]
        assert counts == [int((~np.isnan(left)).sum()), int(np.isnan(left).sum())]
        assert alpha == pytest.approx(krippendorff_alpha(left, "interval").value)
    each = [stats.spearmanr(one, compared.sum(axis=0) - one).statistic for one in compared]
    assert figures["compared", "kept", "one_rater"][0] == pytest.approx(np.mean(each))


def test_who_is_compared_and_ranked(made: Made) -> None:
    columns = "level, difference, p, p_holm, low, high, n"
    compared = made.home.query(f"SELECT {columns} FROM comparisons ORDER BY level, p")
    for level in ("segment", "system"):
        rows = [row[1:] for row in compared if row[0] == level]
        assert len(rows) == 6  # pairs of the two evaluators and the two baselines
        highest = 0.0
        for rank, (difference, p, p_holm, low, high, n) in enumerate(rows):
            assert difference >= 0 < p and low <= high and n == 25
            highest = max(highest, min(1.0, (len(rows) - rank) * p))
            assert p_holm == pytest.approx(highest)
    ranked = made.home.query(
        "SELECT place, cluster, evaluator, score FROM rankings WHERE level = 'segment' ORDER BY place"
    )
    places, clusters, evaluators, scores = zip(*ranked, strict=True)
    assert places == (1, 2, 3, 4) and list(clusters) == sorted(clusters)
    parts = {"ssrem": "h", "rsrem": "h", "cosine": "f", "length": "f"}
    assert dict(zip(evaluators, scores, strict=True)) == parts
