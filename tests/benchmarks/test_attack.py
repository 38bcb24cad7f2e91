"""The attack's own bookkeeping: parts that go on where they ended, and an end where a home folder cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import readers_writers
from benchmarks.attack.__main__ import attacks_made, main
from benchmarks.attack.bench import Bench
from benchmarks.attack.fuzz import fuzz
from ssrem.errors import HomeError


def test_a_part_goes_on_where_it_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = ["fuzz", "--kind", "sets", "--folder", str(tmp_path)]
    assert main([*part, "--count", "30"]) == 0
    assert main([*part, "--count", "50"]) == 0
    assert main([*part, "--only", "70"]) == 0
    results = tmp_path / "results.jsonl"
    assert [line.split('"first": ')[1].split(",")[0] for line in results.read_text().splitlines()] == [
        "0",
        "30",
    ]
    assert attacks_made(results, "fuzz sets") == 50
    capsys.readouterr()
    assert main([*part, "--count", "50"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["summary", "--folder", str(tmp_path)]) == 0
    assert "50\n0 wrong" in capsys.readouterr().out


def test_sql_without_a_home_folder_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "prepare", lambda *_: None)
    with pytest.raises(HomeError, match="nothing is published"):
        fuzz(Bench(tmp_path), "sql", first=0, count=1, seed=0, seconds=1)


def test_reads_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"sql": {"looks": 30, "wrong": []}, "old": {"looks": 11, "wrong": ["mixed"]}}
    monkeypatch.setattr(readers_writers, "run", lambda *_, **__: readers_writers.Outcome(25, 1.0, kinds))
    assert main(["reads", "--count", "100", "--folder", str(tmp_path)]) == 1
    assert attacks_made(tmp_path / "results.jsonl", "reads") == 123
