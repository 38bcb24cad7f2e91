"""DailyDialog: a conversation a line, seats in turn."""

from __future__ import annotations

from pathlib import Path

from ssrem.readers import open_dump
from support.reader_rows import rows_of


def test_lines_become_conversations_of_two_seats(tmp_path: Path) -> None:
    path = tmp_path / "dialogues_text.txt"
    path.write_bytes(
        "Hi , Ann . __eou__ Hello ’ all . __eou__ Bye . __eou__\n\nno end\n".encode() + b"\xff __eou__\n"
    )
    (tmp_path / "dialogues_act.txt").write_text("3 4 1\n")
    for source, format in ((tmp_path, None), (path, "dailydialog")):
        rows = rows_of(open_dump(source, format=format))
        assert [
            (row["conversation_id"], row.get("speaker"), row.get("text", row.get("problem"))) for row in rows
        ] == [
            ("1", "A", "Hi , Ann ."),
            ("1", "B", "Hello ’ all ."),
            ("1", "A", "Bye ."),
            ("3", None, "malformed_row"),
            ("4", None, "undecodable"),
        ]
        assert rows[-1]["raw"] == b"\xff __eou__" and rows[-1]["line"] == 4
