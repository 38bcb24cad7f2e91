"""CSV and TSV: rows in, rows out; broken rows with their bytes and first line."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ssrem.errors import DumpError
from ssrem.readers import cells, open_dump
from ssrem.readers.formats import tables as delimited
from ssrem.readers.formats.tables import CsvReader, TsvReader
from support.random_examples import TIMES
from support.reader_rows import reader_of, rows_of

HEAD = b"Dialogue ID,speaker,Utterance,mood\n"


def _write(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "dump.csv"
    path.write_bytes(content)
    return path


def _row(line: int, text: str | None, **more: object) -> dict[str, object]:
    row = {"record": "message", "file": "dump.csv", "line": line, "conversation_id": "c", "speaker": "ann"}
    return row | ({} if text is None else {"text": text}) | more


def test_quoted_newlines_commas_quotes_and_empty_cells(tmp_path: Path) -> None:
    path = _write(tmp_path, HEAD + b'c,ann,"a\n""b"", c",\r\n\r\nc,ann,,glad\nc,ann, d ,x')
    assert rows_of(open_dump(path)) == [
        _row(2, 'a\n"b", c'),
        _row(5, None, metadata='{"mood":"glad"}'),
        _row(6, " d ", metadata='{"mood":"x"}'),
    ]


def test_broken_rows_keep_their_bytes_and_the_others_are_read(tmp_path: Path) -> None:
    good = b"c,ann,good,\n"
    broken = [
        (3, "malformed_row", b"c,ann,few"),
        (4, "malformed_row", b"c,ann,too,many,cells"),
        (5, "undecodable", b"c,ann,\xff\xfe,"),
        (6, "malformed_row", b'c,ann,"x"y,'),
        (7, "undecodable", b'c,ann,"two\nlines \xff",'),
        (10, "malformed_row", b'c,ann,"never closed,'),
    ]
    *before, last = (raw + b"\n" for *_, raw in broken)
    rows = rows_of(open_dump(_write(tmp_path, HEAD + good + b"".join(before) + good + last + good)))
    assert [row["line"] for row in rows if "problem" not in row] == [2, 9, 11]
    assert [(row["line"], row["problem"], row["raw"]) for row in rows if "problem" in row] == broken


def test_a_stray_quote_does_not_swallow_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "MOST_LINES_A_ROW", 5)
    path = _write(tmp_path, HEAD + b'c,ann,"stray,\n' + b"c,ann,x,\n" * 50)
    rows = rows_of(reader_of(CsvReader, path, batch_rows=8))
    assert [row.get("problem") for row in rows] == ["malformed_row"] + [None] * 50
    assert [row["line"] for row in rows] == list(range(2, 53))


def test_tabs_byte_order_mark_and_gzip(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + HEAD.replace(b",", b"\t") + b"c\tann\tHi, you\t\n"
    path = _write(tmp_path, gzip.compress(content))
    reader = open_dump(path)
    assert isinstance(reader, TsvReader)
    assert rows_of(reader) == [_row(2, "Hi, you")]


@pytest.mark.parametrize(
    ("content", "mapping", "says"),
    [
        (HEAD + b"c,ann,x,\n", {"text": "Line"}, "'Line', which is not there; the columns are Dialogue ID"),
        (b"a,b\n1,2\n", {}, "no column is known as conversation or speaker or text; the columns are a, b"),
        (HEAD, {}, "there is a header but no row"),
        (b'text,speaker,"x\n', {}, "line 1, the header, cannot be read"),
        (b"text,speaker,\xff\nx,y,z\n", {}, "line 1, the header, is not UTF-8"),
    ],
)
def test_headers_that_will_not_do(tmp_path: Path, content: bytes, mapping: dict[str, str], says: str) -> None:
    with pytest.raises(DumpError) as error:
        rows_of(open_dump(_write(tmp_path, content), mapping=mapping))
    assert says in str(error.value)


def test_a_part_without_rows_is_left_out(tmp_path: Path) -> None:
    for name, rows in (("part-0", b""), ("part-1", b"c,ann,x,\n"), ("part-2", b"")):
        (tmp_path / f"{name}.csv").write_bytes(HEAD + rows)
    reader = open_dump(tmp_path)
    assert [row["file"] for row in rows_of(reader)] == ["part-1.csv"]
    assert "without rows: part-0.csv, part-2.csv" in reader.notes


def test_the_file_is_read_as_the_batches_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssrem.readers.files.streams.BLOCK", 1000)
    reader = reader_of(CsvReader, _write(tmp_path, HEAD + b"c,ann,x,\n" * 2_000), batch_rows=100)
    batches = iter(reader)
    assert next(batches).num_rows == 100
    assert reader.bytes_read < 3000
    sizes = [batch.num_rows for batch in batches]
    assert max(sizes) <= 100 and 100 + sum(sizes) == 2_000
    assert reader.bytes_read == reader.total_bytes


def _read_both_ways(path: Path, **options: Any) -> list[dict[str, Any]]:
    """The rows of a dump, which are the same when each is read alone; so is what is said of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CsvReader, "_columns", lambda *_: None)
        patch.setattr(delimited, "_FEW_ROWS", 1)
        slow = open_dump(path, **options)
        expected = rows_of(slow)
    fast = open_dump(path, **options)
    assert rows_of(fast) == expected
    assert fast.all_notes() == slow.all_notes()
    return expected


_PIECES = [*'",";\r\n\n\n\n""ax é\ufeff\0|', '","', '"\n"', "c,a,b,\n", 'c,"x\ny",b,\r\n', b"\xff"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30 * TIMES)
@given(st.lists(st.sampled_from(_PIECES)), st.sampled_from([1, 20, 1000]))
def test_whole_columns_are_the_rows_read_alone(
    tmp_path: Path, pieces: list[str | bytes], block_bytes: int
) -> None:
    content = b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
    path = _write(tmp_path, HEAD + b"c,ann,x,\n" + content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "_FEW_ROWS", 2)
        patch.setattr(cells, "MOST_LINES_A_ROW", 3)
        patch.setattr("ssrem.readers.files.streams.BLOCK", block_bytes)
        _read_both_ways(path)


def test_only_unusual_rows_leave_the_fast_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = []

    class Counting(CsvReader):
        def message(self, *row: Any) -> Any:
            alone.append(1)
            return super().message(*row)

    monkeypatch.setattr(delimited, "_FEW_ROWS", 20)
    monkeypatch.setattr(delimited, "_MUCH", 500)
    good = b'c,ann,"a ""b"",\nc",2020-01-02 03:04:05\r\n' * 100
    bad = b"c,ann,x,soon\nc,few\n" + b'c,ann,5" and 6",\n' + b"c,ann,\xff,\n\n"
    head = b"conversation,speaker,text,time\r\n"
    path = _write(tmp_path, head + good)
    assert len(rows_of(reader_of(Counting, path))) == 100
    assert not alone
    path = _write(tmp_path, head + good + bad + good)
    rows = rows_of(reader_of(Counting, path))
    assert len(rows) == 204
    assert [row["line"] for row in rows[100:105]] == [202, 203, 204, 205, 207]
    assert 0 < len(alone) < 50
    assert _read_both_ways(path) == rows


def test_several_columns_known_as_one_field_do_not_slow_a_table(tmp_path: Path) -> None:
    path = _write(tmp_path, b"conversation,speaker,text,id,message_id\nc,ann,x,,7\nc,ann,y,3,\n")
    rows = _read_both_ways(path)
    assert [(row.get("utterance_id"), row.get("metadata")) for row in rows[:2]] == [
        (None, '{"message_id":"7"}'),
        ("3", None),
    ]


ENCODED = [(";", encoding) for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")]


@pytest.mark.parametrize(("delimiter", "encoding"), [*ENCODED, ("|", "utf-8"), ("\t", "utf-8")])
def test_delimiters_and_unicode_encodings_of_other_programs(
    tmp_path: Path, delimiter: str, encoding: str
) -> None:
    rows = [["conversation_id", "speaker", "text"], ["c", "Zoë", '"x, y; z|"'], ["c", "bob", "😀"]]
    mark = "\ufeff" if encoding in ("utf-16-le", "utf-16-be") else ""
    content = mark + "\r\n".join(delimiter.join(row) for row in rows)
    (tmp_path / "dump").write_bytes(content.encode(encoding))
    rows_read = rows_of(open_dump(tmp_path / "dump"))
    assert [(row["speaker"], row["text"]) for row in rows_read] == [("Zoë", "x, y; z|"), ("bob", "😀")]


def test_carriage_returns_alone_are_named(tmp_path: Path) -> None:
    path = _write(tmp_path, b'conversation,speaker,text\rc,ann,x\rc,ann,"y, z"')
    with pytest.raises(DumpError, match="lines end with carriage returns alone"):
        open_dump(path)


def test_half_a_pair_in_utf_16_is_one_problem_and_half_a_unit_is_one_line(tmp_path: Path) -> None:
    text = "\ufeffconversation_id,speaker,text\nc,a,\ud800\nc,b,y\n".encode("utf-16-le", "surrogatepass")
    rows = rows_of(open_dump(_write(tmp_path, text)))
    assert [row.get("problem") for row in rows] == ["undecodable", None]
    with pytest.raises(DumpError, match="the utf-16 text is damaged or cut off"):
        rows_of(open_dump(_write(tmp_path, text + b"\0")))


def test_the_index_of_a_data_frame_has_a_column_without_a_name(tmp_path: Path) -> None:
    path = _write(tmp_path, b",conversation_id,speaker,text\n0,c,ann,hi\n")
    assert rows_of(open_dump(path)) == [_row(2, "hi")]
    path = _write(tmp_path, b",Unit,Turn,B4,B2\n0,Hi,0,0,2017_1\n")
    with pytest.raises(DumpError, match="the columns are , Unit, Turn, B4, B2"):
        open_dump(path)


def test_a_stray_quote_swallows_no_rows(tmp_path: Path) -> None:
    for sign, rows, texts in (
        (
            "\t",
            'c\tann\ta\nc\tbob\t"b\nc\tann\tc\nc\tbob\td\nc\tann\te"',
            ["a", "malformed_row", "c", "d", 'e"'],
        ),
        ("\t", 'c\tann\t"a\nc\tbob\tb"\nc\tann\tc', ["malformed_row", 'b"', "c"]),
        ("\t", 'c\tann\t"three\nlines\nhere"\nc\tbob\tx', ["three\nlines\nhere", "x"]),
        (",", 'c,ann,"a\nx,y,z\n1,2,3\nb"', ["a\nx,y,z\n1,2,3\nb"]),  # commas are common in texts
    ):
        header = sign.join(("conversation_id", "speaker", "text"))
        read = rows_of(open_dump(_write(tmp_path, f"{header}\n{rows}\n".encode())))
        assert [row.get("text") or row["problem"] for row in read] == texts


def test_a_chat_as_text_is_told_from_a_table(tmp_path: Path) -> None:
    for line in (b"28.03.23, 21:05 - Ann: hi, you\n", b"[3/28/23, 9:05:12 PM] Ann: hi, you\n"):
        for dump in (_write(tmp_path, line * 3), tmp_path):
            with pytest.raises(DumpError, match="the package in examples/chat-exports reads a chat"):
                open_dump(dump)
