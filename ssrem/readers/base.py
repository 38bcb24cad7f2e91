"""The base class of readers: a format defines how it is recognised and its records; this makes them batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from ssrem.errors import DumpError
from ssrem.readers.fields import ALIASES, OF_REPLIES, Layout, told, unknown_columns, weigh
from ssrem.readers.files import streams
from ssrem.readers.files.sources import as_given, labels
from ssrem.readers.files.streams import encodable, is_parquet, is_utf8
from ssrem.readers.ids import answered_in, plain_forms, resolved, with_conversations
from ssrem.readers.json_values import (
    ANY,
    json_elements,
    json_members,
    member_row,
    parquet_rows,
    parse_json,
    row_places,
)
from ssrem.readers.people import NONE, ROLES, roles_in, seated, without_people
from ssrem.readers.rows import (
    SOURCE_SCHEMA,
    MalformedRowError,
    canonical_object,
    escaped,
    escaped_member,
    row_values,
)

Record = Mapping[str, object]
"""One record: its values by column of RAW_SCHEMA, null if absent."""

SAMPLE_ROWS = 1_000
"""Rows that show what the columns hold."""

BATCH_BYTES = 32 << 20
"""A batch with this many bytes of text is full, however few rows it has."""


class Reader(ABC):
    """Reads a dump as a stream of record batches of RAW_SCHEMA, in the dump's order.

    A format defines `sniff` and `records`. Memory does not grow with the dump, unless a format says so. An unreadable
    row becomes a record with a `problem`; DumpError is raised only if the rest of the dump cannot be read. A reader may
    be iterated more than once.

    path: file or folder. mapping: field of `--map` → columns. batch_rows: most rows of a batch.
    """

    format: ClassVar[str]
    """The key in ssrem.readers.FORMATS."""
    describes: ClassVar[str]
    takes_mapping: ClassVar[bool] = False
    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = ALIASES
    """Field → the columns or keys of rows that hold it, best first, in the form of `fields.normalise`."""
    ignored: ClassVar[tuple[str, ...]] = ()
    """Columns or keys that are dropped; what is neither a field nor ignored is metadata."""
    unwrapped: ClassVar[str | None] = None
    """A key whose object's members become metadata themselves."""
    required: ClassVar[tuple[str, ...]] = ()
    """If a dump is a folder: the files that it must have, with content."""
    optional: ClassVar[tuple[str, ...]] = ()
    """Other files of such a folder that are read if present."""
    unread: ClassVar[tuple[str, ...]] = ()
    """Files of such a folder that belong to the dump, but are not read."""
    kind_of_column: ClassVar[str] = "column"
    """What messages call a column."""
    joins_files: ClassVar[bool] = False
    """Whether one reader reads several files, its `parts`, together; otherwise each file has its own reader."""
    is_text: ClassVar[bool] = True
    """Whether `--encoding` applies."""
    not_people: ClassVar[tuple[str, ...]] = ("unknown", "system", "[deleted]", "[removed]")
    """Names of speakers of this format that are not people, ignoring case: systems, bots, placeholders of deleted
    accounts. Where a row itself says that its speaker is a bot, `records` sets `is_person` to false."""
    block_bytes: ClassVar[int] = 8 << 20

    def __init__(
        self, path: Path, *, mapping: Mapping[str, tuple[str, ...]] | None = None, batch_rows: int = 65_536
    ) -> None:
        if mapping and not self.takes_mapping:
            raise DumpError(f"--map does not apply to {self.format}, whose fields are known; leave it out")
        self.path = path
        self.file = streams.text_name(path)
        self.layout = Layout(mapping, self.aliases, self.ignored, self.unwrapped)
        self.mapping, self.conversations = dict(self.layout.mapping), self.layout.conversations
        self.layout.times.dump = str(path)
        self.batch_rows = batch_rows
        self.parts: list[Path] = []
        """The files below the folder `path` to read, for a format that `joins_files`; empty for all."""
        self.references: list[tuple[str, str]] = []
        """Columns of references and forms in which they are written, but no ids, see `ids.FORMS`."""
        self.named_not_people: tuple[str, ...] = ()
        """Further names of speakers that are not people; `none` switches off what the format knows of them."""
        self.temporary: list[object] = []
        """The unpacked archive or download that `path` is part of, if it is; it exists as long as the reader."""
        self.bytes_read = 0
        """Bytes of the dump read so far, as stored (compressed bytes where it is compressed)."""
        self.left_out: Counter[str] = Counter()
        """Rows left out on purpose, because nobody said them: kind, such as `joined or left`, → number of rows."""
        self.persons = "person" in self.mapping
        """Whether the dump says who holds the seats that its speakers are."""
        self.roles: set[str] | None = set()
        """The speakers read so far, if all of them are names of roles; else None."""
        self.columns = ""
        """Which columns are read as which field, and which are not used; of dumps with columns."""
        self.notes: list[str] = []
        """What the reader decided from the content and a user should check, a sentence each."""

    @classmethod
    def sniff(cls, path: Path) -> bool:
        """Whether the content at `path` looks like this format; the names of single files are ignored."""
        return bool(cls.required) and all((path / name).is_file() for name in cls.required)

    @classmethod
    def near_miss(cls, path: Path) -> str | None:
        """What content that `sniff` refuses lacks to be of this format, with its line; None if it lacks too much."""
        lacking = [name for name in cls.required if not (path / name).is_file()]
        present = [name for name in (*cls.required, *cls.optional, *cls.unread) if (path / name).is_file()]
        return f"there is {present[0]}, but no {lacking[0]}" if lacking and present else None

    @classmethod
    def order_of(cls, path: Path) -> int:
        """Files of a dump are read by this number, the smallest first; those of equal numbers as they are given."""
        return 0

    @classmethod
    def packaged(cls) -> Path | None:
        """The corpus of this format that an installed package ships; None if no package does."""
        return None

    @abstractmethod
    def records(self) -> Iterator[Record | pa.RecordBatch]:
        """The dump's records in order: single ones by `message`, `conversation` and `problem`, or whole batches."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._of_people()
        except DumpError as error:
            raise as_given(error, self.temporary) from error

    def _of_people(self) -> Iterator[pa.RecordBatch]:
        """The batches with ids of conversations, and with `is_person` false for names that are not people's."""
        own = NONE not in self.named_not_people
        names = [name for name in self.named_not_people if name != NONE] + [*(self.not_people if own else ())]
        answered = None
        if self.conversations == OF_REPLIES:
            answered = answered_in(self._batches(), str(self.path))
        no_seats = [name for name in names if name.lower() not in ROLES or name in self.named_not_people]
        self.roles = set()
        for read in self._batches():
            whole = with_conversations(read, answered) if self.conversations else read
            batch = seated(whole, persons=self.persons)
            if self.roles is not None:
                roles = roles_in(batch["speaker"])
                self.roles = None if roles is None else self.roles | roles
            # Where roles alone speak, `system` is one of two seats.
            yield without_people(batch, names if self.roles is None else no_seats, flagged=own)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """The batches of SOURCE_SCHEMA."""
        self.bytes_read = size = 0
        self.left_out.clear()
        self.layout.times.clear()
        rows: list[Record] = []
        for record in self.records():
            if isinstance(record, Mapping):
                rows.append(record)
                size += sum(len(value) for value in record.values() if isinstance(value, str | bytes))
                if len(rows) < self.batch_rows and size < BATCH_BYTES:
                    continue
            if rows:
                yield resolved(_batch(rows), self.references)
                rows, size = [], 0
            if not isinstance(record, Mapping):
                for at in range(0, len(record), self.batch_rows):
                    yield resolved(record.slice(at, self.batch_rows), self.references)
        if rows:
            yield resolved(_batch(rows), self.references)

    @property
    def ids_may_repeat(self) -> bool:
        """Whether ids of messages may start again in each conversation; a format with known fields scopes them."""
        return self.takes_mapping

    @property
    def ways_to_people(self) -> str:
        """How the user can name the people of a dump whose speakers are seats, such as A and B; for messages."""
        way_out = "name who speaks with --map speaker=KEY, or who holds a seat with person=KEY"
        return way_out if self.takes_mapping else ""

    @property
    def number_of(self) -> str:
        """What `line` of the records counts, for messages: lines, or rows of Parquet or of one JSON value."""
        return "row" if is_parquet(self.path) or row_places(self.path) else "line"

    def all_notes(self) -> list[str]:
        """What the reader decided and left out, and times it could not read, a sentence each."""
        counts = ", ".join(f"{count:,} {kind}" for kind, count in self.left_out.most_common())
        left_out = [f"left out, because nobody said it: {counts}"] if counts else []
        return [*dict.fromkeys(self.notes), *left_out, *self.layout.times.notes()]

    def check(self) -> None:
        """Raise DumpError if the start of the dump shows that it cannot be read, or not with this mapping."""
        for path in (self.path / name for name in (*self.required, *self.optional, *self.unread)):
            if not path.is_file() and (path.exists() or path.is_symlink()):
                raise DumpError(f"{path}: is not a file, or a link to none; copy the folder again")
        for path in (self.path / name for name in self.required):
            if not path.stat().st_size:
                raise DumpError(f"{path}: the file is empty; copy or unpack the dump again")

    def sample(self) -> Iterator[tuple[object, Mapping[str, Any]]]:
        """The first messages of a dump with columns, each with what tells its conversation from others."""
        return iter(())

    def weigh(self) -> None:
        """Take columns by their names only where the values of the first messages do not contradict; sets `columns`.

        These messages also decide whether day or month is first in dates, and how references are written.
        """
        if self.takes_mapping and (sample := list(islice(self.sample(), SAMPLE_ROWS))):
            conversations, rows = zip(*sample, strict=True)
            weigh(self.layout, rows, conversations)
            columns = list(dict.fromkeys(name for row in rows for name in row))
            plan = self.layout.plan(tuple(columns))
            alone = all(
                one is None for one in conversations
            )  # rows that hold several messages are a conversation
            needed = self.layout.needed if alone else ("speaker", "text")
            if missing := [field for field in needed if field not in plan.sources]:
                raise unknown_columns(self.path, columns, missing, DumpError, self.kind_of_column, rows[0])
            sources = {field: self.mapping.get(field, names) for field, names in plan.sources.items()}
            self.columns = told(sources, [name for name in columns if name in plan.metadata or not name])
            values = {
                field: [row.get(name) for row in rows for name in plan.sources.get(field, ())]
                for field in ("id", "speaker", "time")
            }
            self.references = plain_forms(values)
            self.layout.times.decide(values["time"], later=True)
        self.bytes_read = 0

    def files(self) -> list[Path]:
        """Every file of the dump, sorted; the hash of its content covers them."""
        if self.joins_files:
            return self.parts or streams.files_of(self.path)
        names = (*self.required, *self.optional, *self.unread)
        return sorted(filter(Path.is_file, (self.path / name for name in names))) if names else [self.path]

    @property
    def total_bytes(self) -> int:
        """The value of `bytes_read` at the end."""
        return sum(file.stat().st_size for file in self.files() if file.name not in self.unread)

    def lines(self, path: Path) -> Iterator[tuple[int, bytes]]:
        """Number, from 1, and bytes without the newline of every line of a file, decompressed."""
        first = 1
        for block in self.blocks(path):
            lines = block.removesuffix(b"\n").split(b"\n")
            yield from enumerate(lines, first)
            first += len(lines)

    def blocks(self, path: Path) -> Iterator[bytes]:
        """The file's content in blocks of whole lines, see `streams.blocks`; counts `bytes_read`."""
        return streams.blocks(path, self.block_bytes, self._counter())

    def members(self, path: Path) -> Iterator[tuple[str, object]]:
        """Name and value of each member of a file that is one JSON object; see `json_members`."""
        return json_members(path, self._counter())

    def elements(self, path: Path, places: Collection[str]) -> Iterator[tuple[str, object]]:
        """Place and value of what a JSON file holds at `places`; see `json_elements`."""
        return json_elements(path, places, self._counter())

    def content(self, path: Path) -> bytes:
        """The decompressed content of a small file; DumpError if it is longer than LONGEST_ROW."""
        content = bytearray()
        for block in self.blocks(path):
            content += block
            if len(content) > streams.LONGEST_ROW:
                raise streams.too_long(path, "the file")
        return bytes(content)

    def rows(self, path: Path) -> Iterator[tuple[int, object, bytes]]:
        """Number, value and bytes of each row of JSON lines, or, as canonical JSON, of one array or object (see
        `row_places`) or of Parquet.

        The value of a line that is not JSON is None. DumpError as `json_elements` for an array that breaks off.
        """
        places = () if is_parquet(path) else row_places(path)
        parsed: Iterable[object]
        if places == (ANY,):
            parsed = (member_row(id, value) for id, value in self.members(path))
        elif places:
            parsed = (row for _, row in self.elements(path, places))
        elif is_parquet(path):
            parsed = parquet_rows(path)
        else:
            yield from ((number, parse_json(line), line) for number, line in self.lines(path) if line.strip())
            return
        before = self.bytes_read
        for number, row in enumerate(parsed, 1):
            yield number, row, escaped(row)
        self.bytes_read = before + path.stat().st_size

    def _counter(self) -> Callable[[int], None]:
        """A function that sets `bytes_read` from the bytes read of the next file, added to those of earlier files."""
        before = self.bytes_read

        def count(stored: int) -> None:
            self.bytes_read = before + stored

        return count

    def message(self, file: str, line: int, row: object, raw: bytes | None = None, **known: object) -> Record:
        """The record of a message: the layout finds its fields and time; all other keys become metadata.

        line: 1-based, or an ordinal. raw: the source row, by default `row` as JSON. known: columns of RAW_SCHEMA whose
        values do not come from the row. The problem of a row that is no object, or has a list or object as a field, is
        'malformed_row'; that of text that UTF-8 cannot encode is 'undecodable'.
        """
        reason = "undecodable"
        try:
            values = row_values(row, self.layout) | known
            self.layout.times.place(file, line)
            if _all_encodable(values):
                return {"record": "message", "file": file, "line": line, **values}
        except MalformedRowError:
            reason = "malformed_row"
        known = {name: value for name, value in known.items() if _all_encodable({name: value})}
        return problem(reason, file, line, escaped(row) if raw is None else raw, **known)

    def conversation(
        self, file: str, line: int, id: str | None, about: Mapping[str, object], source: object = None
    ) -> Record:
        """The record of a conversation with `about` as its metadata; 'undecodable' as for messages.

        source: the whole value from which the conversation is read, for the quarantine; its bytes if it is broken.
        """
        if isinstance(source, bytes):
            return no_object(file, line, source)
        values: dict[str, object] = {"conversation_id": id, "metadata": canonical_object(about)}
        if not _all_encodable(values):
            return problem("undecodable", file, line, escaped_member(str(id), source))
        return {"record": "conversation", "file": file, "line": line, **values}


def problem(reason: str, file: str, line: int, raw: bytes, **known: object) -> Record:
    """The record of an unreadable row, with its reason code and exact bytes."""
    return {"record": "message", "file": file, "line": line, **known, "problem": reason, "raw": raw}


def malformed(file: str, line: int, raw: bytes, reason: str = "malformed_row") -> Record:
    """The record of a line of text that has not the form of its format, or is not UTF-8."""
    return problem(reason if is_utf8(raw) else "undecodable", file, line, raw)


def no_object(file: str, line: int, raw: bytes) -> Record:
    """The record of a line that is not a JSON object."""
    return malformed(file, line, raw, "broken_json")


def _all_encodable(values: Mapping[str, object]) -> bool:
    return all(encodable(value) for value in values.values() if isinstance(value, str))


def _batch(rows: list[Record]) -> pa.RecordBatch:
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in SOURCE_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SOURCE_SCHEMA)


class SeveralReader(Reader):
    """Several files or folders of one format as one dump: the records of each reader in order; `source` and `file` say
    where each is from.

    Ids are those of the files; where they repeat across files, the landing scopes them. What is decided by the first
    messages is decided by those of all files together.
    """

    def __init__(self, readers: Sequence[Reader]) -> None:
        first = readers[0]
        # Not ClassVars as in other readers: those of the format that is read.
        for name in ("format", "describes", "takes_mapping", "kind_of_column", "is_text", "not_people"):
            setattr(self, name, getattr(first, name))
        super().__init__(first.path, mapping=first.mapping, batch_rows=first.batch_rows)
        self.conversations, self.layout = first.conversations, first.layout
        self._readers = dict(zip(labels([one.path.absolute() for one in readers]), readers, strict=True))
        for reader in readers:  # counts and decisions are those of the whole dump
            reader.notes, reader.left_out = self.notes, self.left_out
            reader.layout.times = self.layout.times

    def check(self) -> None:
        for reader in self._readers.values():
            reader.check()
        self.persons = any(reader.persons for reader in self._readers.values())

    def sample(self) -> Iterator[tuple[object, Mapping[str, Any]]]:
        for label, reader in self._readers.items():
            yield from (((label, conversation), row) for conversation, row in reader.sample())

    def weigh(self) -> None:
        super().weigh()
        for reader in self._readers.values():  # a column is one field in all files
            reader.layout.pass_over(self.layout.passed_over)

    def files(self) -> list[Path]:
        return sorted({file for reader in self._readers.values() for file in reader.files()})

    @property
    def ids_may_repeat(self) -> bool:
        return True

    @property
    def total_bytes(self) -> int:
        return sum(reader.total_bytes for reader in self._readers.values())

    def records(self) -> Iterator[Record | pa.RecordBatch]:
        done = 0
        for label, reader in self._readers.items():
            reader.bytes_read = 0
            for record in reader.records():
                self.bytes_read = done + reader.bytes_read
                yield _placed(record, label, reader.path.is_dir())
            done += reader.total_bytes
            self.bytes_read = done


def _placed(record: Record | pa.RecordBatch, label: str, is_folder: bool) -> Record | pa.RecordBatch:
    if isinstance(record, Mapping):
        return {**record, "source": label, "file": f"{label}/{record['file']}" if is_folder else label}
    source = pa.repeat(label, len(record))
    file = pc.binary_join_element_wise(source, record["file"], "/") if is_folder else source
    return record.set_column(0, "source", source).set_column(2, "file", file)
