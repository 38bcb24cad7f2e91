"""What a home folder holds: the figures that the commands print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from tasks.warehouse.home import Warehouse
from tasks.warehouse.integrity import blamed

SUMMARIES = {
    "corpora": """
        SELECT c.corpus, c.format, c.conversations, c.utterances, c.quarantined, c.speakers,
            count(t.turn_id) AS turns, c.speaker_scope
        FROM corpora AS c LEFT JOIN turns AS t ON c.corpus = t.corpus
        GROUP BY ALL ORDER BY c.corpus""",
    "speaker_sets": """
        SELECT corpus, kind, mean AS similarity, low, high, speakers, sets, pairs FROM set_similarity
        ORDER BY corpus, list_position(['SC', 'SP', 'SS', 'Rand'], kind)""",
    "identification": """
        SELECT i.evaluator, i.corpus, i.kind, i.mean AS mean_f, i.low, i.high, i.gt_above, i.n
        FROM identification AS i INNER JOIN evaluators AS e USING (evaluator, version) WHERE e.promoted
        ORDER BY i.evaluator DESC, i.corpus, list_position(['GT', 'SC', 'SP', 'SS', 'Rand', 'Context'], i.kind)""",
    "agreement": """
        SELECT c.dataset, c.criterion, c.evaluator, c.score, c.spearman, a.low, a.high, r.value AS ceiling,
            c.spearman_p AS p, c.pearson, c.n, c.excluded
        FROM correlations AS c INNER JOIN evaluators AS e USING (evaluator, version)
        LEFT JOIN agreement AS a ON a.evaluator = c.evaluator AND a.version = c.version AND a.dataset = c.dataset
            AND a.criterion = c.criterion AND a.aggregation = c.aggregation AND a.level = c.level
            AND a.score = c.score AND a.grouping = 'pooled' AND a.measure = 'spearman'
        LEFT JOIN rater_agreement AS r
            ON r.dataset = c.dataset AND r.criterion = c.criterion AND r.measure = 'one_rater'
        WHERE e.promoted AND c.level = 'segment' AND c.aggregation = 'mean'
        ORDER BY c.dataset, c.criterion, c.evaluator DESC, c.score""",
    "best": """
        WITH ranked AS (
            SELECT r.* FROM rankings AS r INNER JOIN evaluators AS e USING (evaluator, version)
            WHERE e.promoted AND r.level = 'segment' AND r.place IS NOT NULL
        ),
        compared AS (
            SELECT c.dataset, c.criterion, min(c.p_holm) AS p_holm FROM comparisons AS c INNER JOIN ranked AS r
                ON r.dataset = c.dataset AND r.criterion = c.criterion AND r.evaluator = c.first AND r.place = 1
            WHERE c.level = 'segment' AND c.second IN (SELECT x.evaluator FROM ranked AS x
                WHERE x.dataset = c.dataset AND x.criterion = c.criterion AND x.place = 2)
            GROUP BY ALL
        )
        SELECT dataset, criterion,
            string_agg(evaluator || ' ' || score, ', ' ORDER BY place) FILTER (WHERE cluster = 1) AS tied_for_best,
            max(statistic) AS spearman, count(*) AS compared, any_value(p_holm) AS p_holm, any_value(n) AS n
        FROM ranked LEFT JOIN compared USING (dataset, criterion)
        GROUP BY dataset, criterion HAVING count(*) > 1 ORDER BY dataset, criterion""",
    "own_ratings": """
        SELECT c.dataset, c.criterion, c.evaluator, c.score, c.spearman, c.spearman_p AS p, c.pearson, c.n, c.excluded
        FROM correlations AS c INNER JOIN evaluators AS e USING (evaluator, version)
        WHERE e.promoted AND c.level = 'conversation'
        ORDER BY c.dataset, c.criterion, c.evaluator DESC, c.score""",
    "evaluators": """
        SELECT evaluator, version, promoted, valid_loss, train_responses AS trained_on, trained_at, why, signature
        FROM evaluators ORDER BY evaluator DESC, version DESC""",
    "negatives": """
        SELECT n.corpus, n.generator, n.k, r.split, count(*) AS negatives,
            avg(n.replaced / n.tokens) AS tokens_replaced, count(*) FILTER (WHERE n.truncated) AS truncated
        FROM negatives AS n INNER JOIN responses AS r ON n.corpus = r.corpus AND n.response_id = r.response_id
        GROUP BY ALL ORDER BY n.corpus, n.generator, n.k, r.split""",
    "studies": """
        SELECT s.study, s.dataset, s.evaluator, s.condition, s.measure, s.value, s.n, s.outcome
        FROM studies AS s INNER JOIN evaluators AS e USING (evaluator, version) WHERE e.promoted
        ORDER BY s.study, s.dataset, s.evaluator DESC, s.position""",
    "annotated": """
        SELECT dataset, count(*) AS responses, count(*) FILTER (WHERE ground_truth) AS ground_truth,
            count(reference) AS with_reference
        FROM annotated GROUP BY dataset ORDER BY dataset""",
    "progress": """
        SELECT c.corpus, c.landed_at, EXISTS (SELECT 1 FROM candidates AS x WHERE x.corpus = c.corpus) AS tables,
            (SELECT array_to_string(list_sort(list(DISTINCT i.evaluator || ' v' || i.version)), ', ')
             FROM identification AS i WHERE i.corpus = c.corpus) AS scored_by
        FROM corpora AS c ORDER BY c.landed_at""",
    "quarantine": """
        SELECT corpus, reason, count(*) AS rows FROM quarantine GROUP BY ALL ORDER BY corpus, rows DESC, reason""",
}

TITLES = {
    "corpora": "corpora",
    "speaker_sets": "speaker sets: mean similarity of a speaker's turns, 95% interval",
    "identification": "identification on the test split: mean f, 95% interval, how often the true response is above",
    "agreement": "agreement with human scores, mean of raters; 95% interval; ceiling: one rater with the others",
    "best": "tied for best: not told apart by a paired bootstrap; p_holm: of the lead of the first over the second",
    "own_ratings": "agreement with the conversations' own ratings, untouched ones left out",
    "evaluators": "versions in this home folder",
    "negatives": "negatives: how many, and the share of a response's tokens that no longer stand",
    "studies": "studies: what scores hang on besides quality",
    "annotated": "annotated sets",
    "progress": "progress",
    "quarantine": "quarantine",
}
"""Name of a summary, as `--json` has it, to what a person reads above it."""

AFTER_RUN = ("corpora", "speaker_sets", "identification", "agreement", "best", "own_ratings")


def summary(
    home: Warehouse, names: Sequence[str], *, tolerant: bool = False
) -> dict[str, list[dict[str, Any]]]:
    """The summaries asked for, each a list of rows; a summary without rows is left out, and, if `tolerant`, one that
    needs a damaged part."""
    found = {}
    with home.reader() as connection:
        for name in names:
            try:
                cursor = connection.execute(SUMMARIES[name])
                columns = [d[0] for d in cursor.description or []]
                rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
            except duckdb.Error as error:
                if tolerant and blamed(home.root, home.parts(), error):
                    continue
                raise
            if rows:
                found[name] = rows
    return found


def gate_results(home: Warehouse, stage: str) -> list[dict[str, Any]]:
    """What the latest gate of a stage saw, a row an expectation; empty where it never ran."""
    with home.reader() as connection:
        cursor = connection.execute(
            "SELECT q.table_name, q.expectation, q.passed, q.rows_checked, q.unexpected FROM check_results AS q "
            "INNER JOIN (SELECT run_id FROM runs WHERE stage = ? ORDER BY ended DESC LIMIT 1) AS r "
            "ON q.run_id = r.run_id ORDER BY ALL",
            [stage],
        )
        columns = [d[0] for d in cursor.description or []]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
