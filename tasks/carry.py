"""Import: an evaluator comes in from the file that `ssrem export` wrote elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prefect import task

from ssrem.encoders.files import read_json
from ssrem.evaluators import load_evaluator
from ssrem.evaluators.archive import unpack
from tasks.home import Home
from tasks.progress import progress
from tasks.stage import Resources, open_stage
from tasks.versions import stage_version, versions

_LEARNED = (
    "corpora",
    "labels",
    "train_responses",
    "valid_responses",
    "test_responses",
    "test_sample",
    "valid_loss",
    "best_epoch",
    "epochs",
    "seconds",
)


@task(name="import evaluator")
def import_evaluator(file: str, home: str, *, resources: Resources | None = None) -> tuple[str, int, bool]:
    """Publish the evaluator in `file` as the newest version of its name; returns both, and whether it is new.

    It is loaded and checked first: hashes, format, signature, and the encoder it was made with.
    EvaluatorError where any of them does not hold.
    """
    place = Home.at(home)
    with open_stage(place, "train", {"import": Path(file).name}, {}, resources) as stage:
        folder = stage.scratch / "model"
        with progress(f"checking {file}"):
            unpack(Path(file), folder)
            evaluator = load_evaluator(folder)
        name, signature = evaluator.name, evaluator.signature
        there = [row["version"] for row in versions(place, name) if row["signature"] == signature]
        if there:
            return name, int(there[-1]), False
        card: dict[str, Any] = read_json(folder / "card.json", ()) if (folder / "card.json").exists() else {}
        row, outputs = stage_version(stage, evaluator, _settings(card), _learned(card))
        stage.gate()
        target = place.models / name / str(row["version"])
        stage.publish(outputs, folders={folder: target})
    return name, int(row["version"]), True


def _settings(card: dict[str, Any]) -> dict[str, Any]:
    config = card.get("config", {})
    return json.loads(config) if isinstance(config, str) else dict(config)


def _learned(card: dict[str, Any]) -> dict[str, Any]:
    learned = {column: card[column] for column in _LEARNED if card.get(column) is not None}
    if not isinstance(learned.get("corpora", ""), str):
        learned["corpora"] = json.dumps(learned["corpora"], sort_keys=True)
    return learned
