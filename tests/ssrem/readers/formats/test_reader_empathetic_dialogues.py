"""EmpatheticDialogues: cells without quotes, commas as `_comma_`, candidates dropped."""

from __future__ import annotations

from pathlib import Path

from ssrem.readers import open_dump
from support.exports import EMPATHETIC_DIALOGUES, write_dump
from support.reader_rows import rows_of


def test_rows_of_eight_or_nine_cells(tmp_path: Path) -> None:
    *said, unread = rows_of(open_dump(write_dump(EMPATHETIC_DIALOGUES, tmp_path / "train.csv")))
    assert [(row["utterance_id"], row["speaker"], row["text"]) for row in said] == [
        ("hit:7_conv:14/1", "12", 'He swam, at last. "Hurrah"'),
        ("hit:7_conv:14/2", "31", "How far?"),
        ("hit:7_conv:14/3", "12", "A mile"),
    ]
    assert {row["conversation_id"] for row in said} == {"hit:7_conv:14"}
    assert (
        said[0]["metadata"]
        == '{"context":"proud","prompt":"My son said , well done.","selfeval":"5|5|5_2|2|5"}'
    )
    assert "Yes" not in said[2]["metadata"]
    assert (unread["line"], unread["problem"], unread["raw"]) == (
        5,
        "malformed_row",
        b"hit:7_conv:14,4,proud",
    )
