"""Register: an evaluator that learns nothing becomes a version that scores and is scored as the trained ones are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefect import task

from ssrem.errors import EvaluatorError
from ssrem.evaluators import evaluator_class
from tasks.maintenance.repair import mended, model_damage
from tasks.stage.ledger import already_done
from tasks.stage.progress import progress
from tasks.stage.stage import Resources, open_stage
from tasks.training.versions import stage_version, versions


@task(name="register evaluator")
def register(
    name: str, home: str, *, settings: Mapping[str, Any] | None = None, resources: Resources | None = None
) -> tuple[int, bool]:
    """Publish the evaluator `name` with these settings as a version; returns it and whether it is new.

    Raises EvaluatorError where the name or a setting is unknown, or what it needs is not installed.
    """
    place = mended(home)
    kind: Any = evaluator_class(name)
    if kind.trained:
        raise EvaluatorError(f"{name} learns from conversations; run ssrem train {name}")
    with progress(f"loading {name}"):
        evaluator = kind(**(settings or {}))
        parameters = {"evaluator": name, "signature": evaluator.signature}
    if already_done(place, "train", parameters, {}):
        newest = int(versions(place, name)[-1]["version"])
        if model_damage(place.models / name / str(newest)) is None:
            return newest, False
    with open_stage(place, "train", parameters, {}, resources) as stage:
        if stage.done():
            return int(versions(place, name)[-1]["version"]), False
        row, outputs = stage_version(stage, evaluator, evaluator.settings)
        stage.gate()
        card = {column: row[column] for column in ("evaluator", "version", "signature", "config")}
        evaluator.save(stage.scratch / "model", card=card)
        folder = place.models / name / str(row["version"])
        stage.publish(outputs, folders={stage.scratch / "model": folder})
    return int(row["version"]), True
