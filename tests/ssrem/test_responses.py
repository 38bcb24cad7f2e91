"""Files of responses to score: every format gives the same samples, and what cannot be read is counted or refused."""

from __future__ import annotations

import bz2
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from ssrem.annotated_sets import read_set
from ssrem.errors import AnnotationError
from ssrem.responses import ResponseRow, read_responses
from ssrem.samples import Sample

ROWS: list[dict[str, Any]] = [
    {"id": "a", "context": ["Hi!", "How are you?"], "response": "Fine, and you?", "reference": "Well."},
    {"id": "b", "context": ["Any pets?"], "response": "Two cats", "reference": None},
]
SAMPLES = [Sample(("Hi!", "How are you?"), "Fine, and you?", "Well."), Sample(("Any pets?",), "Two cats")]
TABLE = """id{0}context{0}response{0}reference
a{0}Hi!|How are you?{0}"Fine, and you?"{0}Well.
b{0}Any pets?{0}Two cats{0}
"""


def contents() -> dict[str, tuple[bytes, dict[str, str]]]:
    """Name of a file → its content, and the mapping that it needs."""
    lines = "\n".join(map(json.dumps, ROWS)).encode()
    parquet = io.BytesIO()
    pa.parquet.write_table(pa.Table.from_pylist(ROWS), parquet)
    separator = {"separator": "|"}
    return {
        "x.json": (json.dumps(ROWS).encode(), {}),
        "x.jsonl": (lines, {}),
        "x.jsonl.gz": (gzip.compress(lines), {}),
        "x.jsonl.bz2": (bz2.compress(lines), {}),
        "x.csv": (TABLE.format(",").encode(), separator),
        "bom.csv": (b"\xef\xbb\xbf" + TABLE.format(",").encode(), separator),
        "utf16.csv": (TABLE.format(";").replace("\n", "\r").encode("utf-16"), separator),
        "sep.csv": (b"SEP=;\r\n" + TABLE.format(";").encode(), separator),
        "x.tsv": (TABLE.format("\t").encode(), separator),
        "x.parquet": (parquet.getvalue(), {}),
    }


@pytest.mark.parametrize("name", contents())
def test_every_format_gives_the_same_samples(tmp_path: Path, name: str) -> None:
    content, mapping = contents()[name]
    (tmp_path / name).write_bytes(content)
    rows = read_responses(str(tmp_path / name), mapping=mapping).rows
    assert [row.sample for row in rows] == SAMPLES
    assert [row.id for row in rows] == ["a", "b"]


def test_text_is_a_context_a_tab_and_a_response(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_bytes(b"Hi!|How are you?\tFine, and you?\r\n\nAny pets?\tTwo cats\n\tAlone\n")
    read = read_responses(str(tmp_path / "x.txt"), mapping={"separator": "|"})
    first = Sample(SAMPLES[0].context, SAMPLES[0].response)
    assert [row.sample for row in read.rows] == [first, SAMPLES[1], Sample((), "Alone")]
    assert read.guessed is not None and read.guessed.startswith("text, ")
    assert read_responses(str(tmp_path / "x.txt"), "text").guessed is None


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(json.dumps(ROWS).encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert [row.sample for row in read_responses("-").rows] == SAMPLES


def test_columns_by_mapping(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("first,second,answer,n\nHi!,How are you?,Fine,7\n")
    mapping = {"context": "first+second", "response": "answer", "id": "n"}
    (row,) = read_responses(str(tmp_path / "x.csv"), mapping=mapping).rows
    assert row == ResponseRow("line 2", "7", Sample(("Hi!", "How are you?"), "Fine"))


@pytest.mark.parametrize("place", ["-1", "2"])
def test_a_context_ends_before_the_response_that_is_in_it(tmp_path: Path, place: str) -> None:
    said = [("user", "Hi!"), ("user", "How are you?"), ("assistant", "Fine")]
    messages = [{"role": role, "content": text} for role, text in said]
    (tmp_path / "x.json").write_text(json.dumps([{"messages": messages}]))
    mapping = {"context": "messages", "response": f"messages.{place}.content"}
    (row,) = read_responses(str(tmp_path / "x.json"), mapping=mapping).rows
    assert row.sample == Sample(("Hi!", "How are you?"), "Fine")


def test_messages_that_end_with_an_answer_are_a_context_and_a_response(tmp_path: Path) -> None:
    said = [("system", "Be brief."), ("user", "Any pets?"), ("assistant", "Two cats")]
    messages = [{"role": role, "content": text} for role, text in said]
    turns = [{"from": "human", "value": "Any pets?"}, {"from": "gpt", "value": "Two cats"}]
    for number, row in enumerate(({"messages": messages, "score": 4}, {"conversations": turns, "score": 4})):
        path = tmp_path / f"{number}.json"
        (tmp_path / "one.jsonl").write_text(json.dumps(row))
        path.write_text(json.dumps([row, row]))
        for file in (path, tmp_path / "one.jsonl"):
            assert read_responses(str(file)).rows[0].sample == SAMPLES[1]
        assert [one.response for one in read_set(path).rows] == ["Two cats"] * 2
    (tmp_path / "asked.jsonl").write_text(json.dumps({"messages": messages[:2], "score": 4}))
    with pytest.raises(AnnotationError, match="no column is known as context or response"):
        read_responses(str(tmp_path / "asked.jsonl"))
    logs = [{"messages": messages}, {"messages": [*messages, {"role": "user", "content": "Bye"}]}]
    (tmp_path / "logs.json").write_text(json.dumps(logs))
    read = read_responses(str(tmp_path / "logs.json"))
    assert read.told.endswith("; messages before the last one are context alone")
    assert [row.sample and row.sample.response for row in read.rows] == ["Two cats", ""]


def test_messages_in_parts(tmp_path: Path) -> None:
    said = [{"role": "user", "content": [{"type": "text", "text": "Any pets?"}]}]
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Two cats"}]}
    (tmp_path / "x.json").write_text(json.dumps([{"context": said, "response": answer}]))
    (row,) = read_responses(str(tmp_path / "x.json")).rows
    assert row.sample == SAMPLES[1]


def test_the_first_of_several_references_is_read_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"context": "Hi!", "response": "Yes"}
    rows = [{**row, "reference": references} for references in (["a", "b"], ["c"], [], ["", "d"])]
    (tmp_path / "x.json").write_text(json.dumps(rows))
    read = read_responses(str(tmp_path / "x.json")).rows
    assert [row.sample and row.sample.reference for row in read] == ["a", "c", None, "d"]
    said = capsys.readouterr().err
    assert "x.json: rows with several references: 2; the first of them is read" in said
    assert said.count("\n") == 1
    nested = [{**row, "meta": {"refs": ["a", "b"]}}]
    (tmp_path / "x.json").write_text(json.dumps(nested))
    read_responses(str(tmp_path / "x.json"), mapping={"reference": "meta.refs"})
    assert "rows with several references: 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "faults"),
    [
        ("x.jsonl",
         b'{"context": "a", "response": "b"}\n{"context": "a", "resp\nnull\n{"context": {"a": 1}, "response": "b"}\n'
         b'{"context": "a", "response": ["b", "c"]}\n{"context": "a", "response": "\xff"}\n',
         {"line 2": "not JSON (Unterminated string starting at)", "line 3": "not a JSON object",
          "line 4": "context is neither text nor a list of turns", "line 5": "response is not text",
          "line 6": "not UTF-8; save the file as UTF-8"}),
        ("x.csv",
         b'context,response\na,b\na\na,"b\na,c\na,\xff\n',
         {"line 3": "1 cells, the header has 2", "line 4": "a quote that is not closed, or out of place",
          "line 6": "not UTF-8; save the file as UTF-8"}),
        ("x.txt",
         b'a\tb\na b\na\tb\tc\n\xff\tb\n[{"a": 1}]\tb\n',
         {"line 2": "0 tabs, expected one, between context and response",
          "line 3": "2 tabs, expected one, between context and response",
          "line 4": "not UTF-8; save the file as UTF-8", "line 5": "context is neither text nor a list of turns"}),
        ("x.json", b'[{"context": "a", "response": "b"}, 7]', {"row 2": "not a JSON object"}),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_kept_with_its_place(
    tmp_path: Path, name: str, content: bytes, faults: dict[str, str]
) -> None:
    (tmp_path / name).write_bytes(content)
    rows = read_responses(str(tmp_path / name)).rows
    assert {row.where: row.fault for row in rows if row.sample is None} == faults
    assert any(row.sample == Sample(("a",), "b") for row in rows)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.json", None, "does not exist"),
        ("x.json", b" \n", "is empty"),
        ("x.json", b"[]", "holds no response"),
        ("x.json", b'[{"context": "a"', "line 1: not JSON"),
        ("x.json", b'{"a": 1}', "no column is known as context or response"),
        ("x.json", b"[1, 2]", "none of its rows .2. can be read as json"),
        ("x.csv", b"a,b,c\n1,2,3\n", "no column is known as context or response; the columns are a, b, c"),
        (
            "x.csv",
            b"chat_id,role,text\n1,user,hi\n",
            "rows are messages, in conversations by 'chat_id'.* ssrem ingest",
        ),
        ("x.txt", b"just a line\nand another\n", "is of no format that is read"),
        ("x.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is of no format that is read"),
        ("x.parquet", b"PAR1 and no more", "not a Parquet file"),
    ],
)
def test_a_file_in_the_wrong_format_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(AnnotationError, match=said) as raised:
        read_responses(str(tmp_path / name))
    assert name in str(raised.value) and "\n" not in str(raised.value)


def test_a_format_that_is_not_the_contents(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("context,response\na,b\n")
    with pytest.raises(AnnotationError, match=r"none of its rows \(2\) can be read as text .*line 1: 0 tabs"):
        read_responses(str(tmp_path / "x"), "text")


@pytest.mark.parametrize("indent", [None, 2])
def test_an_object_holds_the_rows_or_is_one(tmp_path: Path, indent: int | None) -> None:
    answer = {"role": "assistant", "content": "Ho"}
    row = {"prompt": [{"speaker": "ann", "utterance": "Hi"}], "response": answer}
    path = tmp_path / "x.json"
    for value in (row, {"version": 1, "data": [{**row, "references": ["a", "b"]}]}):
        path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
        (read,) = read_responses(str(path)).rows
        assert read.sample == Sample(("Hi",), "Ho", None if value is row else "a")
