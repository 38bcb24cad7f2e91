"""Stage `score`: the test split of a corpus under an evaluator, with identification and the corpus's own ratings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ssrem.agreement.identification import identification
from ssrem.samples import CONTEXT_ATTACK, TEST
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.scoring.batches import evaluator_at, score_candidates
from ssrem.tasks.scoring.conversations import conversation_rows
from ssrem.tasks.scoring.endpoint_requests import asks
from ssrem.tasks.scoring.signatures import learned_from
from ssrem.tasks.speaker_tables.build import candidate_sources
from ssrem.tasks.stage.ledger import Recipe
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.protocol import Built, run_stage
from ssrem.tasks.stage.stage import Output, Resources, Stage
from ssrem.tasks.stage.steps import step
from ssrem.tasks.warehouse.corpora import landed_corpus
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import PartitionKey

if TYPE_CHECKING:
    from ssrem.samples import Candidates, Floats


@step("score test split")
def score_corpus(
    name: str, version: int, corpus: str, home: str, *, resources: Resources | None = None
) -> bool:
    """Score every candidate of the corpus's test split, and the copied context. False if the scores are published
    already, or if the evaluator asks an endpoint, which would cost a request for each."""
    warehouse = Warehouse.at(home)
    if asks(warehouse, name, version):
        return False
    folder = warehouse.models / name / str(version)
    who = {"evaluator": name, "version": version}

    def recipe() -> Recipe:
        digest, _ = landed_corpus(warehouse, corpus)
        inputs = {corpus: digest, "tables": candidate_sources(warehouse, [corpus])}
        return Recipe({**who, "corpus": corpus}, inputs)

    def build(stage: Stage) -> Built[bool]:
        with progress(f"scoring the test split of {corpus} with {name}"), evaluator_at(folder) as evaluator:
            candidates = load_candidates(stage.connection, [corpus]).sampled(TEST, evaluator.test_sample)
            f = score_candidates(warehouse, folder, evaluator, candidates, stage.scratch)
        origin = {**who, "learned_from": learned_from(stage.connection, (name, version))}
        _stage_scores(stage, {**origin, "dataset": corpus}, candidates, f, evaluator.f_unit)
        shares = [
            {**origin, "corpus": corpus, **vars(row), "gt_above": row.above} for row in identification(f)
        ]
        stage.create_from_rows("identification", shares)
        ratings = list(conversation_rows(stage.connection, (name, version), corpus))
        stage.create_from_rows("agreement", ratings)
        key = PartitionKey(corpus=corpus, evaluator=name, version=version)
        return Built(True, [Output(table, key) for table in ("scores", "identification", "agreement")])

    return run_stage(warehouse, "score", recipe, build, done=False, resources=resources)


def _present(candidates: Candidates) -> dict[str, np.ndarray[Any, Any]]:
    """Kind to whether each candidate of the test split exists, bool (n, k).

    A NaN score of an existing candidate is staged as well, so that the gate refuses it.
    """
    rows = candidates.rows(TEST)
    context = candidates.context_stop[rows] > candidates.context_start[rows]
    negatives = {kind: drawn[rows] >= 0 for kind, drawn in candidates.negatives.items()}
    return {"GT": np.ones((len(rows), 1), dtype=bool), **negatives, CONTEXT_ATTACK: context[:, None]}


def _stage_scores(
    stage: Stage,
    who: Mapping[str, Any],
    candidates: Candidates,
    f: Mapping[str, Floats],
    to_unit: Callable[[Floats], Floats],
) -> None:
    import pyarrow as pa

    present, responses = _present(candidates), candidates.response[candidates.rows(TEST)]
    stage.create("scores")
    for kind, values in f.items():
        n, k = values.shape
        at = np.flatnonzero(present[kind])
        scores = values.ravel()[at]
        constants = {**who, "kind": kind, "truncated": False}
        columns = {
            **{name: pa.repeat(value, len(at)) for name, value in constants.items()},
            "response_id": pa.array(np.repeat(responses, k)[at]).cast(pa.string()),
            "k": np.tile(np.arange(k), n)[at],
            "f": scores,
            "f_unit": pa.array(to_unit(scores), from_pandas=True),  # NaN: not scaled
        }
        stage.insert("scores", pa.table(columns))
