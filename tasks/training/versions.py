"""Versions of evaluators in a home folder, and which of them are in use."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
)
from ssrem.tasks.stage.ledger import read_outputs
from ssrem.tasks.warehouse.home import Warehouse, records
from ssrem.tasks.warehouse.integrity import model_damage
from ssrem.tasks.warehouse.partition import PartitionKey

if TYPE_CHECKING:
    from ssrem.evaluators.base import Evaluator
    from ssrem.tasks.stage.protocol import Built
    from ssrem.tasks.stage.stage import Output, Stage

DECIDED = ("promoted", "why", "compared_with", "comparison", "decided_at", "promoted_at")
"""Columns of `evaluators` that record decisions about a version, not its own properties."""


def promoted(home: Warehouse, names: Sequence[str] = ()) -> list[tuple[str, int]]:
    """(name, version) of the evaluators in use: of those named, or of all.

    Raises EvaluatorError for a name that does not exist or was never trained, and if none was trained at all.
    """
    for name in names:
        check_name(name)
    rows = home.query("SELECT evaluator, version FROM evaluators WHERE promoted ORDER BY ALL")
    if not rows:
        what = " ".join(names)
        raise EvaluatorError(
            f"no evaluator has been trained in {home.root}; run {f'ssrem train {what}'.strip()} first"
        )
    known = {name for name, _ in rows}
    for name in names:
        if name not in known:
            raise EvaluatorError(
                f"{name} has not been trained in {home.root} (trained: {', '.join(sorted(known))}); "
                f"run ssrem train {name} first"
            )
    return [(name, version) for name, version in rows if not names or name in names]


def catalogue() -> list[dict[str, Any]]:
    """All registered evaluators: what each needs, whether it learns, the range of its scores, and its source."""
    rows = []
    for name in EVALUATORS:
        kind = evaluator_class(name)
        rows.append(
            {
                "evaluator": name,
                "learns": bool(kind.learns_from),
                "needs": ", ".join(sorted(kind.needs | {"reference"} if "g" in kind.parts else kind.needs))
                or None,
                "lowest": None if math.isinf(kind.range[0]) else kind.range[0],
                "highest": None if math.isinf(kind.range[1]) else kind.range[1],
                "source": kind.source,
            }
        )
    return rows


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
    new = [name for name in unregistered(home, names) if not settings.get(name)]
    if known := [name for name in names if name not in new and not settings.get(name)]:
        promoted(home, known)
    for name in new:
        if not evaluator_class(name).learns_from:
            evaluator_class(name).check_settings({})
    return new


def to_correlate(home: Warehouse, names: Sequence[str] = ()) -> list[str]:
    """The evaluators to correlate: those named, by default those in use here, and BASELINES beside them.

    In a home folder that uses only baselines, the best packaged evaluator is the default. If only baselines are named,
    nothing is added.
    """
    if not names:
        used = [
            name for (name,) in home.query("SELECT evaluator FROM evaluators WHERE promoted ORDER BY ALL")
        ]
        names = used if set(used) - set(BASELINES) else [best_packaged()[0], *used]
    beside = BASELINES if set(names) - set(BASELINES) else ()
    return list(dict.fromkeys([*names, *beside]))


def to_study(home: Warehouse, names: Sequence[str] = ()) -> list[str]:
    """The evaluators to study: those named, by default those in use here, without BASELINES unless they are alone."""
    used = [] if names else [name for name, _ in promoted(home)]
    return list(names) or [name for name in used if name not in BASELINES] or used


def best_line(home: Warehouse) -> tuple[str, str]:
    """The best packaged evaluator whose packages are installed, and a line that says which version is used and why."""
    name, missing = best_packaged()
    better = "".join(f" ({other} needs {', '.join(needs)})" for other, needs in missing.items())
    version = next((row["version"] for row in versions(home, name) if row["promoted"]), None)
    which = f"version {version} in {home.root}" if version else "as packaged"
    return name, f"{name}, {which}: the best that is installed{better}; --evaluator names another"


def in_use(home: Warehouse, name: str) -> Evaluator:
    """The promoted version of an evaluator, loaded.

    Without a version here: the packaged one of that name, or, if it learns nothing, one with its default settings.
    Raises EvaluatorError if there is none of these.
    """
    if unregistered(home, [name]):
        return load_evaluator(name) if name in packaged() else evaluator_class(name)()
    ((_, version),) = promoted(home, [name])
    return load_evaluator(home.models / name / str(version))


def created(home: Warehouse, name: str, settings: Mapping[str, Any] | None) -> Evaluator:
    """The evaluator with these settings, which needs no training; without settings, the one `in_use`."""
    if not settings:
        return in_use(home, name)
    kind: Any = evaluator_class(name)
    if kind.learns_from:
        raise EvaluatorError(f"{name} learns; give its settings to ssrem train {name}")
    evaluator: Evaluator = kind(**settings)
    return evaluator


def versions(home: Warehouse, name: str) -> list[dict[str, Any]]:
    """The rows of `evaluators` that are versions of `name`, oldest first."""
    query = "SELECT * FROM evaluators WHERE evaluator = ? ORDER BY version"
    with home.reader(query=query) as connection:
        return records(connection, query, [name])


def any_trained(home: Warehouse) -> bool:
    """Whether an evaluator is in use that learns, and does not come with ssrem."""
    rows = home.query("SELECT evaluator, signature FROM evaluators WHERE promoted")
    return any(evaluator_class(name).learns_from and not comes_packaged(name, sign) for name, sign in rows)


def known_version(home: Warehouse, name: str, version: int) -> int:
    """The number of a version of `name`; EvaluatorError, which lists the versions, if there is none of that number."""
    numbers = [row["version"] for row in versions(home, name)]
    if version not in numbers:
        known = ", ".join(map(str, numbers)) or "none"
        raise EvaluatorError(f"{name} has no version {version} in {home.root} (versions: {known})")
    return version


def published_keys(runs: Iterable[tuple[Any, ...]], table: str) -> Iterator[tuple[Any, ...]]:
    """(key, …) of each partition of the table that runs published. runs: column `outputs` of `runs`, and any others."""
    for outputs, *more in runs:
        yield from ((key, *more) for name, key in read_outputs(outputs) if name == table)


def version_status(home: Warehouse, name: str, version: int) -> str:
    """Whether a version is in use, and why, in one line."""
    row = next(row for row in versions(home, name) if row["version"] == version)
    return f"version {version}, {'in use' if row['promoted'] else 'not in use'}: {row['why']}"


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
    it waits for `decide`. learned: columns that only a training fills. Call it under the lock of the
    home folder, so that each version number is used once.
    """
    name = evaluator.name
    old = versions(stage.home, name)
    low, high = (float(bound) if math.isfinite(bound) else None for bound in evaluator.range)
    now = stage.now()
    row = {
        "evaluator": name,
        "version": old[-1]["version"] + 1 if old else 1,
        "signature": evaluator.signature,
        "low": low,
        "high": high,
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
    champion = next((r["version"] for r in old if r["promoted"]), None)
    packed = any(r["promoted"] and comes_packaged(name, r["signature"]) for r in old)
    if (
        challenges
        and champion is not None
        and not (packed or model_damage(stage.home.models, name, champion))
    ):
        row |= {"promoted": False, "why": f"waits for comparison with version {champion}"}
        outputs = stage_rows(stage, [*old, row], [row])
    else:
        why = "first version" if champion is None else f"newest; replaces version {champion}"
        why += ", which comes with ssrem" if packed else ""
        row |= {"promoted": True, "why": why, "decided_at": now, "promoted_at": now}
        outputs = replace_promoted(stage, [*old, row], row)
    from ssrem.tasks.stage.protocol import Built  # imports Pydantic

    folders = {stage.scratch / "model": stage.home.models / name / str(row["version"])}
    return row, Built((row["version"], True), outputs, folders)


def replace_promoted(stage: Stage, rows: Sequence[dict[str, Any]], promoted: dict[str, Any]) -> list[Output]:
    """Stage all `rows` of an evaluator with `promoted` alone in use; returns the partitions to publish."""
    why = f"replaced by version {promoted['version']}"
    after = [{**r, "promoted": False, "why": why} if r["promoted"] and r is not promoted else r for r in rows]
    changed = [new for new, old in zip(after, rows, strict=True) if new is not old or new is promoted]
    return stage_rows(stage, after, changed)


def stage_rows(
    stage: Stage, rows: Sequence[dict[str, Any]], changed: Sequence[dict[str, Any]]
) -> list[Output]:
    """Stage all rows of an evaluator, so that the gate checks them together; returns the changed ones to publish."""
    from ssrem.tasks.stage.stage import Output  # imports Pydantic

    stage.create_from_rows("evaluators", rows)
    return [
        Output(
            "evaluators",
            PartitionKey(evaluator=row["evaluator"], version=row["version"]),
            f"version = {row['version']}",
        )
        for row in changed
    ]
