"""Evaluators in use that have not learned from all landed corpora: what a retraining has to train."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ssrem.evaluators import EVALUATORS, evaluator_class
from tasks.stage.ledger import read_outputs
from tasks.warehouse.home import Warehouse
from tasks.warehouse.partition import PartitionKey


@dataclass(frozen=True)
class Outdated:
    """An evaluator in use that has not learned from all landed corpora.

    unseen: the corpora that it has not learned from. encoder, config: as training takes them. labels: whether it
    learned from human ratings, which are not part of the corpora.
    """

    evaluator: str
    version: int
    unseen: tuple[str, ...]
    encoder: str | None
    config: dict[str, Any]
    labels: bool


def outdated(home: Warehouse, names: Sequence[str] = ()) -> list[Outdated]:
    """The stale ones of the evaluators named, or of all in use that learn; blends come after their members.

    A corpus from which a person was erased after the training counts as unseen.
    """
    with home.reader() as connection:
        landed = dict(
            connection.execute("SELECT corpus, sha256 FROM corpora ORDER BY landed_at, corpus").fetchall()
        )
        rows = connection.execute(
            "SELECT evaluator, version, corpora, config, labels, trained_at FROM evaluators WHERE promoted"
        ).fetchall()
        erased_at = _last_erasures(
            connection.execute(
                "SELECT started, outputs FROM runs WHERE stage = 'forget' ORDER BY started"
            ).fetchall()
        )
        trainings = _trainings(
            connection.execute("SELECT parameters, outputs FROM runs WHERE stage = 'train'").fetchall()
        )
    result = []
    for name, version, corpora, config, labels, trained_at in rows:
        seen = json.loads(corpora)
        unseen = tuple(
            corpus
            for corpus, digest in landed.items()
            if seen.get(corpus) != digest or (corpus in erased_at and erased_at[corpus] > trained_at)
        )
        if not unseen or not evaluator_class(name).learns_from or (names and name not in names):
            continue
        # An imported evaluator has no training in the ledger.
        parameters = trainings.get(PartitionKey(evaluator=name, version=version), {})
        result.append(
            Outdated(
                name,
                version,
                unseen,
                parameters.get("encoder"),
                parameters.get("config", json.loads(config)),
                labels is not None,
            )
        )
    order = list(EVALUATORS)  # an evaluator made of others comes after them
    return sorted(result, key=lambda one: order.index(one.evaluator))


def _last_erasures(runs: Sequence[tuple[datetime, str]]) -> dict[str, datetime]:
    """Corpus to the time when a person was last erased from it. runs: oldest first."""
    return {
        key.corpus: started
        for started, outputs in runs
        for table, key in read_outputs(outputs)
        if table == "utterances" and key.corpus
    }


def _trainings(runs: Sequence[tuple[str, str]]) -> dict[PartitionKey, dict[str, Any]]:
    """Evaluator and version to the parameters of its training, the only run that publishes a learning curve."""
    return {
        key: json.loads(parameters)
        for parameters, outputs in runs
        for table, key in read_outputs(outputs)
        if table == "learning_curves"
    }
