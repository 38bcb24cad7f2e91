"""Formats that an installed package adds: the one in examples/chat-exports, from its wheel."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.exports import PLUG_INS, write_dump
from support.paths import ROOT

PACKAGE = ROOT / "examples" / "chat-exports"
_READ = """
import json, sys
from ssrem.readers import open_dump
for dump in sys.argv[1:]:
    reader = open_dump(dump)
    rows = [row for batch in reader for row in batch.to_pylist()]
    print(json.dumps([reader.format, sum(row["problem"] is None for row in rows), len(reader.all_notes())]))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the wheel that its build backend makes is unpacked, as pip does it."""
    folder, source = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("source") / "package"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, folder], cwd=source, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def _python(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(installed), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_formats_of_an_installed_package_are_read(installed: Path, tmp_path: Path) -> None:
    dumps = [(format, files) for format, several in PLUG_INS.items() for files in several]
    paths = [str(write_dump(files, tmp_path / str(at))) for at, (_, files) in enumerate(dumps)]
    done = _python(installed, "-c", _READ, *paths)
    assert done.returncode == 0, done.stderr
    read = [json.loads(line) for line in done.stdout.splitlines()]
    assert [format for format, *_ in read] == [format for format, _ in dumps]
    assert all(rows > 1 for _, rows, _ in read)


def test_the_page_shows_the_entry_points_of_the_package() -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    shown = page.partition("```toml\n")[2].partition("```")[0]
    assert shown and shown in (PACKAGE / "pyproject.toml").read_text(encoding="utf-8")


def _package(folder: Path, entry_points: str) -> None:
    """Install into the folder a package `other` whose module cannot be imported."""
    (folder / "other.py").write_text("from ssrem.readers.base import NoLongerThere")
    about = folder / "other-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (about / "entry_points.txt").write_text(entry_points)


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    _package(tmp_path, "[ssrem.readers]\njsonl = other:Reader\n")
    done = _python(tmp_path, "-m", "ssrem", "ingest", "x.jsonl", "--home", str(tmp_path / "home"))
    assert done.returncode == 1
    assert "the package other adds 'jsonl' to ssrem.readers, which has one; uninstall it" in done.stderr


def test_a_package_that_cannot_be_imported_is_left_out(tmp_path: Path) -> None:
    _package(tmp_path, "[ssrem.readers]\nown = other:A\n[ssrem.encoders]\nsame = other:B\n")
    load = "import ssrem; print(ssrem.load('ssrem').evaluator.encoder.signature)"
    dump = tmp_path / "talk.csv"
    dump.write_text("conversation,speaker,text\n" + "".join(f"1,{who},hi\n" for who in "ABA"))
    done = _python(tmp_path, "-c", _READ + load, str(dump))
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 2
    for name in ("same", "own"):
        left_out = f"ssrem: {name} is left out: other:. cannot be used: cannot import name 'NoLongerThere'"
        assert len(re.findall(left_out, done.stderr)) == 1
