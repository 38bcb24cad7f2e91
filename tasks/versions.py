"""Versions of evaluators in a home folder: which are in use or outdated, how a new version is published, and how an
evaluator is registered without training."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, Json, JsonValue, ValidationError

from ssrem import trusted_sources
from ssrem.errors import EvaluatorError, SsremError, say
from ssrem.evaluators import (
    BASELINES,
    EVALUATORS,
    PACKAGED,
    best_packaged,
    check_name,
    comes_packaged,
    evaluator_class,
    load_evaluator,
    packaged,
    source_hash,
    usable_baselines,
)
from ssrem.evaluators.base import Evaluator
from ssrem.extras import way_out
from ssrem.files import read_json, write_json
from ssrem.samples import context_key
from ssrem.settings import explained
from ssrem.tasks.settings import Resources, TrainSettings
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.stage import (
    Built,
    Output,
    Recipe,
    Stage,
    already_done,
    candidate_sources,
    read_outputs,
    run_stage,
)
from ssrem.tasks.warehouse.catalog import Address, PartitionKey
from ssrem.tasks.warehouse.files import model_damage
from ssrem.tasks.warehouse.home import Warehouse, checked_name, records

Version = tuple[str, int]
"""An evaluator's name and version."""

SLOW = {
    "blend": (50, 50),
    "blend-base": (200, 50),
    "blend-fast": (500, 50),
    "retrieval": (200, 50),
    "roberta-eval": (200, 50),
    "ssrem-base": (500, 500),
    **dict.fromkeys(("lm-coherence", "lm-pmi", "lm-sum", "mlm-likelihood"), (50, 5_000)),
}
"""Slow evaluator → (how many responses of a test split it scores, how many of them are scored at a time, each with all
of its candidates)."""

SLOW_ENCODER = 60
"""How many responses of a test split are scored by an untrained evaluator with a slow encoder: with MiniLM they take
four seconds of one core, where all responses of the default corpus would take a quarter of an hour."""

DECIDED = ("promoted", "why", "compared_with", "comparison", "decided_at", "promoted_at")
"""Columns of `evaluators` that record decisions about a version, not its own properties."""


def versions(home: Warehouse, name: str) -> list[dict[str, Any]]:
    """The rows of `evaluators` that are versions of `name`, oldest first."""
    # Scoring in an empty home folder avoids DuckDB, whose import takes a tenth of a second.
    if not home.partitions():
        return []
    query = "SELECT * FROM evaluators WHERE evaluator = ? ORDER BY version"
    with home.reader(query=query) as connection:
        return records(connection, query, [name])


def known_version(home: Warehouse, name: str, version: int) -> int:
    """Return `version` if `name` has a version of that number; else raise EvaluatorError, which lists the versions."""
    numbers = [row["version"] for row in versions(home, name)]
    if version not in numbers:
        known = ", ".join(map(str, numbers)) or "none"
        raise EvaluatorError(f"{name} has no version {version} in {home.root} (versions: {known})")
    return version


def next_version(home: Warehouse, name: str) -> int:
    """The number of the next version: one more than the highest that the ledger knows, which includes versions that
    `forget` has deleted, so that a number never means two versions."""
    keys = published_keys(home.query("SELECT outputs FROM runs"), "evaluators")
    return max((key.version or 0 for (key,) in keys if key.evaluator == name), default=0) + 1


def version_status(home: Warehouse, name: str, version: int) -> str:
    """Whether a version is in use, and why, in one line; if it was refused, with the command that overrules."""
    row = next(row for row in versions(home, name) if row["version"] == version)
    refused = row["decided_at"] is not None and row["promoted_at"] is None
    overrule = f"; ssrem evaluators promote {name} {version} overrules" if refused else ""
    return f"version {version}, {'in use' if row['promoted'] else 'not in use'}: {row['why']}{overrule}"


def promoted(home: Warehouse, names: Sequence[str] = ()) -> list[Version]:
    """(name, version) of the evaluators in use: of those named, or of all.

    Raises EvaluatorError for a name that does not exist or was never trained, and if none was trained at all.
    """
    for name in names:
        check_name(name)
    if not (rows := home.in_use()):
        train = " ".join(["ssrem train", *names])
        other = "" if names else ", or name one that comes trained with --evaluator"
        raise EvaluatorError(f"no evaluator has been trained in {home.root}; run {train} first{other}")
    known = [name for name, _ in rows]
    if new := [name for name in names if name not in known]:
        there = f"has not been trained in {home.root} (trained: {', '.join(known)})"
        raise EvaluatorError(f"{new[0]} {there}; run ssrem train {new[0]} first")
    return [(name, version) for name, version in rows if not names or name in names]


def any_trained(home: Warehouse) -> bool:
    """Whether some evaluator in use is one that learns and that does not come with ssrem."""
    rows = home.query("SELECT evaluator, signature FROM evaluators WHERE promoted")
    return any(evaluator_class(name).learns_from and not comes_packaged(name, sign) for name, sign in rows)


def catalogue() -> list[dict[str, Any]]:
    """All registered evaluators: what each reads, whether it learns, the range of its scores, and its source."""
    rows = []
    for name in EVALUATORS:
        try:
            kind = evaluator_class(name)
        except SsremError as error:  # it comes from another package
            say(f"{name} is left out: {error}")
            continue
        needs = kind.needs | {"reference"} if "g" in kind.parts else kind.needs
        row = {"evaluator": name, "learns": bool(kind.learns_from), "reads": ", ".join(sorted(needs)) or None}
        lowest, highest = _finite_range(kind)
        rows.append({**row, "lowest": lowest, "highest": highest, "source": kind.source})
    return rows


def _finite_range(evaluator: type[Evaluator] | Evaluator) -> list[float | None]:
    """The lowest and the highest score; None where there is no bound, or where settings decide it, as for a judge."""
    bounds = evaluator.range if isinstance(evaluator.range, tuple) else (math.inf, math.inf)
    return [float(bound) if math.isfinite(bound) else None for bound in bounds]


def unregistered(home: Warehouse, names: Sequence[str]) -> list[str]:
    """The names without a version here that need no training, because they learn nothing or come with ssrem.

    EvaluatorError for a name that does not exist.
    """
    ready = [name for name in names if not evaluator_class(name).learns_from or name in packaged()]
    return [name for name in ready if not versions(home, name)]


def _edited(home: Warehouse, name: str) -> dict[str, Any] | None:
    """The settings of the version in use of an evaluator that learns nothing, if its source code has changed since that
    version was registered; else None."""
    kind = evaluator_class(name)
    if kind.learns_from or not (source := source_hash(kind)):
        return None
    row = next((row for row in versions(home, name) if row["promoted"]), None)
    return json.loads(row["config"]) if row and not row["signature"].endswith(source) else None


def register(
    name: str, home: str, settings: Mapping[str, Any] | None = None, *, resources: Resources = Resources()
) -> tuple[int, bool]:
    """Publish an evaluator that learns nothing, with these settings, or a packaged one that has no version here;
    returns the version and whether it is new.

    Raises EvaluatorError if the name or a setting is unknown, a package is missing, or it has to be trained.
    """
    warehouse = Warehouse.at(home)
    kind: Any = evaluator_class(name)
    learns = bool(kind.learns_from)
    if learns and (settings or name not in packaged()):
        raise EvaluatorError(f"{name} learns from conversations; run ssrem train {name}")
    with progress(f"loading {name}"):
        own = {key: _from_everywhere(value) for key, value in (settings or {}).items()}
        evaluator: Any = load_evaluator(name) if learns else kind(**own)
        recipe = Recipe({"evaluator": name, "signature": evaluator.signature}, {})

    def registered_before(_: Recipe) -> tuple[int, bool] | None:
        newest = max((row["version"] for row in versions(warehouse, name)), default=0)
        if not newest or model_damage(warehouse.models, name, newest):
            return None
        return (newest, False) if learns or already_done(warehouse, "train", recipe) else None

    def build(stage: Stage) -> Built[tuple[int, bool]]:
        folder = stage.scratch / "model"
        if learns:
            shutil.copytree(PACKAGED / name, folder)
            return stage_version(stage, evaluator, *read_card(folder))[1]
        row, built = stage_version(stage, evaluator, evaluator.settings.model_dump(mode="json"))
        evaluator.save(folder)
        card = {column: row[column] for column in ("evaluator", "version", "signature", "config")}
        write_json(folder / "card.json", card)
        return built

    return run_stage(
        warehouse,
        "train",
        lambda: recipe,
        build,
        done=registered_before,
        resources=resources,
        title=f"register {name}",
    )


def _from_everywhere(value: Any) -> Any:
    """A setting's value; existing paths that it names, as hf:models/mine:bf16 does, are made absolute, also those of
    encoders that are joined by +."""
    if isinstance(value, str) and "+" in value and not Path(value).exists():
        return "+".join(map(_from_everywhere, value.split("+")))
    path = trusted_sources.without_prefix(value).partition(":")[0] if isinstance(value, str) else ""
    return value.replace(path, str(Path(path).resolve()), 1) if "/" in path and Path(path).exists() else value


def registered(
    home: str,
    names: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    *,
    resources: Resources = Resources(),
) -> list[Version]:
    """(name, version) in use of each evaluator. Evaluators that need no training are registered first if `settings` has
    settings for them, they have no version here, or their source has changed.

    settings: evaluator → the settings of its version. Raises EvaluatorError, before any is registered, for an evaluator
    that has to be trained first or needs settings.
    """
    warehouse = Warehouse.at(home)
    default = [name for name in names if not settings.get(name)]
    new = unregistered(warehouse, default)
    if known := [name for name in default if name not in new]:
        promoted(warehouse, known)
    for name in new:
        evaluator_class(name).settings_model()
    for name in names:
        edited = _edited(warehouse, name)
        if settings.get(name) or name in new or edited is not None:
            register(name, home, settings.get(name) or edited, resources=resources)
    return promoted(warehouse, names)


def to_correlate(home: Warehouse, names: Sequence[str] = ()) -> list[str]:
    """The evaluators to correlate: those named, by default those in use here, and `usable_baselines` beside them.

    In a home folder that uses only baselines, the best packaged evaluator is the default. If only baselines are named,
    nothing is added.
    """
    if not names:
        used = [name for name, _ in home.in_use()]
        names = used if set(used) - set(BASELINES) else [best_packaged()[0], *used]
    beside = usable_baselines() if set(names) - set(BASELINES) else ()
    return list(dict.fromkeys([*names, *beside]))


def to_study(home: Warehouse, names: Sequence[str] = ()) -> list[str]:
    """The evaluators to study: those named, by default those in use here without BASELINES, unless only these are."""
    used = list(names) or [name for name, _ in promoted(home)]
    return [name for name in used if names or name not in BASELINES] or used


def best_line(home: Warehouse) -> tuple[str, str]:
    """The best packaged evaluator whose packages are installed, and a line that says which version is used and why."""
    name, missing = best_packaged()
    better = "".join(f"; {other} needs {way_out(*modules)}" for other, modules in missing.items())
    used = next((row for row in versions(home, name) if row["promoted"]), None)
    which = f"version {used['version']} in {home.root}" if used else "as packaged"
    own = used and not comes_packaged(name, used["signature"])
    best = "your own of that name" if own else "the best that is installed"
    return name, f"{name}, {which}: {best}; --evaluator names another{better}"


def created(home: Warehouse, name: str, settings: Mapping[str, Any] | None = None) -> Evaluator:
    """The evaluator `name` with these settings, if it needs no training; without settings, its promoted version.

    Without settings and a version here, it is the packaged evaluator of that name or, if it learns nothing, one with
    its default settings. Raises EvaluatorError if there is none of these.
    """
    kind: Any = evaluator_class(name)
    if settings and kind.learns_from:
        raise EvaluatorError(f"{name} learns; give its settings to ssrem train {name}")
    if not settings and (edited := _edited(home, name)) is not None:
        anew: Evaluator = kind(**edited)
        return anew
    if not settings and not unregistered(home, [name]):
        ((_, version),) = promoted(home, [name])
        return load_evaluator(home.models / name / str(version))
    return load_evaluator(name) if not settings and name in packaged() else kind(**(settings or {}))


def context_hashes(contexts: Iterable[Iterable[str]]) -> set[str]:
    """A hash of 16 hex digits for each context, equal for contexts with an equal `context_key`."""
    return {hashlib.sha256(context_key(turns).encode()).hexdigest()[:16] for turns in contexts}


def _has_learned(labelled: Sequence[str] | None, contexts: set[str]) -> bool:
    """Whether a version learned ratings of more than a twentieth of the contexts of a set; fewer may be openings that
    many dialogues share. labelled, contexts: those of the version and of the set, as hashes."""
    return 20 * len(contexts.intersection(labelled or ())) > len(contexts)


def check_not_learned_from(
    rows: Iterable[Mapping[str, Any]], sets: Mapping[str, Iterable[Iterable[str]]]
) -> None:
    """Raise EvaluatorError if a version learned from one of the annotated sets, on which it is to be tested.

    rows: rows of `evaluators`, one for each version. sets: name → contexts.
    """
    hashes = {name: context_hashes(contexts) for name, contexts in sets.items()}
    for row in rows:
        if known := [name for name, own in hashes.items() if _has_learned(row["labelled"], own)]:
            raise EvaluatorError(
                f"{row['evaluator']} version {row['version']} learned human scores of the contexts of {known[0]} "
                "already; promote a version that did not, or name another evaluator"
            )


def learned_from(home: Warehouse, contexts: Iterable[Iterable[str]]) -> set[Version]:
    """The versions that learned from the human scores of an annotated set with these contexts."""
    rows = home.query("SELECT evaluator, version, labelled FROM evaluators WHERE labelled IS NOT NULL")
    hashes = context_hashes(contexts) if rows else set()
    return {(name, version) for name, version, labelled in rows if _has_learned(labelled, hashes)}


def outdated(home: Warehouse, names: Sequence[str] = ()) -> dict[str, TrainSettings | None]:
    """Evaluator in use that has not learned from all landed corpora by their present speaker tables → the settings to
    retrain it with.

    names: evaluators to look at; empty for all. The settings are None for an evaluator that learned from human ratings,
    which are in no corpus, or that was imported and has an encoder, whose name is not known. Blends come after their
    members. Evaluators that come with ssrem are never outdated. Raises EvaluatorError for a name that does not exist.
    """
    for name in names:
        check_name(name)
    landed = home.query("SELECT corpus, sha256 FROM corpora")
    tables = candidate_sources(home, [corpus for corpus, _ in landed])
    # Only a training publishes a learning curve; an imported evaluator has none in the ledger.
    trainings = home.query("SELECT outputs, parameters, inputs->'$.tables' FROM runs WHERE stage = 'train'")
    training_of = {key: more for key, *more in published_keys(trainings, "learning_curves")}
    found: dict[str, TrainSettings | None] = {}
    query = "SELECT evaluator, version, signature, corpora, config, labels, encoder FROM evaluators WHERE promoted"
    for name, version, signature, corpora, config, labels, encoder in home.query(query):
        trained = training_of.get(PartitionKey(evaluator=name, version=version))
        about, learned = map(json.loads, trained or ("{}", "null"))
        content = json.loads(corpora)
        from_labels_alone = labels and not content
        seen = from_labels_alone or (set(landed) <= content.items() and learned in (None, tables))
        fixed = not evaluator_class(name).learns_from or comes_packaged(name, signature)
        if not seen and not fixed and (not names or name in names):
            own = about.get("config", json.loads(config))
            again = not labels and (trained or not encoder)
            found[name] = TrainSettings(encoder=about.get("encoder"), set=own) if again else None
    return {name: found[name] for name in EVALUATORS if name in found}  # a blend comes after its members


def published_keys(runs: Iterable[tuple[Any, ...]], table: str) -> Iterator[tuple[Any, ...]]:
    """(key, other columns of the run) of each partition of the table that runs published. runs: rows of `outputs` and
    the other columns."""
    for outputs, *more in runs:
        yield from ((key, *more) for name, key in read_outputs(outputs) if name == table)


def test_sample(evaluator: Evaluator) -> int | None:
    """How many responses of a test split are scored with the evaluator; None: all."""
    if evaluator.name in SLOW:
        return SLOW[evaluator.name][0]
    slow = evaluator.encoder is not None and evaluator.encoder.slow
    return SLOW_ENCODER if slow and not evaluator.learns_from else None


def stage_version(
    stage: Stage,
    evaluator: Evaluator,
    settings: Mapping[str, Any],
    learned: Mapping[str, Any] | None = None,
    *,
    challenges: bool = False,
) -> tuple[dict[str, Any], Built[tuple[int, bool]]]:
    """Stage the evaluator as its newest version; returns its row, and what to publish: the row and the model's folder,
    which the caller saves as `model` in the stage's scratch.

    The version is in use at once. Only if `challenges` is set, and the version in use is intact, of the same source
    code and not one that comes with ssrem, does it wait for `decide`. learned: columns that only a training fills. Call
    it under the home folder's lock, so that each version number is used once.
    """
    name, now = evaluator.name, stage.now()
    old = versions(stage.home, name)
    low, high = _finite_range(evaluator)
    row = {
        "evaluator": name,
        "version": next_version(stage.home, name),
        "signature": evaluator.signature,
        "low": low,
        "high": high,
        "encoder": evaluator.encoder.signature if evaluator.encoder else None,
        "config": json.dumps(settings, sort_keys=True),
        "corpora": "{}",
        **dict.fromkeys(("train_responses", "valid_responses", "test_responses", "epochs"), 0),
        **dict.fromkeys(("labels", "labelled", "valid_loss", "best_epoch", *DECIDED)),
        "test_sample": test_sample(evaluator),
        "seconds": 0.0,
        "trained_at": now,
        **(learned or {}),
    }
    number, champion = next(((r["version"], r["signature"]) for r in old if r["promoted"]), (0, ""))
    packed, source = comes_packaged(name, champion), source_hash(type(evaluator))
    edited = not champion.endswith(source)  # such a version cannot be loaded any more
    if (
        challenges
        and champion
        and not (packed or edited)
        and not model_damage(stage.home.models, name, number)
    ):
        row |= {"promoted": False, "why": f"waits for comparison with version {number}"}
    else:
        why = f"newest; replaces version {number}" if number else "first version"
        why += (
            ", which comes with ssrem"
            if packed
            else ", whose source has changed"
            if number and edited
            else ""
        )
        row |= {"promoted": True, "why": why, "decided_at": now, "promoted_at": now}
    outputs = stage_rows(stage, [*old, row], row)
    folders = {stage.scratch / "model": stage.home.models / name / str(row["version"])}
    return row, Built((row["version"], True), outputs, folders)


def of_versions(home: Warehouse, gone: Iterable[Version]) -> list[Address]:
    """The partitions of these versions: their rows, scores, figures and studies, and the rankings and comparisons of
    the annotated sets on which they were compared."""
    leaving = set(gone)
    tested = home.query(
        "SELECT dataset, evaluator, version FROM rankings UNION SELECT dataset, first, first_version FROM comparisons "
        "UNION SELECT dataset, second, second_version FROM comparisons"
    )
    datasets = {dataset for dataset, *version in tested if tuple(version) in leaving}
    return [
        p.address
        for p in home.partitions()
        if (p.key.evaluator, p.key.version) in leaving
        or (p.table in ("comparisons", "rankings") and p.key.dataset in datasets)
    ]


def reinstated(stage: Stage, gone: Iterable[Version]) -> list[Output]:
    """Stage a version in use for each evaluator whose version in use is among `gone`; returns the rows to publish. It
    is the newest remaining version that was in use before, or else the newest."""
    leaving, rows, now = set(gone), [], stage.now()
    for name in sorted({name for name, _ in leaving}):
        rest = [row for row in versions(stage.home, name) if (name, row["version"]) not in leaving]
        if rest and not any(row["promoted"] for row in rest):
            row = max(rest, key=lambda row: (row["promoted_at"] is not None, row["version"]))
            why = "in use again: the version that replaced it was deleted with what it learned from"
            rows.append({**row, "promoted": True, "why": why, "decided_at": now, "promoted_at": now})
    if rows:
        stage.create_from_rows("evaluators", rows)
    return version_outputs("evaluators", [(row["evaluator"], row["version"]) for row in rows])


def version_outputs(table: str, versions: Sequence[Version], **key: str) -> list[Output]:
    """The outputs of a staged table, one partition for each version. key: further fields of the partitions' keys."""
    keys = [PartitionKey(evaluator=name, version=number, **key) for name, number in versions]
    return [Output(table, one, f"evaluator = '{one.evaluator}' AND version = {one.version}") for one in keys]


def stage_rows(stage: Stage, rows: Sequence[dict[str, Any]], changed: dict[str, Any]) -> list[Output]:
    """Stage all rows of an evaluator, so that the gate checks them together; returns those to publish: `changed` and,
    if it is in use, the rows that it replaces, which then no longer are."""
    replaced = [row for row in rows if row["promoted"] and changed["promoted"] and row is not changed]
    for row in replaced:
        row |= {"promoted": False, "why": f"replaced by version {changed['version']}"}
    stage.create_from_rows("evaluators", rows)
    return version_outputs("evaluators", [(row["evaluator"], row["version"]) for row in (*replaced, changed)])


_Whole = Annotated[int, Field(strict=True, ge=0, lt=2**53)] | None  # exact as a float, too
_Number = Annotated[float, Field(strict=True, ge=0, lt=2**53)] | None


def _corpus_name(name: str) -> str:
    return checked_name(name, "card.json: a corpus", "export the evaluator again", EvaluatorError)


class _Card(BaseModel, allow_inf_nan=False):
    """What card.json of an imported or packaged evaluator says of its training, as columns of `evaluators`."""

    config: Json[dict[str, JsonValue]] | dict[str, JsonValue] = {}
    corpora: dict[Annotated[str, AfterValidator(_corpus_name)], str] = {}
    labels: str | None = Field(None, pattern=r"^[0-9a-f]{64}(\+[0-9a-f]{64})*$")
    labelled: list[Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]] | None = None
    train_responses: _Whole = None
    valid_responses: _Whole = None
    test_responses: _Whole = None
    test_sample: _Whole = None
    valid_loss: _Number = None
    best_epoch: _Whole = None
    epochs: _Whole = None
    seconds: _Number = None


def read_card(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of the evaluator in `folder`, and the columns of `evaluators` about its training, by its card.json,
    if there is one. EvaluatorError for a value that a table cannot hold."""
    file = folder / "card.json"
    try:
        card = _Card.model_validate(read_json(file, ()) if file.exists() else {})
    except ValidationError as error:
        raise EvaluatorError(f"card.json: {explained(error, [])}; export the evaluator again") from None
    learned = card.model_dump(exclude={"config"}, exclude_none=True)
    return card.config, {**learned, "corpora": json.dumps(card.corpora, sort_keys=True)}
