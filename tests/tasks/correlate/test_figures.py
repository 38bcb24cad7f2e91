"""Published agreement: its figures against the functions, who is compared, what is computed again and when."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from scipy import stats

from ssrem.agreement.compare import perm_both
from ssrem.agreement.correlate import ScoredResponses, View, agreement_at
from ssrem.agreement.raters import krippendorff_alpha
from ssrem.errors import EvaluatorError
from ssrem.schemas import TABLES
from ssrem.tasks.annotated import landed_set
from ssrem.tasks.correlate import SET_TABLES, correlate, correlate_all, correlate_landed
from ssrem.tasks.promote import promote
from ssrem.tasks.settings import AgreementSettings
from ssrem.tasks.stage.stage import Output
from ssrem.tasks.warehouse.catalog import PartitionKey
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import Made, annotated_rows
from support.stages import staging

EVERY = [("cosine", 1), ("length", 1), ("rsrem", 1), ("ssrem", 1)]

POOLED = """SELECT {columns} FROM agreement WHERE evaluator = 'ssrem' AND aggregation = 'mean' AND score = 'f'
    AND level = 'segment' AND grouping = 'pooled' AND measure = 'spearman'"""

PAIRS = """SELECT s.f, h.score, array_to_string(a.context, '|') FROM scores AS s
    INNER JOIN human_scores AS h USING (dataset, response_id)
    INNER JOIN rated_responses AS a USING (dataset, response_id)
    WHERE s.dataset = 'people' AND s.kind = 'response' AND h.aggregation = 'mean' AND NOT a.ground_truth
    AND s.evaluator = 'ssrem' ORDER BY s.response_id::BIGINT"""


def test_figures_are_those_of_the_correlations_and_the_library(made: Made) -> None:
    ((statistic, low, high, n, resamples, seed),) = made.home.query(
        POOLED.format(columns="statistic, low, high, n, resamples, seed")
    )
    x, y, contexts = zip(*made.home.query(PAIRS), strict=True)
    assert statistic == pytest.approx(stats.spearmanr(x, y).statistic)
    assert low < statistic < high
    assert (n, resamples, seed) == (25, 1000, 0)
    ((by_context, groups),) = made.home.query(
        "SELECT statistic, groups FROM agreement WHERE evaluator = 'ssrem' AND aggregation = 'mean' AND score = 'f' "
        "AND grouping = 'context' AND measure = 'pearson'"
    )
    direct = agreement_at(ScoredResponses(x, y, contexts), View("pearson", grouping="context"))
    assert (by_context, groups) == (pytest.approx(direct.statistic), direct.groups)


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


def test_what_left_the_snapshot_is_made_again_as_it_was(copy: Warehouse, made: Made) -> None:
    tables, root = ("agreement", "scores", *SET_TABLES), str(copy.root)
    everything = {table: f"SELECT * FROM {table} WHERE dataset = 'people' ORDER BY ALL" for table in tables}
    before = {table: copy.query(text) for table, text in everything.items()}
    figures, scores = (
        next(
            p
            for p in copy.partitions()
            if (p.table, p.key.dataset, p.key.evaluator) == (table, "people", "length")
        )
        for table in ("agreement", "scores")
    )
    for lost in ([figures], [p for p in copy.partitions() if p.table in SET_TABLES], [scores]):
        copy.write_catalog([p for p in copy.partitions() if p.address not in {one.address for one in lost}])
        for new in (True, False):
            every = EVERY if lost == [scores] else []
            assert correlate(str(made.annotated), every, root)[1] == new
        assert {table: copy.query(text) for table, text in everything.items()} == before


def test_only_what_is_in_use_is_compared(copy: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssrem.agreement.figures.MEASURES", ("spearman",))
    rows = copy.query("SELECT * FROM evaluators WHERE evaluator = 'rsrem'")
    names = TABLES["evaluators"].column_names
    other = {**dict(zip(names, rows[0], strict=True)), "version": 2, "promoted": False}
    with staging(copy, "train", {"add": 2}) as stage:
        stage.create_from_rows("evaluators", [other])
        stage.publish([Output("evaluators", PartitionKey(evaluator="rsrem", version=2))])
    assert correlate_landed("people", [], str(copy.root)) is False
    with pytest.raises(EvaluatorError, match=r"rsrem version 2: .*no such file"):
        promote("rsrem", 2, str(copy.root))
    shutil.copytree(copy.models / "rsrem" / "1", copy.models / "rsrem" / "2")
    promote("rsrem", 2, str(copy.root))
    assert correlate_all(str(copy.root)) == [], "promoting has updated the figures"
    ranked = "SELECT evaluator, version FROM rankings WHERE level = 'segment' ORDER BY ALL"
    assert copy.query(ranked) == [("cosine", 1), ("length", 1), ("rsrem", 2), ("ssrem", 1)]
    measured = copy.query("SELECT DISTINCT evaluator, version FROM agreement ORDER BY ALL")
    assert measured == [("cosine", 1), ("length", 1), ("rsrem", 1), ("rsrem", 2), ("ssrem", 1)]


def test_another_test_is_kept_until_one_is_named(copy: Warehouse, made: Made) -> None:
    permuted = AgreementSettings(test="perm-both")
    assert correlate(str(made.annotated), EVERY, str(copy.root), settings=permuted) == ("people", True)
    data_of = "SELECT first, second, p, resamples, n FROM comparisons WHERE level = 'segment' AND test = 'perm-both'"
    compared = copy.query(data_of)
    assert len(compared) == 6 and all(n == 25 and resamples == 2000 for *_, resamples, n in compared)
    with copy.reader() as reader:
        data = landed_set(reader, "people")
        human = data.human_scores()["overall", "mean"]
        scores = {name: data.scores((name, 1)) for name in ("ssrem", "cosine")}
    kept = ~data.truth
    columns = [scores["ssrem"]["h"][kept], scores["cosine"]["f"][kept], human[kept]]
    (p,) = [p for first, second, p, *_ in compared if {first, second} == {"ssrem", "cosine"}]
    assert p == pytest.approx(perm_both(*columns, seed=0).p)
    promote("rsrem", 1, str(copy.root))
    correlate_landed("people", [], str(copy.root))
    assert copy.query("SELECT DISTINCT test FROM rankings") == [("perm-both",)]
    other = AgreementSettings(test="paired-bootstrap")
    correlate(str(made.annotated), EVERY, str(copy.root), settings=other)
    assert copy.query("SELECT DISTINCT test, resamples FROM comparisons") == [("paired-bootstrap", 1000)]
