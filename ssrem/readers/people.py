"""Speakers that are not people, such as bots and deleted accounts, and placeholders of removed texts."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from ssrem.readers.fields import HOLDERS, ROLES
from ssrem.readers.rows import RAW_SCHEMA

NONE = "none"
"""Given among the names of speakers that are not people: all speakers are people, except others given there."""

DELETED_ACCOUNTS = frozenset({"[deleted]", "[removed]", "456226577798135808"})
"""Ids of deleted accounts, each of which stands for many people; the number is Discord's."""

DELETED = frozenset(
    (
        *("[deleted]", "[removed]", "[deleted by user]", "[removed by reddit]", "[ removed by reddit ]"),
        "this message was deleted",
        "this message has been deleted",
        "this message was removed",
        "you deleted this message",
        "diese nachricht wurde gelöscht",
        "du hast diese nachricht gelöscht",
        "se eliminó este mensaje",
        "eliminaste este mensaje",
        "ce message a été supprimé",
        "vous avez supprimé ce message",
        "esta mensagem foi apagada",
        "mensagem apagada",
        "você apagou esta mensagem",
        "questo messaggio è stato eliminato",
        "hai eliminato questo messaggio",
        "dit bericht is verwijderd",
        "данное сообщение удалено",
        "вы удалили данное сообщение",
    )
)
"""What platforms write in place of a text that was removed; in lower case, without a final full stop."""

_MEDIA = {f"{kind} omitted" for kind in ("image", "video", "audio", "sticker", "gif", "document")}
_MEDIA |= {"<media omitted>"}
"""What WhatsApp writes in place of media, in lower case."""

_LONGEST = max(len(text.encode()) for text in DELETED | _MEDIA) + 8  # room for blanks and a full stop


def is_placeholder(texts: pa.Array) -> pa.Array:
    """Whether each text is a placeholder of a removed text or of media left out; null is false."""
    short = pc.less_equal(pc.binary_length(texts), _LONGEST)
    if not pc.any(short).as_py():
        return pa.repeat(False, len(texts))
    candidates = pc.utf8_trim_whitespace(
        pc.utf8_lower(pc.if_else(short, texts, pa.scalar(None, pa.string())))
    )
    # Not at import: the first array made of a list imports pandas.
    removed = pa.array(sorted(DELETED | _MEDIA))
    return pc.is_in(pc.utf8_rtrim(candidates, characters="."), removed)


def roles_in(speakers: pa.Array) -> set[str] | None:
    """The speakers, if all of them are ROLES; else None."""
    names = {name for name in pc.unique(speakers).to_pylist() if name and name.strip()}
    return names if ROLES.issuperset(re.sub(r"^\d_", "", name.lower()) for name in names) else None


def held_by_people(batch: pa.RecordBatch) -> pa.Array:
    """For each message of a batch of SOURCE_SCHEMA, whether its speaker is a role of HOLDERS whose person is known."""
    role = pc.utf8_lower(batch["speaker"])
    return pc.and_(pc.is_in(role, pa.array(sorted(HOLDERS))), batch["person"].is_valid())


def seated(batch: pa.RecordBatch, *, persons: bool) -> pa.RecordBatch:
    """Convert a batch of SOURCE_SCHEMA to RAW_SCHEMA.

    persons: whether the dump names the people behind roles. If so, the speaker of a role in HOLDERS becomes the person,
    if known, and the speaker of any other role becomes a seat of its conversation alone, CONVERSATION/ROLE.
    """
    *columns, person = batch.columns
    if persons:
        at = batch.schema.get_field_index("speaker")
        role, held = pc.utf8_lower(columns[at]), held_by_people(batch)
        is_seat = pc.or_(pc.is_in(role, pa.array(sorted(ROLES))), person.is_valid())
        seats = pc.binary_join_element_wise(batch["conversation_id"], columns[at], "/")
        columns[at] = pc.if_else(held, person, pc.if_else(is_seat, seats, columns[at]))
    return pa.RecordBatch.from_arrays(columns, schema=RAW_SCHEMA)


def without_people(batch: pa.RecordBatch, names: Iterable[str], *, flagged: bool) -> pa.RecordBatch:
    """A batch of RAW_SCHEMA with `is_person` false where the speaker is one of the names, in any case of letters.

    flagged: whether to keep `is_person` false where the reader set it.
    """
    column = batch.schema.get_field_index("is_person")
    marks = batch.column(column)
    if not flagged:
        marks = pa.nulls(len(marks), marks.type)
    speakers = batch.column("speaker")
    distinct = pc.unique(speakers)
    wanted = pa.array([name.lower() for name in names], pa.string())
    named = distinct.filter(pc.is_in(pc.utf8_lower(distinct), wanted)).drop_null()
    if len(named):
        marks = pc.if_else(pc.is_in(speakers, named), pa.scalar(False), marks)
    return batch.set_column(column, batch.schema.field(column), marks)
