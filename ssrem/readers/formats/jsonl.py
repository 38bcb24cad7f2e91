"""JSON lines: an utterance a line, or a conversation a line with `utterances`; or the entries of one array.

Arrow reads blocks of similar rows as whole columns. Rows with anything unusual are read again line by line, which gives
the same rows, and the exact bytes of the lines that cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.json

from ssrem.errors import DumpError, short_repr
from ssrem.readers.base import SAMPLE_ROWS, Reader, Record, no_object, problem
from ssrem.readers.blocks import RETURN, Block, BlockReader
from ssrem.readers.fields import check_header, listed, unknown_columns
from ssrem.readers.files.streams import blocks, excerpt, head, is_parquet, is_utf8, text_name
from ssrem.readers.json.learned_schema import LearnedSchema
from ssrem.readers.json.rows import first_objects, is_pair, row_places
from ssrem.readers.json.values import parse_json
from ssrem.readers.metadata import encodable, escaped
from ssrem.readers.paths import Paths
from ssrem.readers.rows import MalformedRowError, joined_text, table_batch
from ssrem.readers.times import NotVectorisableError

UTTERANCES = "utterances"
"""The key whose list makes a line a conversation."""
_OTHER_LISTS = ("turns", "dialog", "dialogue", "messages")
"""Keys whose list makes a row without a text of its own a conversation; its entries may be texts alone."""


class JsonlReader(Reader):
    """JSON lines. Keys that no field uses go to the metadata; null is the same as an absent key.

    A conversation line gives one 'conversation' record and then its messages, all with the line's number. If turns are
    texts alone, a list `speakers` names the speaker of each, and the row is 'speaker_count' if it is shorter or longer;
    without it two seats, A and B, speak in turn. The id of a conversation without one is the number of its line. A tree
    of messages, a `prompt` with nested `replies`, is a conversation, too. In an array or Parquet, `line` is the number
    of the entry.
    """

    format: ClassVar[str] = "jsonl"
    describes: ClassVar[str] = (
        "JSON lines or one array, an utterance or a conversation each, or Parquet with a conversation a row"
    )
    takes_mapping: ClassVar[bool] = True
    kind_of_column: ClassVar[str] = "key"
    parse_bytes: ClassVar[int] = 2 << 20

    def __init__(
        self, path: Path, *, mapping: Mapping[str, tuple[str, ...]] | None = None, batch_rows: int = 65_536
    ) -> None:
        super().__init__(path, mapping=mapping, batch_rows=batch_rows)
        self._learned = LearnedSchema(self.layout)
        self._paths: Paths | None = None

    @property
    def lines_path(self) -> Path:
        """The file that holds the lines."""
        return self.path

    @classmethod
    def sniff(cls, path: Path) -> bool:
        if is_parquet(path):
            return any(isinstance(cls(path)._entries(row), list) for row in first_objects(path))
        start = head(path)
        if start.lstrip().startswith(b"{") and b"\n" not in start.strip():
            return True  # the first line is the only one, or longer than the bytes inspected
        if row_places(path):
            return True
        lines = [line for line in start.split(b"\n") if line.strip()]
        return any(isinstance(parse_json(line), dict) for line in lines)

    @classmethod
    def near_miss(cls, path: Path) -> str | None:
        start = head(path)
        if not start.lstrip().startswith((b"{", b"[")) or cls.sniff(path):
            return None
        number, line = next((n, line) for n, line in enumerate(start.split(b"\n"), 1) if line.strip())
        return f"line {number} is not a whole JSON object: {excerpt(line)}"

    def check(self) -> None:
        super().check()
        mapped = {column for parts in self.mapping.values() for column in parts}
        rows: list[dict[str, Any]] = []
        keys: dict[str, None] = {}
        for row in self._first_rows():
            rows.append(row)
            for entry in (row, *(self._listed_entries(row) or ())):
                keys.update(dict.fromkeys(entry if isinstance(entry, dict) else ()))
            if len(rows) >= SAMPLE_ROWS and mapped <= keys.keys():
                break
        self.bytes_read = 0
        if not rows:
            return
        if paths := Paths.of(self.mapping, keys):
            self._follow(paths, rows, list(keys))
        else:
            check_header(self.path, list(keys), self.mapping, DumpError, "key")
        self._note_lists(rows[0])
        sample = list(self._messages(rows))
        objects = any(number is not None for number, _ in sample)
        whole = objects or any(self._listed_entries(row) is not None for row in rows)
        names = dict.fromkeys(name for _, message in sample for name in message)
        sources = self.layout.plan((*keys, *names)).sources.keys()
        missing = ["speaker", "text"] if objects else [] if whole else self.layout.needed
        missing = [field for field in missing if field not in sources]
        if {"speaker", "text"} & {*missing}:
            raise unknown_columns(self.path, list(keys), missing, DumpError, "key", rows[0])

    def _follow(self, paths: Paths, rows: list[dict[str, Any]], keys: list[str]) -> None:
        """Read the fields of `--map` at these paths; DumpError if one leads to nothing in all of the rows."""
        if (path := paths.missing(rows)) is not None:
            raise DumpError(
                f"{self.path}: --map names {path!r}, which is not there; the keys are {listed(keys)}; a row is "
                f"{short_repr(rows[0], 300)}"
            )
        self._paths = paths
        self.layout.map(paths.keys)

    def _note_lists(self, row: dict[str, Any]) -> None:
        """Note which list of messages is read, if the row has several."""
        lists = [key for key, value in row.items() if self._are_messages(value) or _are_pairs(value)]
        if self._paths is None and len(lists) > 1:
            read = next((key for key in lists if row[key] is self._entries(row)), lists[0])
            other = next(key for key in lists if key != read)
            speaker, text = ("0", "1") if _are_pairs(row[other]) else ("speaker", "text")
            self.notes.append(
                f"of the lists {' and '.join(map(repr, lists))} {read!r} is read; --map "
                f"speaker={other}.*.{speaker} text={other}.*.{text} reads {other!r}"
            )

    def sample(self) -> Iterator[tuple[object, Mapping[str, Any]]]:
        return self._messages(islice(self._first_rows(), SAMPLE_ROWS))

    def _messages(self, rows: Iterable[dict[str, Any]]) -> Iterator[tuple[object, Mapping[str, Any]]]:
        """The messages of the rows, each with the place of its row if that holds several, else with None."""
        for number, row in enumerate(rows):
            messages = self._listed_entries(row)
            for message in [row] if messages is None else messages:
                if isinstance(message, dict):
                    yield None if messages is None else number, message

    def _listed_entries(self, row: dict[str, Any]) -> list[Any] | None:
        """The messages of a row that holds several; None for one that is a message."""
        if self._paths is not None:
            return self._paths.messages(row)[1]
        entries = self._entries(row)
        return entries if isinstance(entries, list) else None

    def _first_rows(self) -> Iterator[dict[str, Any]]:
        """The objects of the first block, or of an array, an object or Parquet."""
        if self._is_parsed():
            rows: Iterator[object] = (_of_list(row) for _, row, _ in self.rows(self.lines_path))
        else:
            rows = map(parse_json, next(blocks(self.lines_path, self.block_bytes), b"").split(b"\n"))
        return (row for row in rows if isinstance(row, dict))

    def _is_parsed(self) -> bool:
        """Whether the rows are parsed already, from an array, an object or Parquet, and not lines."""
        return is_parquet(self.lines_path) or bool(row_places(self.lines_path))

    def _entries(self, row: Mapping[str, Any]) -> object:
        """The messages of a row that is a conversation; None for a message."""
        if row.get(UTTERANCES) is not None:
            return self._listed(row[UTTERANCES])
        prompt = row.get("prompt")
        sources = self.layout.plan(tuple(row)).sources
        messages = next(filter(self._are_messages, row.values()), None) if "speaker" not in sources else None
        if "text" in sources:
            return messages
        if isinstance(prompt, dict) and isinstance(prompt.get("replies"), list):
            return _of_tree(prompt)
        lists = (self._listed(row.get(key)) for key in _OTHER_LISTS)
        return next((entries for entries in lists if isinstance(entries, list)), messages)

    def _listed(self, value: object) -> object:
        """An object with a list of speakers and one of texts, as data sets of Hugging Face are stored, as the list of
        messages; any other value unchanged."""
        if not isinstance(value, dict) or not all(isinstance(part, list) for part in value.values()):
            return value
        if not {"speaker", "text"} <= self.layout.plan(tuple(value)).sources.keys():
            return value
        if len({len(part) for part in value.values()}) > 1:
            return value
        return [dict(zip(value, parts, strict=True)) for parts in zip(*value.values(), strict=True)]

    def _are_messages(self, value: object) -> bool:
        """Whether it is a list of objects of which the first has a speaker and a text."""
        first = value[0] if isinstance(value, list) and value else None
        return (
            isinstance(first, dict) and {"speaker", "text"} <= self.layout.plan(tuple(first)).sources.keys()
        )

    def records(self) -> Iterator[Record | pa.RecordBatch]:
        self.file = text_name(self.lines_path)
        if self._is_parsed():
            for number, row, raw in self.rows(self.lines_path):
                yield from self._row(_of_list(row), number, raw)
            return
        reader: BlockReader[Record | pa.RecordBatch] = BlockReader(self._vectorised, self._row_by_row)
        first = 1
        for content in self.blocks(self.lines_path):
            if first == 1:
                self._learn(content)
            block = Block.of_lines(content, first)
            yield from reader.records(block)
            first += len(block)

    def _learn(self, block: bytes) -> None:
        for line in block.split(b"\n", SAMPLE_ROWS)[:SAMPLE_ROWS]:
            row = parse_json(line)
            if isinstance(row, dict) and self._entries(row) is None:
                self._learned.learn(row)

    def _vectorised(self, block: Block) -> pa.RecordBatch | None:
        """The block read as whole columns, or None if that might differ from reading it line by line."""
        schema = self._learned.schema()
        if self._paths or not len(schema) or not _one_object_a_line(block) or not is_utf8(block.content):
            return None
        try:
            table = pyarrow.json.read_json(
                pa.BufferReader(block.content),
                pyarrow.json.ReadOptions(block_size=self.parse_bytes),
                pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
            )
            return table_batch(table, block, self.layout, self.file)
        except (pa.ArrowInvalid, NotVectorisableError):
            return None

    def _row_by_row(self, block: Block) -> Iterator[Record]:
        for number, line in enumerate(block.content.removesuffix(b"\n").split(b"\n"), int(block.lines[0])):
            if line.strip():
                yield from self._row(parse_json(line), number, line)

    def _row(self, row: object, number: int, line: bytes) -> Iterator[Record]:
        """The records of a row; line: its bytes."""
        if not isinstance(row, dict):
            yield no_object(self.file, number, line)
        elif b"\\u" in line.lower() and not encodable(json.dumps(row, ensure_ascii=False)):
            yield problem("undecodable", self.file, number, line)
        elif self._paths is not None:
            yield from self._mapped(row, self._paths, number, line)
        elif (entries := self._entries(row)) is not None:
            yield from self._conversation(row, entries, number, line)
        else:
            message = self.message(self.file, number, row, line)
            if number % 32 == 0 and "problem" not in message:
                self._learned.learn(row)
            yield message

    def _mapped(self, row: dict[str, Any], paths: Paths, number: int, line: bytes) -> Iterator[Record]:
        """The records of a row whose fields are at the paths of `--map`."""
        about, messages = paths.messages(row)
        if messages is None or paths.members is not None:
            yield from self._conversation(about, messages, number, line)
        else:
            for message in messages:
                yield self.message(self.file, number, message, line)

    def _conversation(
        self, row: dict[str, Any], entries: object, number: int, line: bytes
    ) -> Iterator[Record]:
        """The records of a line that holds a conversation."""
        sources = self.layout.plan(tuple(row)).sources
        columns = sources.get("conversation") or (
            () if "conversation" in self.mapping else sources.get("id", ())
        )
        texts = bool(entries) and isinstance(entries, list) and all(isinstance(e, str) for e in entries)
        try:
            id = joined_text(row, columns, "conversation") if columns else None
            names = _names(row.get("speakers")) if texts else []
        except MalformedRowError:
            entries = None
        if not isinstance(entries, list):
            yield problem("malformed_row", self.file, number, line)
            return
        pairs = _are_pairs(entries)
        if not columns and "conversation" not in self.mapping:
            own = (self.layout.plan(tuple(entry)).sources for entry in entries if isinstance(entry, dict))
            id = None if any("conversation" in fields for fields in own) else str(number)
        if names and len(names) != len(entries):
            yield problem("speaker_count", self.file, number, line, conversation_id=id)
            return
        about = {
            name: value
            for name, value in row.items()
            if name not in (*columns, UTTERANCES)
            and value is not entries
            and self._listed(value) is value
            and not (isinstance(value, dict) and "replies" in value)
        }
        yield self.conversation(self.file, number, id, about)
        known: dict[str, Any] = {} if id is None else {"conversation_id": id}
        for at, entry in enumerate(entries):
            if texts:
                seat = {"speaker": names[at] if names else "AB"[at % 2], "text": entry}
                yield self.message(self.file, number, {}, escaped(entry), **known, **seat)
            elif pairs:
                seat = {"speaker": str(entry[0]), "text": entry[1]}
                yield self.message(self.file, number, {}, escaped(entry), **known, **seat)
            else:
                yield self.message(self.file, number, entry, **known)


def _are_pairs(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_pair, value))


def _of_list(row: object) -> object:
    """A list among the rows of an array or object as the conversation that it is."""
    return {UTTERANCES: row} if isinstance(row, list) else row


def _names(speakers: object) -> list[str | None]:
    """Who says each of the texts that a list of `speakers` goes with; empty if there is no such list. Raises
    MalformedRowError."""
    names = speakers if isinstance(speakers, list) else []
    return [joined_text({"speaker": name}, ("speaker",), "speaker") for name in names]


def _of_tree(root: dict[str, Any]) -> list[object]:
    """The messages of a tree of nested `replies`, parents first; `parent_id` says which each replies to."""
    messages: list[object] = []
    nodes: list[tuple[object, object]] = [(root, None)]
    while nodes:
        node, parent = nodes.pop()
        if not isinstance(node, dict):
            messages.append(node)
            continue
        replies = node.get("replies")
        id = node.get("message_id", node.get("id"))
        messages.append(
            {"parent_id": parent, **{key: value for key, value in node.items() if key != "replies"}}
        )
        nodes += [(reply, id) for reply in reversed(replies if isinstance(replies, list) else [])]
    return messages


def _one_object_a_line(block: Block) -> bool:
    """Whether every line starts with `{` and ends with `}`.

    In valid JSON, `}` newline `{` occurs between top-level values only, so a block of which this is true and that holds
    as many objects as lines has exactly one on each line.
    """
    signs = np.frombuffer(block.content, np.uint8)
    ends = block.ends - 1
    starts = np.append(0, block.ends[:-1])
    last = signs[ends - 1]
    returns = last == RETURN
    if returns.any():
        last = np.where(returns, signs[ends - 2], last)
    return bool((ends > starts).all() and (signs[starts] == ord("{")).all() and (last == ord("}")).all())
