"""WhatsApp: dates by country, messages of several lines; notices and media left out and counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssrem.errors import DumpError
from ssrem.readers import open_dump
from ssrem.readers.base import Reader
from support.exports import WHATSAPP, WHATSAPP_IOS, write_dump
from support.reader_rows import rows_of


def _chat(folder: Path, *lines: str, **options: object) -> Reader:
    path = write_dump({"": "\n".join(lines).encode()}, folder / "WhatsApp Chat with Bob.txt")
    return open_dump(path, format="whatsapp", **options)  # type: ignore[arg-type]


def _times(reader: Reader) -> list[str]:
    return [f"{row['time']:%Y-%m-%d %H:%M:%S}" for row in rows_of(reader)]


def test_an_export_of_android(tmp_path: Path) -> None:
    reader = open_dump(write_dump(WHATSAPP, tmp_path / "WhatsApp Chat with Flat 4.txt"))
    rows = rows_of(reader)
    assert {row["conversation_id"] for row in rows} == {"WhatsApp Chat with Flat 4"}
    assert [(row["line"], row["speaker"], row["text"]) for row in rows] == [
        (3, "Ann Lee", "Who has the key?\nI looked: everywhere\n\nReally"),
        (7, "+49 170 0000000", "I do"),
        (9, "Ann Lee", "This message was deleted"),
        (10, "Ann Lee", "The door"),
        (12, "Bob", "Fine"),
    ]
    assert _times(reader)[:2] == ["2022-12-30 21:59:00", "2022-12-31 00:05:00"]
    assert reader.left_out == {"notices": 2, "media or notices without text": 1}
    assert reader.notes[0] == "dates are read with the month first, because of 12/30/22"


def test_an_export_of_ios(tmp_path: Path) -> None:
    reader = open_dump(write_dump(WHATSAPP_IOS, tmp_path / "_chat.txt"))
    rows = [(row["speaker"], row["text"]) for row in rows_of(reader)]
    assert rows == [("Ann", "Wer hat den Schlüssel?"), ("+49 170 0000000", "Ich: hier"), ("Ann", "Die Tür")]
    assert _times(reader)[-1] == "2023-01-01 00:00:07"
    assert reader.left_out == {"media or notices without text": 2}


def test_a_deleted_message_is_one_that_says_so_also_where_ios_marks_it(tmp_path: Path) -> None:
    lines = ["31.12.22, 10:00 - A: x", "[31.12.22, 10:01:00] B: \u200eDiese Nachricht wurde gelöscht."]
    reader = _chat(tmp_path, *lines)
    assert [row["text"] for row in rows_of(reader)] == ["x", "Diese Nachricht wurde gelöscht."]
    assert not reader.left_out


def test_what_android_writes_for_a_poll_or_what_it_cannot_export_is_left_out(tmp_path: Path) -> None:
    lines = [
        "A: null",
        "B: POLL:\nWhere?\nOPTION: here (1 vote)\nOPTION: there (0 votes)",
        "A: null and void",
    ]
    reader = _chat(tmp_path, *(f"31.12.22, 10:00 - {line}" for line in lines))
    assert [row["text"] for row in rows_of(reader)] == ["null and void"]
    assert reader.left_out == {"media or notices without text": 2}


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("31/12/2022, 9:05 pm - A: x", "2022-12-31 21:05:00"),
        ("31/12/2022, 12:05 a.\u00a0m. - A: x", "2022-12-31 00:05:00"),
        ("12/31/22, 12:05 PM - A: x", "2022-12-31 12:05:00"),
        ("31.12.22, 21:05 - A: x", "2022-12-31 21:05:00"),
        ("[31.12.2022 klo 21.05.09] A: x", "2022-12-31 21:05:09"),
        ("[2022-12-31, 21:05:09] A: x", "2022-12-31 21:05:09"),
        ("2022/12/31 21:05 - A: x", "2022-12-31 21:05:00"),
        ("[13-12-22 21:05:09] A: x", "2022-12-13 21:05:09"),
        ("[12/31/22, 9:05:09\u202fPM] A: x", "2022-12-31 21:05:09"),
        ("2022. 12. 31. 오후 9:05 - A: x", "2022-12-31 21:05:00"),
        ("[2022. 12. 31. 오전 12:05:09] A: x", "2022-12-31 00:05:09"),
        ("2022/12/31 下午9:05 - A: x", "2022-12-31 21:05:00"),
        ("2022. 12. 31. 21:05 - A: x", "2022-12-31 21:05:00"),
        ("2022년 12월 31일 오후 9:05, A : x", "2022-12-31 21:05:00"),
        ("2022년 12월 31일 오전 12:05 - A: x", "2022-12-31 00:05:00"),
        ("٣١/١٢/٢٠٢٢، ٩:٠٥ م - A: x", "2022-12-31 21:05:00"),
        ("\u200f٣١\u200f/١٢\u200f/٢٠٢٢، ٩:٠٥ م - A: x", "2022-12-31 21:05:00"),
        ("[31\u200e/12\u200e/2022, 9:05:00\u200e م] A: x", "2022-12-31 21:05:00"),
    ],
)
def test_dates_of_many_countries(tmp_path: Path, line: str, time: str) -> None:
    assert _times(_chat(tmp_path, line)) == [time]


def test_the_order_of_time_decides_between_day_and_month(tmp_path: Path) -> None:
    reader = _chat(tmp_path, "03/04/22, 10:00 - A: x", "01/05/22, 10:00 - B: y")
    assert _times(reader)[1] == "2022-05-01 10:00:00"
    assert reader.notes == [
        "dates are read with the day first, because with the month first time would run backwards"
    ]


def test_what_nothing_decides_is_refused_with_the_way_out(tmp_path: Path) -> None:
    lines = ["03/04/22, 10:00 - A: x", "04/05/22, 10:00 - B: y"]
    with pytest.raises(
        DumpError, match=r"03/04/22 may have the day or the month first.*--map time=day-first or"
    ):
        _chat(tmp_path, *lines)
    assert _times(_chat(tmp_path, *lines, mapping={"time": "day-first"}))[0] == "2022-04-03 10:00:00"
    assert _times(_chat(tmp_path, *lines, mapping={"time": "month-first"}))[0] == "2022-03-04 10:00:00"


@pytest.mark.parametrize(
    ("lines", "mapping", "says"),
    [
        (
            ["31/12/22, 10:00 - A: x", "12/31/22, 10:00 - A: x"],
            None,
            "31/12/22 has the day first, but 12/31/22",
        ),
        (["31/12/22, 10:00 - A: x"], {"time": "month-first"}, "31/12/22 is not month first; leave out --map"),
        (["31/12/22, 10:00 - A: x"], {"text": "x"}, "takes time=day-first or time=month-first"),
    ],
)
def test_dates_and_options_that_contradict_are_refused(
    tmp_path: Path, lines: list[str], mapping: dict[str, str] | None, says: str
) -> None:
    with pytest.raises(DumpError, match=says):
        _chat(tmp_path, *lines, mapping=mapping)


def test_bytes_that_are_no_text_and_a_time_that_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_bytes(b"31.12.22, 10:00 - A: x\n31.12.22, 10:01 - A: \xff\n30.02.23, 10:00 - A: y\n")
    first, undecodable, timeless = rows_of(open_dump(path))
    assert (undecodable["line"], undecodable["problem"]) == (2, "undecodable")
    assert (timeless["text"], timeless["metadata"]) == ("y", '{"time":"30.02.23 10:00"}')
    assert "time" not in timeless and "time" in first


@pytest.mark.parametrize(
    "mark",
    [
        "<This message was edited>",
        "<Diese Nachricht wurde bearbeitet.>",
        "<Mensagem editada>",
        "<Se editó este mensaje.>",
    ],
)
def test_the_mark_of_an_edited_message_is_no_text(tmp_path: Path, mark: str) -> None:
    (row,) = rows_of(_chat(tmp_path, f"31.12.22, 10:00 - A: x <3 y> {mark}"))
    assert row["text"] == "x <3 y>"
