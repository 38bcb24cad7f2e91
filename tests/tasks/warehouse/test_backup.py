"""A backup is a copy of the folder, made in the order that docs/operations.md names, while stages publish."""

from __future__ import annotations

import shlex
import subprocess
import time
from pathlib import Path

import pytest

from ssrem.errors import HomeError
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.prune import health
from support.paths import ROOT
from support.stages import publish, start_python

PUBLISH = "import sys; from support.stages import publish\nfor n in range(1, 200): publish(sys.argv[1], n, size=400)"


def documented(home: Warehouse, archive: Path, new: Path) -> tuple[list[str], list[str]]:
    """The commands of docs/operations.md that copy a home folder into an archive and an archive into a new folder."""
    lines = (ROOT / "docs" / "operations.md").read_text().splitlines()
    copies, unpacks = (next(line for line in lines if line.startswith(f"tar -{how}")) for how in "cx")
    places = {"warehouse": str(home.root), "/backups/ssrem.tar": str(archive), "/new/place": str(new)}
    copying, unpacking = (
        [places.get(word, word) for word in shlex.split(line, True)] for line in (copies, unpacks)
    )
    return copying, unpacking


def test_a_copy_that_is_made_while_a_stage_runs_is_whole(home: Warehouse, tmp_path: Path) -> None:
    publish(home.root, 0)
    numbers = [0]
    with start_python(PUBLISH, home.root) as writer:
        for copy in range(2):
            while home.query("SELECT bytes FROM corpora") == [(numbers[-1],)]:
                time.sleep(0.02)
            new = tmp_path / f"new{copy}"
            new.mkdir(mode=0o700)
            copying, unpacking = documented(home, tmp_path / f"{copy}.tar", new)
            copied = subprocess.run(copying, capture_output=True, text=True, check=False)
            assert copied.returncode in (0, 1), copied.stderr  # 1: a file has gone or grown meanwhile
            subprocess.run(unpacking, check=True)
            there = Warehouse.at(new)
            assert health(there, deep=True) == []
            ((number, runs),) = there.query(
                "SELECT any_value(bytes), (SELECT count(*) FROM runs) FROM corpora"
            )
            assert runs == number + 1
            numbers.append(number)
        assert writer.poll() is None, "it published all along"
        writer.kill()
    assert numbers == sorted(set(numbers)), "each copy has what was published when it began"
    publish(there.root, 1000)
    assert there.query("SELECT bytes FROM corpora") == [(1000,)]


def test_who_copies_under_the_lock_stops_writers(home: Warehouse) -> None:
    publish(home.root, 1)
    command = ["flock", str(home.root / ".lock"), "sh", "-c", "echo held; read line"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(HomeError, match="is in use by another process"):
            publish(home.root, 2)
        assert home.query("SELECT bytes FROM corpora") == [(1,)]
        other.communicate("\n")
    publish(home.root, 2)
