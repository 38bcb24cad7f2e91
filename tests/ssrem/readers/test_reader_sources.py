"""Sources: several files, folders, patterns, standard input and URLs as one dump."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ssrem.errors import DumpError
from ssrem.readers import open_dump
from ssrem.readers.files.sources import base_name, common_name
from support.exports import SLACK, TELEGRAM, write_dump
from support.reader_rows import rows_of


def _line(**row: object) -> str:
    return json.dumps({"conversation_id": "c", "speaker": "a", "text": "x", **row}) + "\n"


def _pipe(monkeypatch: pytest.MonkeyPatch, content: bytes, *, terminal: bool = False) -> None:
    stdin = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: terminal)
    monkeypatch.setattr("sys.stdin", stdin)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "logs" / "old"
    folder.mkdir(parents=True)
    for name in ("b", "a"):
        (folder / f"{name}.jsonl").write_text(_line(text=name) + "broken\n")
    return folder


def _places(source: Any) -> list[tuple[str, int, str]]:
    rows = rows_of(open_dump(source))
    return [(row["file"], row["line"], row.get("text", row.get("problem"))) for row in rows]


def test_a_folder_a_pattern_and_a_list_of_files_are_the_same(folder: Path) -> None:
    rows = [(f"{name}.jsonl", *line) for name in "ab" for line in ((1, name), (2, "broken_json"))]
    (folder / "empty.jsonl").touch()
    assert _places(f"{folder}/*.jsonl") == _places(f"{folder.parent}/**/*.jsonl") == rows
    assert _places([folder / "b.jsonl", folder / "a.jsonl", folder / "b.jsonl"]) == rows[2:] + rows[:2]
    (folder / "empty.jsonl").unlink()
    (folder / "photo.jpg").write_bytes(b"\xff\xd8\x00")
    reader = open_dump(folder)
    assert _places(folder) == rows
    assert "not read, since they are of no known format: photo.jpg" in reader.notes
    assert [file.name for file in reader.files()] == ["a.jsonl", "b.jsonl"]
    assert sum(batch.num_rows for batch in reader) == 4
    assert reader.bytes_read == reader.total_bytes == sum(file.stat().st_size for file in reader.files())


def test_numbers_in_names_are_compared_as_numbers(tmp_path: Path) -> None:
    names = ["chat.jsonl", *(f"chat [part {n}].jsonl" for n in (2, 9, 10))]
    for name in names:
        (tmp_path / name).write_text(_line(text=name))
    for source in (tmp_path, f"{tmp_path}/chat*.jsonl"):
        assert [text for *_, text in _places(source)] == names


def test_subfolders_are_read_too(folder: Path) -> None:
    """Once, even if links lead to them again; names that begin with a dot are hidden."""
    root = folder.parent
    (root / ".hidden").mkdir()
    (root / ".hidden" / "x.jsonl").write_text(_line())
    (root / "z.jsonl").write_text(_line(text="z"))
    assert [row[0] for row in _places(root) if row[1] == 1] == ["old/a.jsonl", "old/b.jsonl", "z.jsonl"]
    (folder / "above").symlink_to(root)
    (root / "photos").mkdir()
    (root / "photos" / "a.jpg").write_bytes(b"\xff\xd8\xff\x00")
    reader = open_dump(root)
    assert len(rows_of(reader)) == 5
    assert "not read, since they are of no known format: photos/a.jpg" in reader.notes


def test_subfolders_of_logs_are_read_too(tmp_path: Path) -> None:
    comment = b'{"id": "c", "link_id": "t3_a", "author": "x", "body": "y"}\n'
    for format, line in (("irc", b"[12:30] <ann> hi\n"), ("reddit", comment)):
        reader = open_dump(write_dump({"a.log": line, "2024/a.log": line}, tmp_path / "logs"))
        assert (reader.format, [row["file"] for row in rows_of(reader)]) == (format, ["2024/a.log", "a.log"])


def test_dumps_beside_subfolders_decide_the_format(tmp_path: Path) -> None:
    """What people shared in a chat may be JSON or a table."""
    files = {"result.json": TELEGRAM[""], "files/a.json": _line().encode(), "files/b.csv": b"a,b\n1,2\n"}
    reader = open_dump(write_dump(files, tmp_path / "ChatExport"))
    assert reader.format == "telegram"
    assert "not read, since they are not telegram: files/a.json, files/b.csv" in reader.notes
    write_dump({"c.csv": b"conversation,speaker,text\n1,a,b\n"}, tmp_path / "ChatExport")
    with pytest.raises(DumpError, match=r"c.csv is csv, but .*\.json is jsonl"):
        open_dump(tmp_path / "ChatExport")


def test_subfolders_that_are_dumps_as_a_whole(tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_dump(SLACK, tmp_path / "slack" / name)
    reader = open_dump(tmp_path / "slack")
    assert reader.format == "slack"
    assert {row["source"] for row in rows_of(reader)} == {"first", "second"}


def test_files_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    for name in ("x", "y"):
        log = f"[10:00] <ann> {name}\n*** ann is now known as {name}\n".encode()
        write_dump({"chat.log": log, "dump.csv": b"conversation,speaker,text\n1,a,b\n"}, tmp_path / name)
    for kind in ("log", "csv"):
        rows = rows_of(open_dump(f"{tmp_path}/*/*.{kind}"))
        assert [row["file"].split("/")[0] for row in rows] == ["x", "y"]
    assert len({row["conversation_id"] for row in rows_of(open_dump(f"{tmp_path}/*/*.log"))}) == 2


def test_folders_of_a_format_are_sources_too(tmp_path: Path) -> None:
    names = ["first", "second"]
    folders = [write_dump({"utterances.jsonl": _line(id=name).encode()}, tmp_path / name) for name in names]
    rows = rows_of(open_dump(folders))
    assert [(row["source"], row["file"]) for row in rows] == [
        (name, f"{name}/utterances.jsonl") for name in names
    ]


def test_files_of_different_formats_are_one_line(folder: Path) -> None:
    (folder / "c.csv").write_text("conversation,speaker,text\nc,a,x\n")
    for source in (folder, f"{folder}/*", [folder / "c.csv", folder / "a.jsonl"]):
        says = r"is (csv|jsonl), but .* is (csv|jsonl); the files of a corpus are of .* those of one alone, or --format"
        with pytest.raises(DumpError, match=says):
            open_dump(source)
    assert len(rows_of(open_dump(folder, format="csv"))) == 1


def test_days_and_months_are_decided_by_all_files(tmp_path: Path) -> None:
    for name, day in (("a", "03/04/2020"), ("b", "25/04/2020")):
        rows = f"c,a,x,{day} 10:00\nc,a,x,soon\n"
        (tmp_path / f"{name}.csv").write_text(f"conversation,speaker,text,time\n{rows}")
    reader = open_dump(tmp_path)
    assert str(rows_of(reader)[0]["time"]) == "2020-04-03 10:00:00"
    assert reader.all_notes() == [
        *open_dump(tmp_path).notes,
        "dates are read with the day first, because of 25/04/2020",
        "2 values are no times and became null, such as 'soon' (a.csv line 3); their text is in the metadata, and "
        "--time-format says how times are written",
    ]
    assert str(rows_of(open_dump(tmp_path, time_format="%m/%d/%Y %H:%M"))[0]["time"]) == "2020-03-04 10:00:00"


def test_a_later_row_of_a_table_may_decide_the_days_and_months(tmp_path: Path) -> None:
    rows = [f"c,a,x,{1 + row // 100:02}/04/2020\n" for row in range(1_300)]
    (tmp_path / "dump.csv").write_text("conversation,speaker,text,time\n" + "".join(rows))
    reader = open_dump(tmp_path / "dump.csv")
    assert str(rows_of(reader)[100]["time"]) == "2020-04-02 00:00:00"
    assert "dates are read with the day first, because of 13/04/2020" in reader.all_notes()


def test_what_is_piped_in(monkeypatch: pytest.MonkeyPatch) -> None:
    _pipe(monkeypatch, _line().encode())
    reader = open_dump("-")
    (spool,) = reader.files()
    assert [row["text"] for row in rows_of(reader)] == ["x"]
    del reader
    assert not spool.exists()
    _pipe(monkeypatch, b"")
    with pytest.raises(DumpError, match="the file is empty"):
        open_dump("-")
    _pipe(monkeypatch, b"", terminal=True)
    with pytest.raises(DumpError, match="reads what is piped in, and nothing is"):
        open_dump("-")


def test_addresses_are_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    for name in ("a", "b"):
        files.pipe(f"/dumps/{name}.jsonl", _line(text=name).encode())
    files.pipe("/chats/c.csv", b"conversation,speaker,text\nc,a,x\n")
    assert _places("memory://dumps/a.jsonl") == [("a.jsonl", 1, "a")]
    for source, says in (
        ("memory://dumps/none.jsonl", "cannot be fetched"),
        ("memory://dumps", "cannot be fetched"),
        ("nosuch://x/y", "cannot be fetched (Protocol not known: nosuch)"),
    ):
        with pytest.raises(DumpError) as error:
            open_dump(source)
        assert says in str(error.value).replace("[Errno 2] ", "") and source in str(error.value)
    monkeypatch.setitem(__import__("sys").modules, "aiohttp", None)
    with pytest.raises(DumpError, match="https:// need a package; pip install aiohttp, or download the dump"):
        open_dump("https://example.org/x.jsonl")


def test_the_name_of_a_source_and_of_several(tmp_path: Path) -> None:
    for source, name in {
        "logs/chat.csv": "chat.csv",
        "/data/logs/*.txt": "logs",
        "/data/l?gs/2020/*.txt": "data",
        "hf://datasets/org/name/train.parquet": "train.parquet",
        "https://example.org/a/dump.jsonl?download=1#x": "dump.jsonl",
    }.items():
        assert base_name(source) == name
    assert common_name([f"{tmp_path}/logs/a", f"{tmp_path}/logs/b"]) == "logs"
    assert common_name([f"{tmp_path}/x/a", f"{tmp_path}/y/b"]) == tmp_path.name


def test_a_source_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    for path in (f"{tmp_path}/none-*.csv", f"{tmp_path}/[", f"{tmp_path}/none.csv"):
        with pytest.raises(DumpError, match=re.escape(path) + ": there is no such file"):
            open_dump(path)
