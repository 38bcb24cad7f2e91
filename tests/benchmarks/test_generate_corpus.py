"""The generated corpus: its shape, its rules and that the same seed gives the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.generate_corpus import generate


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    output = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    turns = generate(output, conversations=2_000, speakers=100, seed=1, chunk=700)
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


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        generate(tmp_path / name, conversations=300, speakers=20, seed=seed)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()
