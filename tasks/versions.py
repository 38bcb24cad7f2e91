"""Versions of evaluators in a home folder: which are in use, which are outdated, and how a new one is published."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ssrem.errors import EvaluatorError
from ssrem.evaluators import (
    BASELINES,
    EVALUATORS,
    best_packaged,
    check_name,
    comes_packaged,
    evaluator_class,
    load_evaluator,
    packaged,
    usable_baselines,
)
from ssrem.evaluators.base import Evaluator
from ssrem.extras import way_out
from ssrem.tasks.settings import TrainSettings
from ssrem.tasks.stage.stage import Built, Output, Stage, read_outputs
from ssrem.tasks.warehouse.catalog import PartitionKey
from ssrem.tasks.warehouse.files import model_damage
from ssrem.tasks.warehouse.home import Warehouse, records

Version = tuple[str, int]
"""An evaluator's name and version."""

DECIDED = ("promoted", "why", "compared_with", "comparison", "decided_at", "promoted_at")
"""Columns of `evaluators` that record decisions about a version, not its own properties."""


def versions(home: Warehouse, name: str) -> list[dict[str, Any]]:
    """The rows of `evaluators` that are versions of `name`, oldest first."""
    query = "SELECT * FROM evaluators WHERE evaluator = ? ORDER BY version"
    with home.reader(query=query) as connection:
        return records(connection, query, [name])


def known_version(home: Warehouse, name: str, version: int) -> int:
    """The number of a version of `name`; EvaluatorError, which lists the versions, if there is none of that number."""
    numbers = [row["version"] for row in versions(home, name)]
    if version not in numbers:
        known = ", ".join(map(str, numbers)) or "none"
        raise EvaluatorError(f"{name} has no version {version} in {home.root} (versions: {known})")
    return version


def version_status(home: Warehouse, name: str, version: int) -> str:
    """Whether a version is in use, and why, in one line."""
    row = next(row for row in versions(home, name) if row["version"] == version)
    return f"version {version}, {'in use' if row['promoted'] else 'not in use'}: {row['why']}"


def promoted(home: Warehouse, names: Sequence[str] = ()) -> list[Version]:
    """(name, version) of the evaluators in use: of those named, or of all.

    Raises EvaluatorError for a name that does not exist or was never trained, and if none was trained at all.
    """
    for name in names:
        check_name(name)
    rows = home.query("SELECT evaluator, version FROM evaluators WHERE promoted ORDER BY ALL")
    if not rows:
        train = " ".join(["ssrem train", *names])
        raise EvaluatorError(f"no evaluator has been trained in {home.root}; run {train} first")
    known = [name for name, _ in rows]
    if new := [name for name in names if name not in known]:
        there = f"has not been trained in {home.root} (trained: {', '.join(known)})"
        raise EvaluatorError(f"{new[0]} {there}; run ssrem train {new[0]} first")
    return [(name, version) for name, version in rows if not names or name in names]


def any_trained(home: Warehouse) -> bool:
    """Whether an evaluator is in use that learns, and does not come with ssrem."""
    rows = home.query("SELECT evaluator, signature FROM evaluators WHERE promoted")
    return any(evaluator_class(name).learns_from and not comes_packaged(name, sign) for name, sign in rows)


def catalogue() -> list[dict[str, Any]]:
    """All registered evaluators: what each needs, whether it learns, the range of its scores, and its source."""
    rows = []
    for name in EVALUATORS:
        kind = evaluator_class(name)
        needs = kind.needs | {"reference"} if "g" in kind.parts else kind.needs
        row = {"evaluator": name, "learns": bool(kind.learns_from), "needs": ", ".join(sorted(needs)) or None}
        rows.append({**row, **_finite_range(kind, "lowest", "highest"), "source": kind.source})
    return rows


def _finite_range(evaluator: type[Evaluator] | Evaluator, *columns: str) -> dict[str, float | None]:
    """The lowest and the highest score by column; None where there is no bound."""
    bounds = (float(bound) if math.isfinite(bound) else None for bound in evaluator.range)
    return dict(zip(columns, bounds, strict=True))


def unregistered(home: Warehouse, names: Sequence[str]) -> list[str]:
    """The names without a version here that need no training, because they learn nothing or come with ssrem.

    EvaluatorError for a name that does not exist.
    """
    ready = [name for name in names if not evaluator_class(name).learns_from or name in packaged()]
    return [name for name in ready if not versions(home, name)]


def to_register(
    home: Warehouse, names: Sequence[str], settings: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """The evaluators to register with default settings first: those named that have neither `settings` nor a version.

    EvaluatorError for one that has to be trained first, or that needs settings.
    """
    default = [name for name in names if not settings.get(name)]
    new = unregistered(home, default)
    if known := [name for name in default if name not in new]:
        promoted(home, known)
    for name in new:
        if not evaluator_class(name).learns_from:
            evaluator_class(name).check_settings({})
    return new


def to_correlate(home: Warehouse, names: Sequence[str] = ()) -> list[str]:
    """The evaluators to correlate: those named, by default those in use here, and `usable_baselines` beside them.

    In a home folder that uses only baselines, the best packaged evaluator is the default. If only baselines are named,
    nothing is added.
    """
    if not names:
        rows = home.query("SELECT evaluator FROM evaluators WHERE promoted ORDER BY ALL")
        used = [name for (name,) in rows]
        names = used if set(used) - set(BASELINES) else [best_packaged()[0], *used]
    beside = usable_baselines() if set(names) - set(BASELINES) else ()
    return list(dict.fromkeys([*names, *beside]))


def to_study(home: Warehouse, names: Sequence[str] = ()) -> list[str]:
    """The evaluators to study: those named, by default those in use here, without BASELINES unless they are alone."""
    used = list(names) or [name for name, _ in promoted(home)]
    return [name for name in used if names or name not in BASELINES] or used


def best_line(home: Warehouse) -> tuple[str, str]:
    """The best packaged evaluator whose packages are installed, and a line that says which version is used and why."""
    name, missing = best_packaged()
    better = "".join(f"; {other} needs {way_out(*modules)}" for other, modules in missing.items())
    version = next((row["version"] for row in versions(home, name) if row["promoted"]), None)
    which = f"version {version} in {home.root}" if version else "as packaged"
    return name, f"{name}, {which}: the best that is installed; --evaluator names another{better}"


def created(home: Warehouse, name: str, settings: Mapping[str, Any] | None = None) -> Evaluator:
    """The evaluator with these settings, which needs no training; without settings, the promoted version.

    Without a version here: the packaged one of that name, or, if it learns nothing, one with its default settings.
    Raises EvaluatorError if there is none of these.
    """
    kind: Any = evaluator_class(name)
    if settings and kind.learns_from:
        raise EvaluatorError(f"{name} learns; give its settings to ssrem train {name}")
    if not settings and not unregistered(home, [name]):
        ((_, version),) = promoted(home, [name])
        return load_evaluator(home.models / name / str(version))
    return load_evaluator(name) if not settings and name in packaged() else kind(**(settings or {}))


def outdated(home: Warehouse, names: Sequence[str] = ()) -> dict[str, TrainSettings | None]:
    """Those of the evaluators named, or of all in use that learn, that have not learned from all landed corpora, and
    the settings to train each with again; None for one that learned from human ratings, which are in no corpus.

    Blends come after their members. Evaluators that come with ssrem are never outdated.
    """
    landed = home.query("SELECT corpus, sha256 FROM corpora")
    # Only a training publishes a learning curve; an imported evaluator has none in the ledger.
    trainings = home.query("SELECT outputs, parameters FROM runs WHERE stage = 'train'")
    parameters_of = dict(published_keys(trainings, "learning_curves"))
    found: dict[str, TrainSettings | None] = {}
    query = "SELECT evaluator, version, signature, corpora, config, labels FROM evaluators WHERE promoted"
    for name, version, signature, corpora, config, labels in home.query(query):
        seen = set(landed) <= json.loads(corpora).items()
        fixed = not evaluator_class(name).learns_from or comes_packaged(name, signature)
        if not seen and not fixed and (not names or name in names):
            about = json.loads(parameters_of.get(PartitionKey(evaluator=name, version=version), "{}"))
            own = about.get("config", json.loads(config))
            found[name] = None if labels else TrainSettings(encoder=about.get("encoder"), set=own)
    return {name: found[name] for name in EVALUATORS if name in found}  # a blend comes after its members


def published_keys(runs: Iterable[tuple[Any, ...]], table: str) -> Iterator[tuple[Any, ...]]:
    """(key, …) of each partition of the table that runs published. runs: column `outputs` of `runs`, and any others."""
    for outputs, *more in runs:
        yield from ((key, *more) for name, key in read_outputs(outputs) if name == table)


def stage_version(
    stage: Stage,
    evaluator: Evaluator,
    settings: Mapping[str, Any],
    learned: Mapping[str, Any] | None = None,
    *,
    challenges: bool = False,
) -> tuple[dict[str, Any], Built[tuple[int, bool]]]:
    """Stage the evaluator as its newest version; returns its row, and what to publish: the row and the model's folder,
    `model` in the stage's scratch, which the caller saves.

    The version is in use at once, unless it `challenges` an intact version in use that does not come with ssrem: then
    it waits for `decide`. learned: columns that only a training fills. Call it under the home folder's lock, so that
    each version number is used once.
    """
    name, now = evaluator.name, stage.now()
    old = versions(stage.home, name)
    row = {
        "evaluator": name,
        "version": old[-1]["version"] + 1 if old else 1,
        "signature": evaluator.signature,
        **_finite_range(evaluator, "low", "high"),
        "encoder": evaluator.encoder.signature if evaluator.encoder else None,
        "config": json.dumps(settings, sort_keys=True),
        "corpora": "{}",
        **dict.fromkeys(("train_responses", "valid_responses", "test_responses", "epochs"), 0),
        **dict.fromkeys(("labels", "valid_loss", "best_epoch")),
        "test_sample": evaluator.test_sample,
        **dict.fromkeys(DECIDED),
        "seconds": 0.0,
        "trained_at": now,
        **(learned or {}),
    }
    number, champion = next(((r["version"], r["signature"]) for r in old if r["promoted"]), (0, ""))
    packed = comes_packaged(name, champion)
    if challenges and champion and not packed and not model_damage(stage.home.models, name, number):
        row |= {"promoted": False, "why": f"waits for comparison with version {number}"}
    else:
        why = f"newest; replaces version {number}" if number else "first version"
        why += ", which comes with ssrem" if packed else ""
        row |= {"promoted": True, "why": why, "decided_at": now, "promoted_at": now}
    outputs = stage_rows(stage, [*old, row], row)
    folders = {stage.scratch / "model": stage.home.models / name / str(row["version"])}
    return row, Built((row["version"], True), outputs, folders)


def stage_rows(stage: Stage, rows: Sequence[dict[str, Any]], changed: dict[str, Any]) -> list[Output]:
    """Stage all rows of an evaluator, so that the gate checks them together, with `changed` alone in use if it is;
    returns the ones to publish: `changed` and what it replaces."""
    replaced = [row for row in rows if row["promoted"] and changed["promoted"] and row is not changed]
    for row in replaced:
        row |= {"promoted": False, "why": f"replaced by version {changed['version']}"}
    stage.create_from_rows("evaluators", rows)
    keys = [PartitionKey(evaluator=row["evaluator"], version=row["version"]) for row in (*replaced, changed)]
    return [Output("evaluators", key, f"version = {key.version}") for key in keys]
