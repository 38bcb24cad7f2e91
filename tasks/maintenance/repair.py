"""Repair: what is damaged in a home folder is made good by the next run that writes, where that can be.

A catalog comes from the lake's manifest, a small table from its second copy, a corpus from the dump that it landed
from, what a stage made of it from that stage with the settings that the ledger tells.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from ssrem.errors import HomeError, SsremError
from tasks.ingest.drop_folder import DONE
from tasks.warehouse.clock import utc_now
from tasks.warehouse.error_translation import out_of_room
from tasks.warehouse.home import Warehouse
from tasks.warehouse.incidents import note
from tasks.warehouse.integrity import Damage, damage, remember
from tasks.warehouse.interrupted_runs import clean_up
from tasks.warehouse.replicas import KEPT_TWICE, second_copy
from tasks.warehouse.snapshot import Partition, file_digest, manifests, sync_path

LANDED = ("corpora", "conversations", "utterances", "quarantine")
"""What ingest makes: it comes from a dump, and from nothing else."""

_ORDER = ("ingest", "tables", "score", "negatives")
_mending: ContextVar[bool] = ContextVar("mending", default=False)


@dataclass(frozen=True)
class _Run:
    """A run as the ledger tells of it."""

    stage: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, Any]
    started: datetime


def mended(root: str) -> Warehouse:
    """The home folder at `root`, where what was damaged has been made good. What cannot be stays in the snapshot, and
    whoever asks for it is told; a part that a later command makes again leaves it.

    Raises HomeError where another process holds the lock of a damaged home folder, or the disk is full.
    """
    home = Warehouse.at(root)
    if _mending.get():
        return home
    token = _mending.set(True)
    try:
        _clean(home)
        _mend_catalog(home)
        snapshot, found = home.readable()
        if found:
            _mend_parts(home, found)
        elif snapshot.parts:
            remember(home.root, snapshot.parts)
    except OSError as error:
        raise out_of_room(home, error) or error from None
    finally:
        _mending.reset(token)
    return home


def _clean(home: Warehouse) -> None:
    """What a dead run left goes even where there is nothing else to do, so that no stage opens."""
    if not any(home.staging.glob("*")) or home.writer() is not None:
        return
    with suppress(HomeError), home.lock("repair"):  # who has taken the lock by now cleans up
        for message in clean_up(home, home.snapshot()):
            print(f"ssrem: {message}", file=sys.stderr)


def _mend_catalog(home: Warehouse) -> None:
    if home.snapshot().damage is None:
        return
    with home.lock("repair"):
        snapshot = home.snapshot()
        if snapshot.damage:
            home.write_catalog(snapshot.parts)
            _tell(
                home, f"{snapshot.damage}; a new one was written from the lake's manifest {snapshot.number}"
            )


def _mend_parts(home: Warehouse, found: list[Damage]) -> None:
    with home.lock("repair"):
        for one in found:
            if _restored(home, one):
                _tell(home, f"{one}; it was restored from its second copy")
    left = [one for one in found if damage(home.root, [one.part])]
    runs = _ledger(home, {one.part.run for one in left})
    again: dict[str, list[Damage]] = {}
    for one in left:
        again.setdefault(one.part.run, []).append(one)
    rank = {run: _ORDER.index(about.stage) for run, about in runs.items() if about.stage in _ORDER}
    for run in sorted(again, key=lambda run: (rank.get(run, len(_ORDER)), run)):
        try:
            _make_again(home, [one.part for one in again[run]], runs.get(run))
        except SsremError as error:
            for one in again[run]:
                _tell(home, f"{one}; it cannot be made again: {error}")
        else:
            for one in again[run]:
                _tell(home, f"{one}; {_became(home, one.part)}")


def _restored(home: Warehouse, found: Damage) -> bool:
    """Whether the part's second copy took its place: the same bytes at the same path."""
    path = home.root / found.part.path
    copy = second_copy(path)
    if found.part.table not in KEPT_TWICE or not copy.is_file() or file_digest(copy) != found.part.sha256:
        return False
    draft = path.with_name(f".{path.name}.tmp")
    try:
        shutil.copyfile(copy, draft)
        sync_path(draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_path(path.parent)
    return True


def _ledger(home: Warehouse, runs: set[str]) -> dict[str, _Run]:
    try:
        with home.reader() as connection:
            rows = connection.execute(
                "SELECT run_id, stage, parameters, inputs, started FROM runs WHERE list_contains(?, run_id)",
                [sorted(runs)],
            ).fetchall()
    except HomeError:  # the ledger itself is what is damaged
        return {}
    return {run: _Run(stage, json.loads(asked), json.loads(read), at) for run, stage, asked, read, at in rows}


def _make_again(home: Warehouse, parts: Sequence[Partition], run: _Run | None) -> None:
    """Have the stage that made the parts make them again, or take them out of the snapshot so that it will."""
    for corpus in sorted({part.key for part in parts if part.table in LANDED}):
        _land_again(home, corpus, run)
    others = [part for part in parts if part.table not in LANDED]
    if others and (run is None or not _replayed(home, run)):
        for part in others:
            _retire(home, part)


def _land_again(home: Warehouse, corpus: str, run: _Run | None) -> None:
    from ssrem.readers import open_dump
    from tasks.ingest.land import content_hash, land

    made_by = {part.run for part in home.parts() if part.table in LANDED and part.key == corpus}
    options = dict(run.parameters) if run and run.stage == "ingest" else {}
    kept = {name: options.pop(name, None) for name in ("corpus", "format", "speakers", "mapping")}
    # What was changed since it landed, or landed in a way that the ledger does not tell in full, must not come back
    # as the dump has it.
    if run is None or run.stage != "ingest" or len(made_by) > 1 or any(options.values()):
        raise HomeError(f"it is not as its dump has it; restore {home.root} from a backup")
    ((source, digest),) = run.inputs.items()
    if (filed := Path(source).parent / DONE / Path(source).name).exists() and not Path(source).exists():
        source = str(filed)  # it landed from a drop folder, and was moved out of the way
    way_out = f"restore {home.root} from a backup, or ssrem ingest SOURCE --name {corpus} --replace"
    dump: dict[str, Any] = {"format": kept["format"], "mapping": kept["mapping"]}
    try:
        same = content_hash(open_dump(source, **dump).files()) == digest
    except (SsremError, OSError) as error:
        raise HomeError(f"its dump cannot be read again ({error}); {way_out}") from None
    if not same:
        raise HomeError(f"its dump {source} is another one now; {way_out}")
    try:
        with home.reader() as connection:
            row = connection.execute("SELECT landed_at FROM corpora WHERE corpus = ?", [corpus]).fetchone()
    except HomeError:
        row = None
    landed_at = row[0] if row else run.started
    speakers = kept["speakers"] or "auto"
    land.fn(source, str(home.root), **dump, name=corpus, speakers=speakers, replace=True, landed_at=landed_at)


def _replayed(home: Warehouse, run: _Run) -> bool:
    """Whether there is a stage that repeats the run from what the ledger tells, and has done so."""
    given, root = dict(run.parameters), str(home.root)
    try:
        if run.stage == "tables":
            from tasks.speaker_tables.build import TableSettings, build

            build.fn(given.pop("corpus"), root, settings=TableSettings(**given))
        elif run.stage == "score":
            from tasks.scoring.test_split import score_corpus

            score_corpus.fn(given["evaluator"], given["version"], given["corpus"], root)
        elif run.stage == "negatives":
            from tasks.speaker_tables.negatives import NegativeSettings, make_negatives

            make_negatives.fn(given.pop("corpus"), root, NegativeSettings(**given))
        else:
            return False
    except (TypeError, KeyError):  # made by a version of ssrem with other settings
        return False
    return True


def _retire(home: Warehouse, part: Partition) -> None:
    """Take the part out of the snapshot; the ledger's place is taken by the newest that is whole."""
    with home.lock("repair"):
        older = [
            p
            for manifest in manifests(home.lake)
            for p in manifest.parts
            if (p.table, p.key) == (part.table, part.key) and p.path != part.path
        ]
        ledger = [p for p in older if p.table in ("runs", "check_results") and not damage(home.root, [p])]
        home.write_catalog([*(p for p in home.parts() if p != part), *ledger[:1]])


def _became(home: Warehouse, part: Partition) -> str:
    now = next((p for p in home.parts() if (p.table, p.key) == (part.table, part.key)), None)
    if now is None:
        return "it left the snapshot; the command that made it, such as ssrem agree FILE, makes it again"
    ledger = part.table in ("runs", "check_results")
    return f"{'that of run' if ledger else 'it was made again by run'} {now.run}{' took its place' if ledger else ''}"


def _tell(home: Warehouse, text: str) -> None:
    note(home.root, utc_now(), text)
    print(f"ssrem: {text}", file=sys.stderr)


def broken_models(home: Warehouse, *, deep: bool = False) -> list[str]:
    """What is wrong with the folders of the versions in use, a line each; `deep` compares what they hold."""
    with home.reader() as connection:
        rows = connection.execute(
            "SELECT evaluator, version FROM evaluators WHERE promoted ORDER BY ALL"
        ).fetchall()
    found = []
    for name, version in rows:
        folder = home.models / name / str(version)
        if wrong := model_damage(folder, deep=deep):
            found.append(
                f"{name} version {version} is in use, but {wrong}; restore it from a backup, or train it again"
            )
    return found


def model_damage(folder: Path, *, deep: bool = False) -> str | None:
    """What is wrong with the folder of a saved evaluator: what is missing, or, if `deep`, changed; None if nothing."""
    from ssrem.evaluators.core.metric import MANIFEST

    try:
        about = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        digests = about.get("sha256") or {}
        for name, digest in digests.items() if isinstance(digests, dict) else ():
            if not (folder / name).is_file():
                return f"{folder / name} is missing"
            if deep and file_digest(folder / name) != digest:
                return f"{folder / name} was changed"
    except FileNotFoundError:
        return f"{folder / MANIFEST} is missing"
    except (OSError, ValueError, AttributeError) as error:
        return f"{folder / MANIFEST} cannot be read ({error})"
    return None
