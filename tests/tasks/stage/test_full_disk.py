"""A disk that is full ends a stage in one line, on a real small file system; what was published stays."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ssrem.tasks.ingest import land
from ssrem.tasks.warehouse.home import Warehouse
from support.progress_lines import other_lines
from support.small_home import called, write_conversations


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a file system is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_speaker_tables_on_a_disk_that_fills(small_disk: Path, tmp_path: Path) -> None:
    write_conversations(tmp_path / "tiny.jsonl", conversations=80)
    home = Warehouse.at(small_disk / "home")
    land(str(tmp_path / "tiny.jsonl"), str(home.root))
    before = home.partitions()
    taken = sum(path.stat().st_size for path in home.root.rglob("*") if path.is_file())
    for free in (700_000, 200_000):
        (small_disk / "other").write_bytes(bytes(3 * 1024 * 1024 - taken - free))
        built = called("tables", "--home", str(home.root))
        assert built.returncode == 1, built.stderr
        (line,) = other_lines(built.stderr)
        assert line.startswith("ssrem: ")
        assert home.partitions() == before
        (small_disk / "other").unlink()
