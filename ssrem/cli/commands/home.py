"""`ssrem home`: prune, repair, back up and restore a home folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from ssrem.cli import output
from ssrem.cli.start import flow
from ssrem.errors import HomeError
from ssrem.tasks.maintenance.backup import Saved, back_up
from ssrem.tasks.maintenance.backup import restore as restore_home
from ssrem.tasks.maintenance.repair import repair as repair_home
from ssrem.tasks.warehouse.home import Warehouse


def prune(options: argparse.Namespace, home: Warehouse) -> None:
    """Delete the files that no snapshot needs any more."""
    deleted = flow("prune")(str(home.root), options.keep_runs, options.keep_failures)
    if options.json:
        output.as_json(deleted)
    else:
        print(f"removed {deleted['removed']} files and folders, {deleted['bytes'] / 1e6:,.1f} MB")


def repair(options: argparse.Namespace, home: Warehouse) -> None:
    """Repair damaged tables; print what was damaged and how it was repaired. HomeError if there is no home folder."""
    if not home.root.exists():
        raise HomeError(f"{home.root} does not exist; name a home folder with --home")
    repaired = repair_home(str(home.root))
    if options.json:
        output.as_json({"repaired": repaired})
    elif not repaired:
        print(f"nothing in {home.root} is damaged")


def backup(options: argparse.Namespace, home: Warehouse) -> None:
    """Copy the published snapshot, with its models, into a file or folder."""
    _print(options, "backed up to", back_up(home, Path(options.target)))


def restore(options: argparse.Namespace, home: Warehouse) -> None:
    """Put a backup into a new or empty home folder."""
    _print(options, "restored into", restore_home(home, Path(options.source)))


def _print(options: argparse.Namespace, what: str, saved: Saved) -> None:
    if options.json:
        output.as_json({"path": str(saved.path), "files": saved.files, "bytes": saved.bytes})
    else:
        print(f"{what} {saved.path}: {saved.files:,} files, {saved.bytes / 1e6:,.1f} MB")
