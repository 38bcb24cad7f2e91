"""The generated corpus: its shape, its rules and that the same seed gives the same bytes."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.paths import ROOT


def load() -> ModuleType:
    path = ROOT / "benchmarks" / "generate_corpus.py"
    spec = importlib.util.spec_from_file_location("generate_corpus", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


generator = load()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    output = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    turns = generator.generate(output, conversations=2_000, speakers=100, seed=1, chunk=700)
    lines = output.read_text().splitlines()
    assert len(lines) == turns
    return [json.loads(line) for line in lines]


def test_has_the_numbers_asked_for(rows: list[dict[str, Any]]) -> None:
    assert len({row["conversation_id"] for row in rows}) == 2_000
    assert {row["speaker"] for row in rows} == {f"s{i}" for i in range(100)}
    assert 6 < len(rows) / 2_000 < 8
    words = sum(len(row["text"].split()) for row in rows)
    assert 9 < words / len(rows) < 11
    assert len({row["utterance_id"] for row in rows}) == len(rows)


def test_each_turn_replies_to_the_one_before_and_time_runs_forward(rows: list[dict[str, Any]]) -> None:
    before: dict[str, Any] = {}
    for row in rows:
        if before and before["conversation_id"] == row["conversation_id"]:
            assert row["reply_to"] == before["utterance_id"]
            assert row["addressee"] == before["speaker"] != row["speaker"]
            assert row["time"] > before["time"]
        else:
            assert "reply_to" not in row
            assert row["addressee"] != row["speaker"]
        before = row


def test_activity_is_skewed_pairs_meet_again_and_short_messages_recur(rows: list[dict[str, Any]]) -> None:
    activity = sorted(Counter(row["speaker"] for row in rows).values(), reverse=True)
    assert activity[0] > 5 * activity[len(activity) // 2]
    people: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        people[row["conversation_id"]].add(row["speaker"])
    meetings = Counter(frozenset(members) for members in people.values() if len(members) == 2)
    assert sum(times > 1 for times in meetings.values()) > len(meetings) / 3
    assert {len(members) for members in people.values()} == {2, 3}
    texts = Counter(row["text"] for row in rows)
    assert texts["lol"] > len(rows) / 100


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        generator.generate(tmp_path / name, conversations=300, speakers=20, seed=seed)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


def test_impossible_sizes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        generator.main(["--output", str(tmp_path / "x"), "--speakers", "1"])
    assert stopped.value.code == 2
    assert "at least 2 speakers" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_the_command_says_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--output", str(tmp_path / "x.jsonl"), "--conversations", "50", "--speakers", "10"]
    assert generator.main(arguments) == 0
    assert "50 conversations, 10 speakers" in capsys.readouterr().out
