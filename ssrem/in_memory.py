"""Turns, speaker sets and candidates of conversations that are held in Python, as frames, without a home folder.

They are built in memory by the SQL statements that `ssrem ingest` and `ssrem tables` run in a home folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssrem.errors import DumpError, SsremError
from ssrem.extras import not_installed, way_out
from ssrem.files import temporary_folder
from ssrem.readers.python_data import Columns, in_python, reader_of, told_in_python
from ssrem.registry import did_you_mean
from ssrem.schemas import TABLES
from ssrem.settings import TableSettings
from ssrem.tables.builder import TableBuilder
from ssrem.tables.candidates import load_candidates
from ssrem.tables.landing import Landed, create_rest, create_utterances
from ssrem.tables.notes import one_sided, order_note, people_notes, repeated_notes, replies_notes, seats
from ssrem.tables.speaker_sets import DRAWS, create_tables

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from ssrem.samples import Candidates

_READING = ("format", "encoding", "time_format")


@dataclass(frozen=True, eq=False)
class Conversations:
    """The tables of conversations, as the function `conversations` returns them.

    frames: table name → its rows, sorted by its key; docs/sql.md describes the columns. candidates: what evaluators
    learn from. notes: what was decided or left out, one sentence each.
    """

    frames: Mapping[str, pl.DataFrame]
    candidates: Candidates
    notes: Sequence[str]

    @property
    def sets(self) -> dict[str, pl.DataFrame]:
        """The sets SC, SP, SS and Rand of every speaker, one row per member: set_id, speaker, split, position, text.

        set_id: turn_id of the speaker's first turn in the set; for Rand, which has others' turns, in the split.
        """
        turns = self.frames["turns"]
        owners = turns.select(set_id="turn_id", speaker="speaker", split="split")
        texts = turns.select("turn_id", "text")
        columns = ["set_id", "speaker", "split", "position", "text"]
        return {
            kind: self.frames[kind.lower()].join(owners, on="set_id").join(texts, on="turn_id")
            .select(columns).sort("set_id", "position")
            for kind in DRAWS
        }  # fmt: skip

    @property
    def training_texts(self) -> list[str]:
        """The texts of the turns of the training split, in order."""
        return self.frames["turns"].filter(split="train")["text"].to_list()

    def __repr__(self) -> str:
        counts = {
            name: len(self.frames[name]) for name in ("conversations", "utterances", "turns", "responses")
        }
        speakers = self.frames["turns"]["speaker"].n_unique()
        listed = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        return f"<{listed} of {speakers:,} speakers; {len(self.frames['quarantine']):,} quarantined>"


@dataclass
class _Tables(TableBuilder):
    """Builds the tables in an in-memory database."""

    connection: duckdb.DuckDBPyConnection
    scratch: Path
    staged: list[str] = field(default_factory=list)
    unique: set[str] = field(default_factory=set)


def conversations(
    data: Any,
    *,
    columns: Columns | None = None,
    speakers: str = "auto",
    not_people: Sequence[str] = (),
    addressees: str = "all",
    context_turns: int = 5,
    seed: int = 0,
    max_quarantine: float = 0.05,
    **reading: str | None,
) -> Conversations:
    """Turns, responses, speaker sets and candidates of conversations.

    data: a list of conversations, or a mapping of id to conversation, where a conversation is a list of messages and a
    message is `(speaker, text)` or a dict. Alternatively, rows with one message each, in a frame of pandas or Polars,
    an Arrow table, a `datasets.Dataset` or a list of dicts; rows with one conversation each, as `ssrem ingest` reads
    them from JSON lines and chat logs; the path of a dump in any format that `ssrem ingest` reads; or "chitchat".
    columns: field → column or columns, as `--map` of `ssrem ingest`, for the fields conversation, id, speaker,
    addressee, reply_to, text, time and person. speakers: what a speaker id names: a "person", a seat in one
    "conversation", or "auto", which takes ids for people but raises DumpError if they look like seats, as two ids do
    that speak in nearly every conversation. not_people: names of speakers that are not people, such as bots, besides
    "system", "unknown" and the like, which the name "none" turns off; turns of such speakers are only context.
    addressees: which turns are in the same-partner sets SP: "all", or only those whose addressee is "stated" or that
    reply to a message. context_turns: most turns of a context. seed: seed of every draw. max_quarantine: the largest
    share, 0 to 1, of messages that may be left out because they cannot be used, such as those without a text; the frame
    `quarantine` has them. reading: `format`, `encoding` and `time_format` of `ssrem.readers.open_dump`; by default they
    are guessed.

    Each note is also issued as a warning. Raises DumpError for data of another shape, without a message or without a
    response, for conversations in which one speaker says everything, for ids that look like seats, and for more
    unusable messages than allowed; SsremError for other settings that are wrong.
    """
    import duckdb

    if not_installed("polars"):
        raise SsremError(f"conversations are read into frames of Polars; {way_out('polars')}")
    _check(speakers, not_people, max_quarantine, {"context_turns": context_turns, "seed": seed}, reading)
    settings = TableSettings(seed=int(seed), context_turns=int(context_turns), addressees=addressees)
    with temporary_folder() as scratch, duckdb.connect() as connection:
        connection.execute("SET temp_directory = $folder", {"folder": f"{scratch}/spill"})
        connection.execute("SET preserve_insertion_order = false")
        tables = _Tables(connection, scratch)
        scope = "person" if speakers == "auto" else speakers
        values = {"corpus": "conversations", "speaker_scope": scope}
        with told_in_python(scratch):
            reader = reader_of(data, columns, reading, scratch)
            reader.named_not_people = tuple(not_people)
            landed = create_utterances(
                tables, lambda: reader, unique=not reader.ids_may_repeat, number_of=reader.number_of, **values
            )
        left_out = _left_out(landed, max_quarantine)
        if speakers == "auto" and (named := seats(tables, reader.roles)):
            raise DumpError(
                f"{named}; give speakers='conversation' to keep them apart by conversation, or speakers='person' if "
                "they are two people"
            )
        create_rest(tables, **values)
        if sentence := one_sided(tables):
            raise DumpError(f"{sentence}; name who says what by the speaker of each message")
        told = [
            *landed.notes,
            *replies_notes(tables, landed),
            order_note(tables),
            *repeated_notes(tables),
            left_out,
        ]
        create_tables(tables, "conversations", scope, settings)
        frames = {
            name: connection.sql(f"FROM {name} ORDER BY {', '.join(TABLES[name].key)}").pl()
            for name in tables.staged
        }
        if frames["responses"].is_empty():
            raise DumpError(
                "there is no response: in each conversation one speaker says everything; name who says what by the "
                "speaker of each message"
            )
        nobodies = people_notes(tables, scope, not_people, lambda names: f"not_people={[*names]!r}")
        others = (*told, *nobodies, _one_sided(frames["conversations"]))
        notes = [in_python(note) for note in (*reader.all_notes(), *filter(None, others))]
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return Conversations(frames, load_candidates(connection, ["conversations"]), notes)


def _check(
    speakers: str,
    not_people: Sequence[str],
    max_quarantine: float,
    numbers: Mapping[str, int],
    reading: Mapping[str, Any],
) -> None:
    """Raise DumpError if an argument of `conversations` is of another kind than it has to be."""
    if speakers not in ("auto", "person", "conversation"):
        raise DumpError(f"speakers={speakers!r}: it is auto, person or conversation")
    if unknown := [name for name in reading if name not in _READING]:
        known = (*(conversations.__kwdefaults__ or ()), *_READING)
        raise DumpError(f"{unknown[0]}=…: there is no such argument{did_you_mean(unknown[0], known)}")
    for name, number in numbers.items():
        if not isinstance(number, Integral):
            raise DumpError(f"{name}={number!r}: it is a whole number")
    if not isinstance(max_quarantine, Real) or not 0 <= max_quarantine <= 1:
        raise DumpError(f"max_quarantine={max_quarantine!r}: it is a share from 0 to 1")
    listed = isinstance(not_people, Sequence) and not isinstance(not_people, str)
    if not listed or not all(isinstance(name, str) for name in not_people):
        example = not_people if isinstance(not_people, str) else "Bot"
        raise DumpError(f"not_people={not_people!r}: it is a list of names, such as [{example!r}]")
    for name, value in reading.items():
        if not isinstance(value, str | None):
            raise DumpError(f"{name}={value!r}: it is a text")


def _left_out(rejected: Landed, max_quarantine: float) -> str | None:
    if not rejected.messages:
        raise DumpError("there is no message; give conversations with at least two messages")
    summary = f"{rejected.total:,} of {rejected.messages:,} messages cannot be used: {rejected.counts}"
    if rejected.unexpected > max_quarantine * rejected.messages or rejected.total == rejected.messages:
        ways = rejected.remedies("name the columns with columns={'speaker': …, 'text': …}")
        raise DumpError(
            f"{summary}; such as {rejected.examples}; {', or '.join(ways)}, or leave out what cannot be used with "
            "max_quarantine=1"
        )
    return f"{summary}; the frame quarantine has them" if rejected.total else None


def _one_sided(frame: pl.DataFrame) -> str | None:
    count = len(frame.filter(participants=1))
    return f"in {count:,} of {len(frame):,} conversations one speaker says everything" if count else None
