"""Repair: restore what is damaged in a home folder before a flow writes to it.

The catalog is restored from the newest manifest in the lake, a small table from its replica, and any other partition by
rerunning the stage that published it (ssrem.tasks.maintenance.rebuild).
"""

from __future__ import annotations

import shutil
from contextlib import suppress

from ssrem.errors import HomeError, say
from ssrem.files import sha256
from ssrem.tasks.stage.steps import step
from ssrem.tasks.warehouse.clock import utc_now
from ssrem.tasks.warehouse.error_translation import out_of_room
from ssrem.tasks.warehouse.files import whole_file
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.incidents import PURGE_NOTE, clean_up, leftovers, log_incident
from ssrem.tasks.warehouse.integrity import Damage, find_damage, remember_intact
from ssrem.tasks.warehouse.partition import REPLICATED, Partition, replica_path


@step("repair")
def repair(home: str) -> list[str]:
    """Restore damaged files of the home folder; returns a line for each: what was damaged and how it was repaired.

    A partition that cannot be restored stays in the snapshot: queries that need it fail with an error that names it.
    Raises HomeError where another process holds the lock of a damaged home folder, or the disk is full.
    """
    warehouse = Warehouse.at(home)
    try:
        _clean(warehouse)
        repaired = _repair_catalog(warehouse)
        snapshot, damaged = warehouse.readable()
        if damaged:
            repaired += _repair_partitions(warehouse, damaged)
        elif snapshot.partitions:
            remember_intact(warehouse.root, snapshot.partitions)
    except OSError as error:
        raise out_of_room(warehouse, error) or error from None
    return repaired


def _clean(home: Warehouse) -> None:
    """Delete leftovers of interrupted runs, even if no stage opens because there is nothing else to do."""
    if not leftovers(home) or home.writer() is not None:
        return
    # Where another process holds the lock by now, it cleans up.
    with (
        suppress(HomeError),
        home.lock("repair"),
    ):
        for message in clean_up(home, home.snapshot()):
            say(message)
        if (home.root / PURGE_NOTE).exists():
            from ssrem.tasks.privacy.purge import finish_purge  # imports NumPy

            if finish_purge(home):
                _report(home, "a run that was killed had not purged what it replaced; it is purged now")


def _repair_catalog(home: Warehouse) -> list[str]:
    if home.snapshot().damage is None:
        return []
    with home.lock("repair"):
        snapshot = home.snapshot()
        if not snapshot.damage:
            return []
        home.write_catalog(snapshot.partitions)
    return [
        _report(home, f"{snapshot.damage}; a new one was written from the lake's manifest {snapshot.number}")
    ]


def _repair_partitions(home: Warehouse, damaged: list[Damage]) -> list[str]:
    with home.lock("repair"):
        restored = [damage for damage in damaged if _from_replica(home, damage.partition)]
    lines = [_report(home, f"{damage}; it was restored from its replica") for damage in restored]
    if rest := find_damage(home.root, [damage.partition for damage in damaged]):
        from ssrem.tasks.maintenance.rebuild import rebuild  # imports every stage, which takes a while

        lines += [_report(home, line) for line in rebuild(home, rest)]
    return lines


def _from_replica(home: Warehouse, partition: Partition) -> bool:
    """Replace the damaged file by its replica, if there is an intact one; returns whether there is."""
    path = home.root / partition.path
    replica = replica_path(path)
    if partition.table not in REPLICATED or not replica.is_file() or sha256(replica) != partition.sha256:
        return False
    with whole_file(path) as draft:
        shutil.copyfile(replica, draft)
    return True


def _report(home: Warehouse, line: str) -> str:
    log_incident(home.root, utc_now(), line)
    say(line)
    return line
