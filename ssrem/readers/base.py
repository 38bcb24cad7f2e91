"""The base class of readers: a format defines how to recognise it and its records; Reader makes batches of these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssrem.errors import DumpError, EmptyFileError, first_of
from ssrem.readers.fields import (
    ALIASES,
    FEW,
    OF_ORDER,
    OF_REPLIES,
    OF_ROW,
    ROLES,
    ColumnsOfFields,
    FieldNames,
    falls,
    normalise,
    told,
    unknown_columns,
    weigh,
)
from ssrem.readers.files.sources import as_given, common_folder
from ssrem.readers.files.streams import SAMPLE_ROWS, DumpFile, Meter, encodable, is_utf8, text_name
from ssrem.readers.people import NONE, held_by_people, roles_in, seated, without_people
from ssrem.readers.rows import (
    SOURCE_SCHEMA,
    MalformedRowError,
    canonical_object,
    escaped,
    plain_forms,
    resolved,
    row_values,
)
from ssrem.readers.times import Times

Record = Mapping[str, object]
"""One record: column of SOURCE_SCHEMA → value; columns that are absent are null."""

BATCH_BYTES = 32 << 20
"""A batch with this many bytes of text is full, however few rows it has."""

_NO_REPLY = ("0", "-1", "none", "null", "nan", "n/a", "<na>", "\\n", "00000000-0000-0000-0000-000000000000")
"""Values of `reply_to`, in lower case, that mean "no reply", unless a message has that id."""


class Reader(ABC):
    """Reads a dump as a stream of record batches of RAW_SCHEMA, in the dump's order.

    A format defines `sniff` and `records`, both for one file, or for one folder if its dumps are folders. Memory does
    not grow with the dump, unless a format says so. An unreadable row becomes a record with a `problem`; DumpError is
    raised only if the rest of the dump cannot be read. A reader may be iterated more than once.

    files: the files or folders of the dump. mapping: field of `--map` → columns. batch_rows: most rows of a batch.
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
    """If a dump is a folder: the files that it must have, none of them empty."""
    optional: ClassVar[tuple[str, ...]] = ()
    """If a dump is a folder: further files that are read if present."""
    unread: ClassVar[tuple[str, ...]] = ()
    """If a dump is a folder: files that belong to it but are not read."""
    kind_of_column: ClassVar[str] = "column"
    """The word for a column in error messages: column, or key of JSON."""
    joins_files: ClassVar[bool] = False
    """Whether an id means the same in all files; if not, ids that repeat in several files are scoped to their file."""
    is_text: ClassVar[bool] = True
    """Whether `--encoding` applies."""
    not_people: ClassVar[tuple[str, ...]] = (
        *("unknown", "system", "tool", "function", "[deleted]", "[removed]", "null", "nan", "\\n"),
    )
    """Names of speakers of this format that are not people, ignoring case: systems, bots, placeholders of deleted
    accounts. Where a row itself says that its speaker is a bot, `records` sets `is_person` to false."""

    def __init__(
        self,
        files: Sequence[DumpFile],
        *,
        mapping: Mapping[str, tuple[str, ...]] | None = None,
        batch_rows: int = 65_536,
    ) -> None:
        if mapping and not self.takes_mapping:
            raise DumpError(f"--map does not apply to {self.format}, whose fields are known; leave it out")
        self.parts = sorted(files, key=self.order_of)
        paths = [file.path.absolute() for file in files]
        self.path = common_folder(paths) if len(paths) > 1 else files[0].path
        self.meter = Meter()
        for file in files:
            file.meter = self.meter
        self.layout = FieldNames(mapping, self.aliases, self.ignored, self.unwrapped)
        self.mapping = dict(self.layout.mapping)
        self.layout.times.dump = str(files[0].path)
        self.batch_rows = batch_rows
        self.references: list[tuple[str, str]] = []
        """(column of references, form in which references may be written, but no id is), from `rows.FORMS`."""
        self.named_not_people: tuple[str, ...] = ()
        """Further names of speakers that are not people, from the user; `none` switches off those of the format."""
        self.temporary: list[object] = []
        """The unpacked archives or downloads that the files are part of; they exist as long as the reader."""
        self.left_out: Counter[str] = Counter()
        """Rows left out on purpose, because nobody said them: kind, such as `notices`, → number of rows."""
        self.persons = "person" in self.mapping
        """Whether the dump names the person who holds a seat, where a speaker is a seat such as user or assistant."""
        self.roles: set[str] | None = set()
        """The speakers read so far, if all of them are names of roles; else None."""
        self.columns = ""
        """For dumps with columns, a sentence: which columns are read as which field, and which are not used."""
        self.number_of = "line"
        """What error messages call the number in `line`: `line`, or `row` in Parquet or one JSON value."""
        self.notes: list[str] = []
        """What the reader decided from the content and a user should check, a sentence each."""

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        """Whether the content looks like this format; the names of single files are ignored."""
        return bool(cls.required) and all((file.path / name).is_file() for name in cls.required)

    @classmethod
    def order_of(cls, file: DumpFile) -> int:
        """The rank of a file: files are read from the lowest rank to the highest, within a rank in the order given."""
        return 0

    @classmethod
    def packaged(cls) -> Path | None:
        """The corpus of this format that an installed package ships; None if no package does."""
        return None

    @abstractmethod
    def records(self, file: DumpFile) -> Iterator[Record | pa.RecordBatch]:
        """The records of a file in order: single ones, by `message`, `conversation` or `problem`, or whole batches."""

    def check(self, file: DumpFile) -> None:
        """Raise DumpError if the start of a file shows that it cannot be read, or that it lacks what `--map` names."""
        for path in (file.path / name for name in (*self.required, *self.optional, *self.unread)):
            if not path.is_file() and (path.exists() or path.is_symlink()):
                raise DumpError(f"{path}: is not a file, or a link to none; copy the folder again")
        for path in (file.path / name for name in self.required):
            if not path.stat().st_size:
                raise DumpError(f"{path}: the file is empty; copy or unpack the dump again")

    def sample(self, file: DumpFile) -> Iterator[tuple[object, Mapping[str, Any]]]:
        """Yield (row, message) for the first messages of a file with columns. row: the number of the row that holds the
        whole conversation; None if each message has a row of its own."""
        return iter(())

    def files_in(self, path: Path) -> list[Path]:
        """The files that a part of the dump consists of: `path` itself, or those of the format in the folder `path`."""
        names = (*self.required, *self.optional, *self.unread)
        return list(filter(Path.is_file, (path / name for name in names))) if names else [path]

    def files(self) -> list[Path]:
        """All files of the dump, sorted; the hash of the dump's content covers all of them."""
        return sorted(path for part in self.parts for path in self.files_in(part.path))

    @property
    def bytes_read(self) -> int:
        """Bytes of the dump read so far, as stored."""
        return self.meter.read

    @property
    def total_bytes(self) -> int:
        """The value of `bytes_read` when the whole dump has been read."""
        return sum(map(self._size, self.parts))

    def _size(self, part: DumpFile) -> int:
        return sum(path.stat().st_size for path in self.files_in(part.path) if path.name not in self.unread)

    @property
    def ids_may_repeat(self) -> bool:
        """Whether message ids may start again in each conversation or file; formats with fixed fields scope them."""
        return self.takes_mapping or (len(self.parts) > 1 and not self.joins_files)

    @property
    def ways_to_people(self) -> str:
        """For error messages: how the user can name the people of a dump whose speakers are seats, such as A and B."""
        way_out = "name who speaks with --map speaker=KEY, or who holds a seat with person=KEY"
        return way_out if self.takes_mapping else ""

    def all_notes(self) -> list[str]:
        """What the reader decided and left out, and how many times it could not read, a sentence each."""
        counts = ", ".join(f"{count:,} {kind}" for kind, count in self.left_out.most_common())
        left_out = [f"left out, because nobody said it: {counts}"] if counts else []
        return [*dict.fromkeys(self.notes), *left_out, *self.layout.times.notes()]

    def open(self) -> None:
        """Check every file, and decide from the first messages which columns hold the fields (names count unless the
        values contradict them), whether day or month is first in dates, and how references are written.

        Raises DumpError as `check` does, and if a needed field has no column.
        """
        empty: dict[DumpFile, EmptyFileError] = {}  # Spark writes a part also for a partition without rows
        for file in self.parts:
            try:
                self.check(file)
            except EmptyFileError as error:
                empty[file] = error
            if file is not self.parts[0]:
                file.close()
        if len(empty) == len(self.parts):
            raise empty[self.parts[0]]
        if empty:
            self.parts = [file for file in self.parts if file not in empty]
            self.notes.append(f"without rows: {first_of([file.name for file in empty], 3)}")
        first = self.parts[0]
        if first.path.is_file() and (first.is_parquet or first.json == "value"):
            self.number_of = "row"
        found = (
            ((number, group), row)
            for number, file in enumerate(self.parts)
            for group, row in self.sample(file)
        )
        if self.takes_mapping and (sample := list(islice(found, SAMPLE_ROWS))):
            groups, rows = zip(*sample, strict=True)
            weigh(self.layout, rows, groups)
            columns = list(dict.fromkeys(name for row in rows for name in row))
            plan = self.layout.plan(tuple(columns))
            alone = all(group is None for _, group in groups)  # else a row holds a whole conversation
            needed = [field for field in self.layout.needed if alone or field != "conversation"]
            if missing := [field for field in needed if field not in plan.sources]:
                raise unknown_columns(self.path, columns, missing, DumpError, self.kind_of_column, rows[0])
            sources = {field: self.mapping.get(field, names) for field, names in plan.sources.items()}
            self.columns = told(sources, [name for name in columns if name in plan.metadata or not name])
            values = {
                field: [row.get(name) for row in rows for name in plan.sources.get(field, ())]
                for field in ("id", "speaker", "time")
            }
            self._look_at(rows, groups, plan)
            self.references = plain_forms(values)
            self.layout.times.decide(values["time"], later=True)

    def _look_at(
        self, rows: Sequence[Mapping[str, Any]], groups: Sequence[object], plan: ColumnsOfFields
    ) -> None:
        """Note what the user should know about the first messages: times that are not read, message numbers that are
        not in order, wrongly decoded letters. groups: (file, row that holds the whole conversation) of each message."""
        times = Times()
        for name in plan.metadata if "time" not in plan.sources else ():
            written = [row[name] for row in rows if isinstance(row.get(name), str)]
            if len({*written}) >= FEW and all(
                len(one) > 9 and times.parse(one) is not None for one in written
            ):
                self.notes.append(f"no time is read, but {name!r} looks like one; --map time={name} reads it")
                break
        numbers = [name for name in plan.metadata if OF_ORDER.fullmatch(str(name))]
        columns = plan.sources.get("conversation", ())
        for name in numbers if self.layout.instead != OF_REPLIES else ():
            of = [repr((group, *map(row.get, columns))) for group, row in zip(groups, rows, strict=True)]
            if falls([row.get(name) for row in rows], of):
                self.notes.append(
                    f"conversations are read in the order of the dump, which is not that of {name!r}; if that says "
                    "which message comes first, sort the dump by it"
                )
                break
        (column, *_) = plan.sources.get("text", ("",))
        answers = (name for name in plan.metadata if normalise(str(name)) in ALIASES["response"])
        if answer := next(answers, ""):
            self.notes.append(
                f"{answer!r} is not read; if it holds what another side said, --map text={column}+{answer} reads both"
            )
        texts = [text for row in rows if isinstance(text := row.get(column), str) and not text.isascii()]
        if len(texts) >= FEW and 2 * sum(map(_is_misread, texts)) > len(texts):
            self.notes.append(
                "its letters are broken, as in exports of Messenger and Instagram: UTF-8 that was read as Latin-1 or "
                "Windows-1252; the package in examples/chat-exports mends the former"
            )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._of_people()
        except DumpError as error:
            raise as_given(error, self.temporary) from error

    def _of_people(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of RAW_SCHEMA, with conversation ids for @file, @row and @replies, with people in place of
        the seats they hold, and with `is_person` false for names that are not people's. DumpError if `person` is
        mapped, but no speaker is a seat that people hold."""
        own = NONE not in self.named_not_people
        names = [name for name in self.named_not_people if name != NONE] + [*(self.not_people if own else ())]
        no_seats = [name for name in names if name.lower() not in ROLES or name in self.named_not_people]
        self.roles = set()
        begins, at = self._beginnings() if self.layout.instead == OF_REPLIES else None, 0
        anyone, unheld = not self.persons, set[str]()
        for read in self._batches():
            batch = resolved(read, self.references)
            if self.layout.instead:
                named = batch["file"] if begins is None else begins.slice(at, len(batch))
                if self.layout.instead == OF_ROW:
                    named = pc.binary_join_element_wise(named, batch["line"].cast(pa.string()), " ")
                ids = pc.coalesce(batch["conversation_id"], named)
                batch = batch.set_column(
                    batch.schema.get_field_index("conversation_id"), "conversation_id", ids
                )
                at += len(batch)
            if not anyone:
                anyone = bool(pc.any(held_by_people(batch)).as_py())
                spoken = batch["speaker"].filter(batch["person"].is_valid())
                unheld |= {*pc.unique(spoken.drop_null())[:FEW].to_pylist()}
            batch = seated(batch, persons=self.persons)
            if self.roles is not None:
                roles = roles_in(batch["speaker"])
                self.roles = None if roles is None else self.roles | roles
            # Where all speakers are roles, `system` may be one side of the conversation, and counts as a person.
            yield without_people(batch, names if self.roles is None else no_seats, flagged=own)
        if not anyone and unheld:
            raise DumpError(
                f"{self.path}: person names who speaks as user, customer, visitor and the like, but no speaker is "
                f"called so; there are {', '.join(map(repr, sorted(unheld)[:FEW]))}; name who speaks with --map "
                "speaker=COLUMN, without person"
            )

    def _beginnings(self) -> pa.Array:
        """For every message the id of the message that begins its chain of replies, whether that one is in the dump or
        not: strings of shape (messages,), all in memory. Replies in a circle have no beginning, and may become
        conversations of their own. If ids repeat, a reply refers to a message of its own file."""
        names = ("utterance_id", "reply_to", "file")
        read = [resolved(batch, self.references).select(names) for batch in self._batches()]
        table = pa.Table.from_batches(read, pa.schema([(name, pa.string()) for name in names]))
        ids, parents, files = (table[name].combine_chunks() for name in names)
        named = ids, parents
        if pc.count_distinct(ids).as_py() < len(ids) - ids.null_count:
            ids, parents = (pc.binary_join_element_wise(files, one, "\n") for one in named)
        own = np.arange(len(ids))
        begins = np.asarray(
            pc.coalesce(pc.index_in(parents, ids, skip_nulls=True), pa.array(own, pa.int32()))
        )
        for _ in range(len(ids).bit_length()):  # each pass doubles the length of the chains that are followed
            begins = begins[begins]
        known = pc.or_(
            pc.is_in(parents, ids, skip_nulls=True), pc.is_in(pc.utf8_lower(named[1]), pa.array(_NO_REPLY))
        )
        return pc.coalesce(pc.if_else(known, None, named[1]), named[0]).take(pa.array(begins))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the records of all files in batches of SOURCE_SCHEMA; what was left out or unparsed is counted anew."""
        self.left_out.clear()
        self.layout.times.clear()
        rows: list[Record] = []
        size = 0
        for record in self._records():
            if isinstance(record, Mapping):
                rows.append(record)
                size += sum(len(value) for value in record.values() if isinstance(value, str | bytes))
                if len(rows) < self.batch_rows and size < BATCH_BYTES:
                    continue
            if rows:
                yield _batch(rows)
                rows, size = [], 0
            if not isinstance(record, Mapping):
                for at in range(0, len(record), self.batch_rows):
                    yield record.slice(at, self.batch_rows)
        if rows:
            yield _batch(rows)

    def _records(self) -> Iterator[Record | pa.RecordBatch]:
        """Yield the records of all files, with `source` set if there are several files with separate ids."""
        done = self.meter.read = 0
        for part in self.parts:
            label = text_name(part.path.absolute(), self.path)
            for record in self.records(part):
                if len(self.parts) > 1 and not self.joins_files:
                    yield _placed(record, label, part.path.is_dir())
                else:
                    yield record
            done += self._size(part)
            self.meter.read = done
            part.close()

    def message(self, file: str, line: int, row: object, raw: object = None, **known: object) -> Record:
        """The record of a message: the layout finds the fields in the row; all other keys become metadata.

        line: number of the line or row, from 1. raw: the bytes of the source row, or its value; by default `row`.
        known: columns of SOURCE_SCHEMA whose values do not come from the row. The record has the problem
        'malformed_row' if the row is not an object, or a field of it is a list, an object, true or false, and
        'undecodable' if UTF-8 cannot encode a text.
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
        return problem(reason, file, line, row if raw is None else raw, **known)

    def conversation(
        self, file: str, line: int, id: str | None, about: Mapping[str, object], source: object = None
    ) -> Record:
        """The record of a conversation with `about` as its metadata.

        source: the whole value from which the conversation is read, by default `about`. It is the `raw` of the record
        that has the problem 'undecodable', if UTF-8 cannot encode the id or the metadata.
        """
        values: dict[str, object] = {"conversation_id": id, "metadata": canonical_object(about)}
        if not _all_encodable(values):
            return problem("undecodable", file, line, {str(id): about if source is None else source})
        return {"record": "conversation", "file": file, "line": line, **values}


def problem(reason: str, file: str, line: int, raw: object, **known: object) -> Record:
    """The record of an unreadable row, with the reason code and the row's exact bytes, or its value as JSON."""
    return {"record": "message", "file": file, "line": line, **known, "problem": reason, "raw": escaped(raw)}


def malformed(file: str, line: int, raw: object, reason: str = "malformed_row") -> Record:
    """The record of a row that does not have the form of its format (`reason`), or is not UTF-8 ('undecodable')."""
    return problem(reason if is_utf8(escaped(raw)) else "undecodable", file, line, raw)


def _is_misread(text: str) -> bool:
    """Whether a text is UTF-8 that was read as Latin-1 or Windows-1252, such as `cafÃ©`."""
    for encoding in ("latin-1", "cp1252"):
        with suppress(UnicodeError):
            return text.encode(encoding).decode("utf-8") != text
    return False


def _all_encodable(values: Mapping[str, object]) -> bool:
    return all(encodable(value) for value in values.values() if isinstance(value, str))


def _batch(rows: list[Record]) -> pa.RecordBatch:
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in SOURCE_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SOURCE_SCHEMA)


def _placed(record: Record | pa.RecordBatch, label: str, is_folder: bool) -> Record | pa.RecordBatch:
    """The record, or batch of records, with `source` and `file` set for a file or folder called `label` in the dump."""
    if isinstance(record, Mapping):
        return {**record, "source": label, "file": f"{label}/{record['file']}" if is_folder else label}
    source = pa.repeat(label, len(record))
    file = pc.binary_join_element_wise(source, record["file"], "/") if is_folder else source
    return record.set_column(0, "source", source).set_column(2, "file", file)
