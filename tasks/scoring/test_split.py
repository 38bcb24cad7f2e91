"""Stage `score`: the test split of a corpus under an evaluator, with identification and the corpus's own ratings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
from prefect import task

from ssrem.agreement.identification import identification
from ssrem.samples import CONTEXT_ATTACK, TEST
from tasks.agreement.correlation_rows import correlation_row
from tasks.scoring.batches import evaluator_at, score_candidates
from tasks.speaker_tables.build import candidate_sources, landed_corpus
from tasks.speaker_tables.load import load_candidates, test_responses
from tasks.stage.ledger import Recipe
from tasks.stage.progress import progress
from tasks.stage.protocol import Built, run_stage
from tasks.stage.stage import Output, Resources, Stage
from tasks.warehouse.home import Warehouse
from tasks.warehouse.partition import PartitionKey

if TYPE_CHECKING:
    from ssrem.samples import Candidates, Floats

UNTOUCHED_RATING = {"chitchat": 5}
"""Format to the initial score of its rating sliders: a rating left there may be none, and is excluded."""


@task(name="score test split")
def score_corpus(
    name: str, version: int, corpus: str, home: str, *, resources: Resources | None = None
) -> bool:
    """Score every candidate of the corpus's test split, and the copied context; False if they are published already."""
    place = Warehouse.at(home)
    folder = place.models / name / str(version)
    who = {"evaluator": name, "version": version}

    def recipe() -> Recipe:
        digest, _ = landed_corpus(place, corpus)
        inputs = {corpus: digest, "tables": candidate_sources(place, [corpus])}
        return Recipe({**who, "corpus": corpus}, inputs)

    def build(stage: Stage) -> Built[bool]:
        with progress(f"scoring the test split of {corpus} with {name}"), evaluator_at(folder) as evaluator:
            everyone = load_candidates(stage.connection, [corpus])
            candidates = everyone.sampled(TEST, evaluator.test_sample)
            f = score_candidates(place, folder, evaluator, candidates, stage.scratch)
        responses = test_responses(stage.connection, corpus)
        responses = responses[np.isin(everyone.rows(TEST), candidates.rows(TEST))]
        _stage_scores(stage, who, corpus, responses, f, _present(candidates), evaluator.f_unit)
        stage.create_from_rows("identification", list(_identification(who, corpus, f)))
        stage.create_from_rows("correlations", list(_ratings(stage.connection, who, corpus)))
        key = PartitionKey(corpus=corpus, evaluator=name, version=version)
        return Built(True, [Output(table, key) for table in ("scores", "identification", "correlations")])

    return run_stage(place, "score", recipe, build, done=False, resources=resources)


def _present(candidates: Candidates) -> dict[str, np.ndarray[Any, Any]]:
    """Kind to whether each candidate of the test split exists, bool (n, k). The score of an existing candidate that is
    NaN is staged all the same, so that the gate refuses it."""
    rows = candidates.rows(TEST)
    context = candidates.context_stop[rows] > candidates.context_start[rows]
    negatives = {kind: drawn[rows] >= 0 for kind, drawn in candidates.negatives.items()}
    return {"GT": np.ones((len(rows), 1), dtype=bool), **negatives, CONTEXT_ATTACK: context[:, None]}


def _stage_scores(
    stage: Stage,
    who: Mapping[str, Any],
    corpus: str,
    responses: np.ndarray[Any, Any],
    f: Mapping[str, Floats],
    present: Mapping[str, np.ndarray[Any, Any]],
    to_unit: Any,
) -> None:
    import pyarrow as pa

    stage.create("scores")
    for kind, values in f.items():
        n, k = values.shape
        at = np.flatnonzero(present[kind])
        scores = values.ravel()[at]
        constants = {**who, "dataset": corpus, "kind": kind, "truncated": False}
        columns = {
            **{name: pa.repeat(value, len(at)) for name, value in constants.items()},
            "response_id": pa.array(np.repeat(responses, k)[at]).cast(pa.string()),
            "k": np.tile(np.arange(k), n)[at],
            "f": scores,
            "f_unit": to_unit(scores),
        }
        stage.insert("scores", pa.table(columns))


def _identification(who: Mapping[str, Any], corpus: str, f: Mapping[str, Floats]) -> Iterable[dict[str, Any]]:
    for row in identification(f):
        yield {
            **who,
            "corpus": corpus,
            "kind": row.kind,
            "mean": row.mean,
            "low": row.low,
            "high": row.high,
            "gt_above": row.above,
            "n": row.n,
        }


def _ratings(
    connection: duckdb.DuckDBPyConnection, who: Mapping[str, Any], corpus: str
) -> Iterable[dict[str, Any]]:
    """Mean f of a conversation's true responses against the ratings that its participants gave it."""
    rows = connection.execute(
        """
        WITH rated AS (
            SELECT c.conversation_id, o.format, unnest(json_keys(c.ratings)) AS criterion, c.ratings
            FROM conversations AS c INNER JOIN corpora AS o ON c.corpus = o.corpus
            WHERE c.corpus = $corpus AND c.ratings IS NOT NULL
        )
        SELECT
            rated.criterion,
            any_value(rated.format),
            avg(s.f),
            any_value(try_cast(json_extract(rated.ratings, '$."' || rated.criterion || '"') AS DOUBLE))
        FROM scores AS s
        INNER JOIN turns AS t ON t.corpus = $corpus AND t.turn_id = s.response_id::BIGINT
        INNER JOIN rated ON t.conversation_id = rated.conversation_id
        WHERE s.kind = 'GT'
        GROUP BY rated.criterion, rated.conversation_id ORDER BY rated.criterion, rated.conversation_id
        """,
        {"corpus": corpus},
    ).fetchall()
    for criterion in sorted({row[0] for row in rows}):
        given = [
            (f, rating, format) for c, format, f, rating in rows if c == criterion and rating is not None
        ]
        fair = [(f, rating) for f, rating, format in given if rating != UNTOUCHED_RATING.get(format)]
        where = {"dataset": corpus, "criterion": criterion, "aggregation": "rating", "level": "conversation"}
        yield correlation_row({**who, **where, "score": "f"}, fair, excluded=len(given) - len(fair))
