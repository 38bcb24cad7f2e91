"""Rebuild damaged partitions by rerunning their stages: a corpus from its dump, others with the ledger's parameters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from ssrem.errors import HomeError, SsremError
from ssrem.readers import open_dump
from ssrem.schemas import LANDED
from ssrem.tables.speaker_sets import TableSettings
from ssrem.tasks.agreement.correlate import correlate_landed
from ssrem.tasks.ingest.drop_folder import DONE
from ssrem.tasks.ingest.land import content_hash, land
from ssrem.tasks.scoring.test_split import score_corpus
from ssrem.tasks.speaker_tables.build import build
from ssrem.tasks.speaker_tables.negatives import NegativeSettings, make_negatives
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.integrity import Damage, find_damage
from ssrem.tasks.warehouse.partition import Partition
from ssrem.tasks.warehouse.snapshot import manifests

LEDGER = ("runs", "check_results")

_Settings = TypeVar("_Settings")

_ORDER = ("ingest", "tables", "score", "negatives", "correlate")
"""Stages that can be rerun, each after those whose tables it reads."""


@dataclass(frozen=True)
class _Run:
    """A run as the ledger describes it."""

    stage: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, Any]
    started: datetime


def rebuild(home: Warehouse, damaged: Sequence[Damage]) -> Iterator[str]:
    """Rerun the stages that published the damaged partitions; yields a line about each partition."""
    by_run: dict[str, list[Damage]] = {}
    for damage in damaged:
        by_run.setdefault(damage.partition.run, []).append(damage)
    runs = _ledger(home, set(by_run))
    rank = {run: _ORDER.index(about.stage) for run, about in runs.items() if about.stage in _ORDER}
    for run in sorted(by_run, key=lambda run: (rank.get(run, len(_ORDER)), run)):
        failure = None
        try:
            _rebuild(home, [damage.partition for damage in by_run[run]], runs.get(run))
        except SsremError as error:
            failure = f"it cannot be rebuilt: {error}"
        for damage in by_run[run]:
            yield f"{damage}; {failure or _outcome(home, damage.partition)}"


def _ledger(home: Warehouse, runs: set[str]) -> dict[str, _Run]:
    query = "SELECT run_id, stage, parameters, inputs, started FROM runs WHERE list_contains(?, run_id)"
    try:
        rows = home.query(query, [sorted(runs)])
    except HomeError:  # the ledger itself is what is damaged
        return {}
    return {
        run: _Run(stage, json.loads(parameters), json.loads(inputs), started)
        for run, stage, parameters, inputs, started in rows
    }


def _rebuild(home: Warehouse, partitions: Sequence[Partition], run: _Run | None) -> None:
    """Rerun the stage that published the partitions or, where it cannot be rerun, unpublish them."""
    for corpus in sorted({p.key.corpus for p in partitions if p.table in LANDED and p.key.corpus}):
        _land_again(home, corpus, run)
    others = [p for p in partitions if p.table not in LANDED]
    if others and (run is None or not _rerun(home, run, others)):
        for partition in others:
            _retire(home, partition)


def _land_again(home: Warehouse, corpus: str, run: _Run | None) -> None:
    runs = {p.run for p in home.partitions() if p.table in LANDED and p.key.corpus == corpus}
    options = dict(run.parameters) if run and run.stage == "ingest" else {}
    reading = ("format", "mapping", "encoding", "time_format")
    known = {name: options.pop(name, None) for name in (*reading, "corpus", "speakers", "sources")}
    # Landing the dump again would undo later changes (erasures), and cannot repeat options that the ledger does not
    # hold in full (pseudonyms).
    if run is None or run.stage != "ingest" or len(runs) > 1 or any(options.values()):
        raise HomeError(f"its rows differ from those of its dump, or may; restore {home.root} from a backup")
    ((source, digest),) = run.inputs.items()
    sources = known["sources"]
    if (moved := Path(source).parent / DONE / Path(source).name).exists() and not Path(source).exists():
        source = str(moved)  # after landing from a drop folder, a dump is moved
    way_out = f"restore {home.root} from a backup, or ssrem ingest SOURCE --name {corpus} --replace"
    dump: dict[str, Any] = {name: known[name] for name in reading}
    try:
        same = content_hash(open_dump(sources or source, **dump).files()) == digest
    except (SsremError, OSError) as error:
        raise HomeError(f"its dump cannot be read again ({error}); {way_out}") from None
    if not same:
        raise HomeError(f"its dump {source} has changed since it landed; {way_out}")
    landed_at = run.started
    with suppress(HomeError, ValueError):  # its row in `corpora` may be damaged or missing
        ((landed_at,),) = home.query("SELECT landed_at FROM corpora WHERE corpus = ?", [corpus])
    speakers = known["speakers"] or "auto"
    how: dict[str, Any] = {"name": corpus, "speakers": speakers, "replace": True, "landed_at": landed_at}
    # The rows in quarantine were accepted when it landed first.
    land(sources or source, str(home.root), **dump, **how, max_quarantine=1.0)


def _rerun(home: Warehouse, run: _Run, partitions: Sequence[Partition]) -> bool:
    """Run the run's stage again, if its parameters in the ledger suffice for that; returns whether they did."""
    root = str(home.root)
    match run.stage, dict(run.parameters):
        case "tables", {"corpus": corpus, **values} if tables := _settings(TableSettings, values):
            build(corpus, root, settings=tables)
        case "score", {"evaluator": name, "version": version, "corpus": corpus}:
            score_corpus(name, version, corpus, root)
        case "negatives", {"corpus": corpus, **values} if negatives := _settings(NegativeSettings, values):
            make_negatives(corpus, root, negatives)
        case "correlate", {"dataset": dataset} if all(p.table == "scores" for p in partitions):
            versions = [(str(p.key.evaluator), int(p.key.version or 0)) for p in partitions]
            for partition in partitions:  # the stage reads the published scores of all versions
                _retire(home, partition)
            correlate_landed(dataset, versions, root)
        case _:
            return False
    return True


def _settings(of: Callable[..., _Settings], values: Mapping[str, Any]) -> _Settings | None:
    """The settings of these values; None if a version of ssrem with other settings published them."""
    try:
        return of(**values)
    except TypeError:
        return None


def _retire(home: Warehouse, partition: Partition) -> None:
    """Unpublish the partition; one of the ledger is replaced by the newest intact one of an older snapshot."""
    with home.lock("repair"):
        older = [
            p
            for manifest in manifests(home.lake)
            for p in manifest.partitions
            if p.address == partition.address and p.path != partition.path
        ]
        ledger = [p for p in older if p.table in LEDGER and not find_damage(home.root, [p])]
        home.write_catalog([*(p for p in home.partitions() if p != partition), *ledger[:1]])


def _outcome(home: Warehouse, partition: Partition) -> str:
    run = next((p.run for p in home.partitions() if p.address == partition.address), None)
    if run is None:
        return "it was unpublished; the command that published it, such as ssrem correlate FILE, computes it again"
    if partition.table in LEDGER:
        return f"the one of run {run} replaces it"
    return f"it was made again by run {run}"
