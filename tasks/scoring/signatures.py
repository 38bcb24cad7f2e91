"""Signatures of published figures of agreement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import duckdb

from ssrem.agreement.figures import Figure
from ssrem.agreement.signature import Signature, digest, versions

Version = tuple[str, int]
"""An evaluator's name and version."""

FORCED = "system-forced"
"""The level in signatures of figures of too few systems."""


def weights_of(connection: duckdb.DuckDBPyConnection, version: Version) -> str:
    """Digest of the evaluator's own signature."""
    row = connection.execute(
        "SELECT signature FROM evaluators WHERE evaluator = ? AND version = ?", list(version)
    ).fetchone()
    assert row is not None  # scores refer to it
    return digest(row[0])


def learned_from(connection: duckdb.DuckDBPyConnection, version: Version) -> str:
    """The corpora that the evaluator learned from, in order of their names, with commas between."""
    row = connection.execute(
        "SELECT corpora FROM evaluators WHERE evaluator = ? AND version = ?", list(version)
    ).fetchone()
    assert row is not None  # scores refer to it
    return ", ".join(sorted(json.loads(row[0])))


def signature_of(
    figure: Figure,
    version: Version,
    weights: str,
    data: tuple[str, str],
    human: tuple[str, str],
    score: str,
    excluded: Sequence[str],
) -> Signature:
    """The signature of a figure. weights: as `weights_of` gives it; data: name of the dataset and digest of its
    content; human: criterion and aggregation; excluded: what was left out."""
    return Signature(
        evaluator=f"{version[0]}@{version[1]}",
        weights=weights,
        score=score,
        dataset=data[0],
        data=data[1][:16],
        criterion=human[0],
        aggregation=human[1],
        level=FORCED if figure.forced else figure.level,
        grouping=figure.grouping,
        measure=figure.measure,
        excluded=tuple(excluded),
        n=figure.n,
        resamples=figure.resamples,
        seed=figure.seed,
        **versions(),
    )


def figure_row(version: Version, figure: Figure, signature: Signature, **options: int) -> dict[str, Any]:
    """The row of `agreement` of a figure. options: the columns of ssrem.tasks.agreement.landed_set.Options."""
    names = ("dataset", "criterion", "aggregation", "score")
    return {
        "evaluator": version[0],
        "version": version[1],
        **{name: getattr(signature, name) for name in names},
        **vars(figure),
        **options,
        "reason": figure.reason or None,
        "signature": str(signature),
    }
