"""The place of each message in its conversation: its position, its turn, and which turn that one answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ssrem.readers.people import DELETED_ACCOUNTS
from ssrem.sql import statement
from ssrem.tables.builder import TableBuilder

if TYPE_CHECKING:
    import pyarrow as pa

    Flags = np.ndarray[Any, np.dtype[np.bool_]]
    Integers = np.ndarray[Any, np.dtype[np.int64]]

PLACES = (
    "CREATE OR REPLACE TABLE places (row_no BIGINT, conversation_no BIGINT, position BIGINT, turn BIGINT, "
    "answers BIGINT, reply_absent BOOLEAN, time_backwards BOOLEAN)"
)
"""One row is a message of `linked`. Grain: row_no. Scratch."""

_DELETED = f"(^|/)({'|'.join(map(re.escape, sorted(DELETED_ACCOUNTS)))})$"

_ORDERED = f"""
SELECT l.row_no, l.conversation_no, l.speaker, l.time, l.is_reply, l.in_thread,
    coalesce(l.parent_no, -1) AS parent_no,
    NOT l.is_person AND regexp_matches(lower(l.speaker), '{_DELETED}') AS is_deleted
FROM main.linked AS l
LEFT JOIN main.moved AS m ON l.row_no = m.row_no
ORDER BY l.conversation_no, coalesce(m.place, l.row_no)
"""

_ROWS = 500_000
"""Messages that are placed at a time, or those of one longer conversation."""


def create_places(tables: TableBuilder) -> None:
    """Create `moved` and `places` from `linked`, whose rows, from 0, are ranks of messages in the dump.

    A message answers the one that it replies to; if it names none, the message before it that is not in a thread of
    its own. It joins the turn of the message before it, by the same speaker, if it answers that message or the same one
    as that message does. A message of a deleted account opens a turn, since the one before may be of another.
    """
    tables.create("moved", "1_ingest/moved")
    tables.connection.execute(PLACES)
    with tables.connection.cursor() as ordered:  # is read while the connection writes
        for messages in _whole_conversations(ordered.sql(_ORDERED).to_arrow_reader(_ROWS)):
            tables.connection.register("placed", _placed(messages))
            tables.connection.execute("INSERT INTO places FROM placed")
            tables.connection.unregister("placed")


def order_note(tables: TableBuilder) -> str | None:
    """A sentence if most of the `utterances` are older than one before them, as in a dump that lists the newest
    first; None if they are not."""
    backwards, timed = tables.connection.execute(statement("1_ingest/backwards")).fetchall()[0]
    if 2 * backwards <= timed:
        return None
    return (
        f"{backwards:,} of {timed:,} messages are older than one before them in their conversation: the dump seems to "
        "list the newest first, and contexts would hold what was said later; sort it by time and land it again"
    )


def replies_note(tables: TableBuilder) -> str | None:
    """A sentence if most replies of the `utterances` are to messages that have not landed; None if they are not."""
    query = statement("1_ingest/absent_replies")
    absent, replies, example, has_ids = tables.connection.execute(query).fetchall()[0]
    if 2 * absent <= replies:
        return None
    such = f", such as {example!r}" if example else ""
    way_out = (
        "compare what messages reply to with their ids"
        if has_ids
        else "no column is taken for the id of a message; name it with --map id=COLUMN"
    )
    return (
        f"{absent:,} of {replies:,} replies are to messages that have not landed{such}, and so answer nothing; "
        f"{way_out}"
    )


def _whole_conversations(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows again, no conversation divided."""
    import pyarrow as pa

    rest: list[pa.RecordBatch] = []
    for batch in filter(len, batches):
        numbers = batch.column("conversation_no")
        last = int(np.searchsorted(numbers.to_numpy(), numbers[-1].as_py()))
        if last:
            yield pa.Table.from_batches([*rest, batch.slice(0, last)])
            rest = []
        elif rest and rest[-1].column("conversation_no")[-1] != numbers[-1]:
            yield pa.Table.from_batches(rest)
            rest = []
        rest.append(batch.slice(last))
    if rest:
        yield pa.Table.from_batches(rest)


def _placed(messages: pa.Table) -> pa.Table:
    """The rows of `places` of whole conversations, whose messages stand in order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    row, conversation, parent, is_reply, in_thread = (
        messages[name].to_numpy()
        for name in ("row_no", "conversation_no", "parent_no", "is_reply", "in_thread")
    )
    n = len(row)
    at = np.arange(n)
    opens = _differs(conversation)
    first = np.maximum.accumulate(np.where(opens, at, 0))
    before = _one_before(np.maximum.accumulate(np.where(in_thread, -1, at)))
    before = np.where(before < first, -1, before)
    answered = np.where(is_reply, _positions(row, conversation, parent), before)

    speaker = messages["speaker"].combine_chunks()
    another = np.ones(n, bool)
    another[1:] = pc.not_equal(speaker[1:], speaker[:-1]).to_numpy(zero_copy_only=False)
    another |= messages["is_deleted"].to_numpy()
    leaves = (answered != at - 1) & ((answered < 0) | (answered != _one_before(answered)))
    opens_turn = ~opens & (another | leaves)
    turns = np.cumsum(opens_turn)
    turn = turns - turns[first]

    head = np.maximum.accumulate(np.where(opens | opens_turn, at, 0))  # the first message of the turn
    answers = np.where(answered[head] < 0, -1, turn[answered[head]])
    columns = {
        "row_no": row,
        "conversation_no": conversation,
        "position": at - first,
        "turn": turn,
        "answers": pa.array(answers, mask=answers < 0),
        "reply_absent": is_reply & (answered < 0),
        "time_backwards": _backwards(messages["time"], conversation),
    }
    return pa.table(columns)


def _one_before(values: Integers) -> Integers:
    """The value before each one; -1 before the first."""
    return np.concatenate([[-1], values[:-1]])


def _differs(values: Integers) -> Flags:
    """Whether each value differs from the one before it; the first one does."""
    differs = np.ones(len(values), bool)
    differs[1:] = values[1:] != values[:-1]
    return differs


def _positions(row: Integers, conversation: Integers, parent: Integers) -> Integers:
    """Where among the rows the parents are; -1 for one that is not there, or in another conversation."""
    order = np.argsort(row, kind="stable")
    nearest = order[np.minimum(np.searchsorted(row[order], parent), len(row) - 1)]
    return np.where((row[nearest] == parent) & (conversation[nearest] == conversation), nearest, -1)


def _backwards(times: pa.ChunkedArray, conversation: Integers) -> Flags:
    """Whether each message is older than an earlier one of its conversation; without a time it is not."""
    backwards = np.zeros(len(conversation), bool)
    valid = np.flatnonzero(times.is_valid().to_numpy())
    when = times.drop_null().to_numpy().astype(np.int64)
    which = conversation[valid]
    falls = (when[1:] < when[:-1]) & (which[1:] == which[:-1])
    suspect = np.isin(which, which[1:][falls])
    _, rank = np.unique(when[suspect], return_inverse=True)
    # In each conversation the ranks lie above all before, so that one running maximum serves for all.
    rank = rank + np.cumsum(_differs(which[suspect])) * (len(rank) + 1)
    highest = np.maximum.accumulate(rank)
    backwards[valid[suspect][1:]] = rank[1:] < highest[:-1]
    return backwards
