"""Opening a dump: the format by its content, and one line where it cannot be."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from ssrem.errors import DumpError
from ssrem.readers import FORMATS, guess_format, open_dump, reader_class
from ssrem.readers.files.streams import DumpFile
from support.exports import EXPORTS, write_dump
from support.sound_dumps import DUMPS

SAMPLES = {format: dumps[0] for format, dumps in (DUMPS | EXPORTS).items()}


TABLES = {"csv", "tsv", "empathetic-dialogues"}
OBJECTS = {
    "chitchat",
    "chatgpt",
    "discord",
    "mattermost",
    "openai",
    "reddit",
    "sharegpt",
    "telegram",
    "topical-chat",
}


@pytest.fixture(params=FORMATS)
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    return request.param, write_dump(SAMPLES[request.param], tmp_path / "dump")


def test_every_format_is_known_by_its_content(sample: tuple[str, Path]) -> None:
    format, path = sample
    assert guess_format(DumpFile(path)) == format
    guessed = open_dump(path)
    named = open_dump(str(path), format=format)
    assert guessed.format == named.format == format
    note = f"read as {format}, by its content: {reader_class(format).describes}; --format overrides"
    assert note in guessed.notes and note not in named.notes


def test_a_format_that_the_content_is_not_is_one_line(sample: tuple[str, Path]) -> None:
    """A header may hold tabs and commas, and lines of objects may be any kind of JSON."""
    format, path = sample
    for wrong in FORMATS:
        if wrong == format or {wrong, format} <= TABLES or (wrong == "jsonl" and format in OBJECTS):
            continue
        with pytest.raises(DumpError) as error:
            open_dump(path, format=wrong)
        says = f"{path} is not {wrong} but looks like {format}; leave out --format or give --format {format}"
        assert re.sub(r" \(.*\)(?= but)", "", str(error.value)) == says


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (gzip.compress(b""), "the file is empty"),
        (gzip.compress(b"abc" * 1000)[:-20], "damaged or cut off"),
        (b"just words\n", "its first line is 'just words'; the formats are chatgpt, chitchat, convokit"),
        (b"just words\n", "or write it as CSV with the columns conversation, speaker and text"),
        (b'["a",\n "b"]', "of no known format"),
        (b"\x00\x01\x02, \xff", "of no known format"),
        (b"PAR1 and nothing", "not a whole Parquet file"),
        (b'{"speaker": "ann", "text": "hi"}', "no key is known as conversation; the keys are speaker, text;"),
        (b'[{"a": 1}]', "no key is known as conversation or speaker or text; the keys are a;"),
        (b'[{"text": "x"},\n{"te', "broken JSON in line 2, column 2 (Unterminated string starting at)"),
        (b'["a", "b"]', 'its first line is \'["a", "b"]\''),
        (b'\n{"a":\n 1}', "no key is known as conversation or speaker or text; the keys are a;"),
        (
            b"<?xml version='1.0'?>\n<m>Hi</m>\n",
            "is XML, which no reader takes; export its conversations as CSV",
        ),
        (b"%PDF-1.4\n", "is a PDF file, which no reader takes"),
        (b"\xfd7zXZ\0\0", "is packed by xz (unpack it with xz -d), which no reader takes"),
        (
            b"id,name\n1,a\n",
            "no column is known as conversation or speaker or text; the columns are id, name;",
        ),
        (
            b"2008-04-23T14:55:00.000Z\tann\t\thi\n",
            "line 1 is a row, not a header: '2008-04-23T14:55:00.000Z",
        ),
        (b"L1 +++$+++ u0 +++$+++ m0 +++$+++ ANN +++$+++ Hi\n", "its first line is 'L1 +++$+++ u0"),
        (b"a,a\n1,2\n", "the column 'a' is there twice; rename one"),
    ],
)
def test_files_that_cannot_be_read_are_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "dump"
    path.write_bytes(content)
    assert says in _said(path)


def _said(path: Path) -> str:
    """The one line, which names the dump, that says why it cannot be read."""
    with pytest.raises(DumpError) as error:
        list(open_dump(path))
    assert str(path) in str(error.value) and str(error.value).isprintable()
    return str(error.value)


def test_folders_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    assert "there is no such file or folder" in _said(tmp_path / "none")
    with pytest.raises(DumpError, match="the name of a dump is empty"):
        list(open_dump(""))
    assert "the folder is empty" in _said(tmp_path)
    (tmp_path / "x").touch()
    assert "no file in the folder is of a known format" in _said(tmp_path)
    (tmp_path / "movie_lines.txt").write_text("L1\n")
    assert "cornell lacks movie_conversations.txt" in _said(tmp_path)


@pytest.mark.parametrize("format", ["chitchat", "convokit"])
def test_a_mapping_is_refused_where_the_fields_are_known(tmp_path: Path, format: str) -> None:
    write_dump(SAMPLES[format], tmp_path / "dump")
    with pytest.raises(DumpError, match="--map does not apply"):
        open_dump(tmp_path / "dump", mapping={"text": "x"})
