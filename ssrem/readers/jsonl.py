"""JSON lines: an utterance a line, or a conversation a line with `utterances`; plain, gzip or zstd.

Arrow reads blocks of similar rows as whole columns. A block with anything unusual in it is read again line by line,
which gives the same rows, and the exact bytes of the lines that cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.json

from ssrem.errors import DumpError
from ssrem.readers.arrow_types import LearnedSchema
from ssrem.readers.base import Reader, RowBuilder, sliced
from ssrem.readers.layout import Layout
from ssrem.readers.metadata import DEEPEST, canonical, canonical_object, too_deep
from ssrem.readers.rows import MalformedRowError, as_text, raw_batch, row_values
from ssrem.readers.streams import blocks, head, head_lines, text_name
from ssrem.readers.times import NotVectorisableError

#: The key whose list makes a line a conversation.
UTTERANCES = "utterances"
_SAMPLE_ROWS = 1_000
_NEWLINE, _RETURN = ord("\n"), ord("\r")

# NaN and Infinity, which some programs write although they are not JSON, are read as null.
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)


class JsonlReader(Reader):
    """JSON lines. Keys that no field uses go to the metadata; null is the same as an absent key.

    A conversation line gives one 'conversation' record and then its messages, all with the line's number.
    """

    format: ClassVar[str] = "jsonl"
    describes: ClassVar[str] = "JSON lines, an utterance or a conversation a line; plain, .gz or .zst"
    takes_mapping: ClassVar[bool] = True
    block_bytes: ClassVar[int] = 8 << 20
    parse_bytes: ClassVar[int] = 2 << 20

    def __init__(
        self,
        path: Path,
        *,
        mapping: Mapping[str, tuple[str, ...]] | None = None,
        batch_rows: int = 65_536,
    ) -> None:
        super().__init__(path, mapping=mapping, batch_rows=batch_rows)
        self._file = text_name(self._lines_path)
        self._layout = self._make_layout()
        self._learned = LearnedSchema(self._layout.is_time)

    def _make_layout(self) -> Layout:
        return Layout(self.mapping)

    @property
    def _lines_path(self) -> Path:
        """The file that holds the lines."""
        return self.path

    @classmethod
    def sniff(cls, path: Path) -> bool:
        if path.is_dir():
            return False
        start = head(path)
        if start.lstrip().startswith(b"{") and b"\n" not in start.strip():
            return True  # the first line is the only one, or longer than the bytes inspected
        lines = head_lines(path)
        if lines and lines[0].strip() == b"[":
            return False  # one array over many lines
        return any(isinstance(_parsed(line), dict) for line in lines)

    def check(self) -> None:
        rows = 0
        columns: dict[str, None] = {}
        wanted = {column for parts in self.mapping.values() for column in parts}
        for line in next(blocks(self._lines_path, self.block_bytes), b"").split(b"\n"):
            value = _parsed(line)
            if not isinstance(value, dict):
                continue
            rows += 1
            columns.update(dict.fromkeys(value))
            nested = value.get(UTTERANCES)
            for entry in nested if isinstance(nested, list) else ():
                columns.update(dict.fromkeys(entry if isinstance(entry, dict) else ()))
            if rows >= _SAMPLE_ROWS and wanted <= set(columns):
                break
        if not rows:
            return
        absent = sorted(wanted - set(columns))
        known = ", ".join(list(columns)[:20]) or "none"
        if absent:
            raise DumpError(
                f"{self.path}: --map names the key {absent[0]!r}, which is not there; the keys are {known}"
            )
        fields = self._layout.plan(tuple(columns)).sources.keys()
        if UTTERANCES not in columns and not {"conversation", "speaker", "text"} & fields:
            raise DumpError(
                f"{self.path}: no key is known as conversation, speaker or text; the keys are {known}; "
                "say which is which with --map, for example --map text=KEY"
            )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self.bytes_read = 0
        yield from self._lines(self._advance)

    def _lines(self, progress: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        builder = RowBuilder(self.batch_rows)
        line = 1
        for block in blocks(self._lines_path, self.block_bytes, progress):
            if line == 1:
                self._learn(block)
            newlines = np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE)
            batch = self._vectorised(block, newlines, line)
            if batch is not None:
                yield from sliced(batch, self.batch_rows)
            else:
                yield from self._row_by_row(block, line, builder)
            line += len(newlines)

    def _learn(self, block: bytes) -> None:
        for line in block.split(b"\n", _SAMPLE_ROWS)[:_SAMPLE_ROWS]:
            value = _parsed(line)
            if isinstance(value, dict) and UTTERANCES not in value:
                self._learned.learn(value)

    def _vectorised(self, block: bytes, newlines: np.ndarray[Any, Any], first: int) -> pa.RecordBatch | None:
        """The block read as whole columns, or None if that might differ from reading it line by line."""
        rows = len(newlines) + (not block.endswith(b"\n"))
        schema = self._learned.schema()
        if not len(schema) or not _one_object_a_line(block, newlines) or not _is_utf8(block):
            return None
        try:
            table = pyarrow.json.read_json(
                pa.BufferReader(block),
                pyarrow.json.ReadOptions(block_size=self.parse_bytes),
                pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
            )
            if table.num_rows != rows:
                return None
            columns = {name: _joined(table.column(name)) for name in table.column_names}
            plan = self._layout.plan(tuple(columns))
            lines = pa.array(np.arange(first, first + rows, dtype=np.int64))
            return raw_batch(columns, plan, self._layout, self._file, lines)
        except (pa.ArrowInvalid, NotVectorisableError):
            return None

    def _row_by_row(self, block: bytes, first: int, builder: RowBuilder) -> Iterator[pa.RecordBatch]:
        for number, line in enumerate(block.split(b"\n"), first):
            if line.strip():
                yield from self._add_line(line, number, builder, learn=number % 32 == 0)
                yield from builder.full_batches()
        yield from builder.batches()

    def _add_line(
        self, line: bytes, number: int, builder: RowBuilder, *, learn: bool
    ) -> Iterator[pa.RecordBatch]:
        """Add the line's records to the builder, and yield the batches that fill up before its last record."""
        row = _parsed(line)
        if not isinstance(row, dict):
            return builder.add_problem(
                "broken_json" if _is_utf8(line) else "undecodable", self._file, number, line
            )
        if not _encodable(row, line):
            return builder.add_problem("undecodable", self._file, number, line)
        try:
            if row.get(UTTERANCES) is not None:
                yield from self._add_conversation(row, number, builder)
                return None
            if learn:
                self._learned.learn(row)
            values = row_values(row, self._layout.plan(tuple(row)), self._layout)
            return builder.add("message", self._file, number, values)
        except MalformedRowError:
            return builder.add_problem("malformed_row", self._file, number, line)

    def _add_conversation(
        self, row: dict[str, object], number: int, builder: RowBuilder
    ) -> Iterator[pa.RecordBatch]:
        file = self._file
        entries = row[UTTERANCES]
        if not isinstance(entries, list):
            raise MalformedRowError
        plan = self._layout.plan(tuple(row))
        columns = plan.sources.get("conversation") or (
            () if "conversation" in self.mapping else plan.sources.get("id", ())
        )
        parts = [as_text(row[column]) for column in columns]
        conversation = ":".join(p for p in parts if p is not None) if parts and None not in parts else None
        rest = {name: value for name, value in row.items() if name not in columns and name != UTTERANCES}
        metadata = canonical_object(rest)
        builder.add("conversation", file, number, {"conversation_id": conversation, "metadata": metadata})
        for entry in entries:
            yield from builder.full_batches()
            try:
                if not isinstance(entry, dict):
                    raise MalformedRowError
                values = row_values(entry, self._layout.plan(tuple(entry)), self._layout)
            except MalformedRowError:
                raw = canonical(entry).encode()
                builder.add_problem("malformed_row", file, number, raw, {"conversation_id": conversation})
                continue
            if conversation is not None:
                values["conversation_id"] = conversation
            builder.add("message", file, number, values)


def _one_object_a_line(block: bytes, newlines: np.ndarray[Any, Any]) -> bool:
    """Whether every line starts with `{` and ends with `}`.

    In valid JSON, `}` newline `{` occurs between top-level values only, so a block of which this is true and that holds
    as many objects as lines has exactly one on each line.
    """
    signs = np.frombuffer(block, np.uint8)
    ends = newlines if block.endswith(b"\n") else np.append(newlines, len(block))
    starts = np.append(0, ends[:-1] + 1)
    last = signs[ends - 1]
    returns = last == _RETURN
    if returns.any():
        last = np.where(returns, signs[ends - 2], last)
    return bool((ends > starts).all() and (signs[starts] == ord("{")).all() and (last == ord("}")).all())


def _parsed(line: bytes) -> object:
    """The JSON value of a line; None if it is not JSON, or nested too deeply to be data."""
    try:
        value = _DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    deep = line.count(b"{") + line.count(b"[") > DEEPEST and too_deep(value)
    return None if deep else value


def _encodable(row: object, line: bytes) -> bool:
    """Whether UTF-8 can encode the row, unlike one with an escape such as \\ud800, half of a surrogate pair."""
    if b"\\ud" not in line and b"\\uD" not in line:
        return True
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_utf8(block: bytes) -> bool:
    offsets = pa.array([0, len(block)], pa.int64()).buffers()[1]
    text = pa.Array.from_buffers(pa.large_string(), 1, [None, offsets, pa.py_buffer(block)])
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _joined(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)
