"""Summaries of a home folder: the figures that the commands print."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import duckdb

from ssrem.report.verdict import verdict
from ssrem.sql import queries
from ssrem.tasks.warehouse.home import Warehouse, records
from ssrem.tasks.warehouse.integrity import damage_behind

AFTER_RUN = ("corpora", "speaker_sets", "identification", "agreement", "best", "own_ratings")


def title(name: str) -> str:
    """The heading of a summary."""
    return queries("summaries")[name].title


def summary(
    home: Warehouse, names: Sequence[str], *, tolerant: bool = False
) -> dict[str, list[dict[str, Any]]]:
    """Name of a summary to its rows; summaries without rows are left out.

    names: files of sql/summaries. tolerant: also leave out summaries that need a damaged partition.
    """
    summaries = {}
    with home.reader() as connection:
        for name in names:
            try:
                rows = records(connection, queries("summaries")[name].text)
            except duckdb.Error as error:
                if tolerant and damage_behind(home.root, home.partitions(), error):
                    continue
                raise
            if rows:
                summaries[name] = rows
    return summaries


def no_better(home: Warehouse, datasets: Collection[str] | None = None) -> list[str]:
    """The findings that an evaluator in use is no better than chance or than an untrained baseline, and why there is no
    correlation where there is none, a sentence each.

    datasets: annotated sets to consider; None: all annotated sets and corpora.
    """
    texts = queries("report")
    with home.reader() as connection:
        identified, correlated, compared = (
            records(connection, texts[name].text)
            for name in ("identification", "correlations", "comparisons")
        )
        uncorrelated = records(connection, queries("summaries")["uncorrelated"].text)
    if datasets is not None:
        identified = []
        correlated, compared, uncorrelated = (
            [row for row in rows if row["dataset"] in datasets]
            for rows in (correlated, compared, uncorrelated)
        )
    return [
        *verdict(identified, correlated, compared, lambda name, _: str(name)),
        *(
            f"{row['scores']}: no Spearman with human scores ({row['dataset']}, {row['criterion']}): {row['reason']}."
            for row in uncorrelated
        ),
    ]


def gate_results(home: Warehouse, stage: str) -> list[dict[str, Any]]:
    """Results of the latest gate of a stage, one row per expectation; empty if the stage never ran."""
    with home.reader() as connection:
        return records(
            connection,
            "SELECT c.table_name, c.expectation, c.passed, c.rows_checked, c.unexpected FROM check_results AS c "
            "INNER JOIN (SELECT run_id FROM runs WHERE stage = ? ORDER BY ended DESC LIMIT 1) AS r "
            "ON c.run_id = r.run_id ORDER BY ALL",
            [stage],
        )
