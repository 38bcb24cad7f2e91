"""The verbs by which an operator keeps a home folder: collect, back up, restore."""

from __future__ import annotations

import argparse
from pathlib import Path

from flows.cli import output as show
from flows.orchestration import settings
from tasks.warehouse.home import Warehouse


def collect(options: argparse.Namespace, home: Warehouse) -> None:
    """Remove what no snapshot needs any more."""
    settings.prepare(home.root)
    from flows.prune import collect as flow

    gone = flow(str(home.root), options.keep_runs, options.keep_failures)
    if options.json:
        show.as_json(gone)
    else:
        print(f"removed {gone['removed']} files and folders, {gone['bytes'] / 1e6:,.1f} MB")


def backup(options: argparse.Namespace, home: Warehouse) -> None:
    """Copy the published snapshot, with its models, into a file or folder."""
    from tasks.maintenance.backup import back_up

    saved = back_up(home, Path(options.target))
    _say(options, "backed up to", saved.path, saved.files, saved.bytes)


def restore(options: argparse.Namespace, home: Warehouse) -> None:
    """Put a backup into a new home folder."""
    from tasks.maintenance.backup import restore as restore_home

    saved = restore_home(home, Path(options.source))
    _say(options, "restored into", saved.path, saved.files, saved.bytes)


def _say(options: argparse.Namespace, what: str, path: Path, files: int, size: int) -> None:
    if options.json:
        show.as_json({"path": str(path), "files": files, "bytes": size})
    else:
        print(f"{what} {path}: {files:,} files, {size / 1e6:,.1f} MB")
