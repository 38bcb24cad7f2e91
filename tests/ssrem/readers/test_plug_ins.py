"""Formats that an installed package adds: the one in examples/chat-exports, as pip installs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.exports import PLUG_INS, write_dump
from support.paths import ROOT

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
    """The folder into which pip installed the package."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-index"]
    source = tmp_path_factory.mktemp("source")
    for file in (ROOT / "examples" / "chat-exports").rglob("*.*"):
        if file.suffix in (".py", ".toml"):
            target = source / file.relative_to(ROOT / "examples" / "chat-exports")
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(file.read_bytes())
    options = ["--no-deps", "--no-build-isolation", "--target", str(folder), str(source)]
    subprocess.run([*pip, *options], check=True)
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
    dumps = {
        f"{format}-{number}": (format, files)
        for format, several in PLUG_INS.items()
        for number, files in enumerate(several)
    }
    paths = [str(write_dump(files, tmp_path / name)) for name, (_, files) in dumps.items()]
    done = _python(installed, "-c", _READ, *paths)
    assert done.returncode == 0, done.stderr
    read = [json.loads(line) for line in done.stdout.splitlines()]
    assert [format for format, *_ in read] == [format for format, _ in dumps.values()]
    assert all(rows > 1 for _, rows, _ in read)


def test_the_page_shows_the_entry_points_of_the_package() -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    shown = page.partition("```toml\n")[2].partition("```")[0]
    assert shown and shown in (ROOT / "examples" / "chat-exports" / "pyproject.toml").read_text(
        encoding="utf-8"
    )


def test_a_name_that_is_taken_is_refused(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("")
    about = tmp_path / "other-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[ssrem.readers]\njsonl = other:Reader\n")
    done = _python(tmp_path, "-m", "ssrem", "ingest", "x.jsonl", "--home", str(tmp_path / "home"))
    assert done.returncode == 1
    assert "the package other adds 'jsonl' to ssrem.readers, which has one; uninstall it" in done.stderr
