"""Summaries that the commands print."""

from __future__ import annotations

import duckdb

from sql import queries


def test_who_is_significantly_below_the_first_is_not_tied_for_best() -> None:
    """Also where one between them keeps both in the first cluster."""
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
            "FROM (VALUES ('ssrem', 'cosine', 0.5), ('ssrem', 'length', 0.01), ('cosine', 'length', 0.3)) "
            "AS t(first, second, p_holm)"
        )
        (best,) = connection.sql(queries("summaries")["best"].text).pl().rows(named=True)
    assert (best["tied_for_best"], float(best["p_holm"]), best["compared"]) == ("ssrem f, cosine f", 0.5, 3)
