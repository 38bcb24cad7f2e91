"""The drop folder: what is complete, with which settings it lands, and where it goes."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from ssrem.errors import DumpError, HomeError, SsremError
from ssrem.tasks.ingest import RejectedError, complete, file_away, land, land_folder
from ssrem.tasks.settings import DumpSettings, Resources
from ssrem.tasks.warehouse.home import Warehouse


def still(seconds: float) -> None:
    """Nothing happens while we wait."""


def test_complete_is_what_is_neither_hidden_nor_unfinished_by_name(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.csv", ".hidden", "c.jsonl.part", "d.tmp"):
        (tmp_path / name).write_text("x")
    for name in ("done", "rejected", "corpus"):
        (tmp_path / name).mkdir()
    (tmp_path / "corpus" / "utterances.jsonl").write_text("x")
    assert [path.name for path in complete(tmp_path, 1, still)] == ["a.csv", "b.jsonl", "corpus"]


def test_what_changes_while_we_wait_is_not_complete(tmp_path: Path) -> None:
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
    assert complete(tmp_path, 3, lambda _: whole.unlink()) == [folder, growing, tmp_path / "new.jsonl"]


def test_an_empty_folder_does_not_wait(tmp_path: Path) -> None:
    assert complete(tmp_path, 3, lambda _: pytest.fail("waited")) == []
    with pytest.raises(DumpError, match="is not a folder; create it"):
        complete(tmp_path / "none", 3, still)


def test_a_dump_is_filed_away_under_a_free_name_with_its_reason(tmp_path: Path) -> None:
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


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    """A drop folder with two logs whose columns and times only settings explain, and a file that is no dump."""
    folder = tmp_path / "inbox"
    folder.mkdir()
    for name in ("may", "june"):
        rows = [
            {"Scene": name, "Who": who, "Line": f"{who} in {name}, März", "When": f"3.4.2024 10:0{number}"}
            for number, who in enumerate(("ann", "bot", "bob"))
        ]
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (folder / f"{name}.txt").write_text("".join(lines), encoding="cp1252")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    return folder


SETTINGS: dict[str, Any] = {
    "format": "jsonl",
    "map": {"conversation": "Scene", "speaker": "Who", "text": "Line", "time": "When"},
    "encoding": "cp1252",
    "time_format": "%d.%m.%Y %H:%M",
    "speakers": "conversation",
    "not_people": ("bot",),
}


def test_each_dump_of_a_drop_folder_lands_with_the_settings_given(inbox: Path, home: Warehouse) -> None:
    with pytest.raises(RejectedError, match=r"picture.png was moved to .*/rejected/picture.png: ") as error:
        land_folder(str(inbox), str(home.root), DumpSettings(**SETTINGS), settle=0)
    assert error.value.outcomes == {"june.txt": "landed as june", "may.txt": "landed as may"}
    assert sorted(path.name for path in (inbox / "done").iterdir()) == ["june.txt", "may.txt"]
    assert home.query("SELECT corpus, format, speaker_scope FROM corpora ORDER BY corpus") == [
        (corpus, "jsonl", "conversation") for corpus in ("june", "may")
    ]
    query = "SELECT text, strftime(time, '%m-%d %H:%M') FROM utterances WHERE corpus = 'may' AND is_person"
    assert home.query(f"{query} ORDER BY position") == [
        (f"{who} in may, März", when) for who, when in (("ann", "04-03 10:00"), ("bob", "04-03 10:02"))
    ]
    (inbox / "done" / "may.txt").rename(inbox / "may.txt")
    again = land_folder(str(inbox), str(home.root), DumpSettings(**SETTINGS), settle=0)
    assert again == {"may.txt": "is there already, as may"}
    (inbox / "done" / "may.txt").rename(inbox / "may.txt")
    other = DumpSettings(**{**SETTINGS, "speakers": "person", "replace": True})
    assert land_folder(str(inbox), str(home.root), other, settle=0) == {"may.txt": "landed as may"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"name": "one"}, "named as their files; leave out --name one"),
        ({"map": {"speker": "Who"}}, "no field 'speker'; did you mean speaker"),
        ({"format": "jsonll"}, "no format 'jsonll'; did you mean jsonl"),
        ({"pseudonym_key": "key"}, "only with --pseudonymise"),
    ],
)
def test_settings_with_which_no_dump_can_land_move_none(
    inbox: Path, home: Warehouse, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(SsremError, match=said) as error:
        land_folder(str(inbox), str(home.root), DumpSettings(**settings), settle=0)
    assert "\n" not in str(error.value) and not home.root.exists()
    assert sorted(path.name for path in inbox.iterdir()) == ["june.txt", "may.txt", "picture.png"]


def test_another_function_lands_the_dumps_and_what_is_not_their_fault_leaves_them(
    inbox: Path, home: Warehouse
) -> None:
    def told(source: str, root: str, settings: DumpSettings, *, resources: Resources) -> tuple[str, bool]:
        if source.endswith("may.txt"):
            raise HomeError("the disk is full")
        return land(source, root, settings, resources=resources)

    (inbox / "picture.png").unlink()
    with pytest.raises(HomeError, match="the disk is full"):
        land_folder(str(inbox), str(home.root), DumpSettings(**SETTINGS), settle=0, land=told)
    assert (inbox / "may.txt").exists() and (inbox / "done" / "june.txt").exists()
