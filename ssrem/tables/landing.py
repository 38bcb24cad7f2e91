"""From the records of a dump to messages that land, each with its place in its conversation, and those that cannot."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ssrem.privacy.record_batches import FORGOTTEN
from ssrem.sql import statement
from ssrem.tables.builder import TableBuilder
from ssrem.tables.places import create_places
from ssrem.tables.row_numbers import REMOVED, SCHEMA, numbered

if TYPE_CHECKING:
    import pyarrow as pa

_REMEDIES = {
    "duplicate_conversation": "give each conversation an id of its own",
    "speaker_count": "give each turn its speaker in the list of speakers",
}
"""Reason that no naming of columns mends → what does."""


@dataclass(frozen=True)
class Rejected:
    """Messages of a dump that cannot land. messages: all of the dump, forgotten ones included.

    reasons: why messages cannot land → how many, most first. examples: the first three unexpected ones, each with file
    and line, reason, and first characters.
    """

    messages: int
    reasons: dict[str, int]
    examples: str

    @property
    def total(self) -> int:
        """How many messages cannot land."""
        return sum(self.reasons.values())

    @property
    def unexpected(self) -> int:
        """As `total`, but without the messages of people who were forgotten, and texts that only say that one was
        removed."""
        return self.total - sum(self.reasons.get(reason, 0) for reason in (FORGOTTEN, REMOVED))

    @property
    def counts(self) -> str:
        """The reasons with their counts."""
        return ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.items())

    def remedies(self, naming: str) -> list[str]:
        """What mends the dump. naming: how to name its columns, which mends reasons without a remedy of their own."""
        own = [remedy for reason, remedy in _REMEDIES.items() if reason in self.reasons]
        return [*own, naming] if self.reasons.keys() - _REMEDIES.keys() else own


def create_raw(tables: TableBuilder, batches: Iterable[pa.RecordBatch]) -> None:
    """Create the view `raw` of a stream of batches of RAW_SCHEMA, in a file that takes as long as to copy them."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetWriter(
        tables.file("raw"),
        SCHEMA,
        compression="none",
        use_dictionary=["source", "record", "file", "problem", "reason"],
        write_statistics=["row_no"],
    ) as file:
        for batch in numbered(batches):
            file.write_batch(batch)
    tables.show("raw")


def _scope(tables: TableBuilder, to: str) -> None:
    """Scope the ids of `raw` by the statement `scoped_to_TO`, which reads them as `without_TO`."""
    tables.connection.execute(f"ALTER VIEW raw RENAME TO without_{to}")
    tables.connection.execute(f"CREATE VIEW raw AS {statement(f'1_ingest/scoped_to_{to}')}")


def scope_to_files(tables: TableBuilder) -> str | None:
    """Scope conversations to their file if ids start anew in each of several files; returns a note if so.

    Ids start anew if ids of messages repeat across files, or ids of conversations whose messages have no ids. A
    conversation whose messages have ids that never repeat may continue in another file.
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


def create_ids(tables: TableBuilder, *, unique: bool) -> str | None:
    """Create the table `ids`; returns a note if ids start anew in each conversation and were scoped to it.

    unique: ids are unique in the format by definition, and one that repeats is an error.
    """
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


def reject(tables: TableBuilder, number_of: Callable[[], str] = lambda: "line") -> Rejected:
    """Create the tables of messages that cannot land. number_of: gives what `line` of a record counts, for examples."""
    for table in ("replies", "reply_cycles", "rejected", "conversation_ranks", "spoken"):
        tables.create(table, f"1_ingest/{table}")
    query = "SELECT count(*) FROM raw WHERE record = 'message'"
    ((messages,),) = tables.connection.execute(query).fetchall()
    query = "SELECT reason, count(*) FROM rejected GROUP BY ALL ORDER BY count(*) DESC, reason"
    reasons = dict(tables.connection.execute(query).fetchall())
    return Rejected(messages, reasons, _examples(tables, number_of()) if reasons else "")


def _examples(tables: TableBuilder, number_of: str) -> str:
    rows = tables.connection.execute(
        f"""
        SELECT raw.file, raw.line, rejected.reason, raw.raw, raw.utterance_id, raw.speaker, raw.text, raw.metadata
        FROM raw INNER JOIN rejected ON raw.row_no = rejected.row_no
        WHERE rejected.reason NOT IN ('{FORGOTTEN}', '{REMOVED}') ORDER BY raw.row_no LIMIT 3
        """
    ).fetchall()
    examples = []
    for file, line, reason, unread, *fields, metadata in rows:
        begins = [value[:40] for value in fields if value is not None] or [(metadata or "")[:200]]
        if unread:
            begins = [unread[:60].decode("utf-8", "backslashreplace")]
        examples.append(f"{file} {number_of} {line:,} ({reason}: {', '.join(map(repr, begins))})")
    return ", ".join(examples)


def seats(tables: TableBuilder, roles: Collection[str] | None) -> str | None:
    """A sentence if the speaker ids name seats: two that both speak in nearly every conversation, or `roles`, the ids
    of the dump if all are names of roles. None for people."""
    if roles:
        return f"speaker ids {' and '.join(map(repr, sorted(roles)))} are roles; they name seats, not people"
    rows = tables.connection.execute(statement("1_ingest/seats")).fetchall()
    if not rows:
        return None
    (first, count, conversations), (second, other, _) = rows
    return (
        f"speaker ids {first!r} and {second!r} speak in {min(count, other):,} of {conversations:,} conversations; they "
        "seem to name seats, not people"
    )


def one_sided(tables: TableBuilder) -> str | None:
    """A sentence if in nearly every conversation of several messages one speaker says everything; None if not. Fewer
    than five such conversations are no evidence."""
    query = "SELECT count_if(participants = 1), count(*) FROM conversations WHERE messages > 1"
    ((alone, all_),) = tables.connection.execute(query).fetchall()
    if all_ < 5 or alone < 0.95 * all_:
        return None
    return f"in {alone:,} of {all_:,} conversations of several messages one speaker says everything"


def self_replies_note(tables: TableBuilder) -> str | None:
    """A sentence on the messages that reply to themselves; None if there is none."""
    query = (
        "SELECT count(*) FROM raw WHERE record = 'message' AND problem IS NULL AND reply_to = utterance_id"
    )
    ((count,),) = tables.connection.execute(query).fetchall()
    return (
        f"{count:,} messages reply to themselves, and are read as ones that reply to nothing"
        if count
        else None
    )


def create_landed(tables: TableBuilder, **values: Any) -> None:
    """Create `utterances`, `conversations` and `quarantine`. values: of the statements' parameters."""
    tables.create("linked", "1_ingest/linked")
    create_places(tables)
    for table in ("utterances", "conversations", "quarantine"):
        tables.write(table, f"1_ingest/{table}", **values)
