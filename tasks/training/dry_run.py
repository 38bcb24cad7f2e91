"""Dry run of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ssrem.evaluators import evaluator_class, route
from tasks.speaker_tables.build import landed_corpus
from tasks.training.versions import versions
from tasks.warehouse.home import Warehouse, landed_corpora

TRAIN_RESPONSES = "SELECT count(*) FROM responses WHERE split = 'train' AND list_contains(?, corpus)"


def dry_run(
    home: Warehouse,
    names: Sequence[str],
    corpora: Sequence[str] | None,
    config: Mapping[str, Any],
    encoder: str | None,
    labels: str | None,
) -> list[dict[str, Any]]:
    """A row for each evaluator: data, encoder, settings and version of the training that `ssrem train` would run.

    Raises HomeError if a corpus has not landed.
    """
    settings = route(names, config)
    rows = []
    for name in names:
        kind = evaluator_class(name)
        sources = list(corpora or landed_corpora(str(home.root))) if kind.learns_from else []
        for corpus in sources:
            landed_corpus(home, corpus)
        full = kind.check_settings(settings[name])
        rows.append(
            {
                "evaluator": name,
                "version": len(versions(home, name)) + 1,
                "learns": ", ".join(sorted(kind.learns_from)) or "nothing",
                "corpora": ", ".join(sources) or None,
                "train_responses": home.query(TRAIN_RESPONSES, [sources])[0][0] if sources else None,
                "labels": labels,
                "encoder": kind.encoder_spec(encoder),
                "settings": full,
            }
        )
    return rows
