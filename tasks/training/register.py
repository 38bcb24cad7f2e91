"""Register an evaluator that learns nothing as a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefect import task

from ssrem.errors import EvaluatorError
from ssrem.evaluators import evaluator_class
from tasks.stage.ledger import Recipe, already_done
from tasks.stage.progress import progress
from tasks.stage.protocol import Built, run_stage
from tasks.stage.stage import Resources, Stage
from tasks.training.versions import stage_version, versions
from tasks.warehouse.home import Warehouse
from tasks.warehouse.models import model_damage


@task(name="register evaluator")
def register(
    name: str, home: str, *, settings: Mapping[str, Any] | None = None, resources: Resources | None = None
) -> tuple[int, bool]:
    """Publish the evaluator `name` with these settings as a version; returns the version and whether it is new.

    Raises EvaluatorError if the name or a setting is unknown, or a package that it needs is missing.
    """
    place = Warehouse.at(home)
    kind: Any = evaluator_class(name)
    if kind.learns_from:
        raise EvaluatorError(f"{name} learns from conversations; run ssrem train {name}")
    with progress(f"loading {name}"):
        evaluator = kind(**(settings or {}))
        recipe = Recipe({"evaluator": name, "signature": evaluator.signature}, {})

    def registered(_: Recipe) -> tuple[int, bool] | None:
        if not already_done(place, "train", recipe):
            return None
        newest = int(versions(place, name)[-1]["version"])
        return None if model_damage(place.models / name / str(newest)) else (newest, False)

    def build(stage: Stage) -> Built[tuple[int, bool]]:
        row, outputs = stage_version(stage, evaluator, evaluator.settings)
        card = {column: row[column] for column in ("evaluator", "version", "signature", "config")}
        model = stage.scratch / "model"
        return Built(
            (int(row["version"]), True),
            outputs,
            {model: place.models / name / str(row["version"])},
            save=lambda: evaluator.save(model, card=card),
        )

    return run_stage(place, "train", lambda: recipe, build, done=registered, resources=resources)
