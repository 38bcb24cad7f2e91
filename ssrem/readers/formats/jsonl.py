"""JSON lines: an utterance a line, or a conversation a line with `utterances`; plain, gzip or zstd.

Arrow reads blocks of similar rows as whole columns. A block with anything unusual in it is read again line by line,
which gives the same rows, and the exact bytes of the lines that cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.json

from ssrem.errors import DumpError
from ssrem.readers.base import Reader, Record, no_object, problem
from ssrem.readers.fields import NEEDED, check_header, unknown_columns
from ssrem.readers.json_members import parse_json
from ssrem.readers.json_rows import is_array
from ssrem.readers.learned_schema import LearnedSchema
from ssrem.readers.metadata import encodable
from ssrem.readers.rows import MalformedRowError, joined_text, raw_batch
from ssrem.readers.streams import blocks, head, is_utf8, shown, text_name
from ssrem.readers.times import NotVectorisableError

#: The key whose list makes a line a conversation.
UTTERANCES = "utterances"
_SAMPLE_ROWS = 1_000
_NEWLINE, _RETURN = ord("\n"), ord("\r")


class JsonlReader(Reader):
    """JSON lines. Keys that no field uses go to the metadata; null is the same as an absent key.

    A conversation line gives one 'conversation' record and then its messages, all with the line's number.
    """

    format: ClassVar[str] = "jsonl"
    describes: ClassVar[str] = "JSON lines, an utterance or a conversation a line; plain, .gz or .zst"
    takes_mapping: ClassVar[bool] = True
    parse_bytes: ClassVar[int] = 2 << 20

    def __init__(
        self, path: Path, *, mapping: Mapping[str, tuple[str, ...]] | None = None, batch_rows: int = 65_536
    ) -> None:
        super().__init__(path, mapping=mapping, batch_rows=batch_rows)
        self._learned = LearnedSchema(self.layout)

    @property
    def lines_path(self) -> Path:
        """The file that holds the lines."""
        return self.path

    @classmethod
    def sniff(cls, path: Path) -> bool:
        start = head(path)
        if start.lstrip().startswith(b"{") and b"\n" not in start.strip():
            return True  # the first line is the only one, or longer than the bytes inspected
        lines = [line for line in start.split(b"\n") if line.strip()]
        if lines and lines[0].strip() == b"[":
            return False  # one array over many lines
        return any(isinstance(parse_json(line), dict) for line in lines)

    @classmethod
    def missed(cls, path: Path) -> str | None:
        start = head(path)
        if is_array(path):
            return (
                "one array, not an object a line: jq -c '.[]' FILE > FILE.jsonl writes its entries as lines"
            )
        if not start.lstrip().startswith((b"{", b"[")) or cls.sniff(path):
            return None
        number, line = next((n, line) for n, line in enumerate(start.split(b"\n"), 1) if line.strip())
        return f"line {number} is not a whole JSON object: {shown(line)}"

    def check(self) -> None:
        super().check()
        rows = 0
        keys: dict[str, None] = {}
        mapped = {column for parts in self.mapping.values() for column in parts}
        for line in next(blocks(self.lines_path, self.block_bytes), b"").split(b"\n"):
            row = parse_json(line)
            if not isinstance(row, dict):
                continue
            rows += 1
            entries = row.get(UTTERANCES)
            for entry in (row, *(entries if isinstance(entries, list) else ())):
                keys.update(dict.fromkeys(entry if isinstance(entry, dict) else ()))
            if rows >= _SAMPLE_ROWS and mapped <= keys.keys():
                break
        if not rows:
            return
        check_header(self.path, list(keys), self.mapping, DumpError, "key")
        if UTTERANCES not in keys and not set(NEEDED) & self.layout.plan(tuple(keys)).sources.keys():
            raise unknown_columns(self.path, list(keys), NEEDED, DumpError, "key")

    def records(self) -> Iterator[Record | pa.RecordBatch]:
        self.file = text_name(self.lines_path)
        first = 1
        for block in self.blocks(self.lines_path):
            if first == 1:
                self._learn(block)
            newlines = np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE)
            batch = self._vectorised(block, newlines, first)
            if batch is not None:
                yield batch
            else:
                yield from self._row_by_row(block, first)
            first += len(newlines)

    def _learn(self, block: bytes) -> None:
        for line in block.split(b"\n", _SAMPLE_ROWS)[:_SAMPLE_ROWS]:
            row = parse_json(line)
            if isinstance(row, dict) and UTTERANCES not in row:
                self._learned.learn(row)

    def _vectorised(self, block: bytes, newlines: np.ndarray[Any, Any], first: int) -> pa.RecordBatch | None:
        """The block read as whole columns, or None if that might differ from reading it line by line."""
        rows = len(newlines) + (not block.endswith(b"\n"))
        schema = self._learned.schema()
        if not len(schema) or not _one_object_a_line(block, newlines) or not is_utf8(block):
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
            lines = pa.array(np.arange(first, first + rows, dtype=np.int64))
            return raw_batch(columns, self.layout, self.file, lines)
        except (pa.ArrowInvalid, NotVectorisableError):
            return None

    def _row_by_row(self, block: bytes, first: int) -> Iterator[Record]:
        for number, line in enumerate(block.split(b"\n"), first):
            if not line.strip():
                continue
            row = parse_json(line)
            if not isinstance(row, dict):
                yield no_object(self.file, number, line)
            elif b"\\u" in line.lower() and not encodable(json.dumps(row, ensure_ascii=False)):
                yield problem("undecodable", self.file, number, line)
            elif row.get(UTTERANCES) is not None:
                yield from self._conversation(row, number, line)
            else:
                message = self.message(self.file, number, row, line)
                if number % 32 == 0 and "problem" not in message:
                    self._learned.learn(row)
                yield message

    def _conversation(self, row: dict[str, Any], number: int, line: bytes) -> Iterator[Record]:
        """The records of a line that holds a conversation."""
        entries = row[UTTERANCES]
        sources = self.layout.plan(tuple(row)).sources
        columns = sources.get("conversation") or (
            () if "conversation" in self.mapping else sources.get("id", ())
        )
        try:
            id = joined_text(row, columns, ":") if columns else None
        except MalformedRowError:
            entries = None
        if not isinstance(entries, list):
            yield problem("malformed_row", self.file, number, line)
            return
        about = {name: value for name, value in row.items() if name not in (*columns, UTTERANCES)}
        yield self.conversation(self.file, number, id, about)
        known: dict[str, Any] = {} if id is None else {"conversation_id": id}
        for entry in entries:
            yield self.message(self.file, number, entry, **known)


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


def _joined(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)
