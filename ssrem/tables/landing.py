"""Divides the records of a dump into messages that land, with their places in conversations, and those that cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from ssrem.privacy.people import FORGOTTEN
from ssrem.readers.people import is_placeholder
from ssrem.readers.rows import RAW_SCHEMA
from ssrem.schemas import TABLES
from ssrem.sql import statement
from ssrem.tables.builder import TableBuilder
from ssrem.tables.places import differs, one_chunk, place

RECORDS = pa.schema([*RAW_SCHEMA, ("row_no", pa.int64()), ("reason", pa.string())])
"""RAW_SCHEMA with row_no, the rank in the dump from 0, and reason: why a message cannot land, null if it can."""

REMOVED = "removed_text"
"""Reason of a message whose text only says that a text was removed, or media left out; the dump is in order."""

REQUIRED = (("conversation_id", "no_conversation"), ("speaker", "no_speaker"), ("text", "no_text"))

_ROWS = 131_072
"""About how many messages are placed and written at a time; more if one conversation is longer."""

_LAYOUT: dict[str, Any] = {
    "compression": "snappy",
    "use_dictionary": ["corpus", "addressee_from"],
    "write_statistics": ["corpus", "utterance_id", "conversation_no", "text", "time"],
}
"""How `utterances` is written: with statistics of columns that have an order or that the gate checks for nulls."""

_REMEDIES = {
    "duplicate_conversation": "give each conversation an id of its own",
    "speaker_count": "give each turn its speaker in the list of speakers",
}
"""Maps each reason that naming the columns does not remedy to its remedy."""


@dataclass
class Landed:
    """What became of a dump's records.

    messages: how many there are, including forgotten ones. reasons: maps why messages cannot land to how many, most
    first. examples: the first three of the `unexpected` ones, each with file and line, reason, and first characters.
    self_replies: how many messages reply to themselves. has_ids: whether any message has an id of its own.
    notes: sentences on ids that were scoped to their file or conversation.
    """

    messages: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    examples: str = ""
    self_replies: int = 0
    has_ids: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many messages cannot land."""
        return sum(self.reasons.values())

    @property
    def unexpected(self) -> int:
        """How many messages cannot land, without those of forgotten people and those with the reason REMOVED."""
        return self.total - sum(self.reasons.get(reason, 0) for reason in (FORGOTTEN, REMOVED))

    @property
    def counts(self) -> str:
        """The reasons with their counts, as text for messages."""
        return ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.items())

    def remedies(self, naming: str) -> list[str]:
        """What mends the dump. naming: how to name its columns, which mends all reasons that are not in `_REMEDIES`."""
        own = [remedy for reason, remedy in _REMEDIES.items() if reason in self.reasons]
        return [*own, naming] if self.reasons.keys() - _REMEDIES.keys() else own


class _NotInOrderError(Exception):
    """The messages of a conversation are not in one piece, or ids repeat."""


def create_utterances(
    tables: TableBuilder,
    read: Callable[[], Iterable[pa.RecordBatch]],
    *,
    corpus: str,
    speaker_scope: str,
    unique: bool = False,
    number_of: str = "line",
) -> Landed:
    """Write `utterances`, the messages that land, and `aside`, all other records of the dump.

    These are refused messages and descriptions of conversations. read: returns the batches of the dump, of RAW_SCHEMA
    or RECORDS; it is called again if conversations are not in one piece, or ids repeat, since then all records are
    sorted first. unique: whether the format defines ids of messages as unique, so that one that repeats in several
    conversations is an error; otherwise it is scoped to its conversation. number_of: what `line` of a record counts.
    """
    landing = _Landing(tables, corpus, speaker_scope)
    try:
        landing.write(_records(read()), in_order=False)
        notes: list[str] = []
    except _NotInOrderError:
        notes = _create_raw(tables, read, unique)
        with tables.connection.cursor() as ordered:  # it is read while the connection itself hashes ids
            landing.write(ordered.sql(statement("1_ingest/sorted")).to_arrow_reader(_ROWS), in_order=True)
    landed = landing.landed
    landed.notes = notes
    query = "SELECT reason, count(*) FROM aside WHERE record = 'message' GROUP BY ALL ORDER BY count(*) DESC, reason"
    landed.reasons = dict(tables.connection.execute(query).fetchall())
    if landed.reasons:
        landed.examples = _examples(tables, number_of)
    tables.create("spoken", "1_ingest/spoken", speaker_scope=speaker_scope)
    return landed


def _records(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches with the schema RECORDS; those that have a row_no and a reason keep them."""
    first = 0
    for batch in batches:
        rows = pa.array(np.arange(first, first + len(batch)))
        reasons = _reasons(batch)
        if "row_no" in batch.schema.names:
            rows, reasons = batch["row_no"], pc.coalesce(reasons, batch["reason"])
        columns = [batch[name] for name in RAW_SCHEMA.names]
        yield pa.RecordBatch.from_arrays([*columns, rows, reasons], schema=RECORDS)
        first += len(batch)


def _reasons(batch: pa.RecordBatch) -> pa.Array:
    """Why each message cannot land: the problem that the reader found, else the code of the first required field that
    is missing or blank, else REMOVED for a placeholder; null for messages that can land and for other records."""
    blanks = [_blank(batch[name]) for name, _ in REQUIRED]
    blanks.append(is_placeholder(batch["text"]))
    if batch["problem"].null_count == len(batch) and not any(pc.any(b).as_py() for b in blanks):
        return pa.nulls(len(batch), pa.string())
    cases = pc.make_struct(pc.is_valid(batch["problem"]), *blanks)
    reasons = pc.case_when(
        cases, batch["problem"], *map(pa.scalar, (*(reason for _, reason in REQUIRED), REMOVED))
    )
    is_message = pc.equal(batch["record"], "message")
    return pc.if_else(is_message, reasons, pa.scalar(None, pa.string()))


def _blank(column: pa.Array) -> pa.Array:
    return pc.fill_null(pc.or_(pc.equal(column, ""), pc.utf8_is_space(column)), True)


class _Landing:
    """Writes the files of `utterances` and `aside`, in blocks of whole conversations."""

    def __init__(self, tables: TableBuilder, corpus: str, speaker_scope: str) -> None:
        self.tables, self.corpus, self.speaker_scope = tables, corpus, speaker_scope
        self.landed = Landed()
        self._conversations = 0

    def write(self, batches: Iterable[pa.RecordBatch], *, in_order: bool) -> None:
        """Write both tables. in_order: whether conversations are known to be in one piece, and ids not to repeat; if it
        is False, _NotInOrderError is raised when the records prove otherwise."""
        self.landed, self._conversations = Landed(), 0
        self._begun, self._ids = _Ids(self.tables.connection), _Ids(self.tables.connection)
        aside, utterances = (self.tables.file(name) for name in ("aside", "utterances"))
        with (
            pyarrow.parquet.ParquetWriter(aside, RECORDS, compression="none") as self._aside,
            pyarrow.parquet.ParquetWriter(utterances, _utterances_schema(), **_LAYOUT) as self._utterances,
        ):
            for block in _whole_conversations(map(self._read, batches)):
                ids_repeat = self._place(block)
                if not in_order and (ids_repeat or self._begun.add(_begun(block))):
                    raise _NotInOrderError
            ids_repeat = self._ids.repeat()
            if not in_order and (ids_repeat or self._begun.repeat()):
                raise _NotInOrderError
        for name in ("aside", "utterances"):
            self.tables.show(name)
        self.tables.staged.append("utterances")
        self.tables.unique |= set() if ids_repeat else {"utterances"}

    def _read(self, batch: pa.RecordBatch) -> pa.Table:
        """The messages of a batch that belong to conversations; all other records are written to `aside`."""
        table, landed = pa.Table.from_batches([batch]), self.landed
        is_message = pc.equal(table["record"], "message")
        landed.messages += pc.sum(is_message).as_py() or 0
        landed.has_ids |= table["utterance_id"].null_count < len(table)
        belongs = pc.and_(is_message, table["conversation_id"].is_valid())
        if table["problem"].null_count < len(table):  # null: no problem
            belongs = pc.and_(belongs, pc.fill_null(pc.equal(table["problem"], FORGOTTEN), True))
        if pc.all(belongs).as_py():
            return table
        self._aside.write_table(table.filter(pc.invert(belongs)))
        return table.filter(belongs)

    def _place(self, block: pa.Table) -> bool:
        """Write the messages of whole conversations; returns whether an id repeats among those that land, are forgotten
        or are in a cycle of replies."""
        refused = block.slice(0, 0)
        if block["reason"].null_count < len(block):
            fine = block["reason"].is_null()
            refused, block = block.filter(pc.invert(fine)), block.filter(fine)
        itself = pc.sum(pc.equal(block["utterance_id"], block["reply_to"])).as_py()
        self.landed.self_replies += itself or 0
        placed, in_cycle = place(block, refused)
        if len(in_cycle):
            reasons = pa.repeat("reply_cycle", len(in_cycle))
            in_cycle = in_cycle.set_column(in_cycle.column_names.index("reason"), "reason", reasons)
        for table in (refused, in_cycle):
            if len(table):
                self._aside.write_table(table)
        forgotten = refused.filter(pc.fill_null(pc.equal(refused["reason"], FORGOTTEN), False))
        ids = pa.concat_tables([forgotten, in_cycle])["utterance_id"]
        if len(placed):
            utterances = self._named(placed)
            self._utterances.write_table(utterances, row_group_size=2 * _ROWS)
            self._conversations += placed["conversation_no"][-1].as_py() + 1
            ids = pa.chunked_array([*utterances["utterance_id"].chunks, *ids.chunks])
        return self._ids.add(ids)

    def _named(self, placed: pa.Table) -> pa.Table:
        """The placed messages as rows of `utterances`, with ids for those without one, and with scoped speakers."""
        columns = dict(zip(placed.column_names, placed.columns, strict=True))
        columns["corpus"] = pa.repeat(self.corpus, len(placed))
        columns["conversation_no"] = pc.add(columns["conversation_no"], self._conversations)
        if columns["utterance_id"].null_count:
            numbers = columns["position"].cast(pa.string())
            made = pc.binary_join_element_wise(columns["conversation_id"], numbers, "#")
            columns["utterance_id"] = pc.coalesce(columns["utterance_id"], made)
        columns["is_person"] = pc.fill_null(columns["is_person"], True)
        if self.speaker_scope == "conversation":
            for name in ("speaker", "addressee"):
                columns[name] = pc.binary_join_element_wise(columns["conversation_id"], columns[name], "/")
        schema = _utterances_schema()
        return pa.table([columns[name] for name in schema.names], schema=schema)


def _utterances_schema() -> pa.Schema:
    kinds = {
        "VARCHAR": pa.string(),
        "BIGINT": pa.int64(),
        "BOOLEAN": pa.bool_(),
        "TIMESTAMP": pa.timestamp("us"),
    }
    return pa.schema([(column.name, kinds[column.type]) for column in TABLES["utterances"].columns])


def _whole_conversations(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The messages in blocks of whole conversations: whenever _ROWS rows or more are collected, a block ends where
    the last conversation in them begins."""
    rest: list[pa.Table] = []
    wanted = _ROWS
    for table in filter(len, tables):
        rest.append(table)
        if sum(map(len, rest)) < wanted:
            continue
        block = pa.concat_tables(rest)
        cut = int(np.flatnonzero(_differ(block))[-1])
        if cut:
            yield block.slice(0, cut)
        rest = [block.slice(cut)]
        wanted = max(_ROWS, 2 * (len(block) - cut))
    if rest:
        yield pa.concat_tables(rest)


def _begun(block: pa.Table) -> pa.ChunkedArray:
    """The ids of the conversations that begin in the block, each as often as it begins."""
    return block["conversation_id"].take(pa.array(_opens(block)))


def _opens(block: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The rows at which a conversation begins, among the messages that have no reason not to land."""
    sound = np.flatnonzero(block["reason"].is_null().to_numpy())
    if len(sound) < len(block):
        block = block.take(pa.array(sound))
    opens: np.ndarray[Any, np.dtype[np.int64]] = sound[_differ(block)]
    return opens


def _differ(block: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each row belongs to another conversation than the row before it."""
    differ = differs(one_chunk(block["conversation_id"]))
    if block["source"].null_count < len(block):
        differ |= differs(one_chunk(block["source"]))
    return differ


class _Ids:
    """The ids added so far, as 64-bit hashes. Of 5 million ids two share a hash with probability 1e-6; they then count
    as repeated, after which ids are compared exactly."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection.cursor()
        self._hashes = [np.zeros(0, np.uint64)]

    def add(self, values: pa.Array | pa.ChunkedArray) -> bool:
        """Add ids, ignoring nulls; returns whether one repeats among these."""
        self.connection.register("values_to_hash", pa.table({"id": values.drop_null()}))
        found = self.connection.sql("SELECT hash(id) AS h FROM values_to_hash").fetchnumpy()["h"]
        self._hashes.append(np.sort(found))
        return _repeats(self._hashes[-1])

    def repeat(self) -> bool:
        """Whether any id added so far repeats."""
        return _repeats(np.sort(np.concatenate(self._hashes)))


def _repeats(ordered: np.ndarray[Any, np.dtype[np.uint64]]) -> bool:
    return bool((ordered[1:] == ordered[:-1]).any())


def _create_raw(
    tables: TableBuilder, read: Callable[[], Iterable[pa.RecordBatch]], unique: bool
) -> list[str]:
    """Create the view `raw` of all records and the table `ids`, to sort the dump; returns notes on scoped ids."""
    ids = _Ids(tables.connection)
    with pyarrow.parquet.ParquetWriter(
        tables.file("raw"),
        RECORDS,
        compression="none",
        use_dictionary=["source", "record", "file", "problem", "reason"],
        write_statistics=["row_no"],
    ) as file:
        for batch in _records(read()):
            file.write_batch(batch)
            ids.add(batch["utterance_id"])
    tables.show("raw")
    notes = [_scope_to_files(tables)]
    if ids.repeat():
        notes.append(_create_ids(tables, unique=unique))
    else:
        tables.connection.execute("CREATE TABLE ids (utterance_id VARCHAR, keeper BIGINT, messages BIGINT)")
    return [note for note in notes if note]


def _scope(tables: TableBuilder, to: str) -> None:
    """Scope the ids of `raw` by the statement `scoped_to_TO`, which reads the unscoped records as `without_TO`."""
    tables.connection.execute(f"ALTER VIEW raw RENAME TO without_{to}")
    tables.connection.execute(f"CREATE VIEW raw AS {statement(f'1_ingest/scoped_to_{to}')}")


def _scope_to_files(tables: TableBuilder) -> str | None:
    """Scope conversations to their file if ids start anew in each of several files; returns a note if so.

    Ids start anew if the id of a message repeats in the same conversation of another file, or if a conversation is in
    several files and has messages without ids or is in several folders. A conversation whose messages have ids that
    never repeat may continue in another file.
    """
    tables.create("repeated_across_files", "1_ingest/repeated_across_files")
    most = tables.connection.execute(
        "SELECT kind, id, files FROM repeated_across_files ORDER BY files DESC, kind, id LIMIT 1"
    ).fetchone()
    if most is None:
        return None
    _scope(tables, "files")
    kind, id, files = most
    return (
        f"ids of {kind}s repeat across files ({id!r} in {files:,}); each conversation was scoped to its file, "
        "as FILE/ID"
    )


def _create_ids(tables: TableBuilder, *, unique: bool) -> str | None:
    """Create the table `ids`; returns a note if ids start anew in each conversation and were scoped to it."""
    tables.create("ids", "1_ingest/ids")
    if unique:
        return None
    tables.create("repeated_ids", "1_ingest/repeated_ids")
    most = tables.connection.execute(
        "SELECT utterance_id, conversations FROM repeated_ids ORDER BY conversations DESC, utterance_id LIMIT 1"
    ).fetchone()
    if most is None:
        return None
    _scope(tables, "conversations")
    tables.create("ids", "1_ingest/ids")
    return (
        f"message ids repeat across conversations ({most[0]!r} in {most[1]:,}); each was scoped to its conversation, "
        "as CONVERSATION/ID"
    )


def _examples(tables: TableBuilder, number_of: str) -> str:
    rows = tables.connection.execute(
        f"""
        SELECT file, line, reason, raw, utterance_id, speaker, text, metadata
        FROM aside WHERE record = 'message' AND reason NOT IN ('{FORGOTTEN}', '{REMOVED}') ORDER BY row_no LIMIT 3
        """
    ).fetchall()
    examples = []
    for file, line, reason, unread, *fields, metadata in rows:
        begins = [value[:40] for value in fields if value is not None] or [(metadata or "")[:200]]
        if unread:
            begins = [unread[:60].decode("utf-8", "backslashreplace")]
        examples.append(f"{file} {number_of} {line:,} ({reason}: {', '.join(map(repr, begins))})")
    return ", ".join(examples)


def create_rest(tables: TableBuilder, **values: Any) -> None:
    """Create `conversations` and `quarantine` from `utterances` and `aside`. values: parameters of the statements."""
    for table in ("conversations", "quarantine"):
        tables.write(table, f"1_ingest/{table}", **values)
