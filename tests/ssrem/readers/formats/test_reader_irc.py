"""Logs of IRC as several programs write them: messages, actions, renames, addressees, days and folders."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ssrem.errors import DumpError
from ssrem.readers import guess_format, open_dump
from ssrem.readers.base import Reader
from ssrem.readers.files.streams import DumpFile
from support.reader_rows import rows_of

UBUNTU = """\
=== ann [n=ann@example.org] has joined #ubuntu
[12:30] <ann> bob: is it raining?
[12:31] <bob> ann, no
[12:31] <bob> carol: are you here?
=== bob is now known as bob_away
[12:32] * bob_away waves
[12:33] <bob_away> Ann: bye: I go
[12:34] <ann> note: it is late
"""
IRSSI = """\
--- Log opened Mon Jul 14 23:58:01 2008
23:58 -!- ann [~ann@example.org] has joined #x
23:58 <@ann> hi \x0304there\x03 \x02all\x02
23:59  * ann yawns
--- Day changed Tue Jul 15 2008
00:01 < bob> ann: hello
00:02 -!- mode/#x [+o bob] by ann
"""
ZNC = """\
[12:30:00] *** Joins: bob (b@example.org)
[12:30:05] <bob> one
[12:30:09] *** bob is now known as robert
[12:30:10] * robert has left the building
[12:30:11] *** Quits: robert (b@example.org) (Quit)
"""
WEECHAT = """\
2008-07-14 12:30:00\t-->\tann (a@example.org) has joined #x
2008-07-14 12:30:05\t@ann\tHi\tyou
2008-07-14 12:30:06\t--\tann is now known as anna
2008-07-14 12:30:07\t *\tanna nods
2008-07-15 9:30:07\tanna\tbye
"""
HEXCHAT = """\
**** BEGIN LOGGING AT Wed Dec 31 12:29:00 2008

Dec 31 12:30:00 *\tNow talking on #x
Dec 31 12:30:05 <ann>\tHi
Dec 31 12:30:06 *\tbob (~b@example.org) has joined #x
Jan 01 00:00:05 <bob>\tHello
"""


def log(tmp_path: Path, content: str | bytes, name: str = "x.log") -> Reader:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_dump(tmp_path / name)


def spoken(rows: list[dict[str, Any]]) -> list[tuple[str, str, str | None]]:
    return [(row["speaker"], row["text"], row.get("addressee")) for row in rows]


def test_addressees_speak_in_the_channel_and_a_renamed_nick_is_one_person(tmp_path: Path) -> None:
    reader = log(tmp_path, UBUNTU, "2008-07-14-#ubuntu.txt")
    rows = rows_of(reader)
    assert reader.format == "irc"
    assert spoken(rows) == [
        ("ann", "bob: is it raining?", "bob"),
        ("bob", "ann, no", "ann"),
        ("bob", "carol: are you here?", None),
        ("bob", "waves", None),
        ("bob", "Ann: bye: I go", "ann"),
        ("ann", "note: it is late", None),
    ]
    assert {row["conversation_id"] for row in rows} == {"2008-07-14-#ubuntu"}
    assert rows[0]["time"] == datetime(2008, 7, 14, 12, 30)
    assert [row.get("metadata") for row in rows[2:5]] == [
        None, '{"action":true,"nick":"bob_away"}', '{"nick":"bob_away"}',
    ]  # fmt: skip
    assert [row["line"] for row in rows] == [2, 3, 4, 6, 7, 8]
    assert reader.left_out == {"joins, parts and other notices": 1, "renames": 1}


def test_the_day_of_irssi_changes_within_a_file(tmp_path: Path) -> None:
    rows = rows_of(log(tmp_path, IRSSI))
    said = [("ann", "hi there all", None), ("ann", "yawns", None), ("bob", "ann: hello", "ann")]
    assert spoken(rows) == said
    assert [(row["conversation_id"], row["time"]) for row in rows[1:]] == [
        ("x 2008-07-14", datetime(2008, 7, 14, 23, 59)),
        ("x 2008-07-15", datetime(2008, 7, 15, 0, 1)),
    ]


def test_the_columns_of_weechat(tmp_path: Path) -> None:
    rows = rows_of(log(tmp_path, WEECHAT, "x.weechatlog"))
    assert spoken(rows) == [("ann", "Hi\tyou", None), ("ann", "nods", None), ("ann", "bye", None)]
    assert rows[2]["time"] == datetime(2008, 7, 15, 9, 30, 7)


def test_the_year_of_hexchat_is_at_the_start_of_the_file(tmp_path: Path) -> None:
    rows = rows_of(log(tmp_path, HEXCHAT))
    assert [(row["speaker"], row["text"], row["conversation_id"], row["time"]) for row in rows] == [
        ("ann", "Hi", "x 2008-12-31", datetime(2008, 12, 31, 12, 30, 5)),
        ("bob", "Hello", "x 2009-01-01", datetime(2009, 1, 1, 0, 0, 5)),
    ]
    row, _ = rows_of(log(tmp_path, HEXCHAT.partition("\n")[2]))
    assert (row["conversation_id"], "time" in row, row["metadata"]) == ("x", False, '{"clock":"12:30:05"}')


def test_a_folder_of_days_has_one_set_of_people(tmp_path: Path) -> None:
    second = "[00:00:01] <robert> two\n[00:00:02] <Guest12> three\n"
    third = "[01:00:00] *** Guest12 is now known as dan\n[01:00:01] <dan> four\n"
    for day, content in enumerate((ZNC, second, third, ""), 14):
        (tmp_path / f"2008-07-{day}.log").write_text(content)
    (tmp_path / ".hidden").write_text("{")
    reader = open_dump(tmp_path)
    rows = rows_of(reader)
    assert [(row["file"], row["conversation_id"], row["speaker"], row["text"]) for row in rows] == [
        ("2008-07-14.log", "2008-07-14", "bob", "one"),
        ("2008-07-14.log", "2008-07-14", "bob", "has left the building"),
        ("2008-07-15.log", "2008-07-15", "bob", "two"),
        ("2008-07-15.log", "2008-07-15", "Guest12", "three"),
        ("2008-07-16.log", "2008-07-16", "dan", "four"),
    ]
    assert len(reader.files()) == 3
    assert reader.bytes_read == reader.total_bytes


def test_names_of_files_that_differ_in_the_suffix_alone(tmp_path: Path) -> None:
    for name in ("a.log", "a.txt"):
        (tmp_path / name).write_text("<ann> Hi\n")
    assert [row["conversation_id"] for row in rows_of(open_dump(tmp_path))] == ["a.log", "a.txt"]


def test_lines_of_another_form_are_rows_with_a_problem(tmp_path: Path) -> None:
    rows = rows_of(log(tmp_path, UBUNTU.encode() + b"someone wrote this\n\n[12:35] <ann> \xff\n"))
    assert [(row["line"], row["problem"], row["raw"]) for row in rows if "problem" in row] == [
        (9, "malformed_row", b"someone wrote this"),
        (11, "undecodable", b"[12:35] <ann> \xff"),
    ]


OTHER_TEXTS = (
    "<html> <body> x\n</body>\n</html>\n", "<html><head></head><body>hello</body></html>\n", "<html><body>hello\n",
    '<root><row a="1"/></root>\n', "<s> a sentence </s>\n", "just words\n", "* a list\n* of points\n",
)  # fmt: skip


def test_other_texts_and_those_with_few_lines_of_a_log_are_not_taken(tmp_path: Path) -> None:
    for content in OTHER_TEXTS:
        (tmp_path / "x").write_text(content)
        assert guess_format(DumpFile(tmp_path / "x")) != "irc"
    with pytest.raises(DumpError, match="the content is of no known format"):
        log(tmp_path, "[12:30] <ann> Hi\n" + "(12.30) bob - Hello\n" * 2)


def test_dates_and_clocks_of_many_programs(tmp_path: Path) -> None:
    iso = ("2020-02-01T15:04:05+0100", "2020-02-01 02:04:05 PM", "[2020-02-01 2:04:05pm]")
    for stamp in (*iso, "[01.02.2020 14:04:05]"):
        reader = log(tmp_path, f"{stamp} <ann> hi\n{stamp} <bob> ann: see: it rains\n")
        rows = rows_of(reader)
        assert reader.format == "irc"
        assert spoken(rows) == [("ann", "hi", None), ("bob", "ann: see: it rains", "ann")]
        assert {row["time"] for row in rows} == {datetime(2020, 2, 1, 14, 4, 5)}


def test_the_sessions_of_mirc_begin_with_their_day(tmp_path: Path) -> None:
    reader = log(
        tmp_path,
        "Session Start: Thu Jan 02 03:04:05 2020\nSession Ident: #x\n[03:04] <ann> hi\n"
        "Session Time: Fri Jan 03 00:00:00 2020\n[03:05] <@bob> ann: hello\nSession Close: Fri Jan 03 04:00:00 2020\n",
    )
    times = {"ann": datetime(2020, 1, 2, 3, 4), "bob": datetime(2020, 1, 3, 3, 5)}
    assert [(row["speaker"], row["time"]) for row in rows_of(reader)] == list(times.items())
    assert reader.left_out == {"joins, parts and other notices": 4}


def test_notices_of_other_clients_are_no_messages(tmp_path: Path) -> None:
    notices = [
        "[21:05] al (~u@host) joined #chan.",
        "[21:05:12] al (~u@host) has joined the channel",
        "[2023-03-28 21:05:12] → al joined (~u@host)",
        "2023-03-28 21:05:12\t=!=\tirc: error",
        "2023-03-28T21:05:12  al has quit (bye)",
    ]
    reader = log(tmp_path, "\n".join([*notices, "[21:06] <al> bob left the building"]) + "\n")
    assert [row["text"] for row in rows_of(reader)] == ["bob left the building"]
    assert reader.left_out == {"joins, parts and other notices": len(notices)}
