"""JSON lines: an utterance a line, or a conversation a line with `utterances`; or the entries of one array.

Arrow reads blocks of similar rows as whole columns. Rows with anything unusual are read again line by line, which gives
the same rows, and the exact bytes of the lines that cannot be read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.json

from ssrem.errors import DumpError, short_repr
from ssrem.readers.base import SAMPLE_ROWS, Reader, Record, no_object, problem
from ssrem.readers.cells import first_line
from ssrem.readers.fields import check_header, listed
from ssrem.readers.files.streams import blocks, encodable, excerpt, head, is_parquet, is_utf8, text_name
from ssrem.readers.json_values import first_objects, is_pair, parse_json, row_places
from ssrem.readers.paths import Paths
from ssrem.readers.rows import MalformedRowError, joined_text, raw_batch
from ssrem.readers.times import NotVectorisableError

UTTERANCES = "utterances"
"""The key whose list makes a line a conversation."""
_FEW_ROWS = 512
"""Lines that are read one by one where some cannot be read as columns."""
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

    def __init__(
        self, path: Path, *, mapping: Mapping[str, tuple[str, ...]] | None = None, batch_rows: int = 65_536
    ) -> None:
        super().__init__(path, mapping=mapping, batch_rows=batch_rows)
        self._type = pa.struct([])
        """The type that represents messages exactly, as far as they are known."""
        self._paths: Paths | None = None

    @property
    def lines_path(self) -> Path:
        """The file that holds the lines."""
        return self.path

    @classmethod
    def sniff(cls, path: Path) -> bool:
        if is_parquet(path):
            return any(isinstance(cls(path)._entries(row), list) for row in first_objects(path))
        return bool(row_places(path) or first_objects(path))

    @classmethod
    def near_miss(cls, path: Path) -> str | None:
        start = head(path)
        if not start.lstrip().startswith((b"{", b"[")) or cls.sniff(path):
            return None
        number, line = first_line(start)
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
        names = list(keys)
        if not rows:
            return
        self._paths = paths = Paths.of(self.mapping, keys)
        if paths is None:
            check_header(self.path, names, self.mapping, DumpError, "key")
        elif (path := paths.missing(rows)) is not None:
            raise DumpError(
                f"{self.path}: --map names {path!r}, which is not there; the keys are {listed(names)}; a row is "
                f"{short_repr(rows[0], 300)}"
            )
        else:
            self.layout.map(paths.keys)
        self._note_lists(rows[0])

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
        if not isinstance(value, dict) or not self._names_message(value):
            return value
        if not all(isinstance(part, list) for part in value.values()) or len({*map(len, value.values())}) > 1:
            return value
        return [dict(zip(value, parts, strict=True)) for parts in zip(*value.values(), strict=True)]

    def _are_messages(self, value: object) -> bool:
        """Whether it is a list of objects of which the first has a speaker and a text."""
        return isinstance(value, list) and bool(value) and self._names_message(value[0])

    def _names_message(self, value: object) -> bool:
        """Whether it is an object with a speaker and a text."""
        return isinstance(value, dict) and {"speaker", "text"} <= self.layout.plan((*value,)).sources.keys()

    def records(self) -> Iterator[Record | pa.RecordBatch]:
        self.file = text_name(self.lines_path)
        if self._is_parsed():
            for number, row, raw in self.rows(self.lines_path):
                yield from self._row(_of_list(row), number, raw)
            return
        number = 1
        for content in self.blocks(self.lines_path):
            if number == 1:
                self._learn(map(parse_json, content.split(b"\n", SAMPLE_ROWS)[:SAMPLE_ROWS]))
            batch = self._columns(content, number)
            if batch is not None:
                yield batch
                number += len(batch)
                continue
            lines = content.removesuffix(b"\n").split(b"\n")
            for at in range(0, len(lines), _FEW_ROWS):
                part = lines[at : at + _FEW_ROWS]
                batch = self._columns(b"\n".join(part), number + at)
                yield from self._row_by_row(part, number + at) if batch is None else (batch,)
            number += len(lines)

    def _learn(self, rows: Iterable[object]) -> None:
        """Learn the types of the values of messages."""
        messages = [row for row in rows if isinstance(row, dict) and self._entries(row) is None]
        if messages:
            self._type = _merged(self._type, exact_type(messages))

    def _columns(self, content: bytes, number: int) -> pa.RecordBatch | None:
        """The lines read as whole columns, or None if that might differ from reading them one by one."""
        is_object = content.startswith(b"{") and content[-2:].rstrip().endswith(b"}")
        if self._paths or not self._type.num_fields or not is_object or not is_utf8(content):
            return None
        content = content.replace(b"\r\n", b"\n") if b"\r" in content else content
        signs = np.frombuffer(content, np.uint8)
        ends = np.flatnonzero(signs[:-1] == ord("\n"))
        # In valid JSON, `}` newline `{` is between top-level values only: with as many of them as lines, each has one.
        if not ((signs[ends - 1] == ord("}")).all() and (signs[ends + 1] == ord("{")).all()):
            return None
        fractions = [
            name
            for name in dict.fromkeys(_fractions(self._type, ""))
            if "time" not in self.layout.plan((name,)).sources
        ]
        if fractions and _has_whole_numbers(content, fractions):
            return None
        try:
            options = pyarrow.json.ParseOptions(pa.schema(self._type), unexpected_field_behavior="error")
            table = pyarrow.json.read_json(
                pa.BufferReader(content),
                pyarrow.json.ReadOptions(block_size=len(content)),
                options,
            )
            return raw_batch(table, np.arange(number, number + len(ends) + 1), self.layout, self.file)
        except (pa.ArrowInvalid, NotVectorisableError):
            return None

    def _row_by_row(self, lines: Sequence[bytes], first: int) -> Iterator[Record]:
        rows = []
        for number, line in enumerate(lines, first):
            if line.strip():
                rows.append(parse_json(line))
                yield from self._row(rows[-1], number, line)
        self._learn(rows[::32])

    def _row(self, row: object, number: int, line: bytes) -> Iterator[Record]:
        """The records of a row; line: its bytes."""
        if not isinstance(row, dict):
            yield no_object(self.file, number, line)
        elif b"\\u" in line and not encodable(json.dumps(row, ensure_ascii=False)):
            yield problem("undecodable", self.file, number, line)
        elif self._paths is not None:
            about, messages = self._paths.messages(row)
            if messages is None or self._paths.members is not None:
                yield from self._conversation(about, messages, number, line)
            else:
                yield from (self.message(self.file, number, message, line) for message in messages)
        elif (entries := self._entries(row)) is not None:
            yield from self._conversation(row, entries, number, line)
        else:
            yield self.message(self.file, number, row, line)

    def _conversation(
        self, row: dict[str, Any], entries: object, number: int, line: bytes
    ) -> Iterator[Record]:
        """The records of a line that holds a conversation."""
        sources = self.layout.plan(tuple(row)).sources
        columns = sources.get("conversation") or (
            () if "conversation" in self.mapping else sources.get("id", ())
        )
        try:
            id = joined_text(row, columns, "conversation") if columns else None
        except MalformedRowError:
            entries = None
        if not isinstance(entries, list):
            yield problem("malformed_row", self.file, number, line)
            return
        if not columns and "conversation" not in self.mapping:
            own = (self.layout.plan(tuple(entry)).sources for entry in entries if isinstance(entry, dict))
            id = None if any("conversation" in fields for fields in own) else str(number)
        said = _of_texts(entries, row.get("speakers"))
        if len(said) != len(entries):
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
        for entry in said:
            yield self.message(self.file, number, entry, **known)


def _are_pairs(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_pair, value))


def _of_list(row: object) -> object:
    """A list among the rows of an array or object as the conversation that it is."""
    return {UTTERANCES: row} if isinstance(row, list) else row


def _of_texts(entries: list[Any], speakers: object) -> list[Any]:
    """Texts, and pairs of a speaker and a text, as messages; none where the speakers of texts are more or fewer."""
    if _are_pairs(entries):
        return [{"speaker": str(speaker), "text": text} for speaker, text in entries]
    if not all(isinstance(entry, str) for entry in entries):
        return entries
    names = speakers if speakers and isinstance(speakers, list) else list(islice(cycle("AB"), len(entries)))
    pairs = zip(names, entries, strict=True) if len(names) == len(entries) else ()
    return [{"speaker": name, "text": text} for name, text in pairs]


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


_MOST_MEMBERS = 256
"""Most members of an object that are columns: objects whose keys are data, such as ids, must not fill the memory."""
_EXACT = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}


def exact_type(values: Sequence[object]) -> pa.DataType:
    """The Arrow type that represents the most frequent kind of these JSON values exactly; null if there is none."""
    kinds = Counter(type(value) for value in values if value is not None)
    kind = max(kinds, key=kinds.__getitem__, default=type(None))
    kind = float if kind is int and float in kinds else kind
    found: list[Any] = [value for value in values if type(value) is kind]
    if kind is dict:
        names = islice(
            dict.fromkeys(name for value in found for name in value if encodable(name)), _MOST_MEMBERS
        )
        return pa.struct([(name, exact_type([value.get(name) for value in found])) for name in names])
    if kind is list:
        inner = exact_type([member for value in found for member in value])
        # Arrow 26 reads lists of nulls wrongly; fractions in lists could not be told from whole numbers.
        return pa.list_(pa.string() if inner in (pa.null(), pa.float64()) else inner)
    return _EXACT.get(kind, pa.null())


def _merged(old: pa.DataType, new: pa.DataType) -> pa.DataType:
    """A type for the values of both; the newer one if there is none, the older one if it has too many members."""
    try:
        schemas = [pa.schema([("", kind)]) for kind in (old, new)]
        (new,) = pa.unify_schemas(schemas, promote_options="permissive").types
    except pa.ArrowTypeError:
        pass
    return old if str(new).count(":") > _MOST_MEMBERS else new


def _fractions(kind: pa.DataType, name: str) -> Iterator[str]:
    """The keys of fractions in values of this type, which may be those of this key."""
    if pa.types.is_floating(kind):
        yield name
    for field in map(kind.field, range(kind.num_fields)):
        yield from _fractions(field.type, field.name)


def _has_whole_numbers(content: bytes, names: Sequence[str]) -> bool:
    """Whether there are whole numbers among the fractions of these keys, from which Arrow would not tell them."""
    keys = (re.escape(json.dumps(name, ensure_ascii=ascii)) for name in names for ascii in (True, False))
    return re.search(rf"(?:{'|'.join(keys)})\s*:\s*-?\d+\s*[,}}]".encode(), content) is not None
