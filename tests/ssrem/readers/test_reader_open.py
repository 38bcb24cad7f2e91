"""Opening a dump: the format by its content, and one line where it cannot be."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from ssrem.errors import DumpError
from ssrem.readers import FORMATS, guess_format, open_dump, reader_class
from ssrem.readers.files.streams import DumpFile
from support.exports import EXPORTS, write_dump
from support.reader_rows import reader_of
from support.sound_dumps import DUMPS

SAMPLES = {format: dumps[0] for format, dumps in (DUMPS | EXPORTS).items()}


@pytest.fixture(params=FORMATS)
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    path = tmp_path / "dump"
    write_dump(SAMPLES[request.param], path)
    return request.param, path


def test_every_format_is_known_by_its_content(sample: tuple[str, Path]) -> None:
    format, path = sample
    assert guess_format(DumpFile(path)) == format
    assert open_dump(path).format == format
    assert open_dump(str(path), format=format).format == format


@pytest.mark.parametrize("wrong", FORMATS)
def test_a_format_that_the_content_is_not_is_one_line(sample: tuple[str, Path], wrong: str) -> None:
    format, path = sample
    # A header may hold tabs and commas, and lines of objects may be any kind of JSON.
    tables = {"csv", "tsv", "empathetic-dialogues"}
    objects = {
        *("chitchat", "chatgpt", "discord", "mattermost", "openai", "reddit", "sharegpt"),
        *("telegram", "topical-chat"),
    }
    if wrong == format or {wrong, format} <= tables or (wrong == "jsonl" and format in objects):
        return
    with pytest.raises(DumpError) as error:
        open_dump(path, format=wrong)
    says = f"{path} is not {wrong} but looks like {format}; leave out --format or give --format {format}"
    assert re.sub(r" \(.*\)(?= but)", "", str(error.value)) == says


def test_what_every_reader_offers(sample: tuple[str, Path]) -> None:
    format, path = sample
    reader = reader_of(reader_class(format), path)
    reader.open()
    assert reader.format == format
    assert reader.describes
    assert reader.files() == sorted(reader.files()) and all(file.is_file() for file in reader.files())
    first, again = (pa.Table.from_batches(reader) for _ in range(2))
    assert first == again
    assert {"message"} <= set(first.column("record").to_pylist()) <= {"message", "conversation"}
    assert reader.bytes_read == reader.total_bytes


def _file(content: bytes) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(content)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda _: None, "there is no such file or folder"),
        (_file(b""), "the file is empty"),
        (_file(b" \n\n"), "the file is empty"),
        (_file(gzip.compress(b"")), "the file is empty"),
        (_file(gzip.compress(b"abc" * 1000)[:-20]), "damaged or cut off"),
        (lambda path: path.mkdir(), "the folder is empty"),
        (lambda path: (path.mkdir(), (path / "x").touch()), "no file in the folder is of a known format"),
        (
            _file(b"just words\n"),
            "its first line is 'just words'; the formats are chatgpt, chitchat, convokit",
        ),
        (_file(b"just words\n"), "or write it as CSV with the columns conversation, speaker and text"),
        (_file(b'["a",\n "b"]'), "of no known format"),
        (_file(b"\x00\x01\x02, \xff"), "of no known format"),
        (_file(b"PAR1 and nothing"), "not a whole Parquet file"),
    ],
)
def test_dumps_that_cannot_be_read_are_one_line(
    tmp_path: Path, make: Callable[[Path], Any], says: str
) -> None:
    path = tmp_path / "dump"
    make(path)
    with pytest.raises(DumpError) as error:
        for _ in open_dump(path):
            pass
    assert says in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"speaker": "ann", "text": "hi"}', "no key is known as conversation; the keys are speaker, text;"),
        ('[{"a": 1}]', "no key is known as conversation or speaker or text; the keys are a;"),
        ('[{"text": "x"},\n{"te', "broken JSON in line 2, column 2 (Unterminated string starting at)"),
        ('["a", "b"]', 'its first line is \'["a", "b"]\''),
        ('\n{"a":\n 1}', "no key is known as conversation or speaker or text; the keys are a;"),
        (
            "<?xml version='1.0'?>\n<m>Hi</m>\n",
            "is XML, which no reader takes; export its conversations as CSV",
        ),
        ("%PDF-1.4\n", "is a PDF file, which no reader takes"),
        (
            "id,name\n1,a\n",
            "no column is known as conversation or speaker or text; the columns are id, name;",
        ),
        ("2008-04-23T14:55:00.000Z\tann\t\thi\n", "line 1 is a row, not a header: '2008-04-23T14:55:00.000Z"),
        ("L1 +++$+++ u0 +++$+++ m0 +++$+++ ANN +++$+++ Hi\n", "its first line is 'L1 +++$+++ u0"),
        ("a,a\n1,2\n", "the column 'a' is there twice; rename one"),
    ],
)
def test_what_the_nearest_formats_miss(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "dump"
    path.write_text(content)
    with pytest.raises(DumpError) as error:
        open_dump(path)
    assert says in str(error.value)
    assert str(error.value).isprintable()


def test_a_folder_that_lacks_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "movie_lines.txt").write_text("L1\n")
    with pytest.raises(DumpError) as error:
        open_dump(tmp_path)
    assert "cornell lacks movie_conversations.txt" in str(error.value)


def test_a_format_that_is_guessed_is_noted_with_why(sample: tuple[str, Path]) -> None:
    format, path = sample
    note = f"read as {format}, by its content: {reader_class(format).describes}; --format overrides"
    assert note in open_dump(path).notes
    assert note not in open_dump(path, format=format).notes


@pytest.mark.parametrize("format", ["chitchat", "convokit"])
def test_a_mapping_is_refused_where_the_fields_are_known(tmp_path: Path, format: str) -> None:
    write_dump(SAMPLES[format], tmp_path / "dump")
    with pytest.raises(DumpError, match="--map does not apply"):
        open_dump(tmp_path / "dump", mapping={"text": "x"})
