"""The drop folder: what is complete, and where it goes."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from ssrem.errors import DumpError
from ssrem.tasks.ingest.drop_folder import RejectedError, complete, file_away


def still(seconds: float) -> None:
    """Nothing happens while we wait."""


def test_what_is_complete(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.csv", ".hidden", "c.jsonl.part", "d.tmp"):
        (tmp_path / name).write_text("x")
    for name in ("done", "rejected", "corpus"):
        (tmp_path / name).mkdir()
    (tmp_path / "corpus" / "utterances.jsonl").write_text("x")
    assert [path.name for path in complete(tmp_path, 1, still)] == ["a.csv", "b.jsonl", "corpus"]


def test_what_is_being_written_is_not(tmp_path: Path) -> None:
    growing, whole, folder = tmp_path / "growing.jsonl", tmp_path / "whole.jsonl", tmp_path / "folder"
    folder.mkdir()
    for path in (growing, whole, folder / "one"):
        path.write_text("x")

    def write(seconds: float) -> None:
        assert seconds == 3
        growing.write_text("xx")
        (folder / "two").write_text("x")
        (tmp_path / "new.jsonl").write_text("x")

    assert complete(tmp_path, 3, write) == [whole]
    assert complete(tmp_path, 3, lambda _: whole.unlink()) == [
        folder,
        growing,
        tmp_path / "new.jsonl",
    ]


def test_an_empty_one_does_not_wait(tmp_path: Path) -> None:
    assert complete(tmp_path, 3, lambda _: pytest.fail("waited")) == []
    with pytest.raises(DumpError, match="is not a folder; create it"):
        complete(tmp_path / "none", 3, still)


def test_filed_away_under_a_free_name_with_its_reason(tmp_path: Path) -> None:
    places = []
    for content in "abc":
        path = tmp_path / "x.jsonl"
        path.write_text(content)
        places.append(file_away(path, "rejected", f"why {content}"))
        assert not path.exists()
    assert [p.name for p in places] == ["x.jsonl", "x.jsonl.2", "x.jsonl.3"]
    assert [p.read_text() for p in places] == ["a", "b", "c"]
    reasons = sorted((tmp_path / "rejected").glob("*.reason.txt"))
    assert [r.read_text() for r in reasons] == ["why b\n", "why c\n", "why a\n"]


def test_a_rejection_keeps_the_outcomes_of_the_others_between_processes() -> None:
    error = pickle.loads(pickle.dumps(RejectedError("x was moved", {"y": "landed as y"})))
    assert (str(error), error.outcomes) == ("x was moved", {"y": "landed as y"})
