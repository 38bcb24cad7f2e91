"""JSON whose rows are utterances, or conversations with a list of utterances; and folders that ConvoKit dumped.

Arrow reads blocks of similar lines as whole columns. Lines with anything unusual are read again one by one, which gives
the same rows, and the exact bytes of the lines that cannot be read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.json

from ssrem.errors import DumpError, short_repr
from ssrem.readers.base import Reader, Record, malformed, problem
from ssrem.readers.fields import ALIASES, FEW, OF_FILE, check_header, listed
from ssrem.readers.files.streams import SAMPLE_ROWS, DumpFile, encodable, is_utf8
from ssrem.readers.json_values import is_pair, parse_json, row_of
from ssrem.readers.paths import Paths, values_at
from ssrem.readers.rows import MalformedRowError, id_of, joined_text, raw_batch
from ssrem.readers.times import NotVectorisableError

UTTERANCES = "utterances"
"""The key whose list makes a row a conversation."""
_FEW_ROWS = 512
"""Number of lines in each part into which a block is divided if it cannot be read as columns as a whole."""
_MOST_LOOKED_AT = 50_000
"""Number of first rows, at least one of which must have each key that `--map` names."""
_OTHER_LISTS = ("turns", "dialog", "dialogue", "messages")
"""Keys whose list makes a row without a text of its own a conversation; its entries may be texts alone."""


class JsonlReader(Reader):
    """JSON lines. Keys that no field uses go to the metadata, unless they are null.

    A row that is a conversation gives one 'conversation' record and then its messages, all with the row's number. If
    turns are only texts, a list `speakers` names the speaker of each, or else two seats, A and B, speak in turn. If
    that list has more or fewer members than there are turns, the problem of the row is 'speaker_count'. A conversation
    without an id has the number of its row as its id. A tree of messages, a `prompt` with nested `replies`, is a
    conversation, too. In one JSON value or Parquet, `line` is the number of the row.
    """

    format: ClassVar[str] = "jsonl"
    describes: ClassVar[str] = (
        "JSON lines or one array, an utterance or a conversation each, or Parquet with a conversation a row"
    )
    takes_mapping: ClassVar[bool] = True
    kind_of_column: ClassVar[str] = "key"
    _type: pa.DataType = pa.struct([])
    """The Arrow type that represents the messages seen so far exactly."""
    _paths: Paths | None = None
    _lists: frozenset[str] = frozenset()
    """The keys under which the first rows of the files hold their messages."""

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        if cls.required:  # the dumps of this format are folders
            return super().sniff(file)
        if file.is_parquet:
            reader = cls([file])
            return any(isinstance(reader._entries(row), list) for row in file.first_rows)
        return bool(file.first_rows)

    def check(self, file: DumpFile) -> None:
        rows, keys = file.first_rows, dict[str, None]()
        mapped = {column for columns in self.mapping.values() for column in columns}
        for at, row in enumerate(row for _, row, _ in file.rows()):
            if at >= SAMPLE_ROWS and (mapped <= keys.keys() or at > _MOST_LOOKED_AT):
                break
            entries = (row, *(self._listed_entries(row) or ())) if isinstance(row, dict) else ()
            for entry in entries:
                keys.update(dict.fromkeys(entry if isinstance(entry, dict) else ()))
        if not rows:
            return
        self._paths = paths = Paths.of(self.mapping, keys)
        if paths is None:
            check_header(file.path, list(keys), self.mapping, DumpError, "key")
        elif (path := paths.missing(rows)) is not None:
            inside = (f"{key}.*.{path}" for key, value in rows[0].items() if isinstance(value, list))
            near = next((one for one in inside if any(values_at(rows[0], tuple(one.split("."))))), "")
            raise DumpError(
                f"{file.path}: --map names {path!r}, which is not there{near and f' (did you mean {near}?)'}; the "
                f"keys are {listed(list(keys))}; a row is {short_repr(rows[0], 300)}"
            )
        self.layout.map(self.mapping if paths is None else paths.keys)
        lists = ((row, read) for row in rows if isinstance(read := self._entries(row), list))
        self._lists |= {key for row, read in lists for key in row if row[key] is read}
        self._check_pairs(file.path, rows)
        self._note_lists(rows[0])

    def _check_pairs(self, path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
        """Raise DumpError if pairs do not begin with a speaker: more than half of the first members differ."""
        lists = [(key, entries) for row in rows for key, entries in row.items() if _are_pairs(entries)]
        firsts = [pair[0] for _, entries in lists for pair in entries]
        if self._paths is None and len(firsts) >= FEW and 2 * len({*firsts}) > len(firsts):
            key = lists[0][0]
            raise DumpError(
                f"{path}: pairs such as {short_repr(lists[0][1][0])} do not begin with a speaker who speaks again; "
                f"give --map text={key}.*.0+{key}.*.1 if a pair is what one side said and the answer, or "
                f"--map speaker={key}.*.0 text={key}.*.1 if it is a speaker and a text"
            )

    def _note_lists(self, row: dict[str, Any]) -> None:
        """Note which list of messages is read, if the row has several."""
        lists = [key for key, value in row.items() if self._are_messages(value) or _are_pairs(value)]
        if self._paths is None and len(lists) > 1:
            read = next((key for key in lists if row[key] is self._entries(row)), lists[0])
            other = next(key for key in lists if key != read)
            sources = {} if _are_pairs(row[other]) else self.layout.plan((*row[other][0],)).sources
            speaker, text = (sources.get(name, (at,))[0] for at, name in (("0", "speaker"), ("1", "text")))
            self.notes.append(
                f"of the lists {' and '.join(map(repr, lists))} {read!r} is read; --map "
                f"speaker={other}.*.{speaker} text={other}.*.{text} reads {other!r}"
            )

    def sample(self, file: DumpFile) -> Iterator[tuple[object, Mapping[str, Any]]]:
        self._check_again(file)
        for number, row in enumerate(file.first_rows):
            messages = self._listed_entries(row)
            alone = messages is None or (self._paths is not None and self._paths.members is None)
            for message in [row] if messages is None else messages:
                if isinstance(message, dict):
                    yield None if alone else number, message

    def _listed_entries(self, row: dict[str, Any]) -> list[Any] | None:
        """The messages of a row that holds a list of them; None for a row that is a message itself."""
        if self._paths is not None:
            return self._paths.messages(row)[1]
        entries = self._entries(row)
        return entries if isinstance(entries, list) else None

    def _entries(self, row: Mapping[str, Any]) -> object:
        """The messages of a row that is a conversation, a list unless they are malformed; None for a message."""
        if row.get(UTTERANCES) is not None:
            return self._listed(row[UTTERANCES])
        prompt = row.get("prompt")
        sources = self.layout.plan(tuple(row)).sources
        is_message = {"speaker", "text"} <= sources.keys()
        messages = None if is_message else next(filter(self._are_messages, row.values()), None)
        if messages is None and not is_message and any(key in row and not row[key] for key in self._lists):
            return []  # in other rows the messages are there
        if "text" in sources:
            return messages
        if isinstance(prompt, dict) and isinstance(prompt.get("replies"), list):
            return _of_tree(prompt)
        lists = (self._listed(row.get(key)) for key in _OTHER_LISTS)
        return next((entries for entries in lists if isinstance(entries, list)), messages)

    def _listed(self, value: object) -> object:
        """Convert an object with a list of speakers and one of texts, as Hugging Face stores data sets, to a list of
        messages; any other value is returned unchanged."""
        if not isinstance(value, dict) or not self._names_message(value):
            return value
        if not all(isinstance(part, list) for part in value.values()) or len({*map(len, value.values())}) > 1:
            return value
        return [dict(zip(value, parts, strict=True)) for parts in zip(*value.values(), strict=True)]

    def _are_messages(self, value: object) -> bool:
        """Whether a value is a list whose first member is an object with a speaker and a text."""
        return isinstance(value, list) and bool(value) and self._names_message(value[0])

    def _names_message(self, value: object) -> bool:
        """Whether a value is an object with a speaker and a text."""
        return isinstance(value, dict) and {"speaker", "text"} <= self.layout.plan((*value,)).sources.keys()

    def _check_again(self, file: DumpFile) -> None:
        """Find the mapped keys again for a file of several, each of which may hold them elsewhere."""
        if self.mapping and len(self.parts) > 1:
            self.check(file)

    def records(self, file: DumpFile) -> Iterator[Record | pa.RecordBatch]:
        self._check_again(file)
        if file.json != "lines":
            for number, row, raw in file.rows():
                yield from self._row(row, file.name, number, raw)
            return
        number = 1
        for content in file.blocks():
            if number == 1:
                self._learn(map(parse_json, content.split(b"\n", SAMPLE_ROWS)[:SAMPLE_ROWS]))
            batch = self._columns(content, file.name, number)
            if batch is not None:
                yield batch
                number += len(batch)
                continue
            lines = content.removesuffix(b"\n").split(b"\n")
            for at in range(0, len(lines), _FEW_ROWS):
                part = lines[at : at + _FEW_ROWS]
                batch = self._columns(b"\n".join(part), file.name, number + at)
                yield from self._row_by_row(part, file.name, number + at) if batch is None else (batch,)
            number += len(lines)

    def _learn(self, rows: Iterable[object]) -> None:
        """Extend `_type` to represent the messages among these rows, too."""
        messages = [row for row in rows if isinstance(row, dict) and self._entries(row) is None]
        if messages:
            self._type = _merged(self._type, exact_type(messages))

    def _columns(self, content: bytes, file: str, number: int) -> pa.RecordBatch | None:
        """The lines read as whole columns, or None if that might differ from reading them one by one."""
        is_object = content.startswith(b"{") and content[-2:].rstrip().endswith(b"}")
        if self._paths or not self._type.num_fields or not is_object or not is_utf8(content):
            return None
        content = content.replace(b"\r\n", b"\n") if b"\r" in content else content
        signs = np.frombuffer(content, np.uint8)
        ends = np.flatnonzero(signs[:-1] == ord("\n"))
        # In valid JSON, `}` newline `{` is between top-level values only: if all newlines are such, each line is one.
        if not ((signs[ends - 1] == ord("}")).all() and (signs[ends + 1] == ord("{")).all()):
            return None
        try:
            options = pyarrow.json.ParseOptions(pa.schema(self._type), unexpected_field_behavior="error")
            table = pyarrow.json.read_json(
                pa.BufferReader(content),
                pyarrow.json.ReadOptions(block_size=len(content)),
                options,
            )
            return raw_batch(table, np.arange(number, number + len(ends) + 1), self.layout, file)
        except (pa.ArrowInvalid, NotVectorisableError):
            return None

    def _row_by_row(self, lines: Sequence[bytes], file: str, first: int) -> Iterator[Record]:
        rows = []
        for number, line in enumerate(lines, first):
            if line.strip():
                rows.append(row_of(line))
                yield from self._row(rows[-1], file, number, line)
        self._learn(rows[::32])

    def _row(self, row: object, file: str, number: int, raw: object) -> Iterator[Record]:
        """Yield the records of a row. raw: its bytes, or its value."""
        if not isinstance(row, dict):
            yield malformed(file, number, raw, "broken_json")
        elif isinstance(raw, bytes) and b"\\u" in raw and not encodable(json.dumps(row, ensure_ascii=False)):
            yield problem("undecodable", file, number, raw)
        elif self._paths is not None:
            about, messages = self._paths.messages(row)
            if messages is None or self._paths.members is not None:
                yield from self._conversation(about, messages, file, number, raw)
            else:
                yield from (self.message(file, number, message, raw) for message in messages)
        elif (entries := self._entries(row)) is not None:
            yield from self._conversation(row, entries, file, number, raw)
        else:
            yield self.message(file, number, row, raw)

    def _conversation(
        self, row: dict[str, Any], entries: object, file: str, number: int, raw: object
    ) -> Iterator[Record]:
        """Yield the records of a row that holds a conversation with these entries."""
        sources = self.layout.plan(tuple(name for name in row if row[name] is not entries)).sources
        columns = sources.get("conversation") or (
            () if "conversation" in self.mapping else sources.get("id", ())
        )
        try:
            id = joined_text(row, columns, "conversation") if columns else None
            owner = self.mapping.get("person", ())
            people = {name: id_of(of) if isinstance(of := row.get(name), dict) else of for name in owner}
            person = joined_text(people, owner, "person") if people else None
        except MalformedRowError:
            entries = None
        if not isinstance(entries, list):
            yield problem("malformed_row", file, number, raw)
            return
        if not columns and "conversation" not in self.mapping:
            own = (self.layout.plan(tuple(entry)).sources for entry in entries if isinstance(entry, dict))
            named = self.layout.instead == OF_FILE or any("conversation" in fields for fields in own)
            id = None if named else str(number)
        said = _of_texts(entries, row.get("speakers"))
        if len(said) != len(entries):
            yield problem("speaker_count", file, number, raw, conversation_id=id)
            return
        about = {
            name: value
            for name, value in row.items()
            if name not in (*columns, UTTERANCES)
            and value is not entries
            and self._listed(value) is value
            and not (isinstance(value, dict) and "replies" in value)
        }
        conversation = self.conversation(file, number, id, about, row)
        yield conversation
        if "problem" in conversation:
            return
        known: dict[str, Any] = {} if id is None else {"conversation_id": id}
        known |= {} if person is None else {"person": person}
        for entry in said:
            yield self.message(file, number, entry, **known)


def _are_pairs(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(is_pair, value))


def _of_texts(entries: list[Any], speakers: object) -> list[Any]:
    """Convert texts, or pairs of a speaker and a text, to messages; other entries are returned unchanged.

    Empty if `speakers` is a list with more or fewer members than there are texts.
    """
    if _are_pairs(entries):
        return [{"speaker": str(speaker), "text": text} for speaker, text in entries]
    if not all(isinstance(entry, str) for entry in entries):
        return entries
    names = speakers if speakers and isinstance(speakers, list) else list(islice(cycle("AB"), len(entries)))
    pairs = zip(names, entries, strict=True) if len(names) == len(entries) else ()
    return [{"speaker": name, "text": text} for name, text in pairs]


def _of_tree(root: dict[str, Any]) -> list[object]:
    """The messages of a tree of nested `replies`, parents first; `parent_id` is the id of the message replied to."""
    messages: list[object] = []
    nodes: list[tuple[object, object]] = [(root, None)]
    while nodes:
        node, parent = nodes.pop()
        if not isinstance(node, dict):
            messages.append(node)
            continue
        replies, id = node.get("replies"), node.get("message_id", node.get("id"))
        own = {key: value for key, value in node.items() if key != "replies"}
        messages.append({"parent_id": parent, **own})
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
        return pa.list_(pa.string() if inner == pa.null() else inner)  # Arrow 26 reads lists of nulls wrongly
    return _EXACT.get(kind, pa.null())


def _merged(old: pa.DataType, new: pa.DataType) -> pa.DataType:
    """A type for the values of both; `new` if there is none, `old` if the result would have too many members."""
    try:
        schemas = [pa.schema([("", kind)]) for kind in (old, new)]
        (new,) = pa.unify_schemas(schemas, promote_options="permissive").types
    except pa.ArrowTypeError:
        pass
    return old if str(new).count(":") > _MOST_MEMBERS else new


class ConvokitReader(JsonlReader):
    """A folder that ConvoKit dumped: first the conversations, in the order of conversations.json, then the utterances.

    The members of `meta` are the metadata. `vectors`, the names of matrices in other files, and speakers.json, which
    says nothing about conversations, are left out. `line` of a conversation is its ordinal.
    """

    format: ClassVar[str] = "convokit"
    describes: ClassVar[str] = "a folder that ConvoKit dumped"
    takes_mapping: ClassVar[bool] = False
    aliases: ClassVar = {**ALIASES, "conversation": ("conversation_id", "root")}  # `root` before version 2.0
    ignored: ClassVar = ("vectors",)
    unwrapped: ClassVar = "meta"
    required: ClassVar = ("utterances.jsonl",)
    optional: ClassVar = ("conversations.json",)
    unread: ClassVar = ("speakers.json", "users.json", "corpus.json", "index.json")

    def check(self, file: DumpFile) -> None:
        Reader.check(self, file)

    def records(self, file: DumpFile) -> Iterator[Record | pa.RecordBatch]:
        conversations = file / self.optional[0]
        members = conversations.members if conversations.path.is_file() else {}
        for ordinal, (id, content) in enumerate(members.items(), 1):
            # Before 2.3 conversations had no member `meta`.
            about = content if isinstance(content, dict) else {}
            about = about["meta"] if isinstance(about.get("meta"), dict) else about
            about = {key: value for key, value in about.items() if key != "vectors"}
            yield self.conversation(conversations.name, ordinal, id, about, content)
        conversations.close()
        yield from super().records(file / self.required[0])
