"""The generated corpus: its shape, its rules and that the same seed gives the same bytes."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks.generate_corpus import generate


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    output = tmp_path_factory.mktemp("corpus") / "corpus.jsonl"
    turns = generate(output, conversations=700, speakers=50, seed=1, chunk=300)
    lines = output.read_text().splitlines()
    assert len(lines) == turns
    return [json.loads(line) for line in lines]


def test_has_the_numbers_asked_for(rows: list[dict[str, Any]]) -> None:
    assert len({row["conversation_id"] for row in rows}) == 700
    assert {row["speaker"] for row in rows} == {f"s{i}" for i in range(50)}
    assert len({row["utterance_id"] for row in rows}) == len(rows)
    assert 6 < len(rows) / 700 < 8
    assert 9 < sum(len(row["text"].split()) for row in rows) / len(rows) < 11


def test_each_turn_replies_to_the_one_before_and_time_runs_forward(rows: list[dict[str, Any]]) -> None:
    for before, row in pairwise(rows):
        if before["conversation_id"] == row["conversation_id"]:
            assert row["reply_to"] == before["utterance_id"]
            assert row["addressee"] == before["speaker"] != row["speaker"]
            assert row["time"] > before["time"]
        else:
            assert "reply_to" not in row and row["addressee"] != row["speaker"]


def test_same_seed_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.generate_corpus.WORDS", 2_000)
    made = []
    for seed in (1, 1, 2):
        generate(tmp_path / "corpus", conversations=40, speakers=20, seed=seed, chunk=30)
        made.append((tmp_path / "corpus").read_bytes())
    assert made[0] == made[1] != made[2]
