"""Report: the published tables on one page."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
from prefect import task

from ssrem import __version__
from ssrem.errors import SsremError
from ssrem.report import ReportData, render
from ssrem.report.cases import chosen
from tasks.maintenance.repair import mended
from tasks.stage.progress import progress
from tasks.warehouse.clock import utc_now
from tasks.warehouse.error_translation import out_of_room
from tasks.warehouse.home import Warehouse
from tasks.warehouse.lock import alive

QUERIES = {
    "corpora": """
        SELECT c.*, t.turns, r.responses FROM corpora AS c
        LEFT JOIN (SELECT corpus, count(*) AS turns FROM turns GROUP BY corpus) AS t USING (corpus)
        LEFT JOIN (SELECT corpus, count(*) AS responses FROM responses GROUP BY corpus) AS r USING (corpus)
        ORDER BY c.landed_at""",
    "quarantine": "SELECT corpus, reason, count(*) AS rows FROM quarantine GROUP BY ALL ORDER BY corpus, rows DESC",
    "set_similarity": "SELECT * FROM set_similarity ORDER BY corpus, list_position(['SC','SP','SS','Rand'], kind)",
    "identification": """
        SELECT i.* FROM identification AS i INNER JOIN evaluators AS e USING (evaluator, version) WHERE e.promoted
        ORDER BY i.evaluator DESC, i.corpus, list_position(['GT','SC','SP','SS','Rand','Context'], i.kind)""",
    "correlations": """
        SELECT c.* REPLACE (coalesce(a.low, c.spearman_low) AS spearman_low,
                coalesce(a.high, c.spearman_high) AS spearman_high),
            a.low IS NOT NULL AS resampled, r.value AS ceiling, k.cluster
        FROM correlations AS c INNER JOIN evaluators AS e USING (evaluator, version)
        LEFT JOIN agreement AS a ON a.evaluator = c.evaluator AND a.version = c.version AND a.dataset = c.dataset
            AND a.criterion = c.criterion AND a.aggregation = c.aggregation AND a.level = c.level
            AND a.score = c.score AND a.grouping = 'pooled' AND a.measure = 'spearman'
        LEFT JOIN rater_agreement AS r ON r.dataset = c.dataset AND r.criterion = c.criterion
            AND r.measure = 'one_rater' AND c.level = 'segment'
        LEFT JOIN rankings AS k ON k.evaluator = c.evaluator AND k.version = c.version AND k.dataset = c.dataset
            AND k.criterion = c.criterion AND k.aggregation = c.aggregation AND k.level = c.level
            AND k.score = c.score
        WHERE e.promoted
        ORDER BY c.level, c.dataset, c.criterion, c.aggregation, c.evaluator DESC, c.score""",
    "comparisons": """
        SELECT c.dataset, c.criterion, c.level, c.first, c.first_version, c.second, c.second_version, c.p_holm
        FROM comparisons AS c
        INNER JOIN evaluators AS a ON a.evaluator = c.first AND a.version = c.first_version AND a.promoted
        INNER JOIN evaluators AS b ON b.evaluator = c.second AND b.version = c.second_version AND b.promoted
        WHERE c.level = 'segment' AND c.aggregation = 'mean'
        ORDER BY c.dataset, c.criterion, c.first, c.second""",
    "points": """
        WITH judged AS (
            SELECT s.evaluator, s.version, s.dataset, h.criterion, s.response_id, h.score AS human, h.raters,
                s.f, s.g, s.h, count(s.h) OVER whole = count(*) OVER whole AS all_h,
                count(s.f) OVER whole = count(*) OVER whole AS all_f
            FROM scores AS s
            INNER JOIN evaluators AS e USING (evaluator, version)
            INNER JOIN annotated AS a USING (dataset, response_id)
            INNER JOIN human_scores AS h USING (dataset, response_id)
            WHERE e.promoted AND s.kind = 'response' AND NOT a.ground_truth AND h.aggregation = 'mean'
                AND h.criterion = (
                    SELECT coalesce(max(x.criterion) FILTER (WHERE x.criterion = 'overall'), min(x.criterion))
                    FROM human_scores AS x WHERE x.dataset = s.dataset)
            WINDOW whole AS (PARTITION BY s.evaluator, s.version, s.dataset)
        )
        SELECT evaluator, version, dataset, criterion, response_id, human, raters,
            CASE WHEN all_h THEN 'h' WHEN all_f THEN 'f' ELSE 'g' END AS part,
            CASE WHEN all_h THEN h WHEN all_f THEN f ELSE g END AS score
        FROM judged ORDER BY dataset, evaluator DESC, response_id::BIGINT""",
    "studies": """
        SELECT s.* FROM studies AS s INNER JOIN evaluators AS e USING (evaluator, version) WHERE e.promoted
        ORDER BY s.study, s.dataset, s.evaluator DESC, s.position""",
    "learning_curves": """
        SELECT l.* FROM learning_curves AS l INNER JOIN evaluators AS e USING (evaluator, version) WHERE e.promoted
        ORDER BY l.evaluator DESC, l.split, l.epoch""",
    "evaluators": "SELECT * FROM evaluators ORDER BY evaluator DESC, version DESC",
    "quality": """
        SELECT q.run_id, q.stage, q.table_name AS "table", q.expectation, q.passed, q.rows_checked AS observed,
            q.unexpected
        FROM check_results AS q INNER JOIN runs AS r USING (run_id)
        QUALIFY dense_rank() OVER (PARTITION BY r.stage, r.parameters ORDER BY r.started DESC) = 1
        ORDER BY r.started, q.table_name, q.expectation""",
    "runs": "SELECT * FROM runs ORDER BY started",
}

TEXTS = """
    SELECT a.dataset, a.response_id, a.context, a.response, a.reference, a.system
    FROM annotated AS a INNER JOIN (SELECT unnest(?) AS dataset, unnest(?) AS response_id) AS wanted
        ON a.dataset = wanted.dataset AND a.response_id = wanted.response_id"""


@task(name="write report")
def write_report(home: str) -> str:
    """Render the published snapshot as one HTML file; returns its path. The file is replaced in one step."""
    place = mended(home)
    with progress("writing the report"):
        page = render(report_data(place))
    return str(put_page(place, "report.html", page))


@task(name="write figures")
def write_figures(home: str, folder: str) -> list[str]:
    """Write every figure and table of the report into a folder, as papers take them; returns the files.

    Raises SsremError where the folder cannot be written to.
    """
    from ssrem.report.export import export

    place = mended(home)
    with progress("writing figures and tables"):
        data = report_data(place)
        try:
            return [str(path) for path in export(data, Path(folder))]
        except OSError as error:
            reason = error.strerror or str(error)
            raise SsremError(f"cannot write figures into {folder}: {reason}; name another folder") from None


def put_page(place: Warehouse, name: str, page: str) -> Path:
    """Write a page into the home folder's reports, whole or not at all; returns its path."""
    path = place.reports / name
    draft = Path(f"{path}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f"{path.name}.*.tmp"):  # by who was killed; no lock is held here
            if not alive(left.suffixes[-2].removeprefix(".")):
                left.unlink(missing_ok=True)
        draft.write_text(page, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise out_of_room(place, error) or error from None
    finally:
        draft.unlink(missing_ok=True)
    return path


def report_data(place: Warehouse) -> ReportData:
    """What the published snapshot says, as the report has it."""
    with place.reader() as connection:
        rows = {name: fetched(connection, query) for name, query in QUERIES.items()}
        wanted = [(case.dataset, case.response_id) for case in chosen(rows["points"])]
        columns = [list(column) for column in zip(*wanted, strict=True)]
        rows["responses"] = fetched(connection, TEXTS, columns) if wanted else []
    for row in rows["evaluators"]:
        keys = ("train_responses", "valid_responses", "test_responses", "valid_loss", "best_epoch", "seconds")
        row["figures"] = {key: row[key] for key in keys}
    for row in rows["runs"]:
        row["parameters"] = json.loads(row["parameters"])
    return ReportData(
        generated_at=f"{utc_now():%Y-%m-%d %H:%M} UTC",
        ssrem_version=__version__,
        home=str(place.root),
        **rows,
    )


def fetched(
    connection: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    """What a query of the published tables gives, a mapping a row."""
    cursor = connection.execute(query, values)
    names = [d[0] for d in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
