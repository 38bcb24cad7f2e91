"""Correlate: human scores by hand, correlations against SciPy, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from scipy import stats

from ssrem.agreement.compare import perm_both
from ssrem.errors import AnnotationError, GateError
from ssrem.sql import statement
from ssrem.tasks.annotated import landed_set
from ssrem.tasks.correlate import correlate, correlate_files, correlate_landed
from ssrem.tasks.settings import AgreementSettings, AnnotatedSets
from ssrem.tasks.study import study
from ssrem.tasks.versions import promoted
from ssrem.tasks.warehouse.catalog import PartitionKey
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import Made, annotated_rows

BOTH = [("rsrem", 1), ("ssrem", 1)]
ONE = BOTH[1:]


@pytest.fixture
def write_set(tmp_path: Path) -> Callable[..., str]:
    def write(rows: list[dict[str, Any]], name: str = "set") -> str:
        path = tmp_path / f"{name}_eval.json"
        path.write_text(json.dumps(rows))
        return str(path)

    return write


@pytest.fixture
def few_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spearman of all responses alone, where a test looks at other tables: figures take most of the time."""
    monkeypatch.setattr("ssrem.agreement.figures.GROUPINGS", ("pooled",))
    monkeypatch.setattr("ssrem.agreement.figures.MEASURES", ("spearman",))


# Human scores

RATINGS = {
    # mean, median, mode, mean within one scaled deviation of the median
    "one rater": ([4], (4, 4, 4, 4)),
    "all agree": ([3, 3, 3], (3, 3, 3, 3)),
    "an outlier": ([4, 4, 5, 1], (3.5, 4, 4, 4)),
    "tied modes": ([1, 1, 4, 4], (2.5, 2.5, 2.5, 2.5)),
    "all differ": ([1, 2, 5], (8 / 3, 2, 8 / 3, 1.5)),
    "most agree": ([2, 2, 2, 5], (2.75, 2, 2, 2)),
}


def test_human_scores_by_hand() -> None:
    rows = [
        (case, rater, score) for case, (scores, _) in RATINGS.items() for rater, score in enumerate(scores)
    ]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE ratings AS SELECT 'd' AS dataset, 'overall' AS criterion, * FROM (VALUES "
            f"{', '.join(map(str, rows))}) AS v (response_id, rater, score)"
        )
        connection.execute(
            "INSERT INTO ratings VALUES ('d', 'other', 'one rater', 0, 1), ('e', 'overall', 'one rater', 0, 1)"
        )
        human = connection.execute(
            f"SELECT response_id, aggregation, score FROM ({statement('3_agreement/human_scores')}) "
            "WHERE criterion = 'overall'",
            {"dataset": "d"},
        ).fetchall()
    assert len(human) == 4 * len(RATINGS)
    by_name = {(case, aggregation): score for case, aggregation, score in human}
    for case, (_, expected) in RATINGS.items():
        means = [by_name[case, one] for one in ("mean", "median", "mode", "mad_mean")]
        assert means == pytest.approx(expected), case


# Correlations


def pairs(home: Warehouse, part: str, *, evaluator: str = "ssrem", truth: bool = False) -> Any:
    """Score and mean human score in the set `people`, joined by key, from the published tables."""
    return home.query(
        f"""SELECT s.{part}, h.score, a.system FROM scores AS s
        INNER JOIN human_scores AS h USING (dataset, response_id)
        INNER JOIN rated_responses AS a USING (dataset, response_id)
        WHERE s.evaluator = ? AND s.dataset = 'people' AND s.kind = 'response' AND h.aggregation = 'mean'
            AND h.criterion = 'overall' AND (? OR NOT a.ground_truth)""",
        [evaluator, truth],
    )


def correlation(home: Warehouse, dataset: str, part: str, level: str, evaluator: str = "ssrem") -> Any:
    text = """SELECT pearson, pearson_p, spearman, spearman_p, kendall, n, excluded FROM correlations
        WHERE evaluator = ? AND dataset = ? AND score = ? AND level = ? AND aggregation = 'mean'"""
    (row,) = home.query(text, [evaluator, dataset, part, level])
    return row


def by_scipy(pairs: list[Any]) -> list[float]:
    x, y = [row[0] for row in pairs], [row[1] for row in pairs]
    r, rho, tau = stats.pearsonr(x, y), stats.spearmanr(x, y), stats.kendalltau(x, y)
    return [r.statistic, r.pvalue, rho.statistic, rho.pvalue, tau.statistic, len(x)]


def test_segments_and_systems_correlate_as_scipy_says_without_ground_truth(made: Made) -> None:
    for evaluator, part in (("ssrem", "f"), ("ssrem", "g"), ("ssrem", "h"), ("rsrem", "h")):
        published = correlation(made.home, "people", part, "segment", evaluator)
        joined = pairs(made.home, part, evaluator=evaluator)
        assert list(published[:6]) == pytest.approx(by_scipy(joined)) and published[5:] == (25, 5)
    by_system: dict[str, list[Any]] = {}
    for f, human, system in pairs(made.home, "f"):
        by_system.setdefault(system, []).append((f, human))
    means = [np.mean(values, axis=0).tolist() for values in by_system.values()]
    assert list(correlation(made.home, "people", "f", "system")[:6]) == pytest.approx(by_scipy(means))
    assert len(means) == 5


@pytest.mark.usefixtures("few_figures")
def test_ground_truth_and_another_test_are_kept_until_others_are_named(
    copy: Warehouse, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssrem.tasks.correlate.PERMUTATIONS", 100)  # fewer than 50 for each of six pairs
    root, before = str(copy.root), copy.partitions()
    settings = AgreementSettings(keep_ground_truth=True, test="perm-both")
    assert correlate(str(made.annotated), ONE, root, settings=settings) == ("people", True)
    published = correlation(copy, "people", "f", "segment")
    assert published[5:] == (30, 0)
    assert published[2:4] == pytest.approx(by_scipy(pairs(copy, "f", truth=True))[2:4])
    now = {p.address: p.run for p in copy.partitions()}
    changed = {p.key.evaluator for p in before if p.table == "agreement" and now[p.address] != p.run}
    assert changed == {"cosine", "length", "rsrem", "ssrem"}
    points = f"SELECT DISTINCT count(*) FROM ({statement('report/points')}) GROUP BY evaluator, criterion"
    assert copy.query(points) == [(30,)]
    data_of = "SELECT first, second, p, resamples, n FROM comparisons WHERE level = 'segment' AND test = 'perm-both'"
    compared = copy.query(data_of)
    assert len(compared) == 6 and all(row[3:] == (300, 30) for row in compared)
    with copy.reader() as reader:
        data = landed_set(reader, "people")
        human = data.human_scores()["overall", "mean"]
        columns = data.scores(("ssrem", 1))["h"], data.scores(("cosine", 1))["f"]
    (p,) = [p for first, second, p, *_ in compared if {first, second} == {"ssrem", "cosine"}]
    assert p == pytest.approx(perm_both(*columns, human, permutations=300, seed=0).p)
    assert correlate_landed("people", [], root) is False, "the set keeps its options"
    copy.write_catalog([p for p in copy.partitions() if p.table != "rankings"])
    assert correlate_landed("people", [], root) is True
    assert copy.query("SELECT DISTINCT test FROM rankings") == [("perm-both",)]
    correlate(str(made.annotated), ONE, root, settings=AgreementSettings(test="paired-bootstrap"))
    assert copy.query("SELECT DISTINCT test, resamples, n FROM comparisons") == [
        ("paired-bootstrap", 1000, 30)
    ]


@pytest.mark.usefixtures("few_figures")
def test_only_f_is_correlated_without_references_and_no_systems_of_four(
    copy: Warehouse, write_set: Any
) -> None:
    rows = [
        {k: v for k, v in row.items() if k != "reference"} for row in annotated_rows() if row["model"] != "e"
    ]
    correlate(write_set(rows), ONE, str(copy.root))
    figures = "SELECT DISTINCT level, score FROM correlations WHERE dataset = 'set'"
    assert copy.query(figures) == [("segment", "f")]
    nulls = "SELECT count(*), count(g), count(h) FROM scores WHERE dataset = 'set'"
    assert copy.query(nulls) == [(25, 0, 0)]


@pytest.mark.usefixtures("few_figures")
def test_ground_truth_decides_no_part_an_empty_context_has_no_score_an_empty_response_is_left_out(
    copy: Warehouse, write_set: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = annotated_rows()
    for row in rows:
        if row["model"] == "ground-truth":  # with these, fewer responses have h than f
            row["reference"] = None
    rows[3]["response"], rows[9]["context"] = " ", [" "]
    correlate(write_set(rows), ONE, str(copy.root))
    assert "left out: 1 row without a response" in capsys.readouterr().err
    scored = copy.query(
        "SELECT response_id, ground_truth, f IS NULL, g IS NULL, h IS NULL FROM scores "
        "INNER JOIN rated_responses USING (dataset, response_id) WHERE dataset = 'set'"
    )
    assert len(scored) == len(rows) - 1 and sum(truth for _, truth, *_ in scored) == 5
    for response, truth, *lacks in scored:
        assert lacks == ([True] * 3 if response == "8" else [False, truth, truth])
    parts = "SELECT DISTINCT part FROM overall_scores WHERE dataset = 'set'"
    assert copy.query(parts) == [("h",)]
    assert copy.query("SELECT DISTINCT score FROM rankings WHERE dataset = 'set'") == [("h",)]
    with copy.reader() as reader:
        points = reader.execute(statement("report/points")).fetchnumpy()
    assert set(points["part"][points["dataset"] == "set"]) == {"h"}


# Once, and under one name


def test_the_same_set_again_is_a_no_op_wherever_it_lies(copy: Warehouse, made: Made, tmp_path: Path) -> None:
    elsewhere = tmp_path / made.annotated.name
    elsewhere.write_bytes(made.annotated.read_bytes())
    before = copy.partitions()
    for file, versions in ((made.annotated, BOTH[:1]), (elsewhere, promoted(copy))):
        assert correlate(str(file), versions, str(copy.root)) == ("people", False)
    assert correlate_landed("people", [], str(copy.root)) is False
    with pytest.raises(AnnotationError, match="no annotated set 'nothing of that name' has landed"):
        correlate_landed("nothing of that name", [], str(copy.root))
    assert copy.partitions() == before


@pytest.mark.usefixtures("few_figures")
def test_other_content_replaces_a_set_and_all_that_was_made_of_it_if_asked_to(
    copy: Warehouse, write_set: Any
) -> None:
    root, corrected = str(copy.root), annotated_rows()[1:]
    # Two are enough, and cosine loads a transformer.
    copy.write_catalog([p for p in copy.partitions() if p.key.evaluator not in ("cosine", "length")])
    study("people", "length", BOTH, root)
    corrected[0] |= {"response": "i like to cook pizza", "annotations": {"overall": [5, 5, 4, 5]}}
    file = write_set(corrected, "people")
    before = copy.partitions()
    with pytest.raises(AnnotationError, match="replace it with --replace, or rename the file"):
        correlate(file, BOTH, root)
    assert copy.partitions() == before
    others = [p for p in before if p.key.dataset != "people" and p.key != PartitionKey()]
    assert correlate(file, [("ssrem", 1)], root, AnnotatedSets(replace=True)) == ("people", True)
    after = copy.partitions()
    assert [p for p in after if p.key.dataset != "people" and p.key != PartitionKey()] == others
    assert copy.query("SELECT count(*) FROM studies WHERE dataset = 'people'") == [(0,)]
    # Every evaluator has the scores and figures that it would have of a new set.
    correlate(write_set(corrected, "new"), promoted(copy), root)
    of_people, of_agreement = ("rated_responses", "ratings", "human_scores"), ("comparisons", "rankings")
    for table in (*of_people, "scores", "agreement", *of_agreement, "rater_agreement"):
        columns = "COLUMNS(lambda c: c NOT IN ('dataset', 'signature'))"
        of_set = f"SELECT {columns} FROM {table} WHERE dataset = ? ORDER BY ALL"
        assert copy.query(of_set, ["people"]) == copy.query(of_set, ["new"]) != []
    for replace in (True, False):
        assert correlate(file, promoted(copy), root, AnnotatedSets(replace=replace)) == ("people", False)


@pytest.mark.usefixtures("few_figures")
def test_each_set_that_fails_is_reported_and_others_are_published_also_one_named_as_a_corpus(
    copy: Warehouse, write_set: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = "SELECT kind, count(*) FROM scores WHERE dataset = 'tiny' AND kind <> 'response' GROUP BY ALL ORDER BY ALL"
    before = copy.query(count)
    files = [write_set([], "empty"), write_set(annotated_rows(), "tiny"), str(tmp_path / "none.json")]
    called: list[str] = []

    def noted(file: str, *more: Any, **options: Any) -> tuple[str, bool]:
        called.append(file)
        return correlate(file, *more, **options)

    with pytest.raises(AnnotationError, match=r"none\.json"):
        correlate_files(files, ONE, str(copy.root), correlate=noted)
    assert called == files
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("ssrem: ") and "empty_eval.json" in line
    assert correlate_files(files[1:2], ONE, str(copy.root)) == {"tiny": False}
    assert copy.query(count) == before != []


@pytest.mark.usefixtures("few_figures")
def test_a_nan_score_is_stopped_by_the_gate(
    copy: Warehouse, write_set: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ssrem.evaluators.bilinear import Bilinear

    sound, before = Bilinear.compute, copy.partitions()

    def broken(self: Bilinear, samples: Any, **options: Any) -> Any:
        scores = sound(self, samples, **options)
        scores.f[3] = np.nan
        return scores

    monkeypatch.setattr(Bilinear, "compute", broken)
    with pytest.raises(GateError, match=r"table scores: expected .*\bf.* to be finite") as raised:
        correlate(write_set(annotated_rows()), ONE, str(copy.root))
    assert "\n" not in str(raised.value)
    assert copy.partitions() == before
