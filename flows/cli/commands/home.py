"""The verbs by which an operator keeps a home folder: collect, upgrade, back up, restore."""

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


def upgrade(options: argparse.Namespace, home: Warehouse) -> None:
    """Bring a home folder of an older version to this one's layout."""
    from tasks.maintenance.upgrade import upgrade as upgrade_home

    done = upgrade_home(home)
    if options.json:
        found = (
            {"old": done.old, "new": done.new, "tables": done.tables, "kept": str(done.kept)} if done else {}
        )
        show.as_json({"home": str(home.root), "upgraded": done is not None, **found})
    elif done is None:
        print(f"{home.root} has this version's layout; nothing to do")
    else:
        print(f"{home.root}: layout {done.old} is now {done.new}")
        print(f"written anew: {', '.join(done.tables) or 'no table'}")
        print(f"to go back, with the version before: mv {done.kept} {home.catalog}; else delete that copy")


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
