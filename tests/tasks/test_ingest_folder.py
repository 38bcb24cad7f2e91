"""The drop folder: what is complete, with which settings it lands, and where it goes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ssrem.errors import DumpError, HomeError, SsremError
from ssrem.tasks.ingest import land, land_folder
from ssrem.tasks.settings import DumpSettings, Resources
from ssrem.tasks.warehouse.home import Warehouse


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
    (inbox / "rejected").mkdir()
    (inbox / "rejected" / "picture.png").touch()  # nothing that was rejected before is overwritten
    with pytest.raises(DumpError, match=r"picture.png was moved to .*/rejected/picture.png.2: ") as error:
        land_folder(str(inbox), str(home.root), DumpSettings(**SETTINGS), settle=0)
    reason = (inbox / "rejected" / "picture.png.2.reason.txt").read_text()
    assert str(error.value).endswith(f": {reason.strip()}")
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
        ({"name": "one"}, "named as their files; leave out the name one"),
        ({"format": "jsonll"}, "no format 'jsonll'; did you mean jsonl"),
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


def test_a_folder_that_cannot_be_written_to_lands_nothing(
    inbox: Path, home: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, _: path != str(inbox))  # root may write everywhere
    with pytest.raises(DumpError, match="inbox cannot be written to"):
        land_folder(str(inbox), str(home.root), DumpSettings(**SETTINGS), settle=0)
    assert not home.root.exists()


def test_what_is_complete(inbox: Path, home: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither hidden, nor unfinished by its name, nor changed while it is looked at."""
    (inbox / "picture.png").unlink()
    for name in (".hidden", "c.jsonl.part", "d.tmp"):
        (inbox / name).write_text("x")
    (inbox / "folder").mkdir()
    (inbox / "folder" / "one").write_text("x")

    def write(seconds: float) -> None:
        assert seconds == 3
        (inbox / "may.txt").write_text("changes")
        (inbox / "folder" / "two").write_text("x")
        (inbox / "new.jsonl").write_text("x")

    monkeypatch.setattr("ssrem.tasks.ingest.time", SimpleNamespace(sleep=write))
    landed = land_folder(str(inbox), str(home.root), DumpSettings(**SETTINGS), settle=3)
    assert landed == {"june.txt": "landed as june"}
    monkeypatch.setattr("ssrem.tasks.ingest.time", time)
    with pytest.raises(DumpError, match="is not a folder; create it"):
        land_folder(str(inbox / "none"), str(home.root))
