"""Ids that no column holds, of conversations, and references that are written otherwise than the ids that they name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ssrem.errors import DumpError

_FLOAT = r"^(\d{1,15}|[1-8]\d{15})\.0$"
"""A whole number below 2^53, or nearly so, from where on floats may stand for an integer that differs from them."""

FORMS = (
    ("reply_to", "id", _FLOAT),
    ("addressee", "speaker", _FLOAT),
    ("reply_to", "id", r"^t[13]_(\w+)$"),
)
"""Column of references, field of the ids that they name, and a form of references: of integers that were stored as
floats because some are missing, and of Reddit's, which name the kind of the post. Group 1 is the id."""


def plain_forms(ids: Mapping[str, Collection[object]]) -> list[tuple[str, str]]:
    """Columns of references, each with a form of FORMS in which no id is. ids: field → its first values."""
    return [
        (column, form)
        for column, field, form in FORMS
        if not any(isinstance(id, str) and re.match(form, id) for id in ids[field])
    ]


def resolved(batch: pa.RecordBatch, forms: Iterable[tuple[str, str]]) -> pa.RecordBatch:
    """The batch of RAW_SCHEMA with references in these forms as the ids that they name."""
    for column, form in forms:
        if batch[column].null_count < len(batch):
            plain = pc.replace_substring_regex(batch[column], form, r"\1")
            batch = batch.set_column(batch.schema.get_field_index(column), column, plain)
    return batch


def answered_in(batches: Iterable[pa.RecordBatch], dump: str) -> dict[str, str]:
    """Id of a message → id of the message that it replies to, of all replies of a dump, which are in memory.

    DumpError if there is none.
    """
    answered: dict[str, str] = {}
    for batch in batches:
        replies = batch.select(["utterance_id", "reply_to"]).drop_null()
        answered.update(zip(*(column.to_pylist() for column in replies.columns), strict=True))
    if not answered:
        raise DumpError(
            f"{dump}: --map conversation=@replies needs messages with ids that reply to others; name the columns with "
            "--map id=… and reply_to=…"
        )
    return answered


def with_conversations(batch: pa.RecordBatch, answered: Mapping[str, str] | None) -> pa.RecordBatch:
    """The batch of RAW_SCHEMA with an id of each conversation that has none: the file, or, with `answered`, the message
    that began the chain of replies, which the dump may lack."""
    if answered is None:
        ids = batch["file"]
    else:
        pairs = zip(batch["utterance_id"].to_pylist(), batch["reply_to"].to_pylist(), strict=True)
        ids = pa.array([_first(reply_to or id, answered) for id, reply_to in pairs], pa.string())
    ids = pc.coalesce(batch["conversation_id"], ids)
    return batch.set_column(batch.schema.get_field_index("conversation_id"), "conversation_id", ids)


def _first(id: str | None, answered: Mapping[str, str]) -> str | None:
    """The id at the other end of a chain of replies; of a circle, which cannot land, any."""
    seen = set()
    while id is not None and id in answered and id not in seen:
        seen.add(id)
        id = answered[id]
    return id
