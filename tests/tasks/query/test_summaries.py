"""Summaries that the commands print."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from ssrem.sql import queries
from ssrem.tasks.correlate import correlate
from ssrem.tasks.query import no_better
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import annotated_rows


@pytest.mark.parametrize("p_of_length", [0.01, 0.3])
def test_who_is_below_the_first_or_a_baseline_is_not_tied_for_best(p_of_length: float) -> None:
    """Significantly below the first, also where one between them keeps both in the first cluster."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE evaluators AS SELECT e AS evaluator, 1 AS version, true AS promoted "
            "FROM unnest(['ssrem', 'cosine', 'length']) AS t(e)"
        )
        connection.execute(
            "CREATE TABLE rankings AS SELECT 'people' AS dataset, 'overall' AS criterion, 'segment' AS level, "
            "evaluator, 1 AS version, 'f' AS score, place, 1 AS cluster, statistic, 36 AS n FROM "
            "(VALUES ('ssrem', 1, 0.8), ('cosine', 2, 0.6), ('length', 3, 0.3)) AS t(evaluator, place, statistic)"
        )
        connection.execute(
            "CREATE TABLE comparisons AS SELECT 'people' AS dataset, 'overall' AS criterion, 'segment' AS level, * "
            "FROM (VALUES ('ssrem', 'cosine', 0.5), ('ssrem', 'length', ?), ('cosine', 'length', 0.3)) "
            "AS t(first, second, p_holm)",
            [p_of_length],
        )
        (best,) = connection.sql(queries("summaries")["best"].text).pl().rows(named=True)
    assert (best["tied_for_best"], float(best["p_holm"]), best["compared"]) == ("ssrem f, cosine f", 0.5, 3)


def test_a_set_without_a_correlation_says_why(
    copy: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssrem.agreement.figures.MEASURES", ("spearman",))
    for name, rows, why in (
        ("same", annotated_rows()[:12], "the human scores are all the same"),
        ("few", annotated_rows()[1:2], "3 are needed"),
    ):
        same = [{**row, "model": "a", "annotations": {"overall": [3]}} for row in rows]
        (tmp_path / f"{name}_eval.json").write_text(json.dumps(same))
        correlate(str(tmp_path / f"{name}_eval.json"), [("ssrem", 1)], str(copy.root))
        (sentence,) = no_better(copy, [name])
        of = f"ssrem f, ssrem g, ssrem h: no Spearman with human scores ({name}, overall): "
        assert sentence.startswith(of) and sentence.endswith(f"{why}.")
