"""Ids of conversations that no column holds: each file is a conversation, or each tree of replies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ssrem.errors import DumpError


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


def with_ids(batch: pa.RecordBatch, answered: Mapping[str, str] | None) -> pa.RecordBatch:
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
