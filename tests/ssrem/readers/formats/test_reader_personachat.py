"""PersonaChat: numbered lines, personas and silences left out and counted, candidates dropped."""

from __future__ import annotations

from pathlib import Path

from ssrem.readers import open_dump
from support.exports import PERSONACHAT, write_dump
from support.reader_rows import rows_of


def test_conversations_begin_where_the_numbers_do(tmp_path: Path) -> None:
    reader = open_dump(write_dump(PERSONACHAT, tmp_path / "train_self_original.txt"))
    *said, unread = rows_of(reader)
    assert [(row["line"], row["conversation_id"], row["speaker"], row["text"]) for row in said] == [
        (3, "train_self_original:1", "partner", "hello , what do you do ?"),
        (3, "train_self_original:1", "self", "i row . and you ?"),
        (4, "train_self_original:1", "partner", "i bake ."),
        (4, "train_self_original:1", "self", "bread ?"),
        (6, "train_self_original:2", "self", "good evening"),
    ]
    assert (unread["line"], unread["problem"], unread["raw"]) == (7, "malformed_row", b"no number")
    assert reader.left_out == {"lines of personas": 3, "silences": 1}


def test_a_file_without_personas_is_recognised(tmp_path: Path) -> None:
    content = b"1 hi\thello\t\thello|bye\n2 how are you ?\tfine\t\tfine|bye\n"
    assert len(rows_of(open_dump(write_dump({"": content}, tmp_path / "train_none.txt")))) == 4
