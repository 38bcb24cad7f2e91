"""Correlate: human scores by hand, correlations against SciPy, and what is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from scipy import stats

from ssrem.errors import AnnotationError, EvaluatorError, GateError
from ssrem.flows.correlate import correlate as correlate_sets
from ssrem.flows.orchestration.options import AnnotatedSetOptions
from ssrem.sql import statement
from ssrem.tasks.agreement.correlate import correlate
from ssrem.tasks.studies.source import StudySettings
from ssrem.tasks.studies.study import study
from ssrem.tasks.training.versions import promoted
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import PartitionKey
from support.small_home import Made, annotated_rows
from support.stages import query

BOTH = [("rsrem", 1), ("ssrem", 1)]


@pytest.fixture
def write_set(tmp_path: Path) -> Callable[..., str]:
    def write(rows: list[dict[str, Any]], name: str = "set") -> str:
        path = tmp_path / f"{name}_eval.json"
        path.write_text(json.dumps(rows))
        return str(path)

    return write


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


@pytest.mark.parametrize("case", RATINGS)
def test_human_scores_by_hand(case: str) -> None:
    ratings, expected = RATINGS[case]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE ratings (dataset VARCHAR, response_id VARCHAR, criterion VARCHAR, rater BIGINT, "
            "score DOUBLE)"
        )
        other = [("d", "r", "other", 0, 1.0), ("d", "s", "overall", 0, 1.0), ("e", "r", "overall", 0, 1.0)]
        rows = [("d", "r", "overall", rater, float(score)) for rater, score in enumerate(ratings)]
        connection.executemany("INSERT INTO ratings VALUES (?, ?, ?, ?, ?)", [*rows, *other])
        scores = connection.execute(
            f"SELECT aggregation, score FROM ({statement('3_agreement/human_scores')}) "
            "WHERE response_id = 'r' AND criterion = 'overall'",
            {"dataset": "d"},
        ).fetchall()
    assert len(scores) == 4
    by_name = dict(scores)
    assert [by_name[a] for a in ("mean", "median", "mode", "mad_mean")] == pytest.approx(expected)


# Correlations


def pairs(home: Warehouse, dataset: str, part: str, *, evaluator: str = "ssrem", truth: bool = False) -> Any:
    """Score and mean human score, joined by key, from the published tables."""
    return query(
        home,
        f"""SELECT s.{part}, h.score, a.system FROM scores AS s
        INNER JOIN human_scores AS h USING (dataset, response_id)
        INNER JOIN rated_responses AS a USING (dataset, response_id)
        WHERE s.evaluator = ? AND s.dataset = ? AND s.kind = 'response' AND h.aggregation = 'mean'
            AND h.criterion = 'overall' AND (? OR NOT a.ground_truth)""",
        evaluator,
        dataset,
        truth,
    )


def correlation(home: Warehouse, dataset: str, part: str, level: str, evaluator: str = "ssrem") -> Any:
    (row,) = query(
        home,
        """SELECT pearson, pearson_p, spearman, spearman_p, kendall, n, excluded FROM correlations
        WHERE evaluator = ? AND dataset = ? AND score = ? AND level = ? AND aggregation = 'mean'""",
        evaluator,
        dataset,
        part,
        level,
    )
    return row


def by_scipy(pairs: list[Any]) -> list[float]:
    x, y = [row[0] for row in pairs], [row[1] for row in pairs]
    r, rho, tau = stats.pearsonr(x, y), stats.spearmanr(x, y), stats.kendalltau(x, y)
    return [r.statistic, r.pvalue, rho.statistic, rho.pvalue, tau.statistic, len(x)]


@pytest.mark.parametrize("part", ["f", "g", "h"])
@pytest.mark.parametrize("evaluator", ["ssrem", "rsrem"])
def test_segments_correlate_as_scipy_says_without_ground_truth(made: Made, part: str, evaluator: str) -> None:
    joined = pairs(made.home, "people", part, evaluator=evaluator)
    published = correlation(made.home, "people", part, "segment", evaluator)
    assert list(published[:6]) == pytest.approx(by_scipy(joined))
    assert published[5:] == (25, 5)


def test_systems_correlate_by_their_means(made: Made) -> None:
    by_system: dict[str, list[Any]] = {}
    for f, human, system in pairs(made.home, "people", "f"):
        by_system.setdefault(system, []).append((f, human))
    means = [np.mean(values, axis=0).tolist() for values in by_system.values()]
    assert list(correlation(made.home, "people", "f", "system")[:6]) == pytest.approx(by_scipy(means))
    assert len(means) == 5


def test_no_system_level_from_four_systems(copy: Warehouse, write_set: Any) -> None:
    file = write_set([row for row in annotated_rows() if row["model"] != "e"])
    correlate(file, BOTH, str(copy.root))
    levels = query(copy, "SELECT DISTINCT level FROM correlations WHERE dataset = 'set'")
    assert levels == [("segment",)]


def test_rows_are_joined_by_key_not_by_position(copy: Warehouse, made: Made, write_set: Any) -> None:
    rows = annotated_rows()
    random.Random(5).shuffle(rows)
    correlate(write_set(rows), BOTH, str(copy.root))
    for part in "fgh":
        before = correlation(made.home, "people", part, "segment")
        assert correlation(copy, "set", part, "segment") == pytest.approx(before)
    for number, row in enumerate(rows):
        published = query(
            copy,
            "SELECT response FROM rated_responses WHERE dataset = 'set' AND response_id = ?",
            str(number),
        )
        assert published == [(row["response"],)]


def test_ground_truth_is_kept_if_asked_for(copy: Warehouse, made: Made) -> None:
    _, new = correlate(str(made.annotated), BOTH, str(copy.root), ground_truth_kept=True)
    assert new
    published = correlation(copy, "people", "f", "segment")
    assert published[5:] == (30, 0)
    assert list(published[:6]) == pytest.approx(by_scipy(pairs(copy, "people", "f", truth=True)))


def test_without_references_only_f_is_correlated(copy: Warehouse, write_set: Any) -> None:
    file = write_set([{k: v for k, v in row.items() if k != "reference"} for row in annotated_rows()])
    correlate(file, BOTH, str(copy.root))
    assert query(copy, "SELECT DISTINCT score FROM correlations WHERE dataset = 'set'") == [("f",)]
    nulls = "SELECT count(*), count(g), count(h) FROM scores WHERE dataset = 'set'"
    assert query(copy, nulls) == [(60, 0, 0)]


# Once, and under one name


def test_the_same_set_again_is_a_no_op_wherever_it_lies(copy: Warehouse, made: Made, tmp_path: Path) -> None:
    elsewhere = tmp_path / made.annotated.name
    elsewhere.write_bytes(made.annotated.read_bytes())
    before = copy.partitions()
    for file in (made.annotated, elsewhere):
        assert correlate(str(file), promoted(copy), str(copy.root)) == ("people", False)
    assert copy.partitions() == before


def test_the_same_name_with_other_content_is_refused(copy: Warehouse, write_set: Any) -> None:
    before = copy.partitions()
    with pytest.raises(AnnotationError, match="replace it with --replace, or rename the file"):
        correlate(write_set(annotated_rows()[:-1], "people"), BOTH, str(copy.root))
    assert copy.partitions() == before


def test_other_content_replaces_a_set_and_all_that_was_made_of_it(copy: Warehouse, write_set: Any) -> None:
    root, rows = str(copy.root), annotated_rows()
    study("people", BOTH, root, StudySettings("length"))
    corrected = rows[1:]
    corrected[0] |= {"response": "i like to cook pizza", "annotations": {"overall": [5, 5, 4, 5]}}
    file = write_set(corrected, "people")
    others = [p for p in copy.partitions() if p.key.dataset != "people" and p.key != PartitionKey()]
    assert correlate(file, [("ssrem", 1)], root, replace=True) == ("people", True)
    after = copy.partitions()
    assert [p for p in after if p.key.dataset != "people" and p.key != PartitionKey()] == others
    assert query(copy, "SELECT count(*) FROM studies WHERE dataset = 'people'") == [(0,)]
    # Every evaluator has the scores and figures that it would have of a new set.
    correlate(write_set(corrected, "new"), promoted(copy), root)
    of_people, of_agreement = ("rated_responses", "ratings", "human_scores"), ("comparisons", "rankings")
    for table in (*of_people, "scores", "agreement", *of_agreement, "rater_agreement"):
        columns = "COLUMNS(lambda c: c NOT IN ('dataset', 'signature'))"
        of_set = f"SELECT {columns} FROM {table} WHERE dataset = ? ORDER BY ALL"
        assert query(copy, of_set, "people") == query(copy, of_set, "new") != []
    for replace in (True, False):
        assert correlate(file, promoted(copy), root, replace=replace) == ("people", False)
    longer = write_set(rows, "people")
    assert correlate(longer, promoted(copy), root, replace=True) == ("people", True)


def test_a_set_named_as_a_corpus_leaves_the_corpus_its_scores(copy: Warehouse, write_set: Any) -> None:
    count = "SELECT kind, count(*) FROM scores WHERE dataset = 'tiny' AND kind <> 'response' GROUP BY ALL ORDER BY ALL"
    before = query(copy, count)
    assert before
    correlate(write_set(annotated_rows(), "tiny"), BOTH, str(copy.root))
    assert query(copy, count) == before


def test_one_evaluator_leaves_the_others_their_figures(copy: Warehouse, made: Made) -> None:
    before = query(copy, "SELECT * FROM correlations ORDER BY ALL")
    correlate(str(made.annotated), [("ssrem", 1)], str(copy.root))
    assert query(copy, "SELECT * FROM correlations ORDER BY ALL") == before


def test_nothing_to_correlate_before_training(home: Warehouse) -> None:
    with pytest.raises(EvaluatorError, match="ssrem train"):
        promoted(home)


def test_each_set_that_fails_is_reported_and_the_others_are_published(
    copy: Warehouse, write_set: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [write_set([], "empty"), write_set(annotated_rows(), "sound"), str(tmp_path / "none.json")]
    with pytest.raises(AnnotationError, match=r"none\.json"):
        correlate_sets(AnnotatedSetOptions(files=files), str(copy.root))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("ssrem: ") and "empty_eval.json" in line
    assert query(copy, "SELECT count(*) FROM agreement WHERE dataset = 'sound'") > [(0,)]


# Scores that are no numbers


def test_an_empty_context_has_no_score_and_an_empty_response_is_left_out(
    copy: Warehouse, write_set: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = annotated_rows()
    rows[3]["response"], rows[9]["context"] = " ", [" "]
    name, _ = correlate(write_set(rows, "empty"), [("ssrem", 1)], str(copy.root))
    query = "SELECT response_id, f, g, h FROM scores WHERE evaluator = 'ssrem' AND dataset = ? ORDER BY ALL"
    scores = {row[0]: row[1:] for row in copy.query(query, [name])}
    assert len(scores) == len(rows) - 1 and scores["8"] == (None, None, None)
    assert all(None not in score for response, score in scores.items() if response != "8")
    assert "left out: 1 row without a response" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["f", "h"])
def test_a_nan_score_is_stopped_by_the_gate(
    copy: Warehouse, write_set: Any, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    from ssrem.evaluators.bilinear.bilinear import Bilinear

    sound = Bilinear.compute

    def broken(self: Bilinear, samples: Any, **options: Any) -> Any:
        scores = sound(self, samples, **options)
        getattr(scores, part)[3] = np.nan
        return scores

    monkeypatch.setattr(Bilinear, "compute", broken)
    before, catalog = copy.partitions(), copy.catalog.read_bytes()
    with pytest.raises(
        GateError, match=r"table scores: expected .*\bf.* to be finite|h_lies_between_its_parts"
    ) as raised:
        correlate(write_set(annotated_rows()), [("ssrem", 1)], str(copy.root))
    assert "\n" not in str(raised.value)
    assert copy.partitions() == before
    assert copy.catalog.read_bytes() == catalog
