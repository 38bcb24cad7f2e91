"""What runs that died left behind."""

from __future__ import annotations

import json
import shutil

from tasks.warehouse.clock import utc_now
from tasks.warehouse.home import Warehouse
from tasks.warehouse.incidents import note
from tasks.warehouse.snapshot import Snapshot, drop_manifests


def clean_up(home: Warehouse, snapshot: Snapshot) -> list[str]:
    """Remove what interrupted runs left behind, under the lock; one line for each, also in the log of incidents.

    snapshot: the published one.
    """
    messages = []
    published = {partition.run for partition in snapshot.partitions}
    for leftover in sorted(home.staging.glob("*")):
        try:
            run = json.loads((leftover / "run.json").read_text())
            what = f"{run['stage']} of {run['started']} UTC"
        except (OSError, ValueError, KeyError):
            what = leftover.name
        done = "it had published" if leftover.name in published else "it had published nothing"
        messages.append(f"an earlier run was interrupted ({what}); {done} and was cleaned up")
        note(home.root, utc_now(), messages[-1])
        shutil.rmtree(leftover, ignore_errors=True)
    for leftover in home.lake.glob(".run=*.tmp"):
        shutil.rmtree(leftover, ignore_errors=True)
    if snapshot.damage is None:  # what was to be published, and was not
        drop_manifests(home.lake, above=snapshot.number)
    catalog = (".catalog.tmp", ".catalog.tmp.wal", "lake/.snapshot=*.tmp")
    for draft in (*catalog, "lake/run=*/.*.tmp", ".verified.json.*.tmp", "vectors/*/*.tmp"):
        for leftover in home.root.glob(draft):
            leftover.unlink(missing_ok=True)
    for draft in ("encoders/*.tmp", "masked-lm/*.tmp"):
        for leftover in home.root.glob(draft):
            shutil.rmtree(leftover, ignore_errors=True)
    return messages
