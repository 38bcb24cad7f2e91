"""Evaluators in use that have not learned from all landed corpora: what a retraining has to train."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ssrem.evaluators import EVALUATORS, comes_packaged, evaluator_class
from ssrem.tasks.training.versions import published_keys
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import PartitionKey


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
    """The outdated ones of the evaluators named, or of all in use that learn; blends come after their members.

    Evaluators that come with ssrem are never outdated. A corpus from which a person was erased after the training
    counts as unseen.
    """
    with home.reader() as connection:
        landed = dict(
            connection.execute("SELECT corpus, sha256 FROM corpora ORDER BY landed_at, corpus").fetchall()
        )
        rows = connection.execute(
            "SELECT evaluator, version, signature, corpora, config, labels, trained_at FROM evaluators "
            "WHERE promoted"
        ).fetchall()
        erasures = connection.execute(
            "SELECT outputs, started FROM runs WHERE stage = 'forget' ORDER BY started"
        ).fetchall()
        trainings = connection.execute(
            "SELECT outputs, parameters FROM runs WHERE stage = 'train'"
        ).fetchall()
    erased_at = {key.corpus: started for key, started in published_keys(erasures, "utterances")}
    # Only a training publishes a learning curve; an imported evaluator has none in the ledger.
    parameters_of = dict(published_keys(trainings, "learning_curves"))
    result = []
    for name, version, signature, corpora, config, labels, trained_at in rows:
        seen = json.loads(corpora)
        unseen = tuple(
            corpus
            for corpus, digest in landed.items()
            if seen.get(corpus) != digest or (corpus in erased_at and erased_at[corpus] > trained_at)
        )
        fixed = not evaluator_class(name).learns_from or comes_packaged(name, signature)
        if not unseen or fixed or (names and name not in names):
            continue
        parameters = json.loads(parameters_of.get(PartitionKey(evaluator=name, version=version), "{}"))
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
    order = list(EVALUATORS)  # in which a blend comes after its members
    return sorted(result, key=lambda one: order.index(one.evaluator))
