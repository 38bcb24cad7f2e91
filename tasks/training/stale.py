"""What a retraining has to do: evaluators in use that have not seen a corpus which has landed."""

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
    """An evaluator in use, the corpora that it has not seen, and how it was trained.

    encoder, config: as training takes them. labels: whether it learned from human scores, which are not in the corpora.
    """

    evaluator: str
    version: int
    unseen: tuple[str, ...]
    encoder: str | None
    config: dict[str, Any]
    labels: bool


def outdated(home: Warehouse, names: Sequence[str] = ()) -> list[Outdated]:
    """Of the evaluators named, or of all in use that learn: those that have not seen all landed corpora as they are.

    A corpus in which somebody was forgotten since is not the one that was seen. In an order in which one that is made
    of others comes after them.
    """
    with home.reader() as connection:
        landed = dict(
            connection.execute("SELECT corpus, sha256 FROM corpora ORDER BY landed_at, corpus").fetchall()
        )
        rows = connection.execute(
            "SELECT evaluator, version, corpora, config, labels, trained_at FROM evaluators WHERE promoted"
        ).fetchall()
        forgotten = _forgotten(
            connection.execute(
                "SELECT started, outputs FROM runs WHERE stage = 'forget' ORDER BY started"
            ).fetchall()
        )
        asked = _asked(
            connection.execute("SELECT parameters, outputs FROM runs WHERE stage = 'train'").fetchall()
        )
    found = []
    for name, version, corpora, config, labels, trained_at in rows:
        seen = json.loads(corpora)
        unseen = tuple(
            corpus
            for corpus, digest in landed.items()
            if seen.get(corpus) != digest or (corpus in forgotten and forgotten[corpus] > trained_at)
        )
        if not unseen or not evaluator_class(name).trained or (names and name not in names):
            continue
        parameters = asked.get(
            PartitionKey(evaluator=name, version=version), {}
        )  # none of one that was trained elsewhere
        found.append(
            Outdated(
                name,
                version,
                unseen,
                parameters.get("encoder"),
                parameters.get("config", json.loads(config)),
                labels is not None,
            )
        )
    order = list(EVALUATORS)
    kinds: dict[str, Any] = {one.evaluator: evaluator_class(one.evaluator) for one in found}
    return sorted(found, key=lambda o: (kinds[o.evaluator].takes_members, order.index(o.evaluator)))


def _forgotten(runs: Sequence[tuple[datetime, str]]) -> dict[str, datetime]:
    """Corpus to when somebody was last forgotten in it; runs: oldest first."""
    return {
        key.corpus: started
        for started, outputs in runs
        for table, key in read_outputs(outputs)
        if table == "utterances" and key.corpus
    }


def _asked(runs: Sequence[tuple[str, str]]) -> dict[PartitionKey, dict[str, Any]]:
    """Evaluator and version to the parameters of its training, which alone makes a learning curve."""
    return {
        key: json.loads(parameters)
        for parameters, outputs in runs
        for table, key in read_outputs(outputs)
        if table == "learning_curves"
    }
