"""Dry run of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ssrem.evaluators import evaluator_class, route
from ssrem.tasks.training.versions import versions
from ssrem.tasks.warehouse.corpora import corpora_to_learn_from
from ssrem.tasks.warehouse.home import Warehouse

RESPONSES = "SELECT count(*) FROM responses WHERE split = ? AND list_contains(?, corpus)"

ENOUGH = 100
"""Responses of the validation and the test split from which a training can be judged.

The share of cases in which an evaluator tells the true response from a false one has a 95% interval of ± 0.98 / √n at
most around chance, 50%: ± 10 percentage points from 100 responses, ± 31 from 10. With fewer, neither the choice of the
epoch nor the figures of the test split can tell an evaluator that learned something from one that guesses.
"""


def dry_run(
    home: Warehouse,
    names: Sequence[str],
    corpora: Sequence[str] | None,
    config: Mapping[str, Any],
    encoder: str | None,
    labels: str | None,
    *,
    labels_alone: bool = False,
) -> list[dict[str, Any]]:
    """A row for each evaluator: data, encoder, settings and version of the training that `ssrem train` would run.

    Raises HomeError if a corpus has not landed.
    """
    settings = route(names, config)
    rows = []
    for name in names:
        kind = evaluator_class(name)
        sources = corpora_to_learn_from(home, corpora, labels_alone=labels_alone) if kind.learns_from else []
        full = kind.check_settings(settings[name])
        rows.append(
            {
                "evaluator": name,
                "version": len(versions(home, name)) + 1,
                "learns": ", ".join(sorted(kind.learns_from)) or "nothing",
                "corpora": ", ".join(sources) or None,
                "train_responses": home.query(RESPONSES, ["train", sources])[0][0] if sources else None,
                "labels": labels,
                "encoder": kind.encoder_spec(encoder),
                "settings": full,
            }
        )
    return rows


def too_small(home: Warehouse, corpora: Sequence[str]) -> str | None:
    """A sentence if the corpora are too small to judge a training by; None if they are large enough.

    Their speaker tables must have been built.
    """
    held_out = {split: home.query(RESPONSES, [split, list(corpora)])[0][0] for split in ("valid", "test")}
    fewest = min(held_out.values())
    if fewest >= ENOUGH:
        return None
    points = f"± {98 / fewest**0.5:.0f} percentage points" if fewest else "no figure at all"
    return (
        f"{', '.join(corpora)}: too small to judge a training by: {held_out['valid']:,} responses to validate on and "
        f"{held_out['test']:,} to test on, where {ENOUGH} each are needed to tell what was learned from chance (this "
        f"few give {points}); land more conversations, or use an evaluator that comes trained, as ssrem score does"
    )
