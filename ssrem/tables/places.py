"""The place of each message in its conversation: its position, its turn, and which turn its turn answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssrem.privacy.people import FORGOTTEN
from ssrem.readers.people import DELETED_ACCOUNTS

if TYPE_CHECKING:
    Flags = np.ndarray[Any, np.dtype[np.bool_]]
    Integers = np.ndarray[Any, np.dtype[np.int64]]

LOST = "\0"
"""The value of `reply_to` in place of the id of a forgotten message, so that the reply no longer names it."""

_DELETED = f"(?i)(^|/)({'|'.join(map(re.escape, sorted(DELETED_ACCOUNTS)))})$"


def place(messages: pa.Table, refused: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Two tables: the messages with their places, and the messages in a cycle of replies, which have no places.

    messages: those that land, whole conversations, one after another, in the order of the dump. refused: other messages
    of these conversations, which do not land but whose authors are known. Both have the columns of `landing.RECORDS`.
    Places are added as columns: conversation_no from 0, position, turn, answers, reply_absent, time_backwards;
    `addressee`, `addressee_from` and `reply_to` are as they land. No message stands before the one that it replies to.

    A message answers the message of its conversation that it replies to; if it replies to none, it answers the last one
    before it that is not in a thread of its own. It joins the turn of the message before it if both are by the same
    speaker, it answers that message or the same message as that one does, and both are in a thread or neither is. A
    message of a deleted account opens a turn, since the message before may be by another person. A message that replies
    to itself counts as replying to nothing: some data sets mark the first message of a thread in this way.
    """
    replies = _Replies(messages)
    if (replies.parent > np.arange(len(messages))).any():
        order, in_cycle = _children_last(replies)
        if in_cycle.any():
            cycle = messages.filter(pa.array(in_cycle))
            rest, more = place(messages.filter(pa.array(~in_cycle)), pa.concat_tables([refused, cycle]))
            return rest, pa.concat_tables([cycle, more])
        messages = messages.take(pa.array(order))
        replies = _Replies(messages)
    columns = dict(zip(messages.column_names, messages.columns, strict=True))
    placed = pa.table(columns | _turns(messages, replies) | replies.addressed(messages, refused))
    return placed, messages.slice(0, 0)


class _Replies:
    """Which message of its conversation each message replies to.

    All arrays are of shape (messages,). conversation: number of the conversation, from 0. is_reply: whether a message
    replies to another one. parent: position of that message, -1 if it is not there. first: position at which the
    conversation begins.
    """

    def __init__(self, messages: pa.Table) -> None:
        n = len(messages)
        self.at = np.arange(n)
        self.opens = differs(one_chunk(messages["conversation_id"]))
        self.conversation: Integers = np.cumsum(self.opens) - 1
        self.first: Integers = np.maximum.accumulate(np.where(self.opens, self.at, 0))
        self.ids, self.reply_to = one_chunk(messages["utterance_id"]), one_chunk(messages["reply_to"])
        itself = _flags(pc.equal(self.ids, self.reply_to))
        self.is_reply: Flags = self.reply_to.is_valid().to_numpy(zero_copy_only=False) & ~itself
        self.parent: Integers = np.full(n, -1)
        if self.is_reply.any():
            self.parent = self._found()

    def _found(self) -> Integers:
        """The `parent` of each message. Most reply to the message before; only the other replies are looked up."""
        found = np.where(self.is_reply, self.at - 1, -1)
        near = np.zeros(len(found), bool)
        near[1:] = _flags(pc.equal(self.reply_to[1:], self.ids[:-1]))
        far = np.flatnonzero(self.is_reply & ~near)
        if len(far):
            found[far] = positions(self.reply_to.take(pa.array(far)), self.ids)
        return np.where((found >= 0) & (self.conversation[found] == self.conversation), found, -1)

    def addressed(self, messages: pa.Table, refused: pa.Table) -> dict[str, pa.Array]:
        """Whom each message addresses: the addressee that the dump states, else the author of the message, landed or
        refused, that it replies to. A reply to a forgotten message loses its reference."""
        speaker, stated = one_chunk(messages["speaker"]), one_chunk(messages["addressee"])
        author = speaker.take(pa.array(self.parent, mask=self.parent < 0))
        kept = pa.array(self.is_reply)
        lost = np.flatnonzero(self.is_reply & (self.parent < 0))
        if len(lost):
            kept = pc.and_(kept, pc.fill_null(pc.not_equal(self.reply_to, LOST), False))
        if len(lost) and len(refused):
            at = positions(self.reply_to.take(pa.array(lost)), one_chunk(refused["utterance_id"]))
            lost, at = lost[at >= 0], at[at >= 0]
            theirs = refused.take(pa.array(at))
            here = _flags(
                pc.equal(messages["conversation_id"].take(pa.array(lost)), theirs["conversation_id"])
            )
            lost, theirs = lost[here], theirs.filter(pa.array(here))
            author = _replaced(author, lost, one_chunk(theirs["speaker"]))
            forgotten = lost[_flags(pc.equal(theirs["problem"], FORGOTTEN))]
            kept = _replaced(kept, forgotten, pa.repeat(False, len(forgotten)))
        to = pc.coalesce(stated, author)
        to = pc.if_else(pc.not_equal(to, speaker), to, pa.scalar(None, pa.string()))
        known_from = pc.if_else(stated.is_valid(), "stated", "reply")
        return {
            "addressee": to,
            "addressee_from": pc.if_else(to.is_valid(), known_from, pa.scalar(None, pa.string())),
            "reply_to": pc.if_else(kept, self.reply_to, pa.scalar(None, pa.string())),
        }


def _turns(messages: pa.Table, replies: _Replies) -> dict[str, pa.Array]:
    """The places of messages that are in order: none precedes the message that it replies to."""
    at, first, opens = replies.at, replies.first, replies.opens
    in_thread = _flags(messages["in_thread"])
    before = _one_before(np.maximum.accumulate(np.where(in_thread, -1, at)))
    before = np.where(before < first, -1, before)
    answered = np.where(replies.is_reply, replies.parent, before)

    speaker = one_chunk(messages["speaker"])
    another = differs(speaker)
    if (nobody := ~_flags(messages["is_person"], null=True)).any():
        another |= nobody & _flags(pc.match_substring_regex(speaker, _DELETED))
    leaves = (answered != at - 1) & ((answered < 0) | (answered != _one_before(answered)))
    leaves |= in_thread != np.concatenate([[False], in_thread[:-1]])  # no turn is partly in a thread
    opens_turn = ~opens & (another | leaves)
    turns = np.cumsum(opens_turn)
    turn = turns - turns[first]

    head = np.maximum.accumulate(np.where(opens | opens_turn, at, 0))  # the first message of the turn
    answers = np.where(answered[head] < 0, -1, turn[answered[head]])
    return {
        "conversation_no": pa.array(replies.conversation),
        "position": pa.array(at - first),
        "turn": pa.array(turn),
        "answers": pa.array(answers, mask=answers < 0),
        "reply_absent": pa.array(replies.is_reply & (answered < 0)),
        "time_backwards": pa.array(_backwards(one_chunk(messages["time"]), replies.conversation)),
    }


def _children_last(replies: _Replies) -> tuple[Integers, Flags]:
    """An order of the messages in which none precedes the one that it replies to, and whether each is in a cycle.

    A reply that comes before a message of its chain of replies moves to just after the last message of the chain; all
    others keep their order. In a conversation with such a reply, a reply to a message that is not there counts as one
    to the first message that replies to nothing, which opens the conversation, as a submission of Reddit does. Each
    round doubles the length of the jump along the chain: `last` is the latest message on the way, `steps` the length of
    the way. A chain that never ends leads into a cycle.
    """
    at, conversation = replies.at, replies.conversation
    suspect = np.isin(conversation, conversation[replies.parent > at])
    roots = np.full(conversation[-1] + 1, -1)
    opening = np.flatnonzero(suspect & ~replies.is_reply)[::-1]
    roots[conversation[opening]] = opening
    fallback = np.where(replies.is_reply, roots[conversation], -1)
    target = np.where(suspect, np.where(replies.parent >= 0, replies.parent, fallback), -1)
    last, steps = np.maximum(at, target), (target >= 0).astype(np.int64)
    for _ in range(int(np.ceil(np.log2(suspect.sum() + 1))) + 1):
        on = target >= 0
        last[on] = np.maximum(last[on], last[target[on]])
        steps[on] += steps[target[on]]
        target[on] = target[target[on]]
    in_cycle = np.zeros(len(at), bool)
    in_cycle[target[target >= 0]] = True
    steps[~suspect], last[~suspect] = 0, at[~suspect]
    return np.lexsort((at, steps, last, conversation)), in_cycle


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array."""
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


def differs(values: pa.Array) -> Flags:
    """Whether each value differs from the one before it; the first one does. Of shape (values,)."""
    different = np.ones(len(values), bool)
    if len(values):
        different[1:] = ~_flags(pc.equal(values[1:], values[:-1]))
    return different


def positions(wanted: pa.Array, values: pa.Array) -> Integers:
    """Position of each wanted value's first occurrence among the values, -1 if there is none. Of shape (wanted,)."""
    found = pc.fill_null(pc.index_in(wanted, value_set=values, skip_nulls=True), -1)
    places: Integers = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return places


def _replaced(values: pa.Array, at: Integers, by: pa.Array) -> pa.Array:
    """The values with the values `by` at the positions `at`, which ascend."""
    mask = np.zeros(len(values), bool)
    mask[at] = True
    return pc.replace_with_mask(values, pa.array(mask), by)


def _flags(values: pa.Array | pa.ChunkedArray, null: bool = False) -> Flags:
    """Booleans of Arrow as a numpy array. null: the value that null becomes."""
    column = one_chunk(values) if isinstance(values, pa.ChunkedArray) else values
    flags: Flags = pc.fill_null(column, null).to_numpy(zero_copy_only=False)
    return flags


def _one_before(values: Integers) -> Integers:
    """The value before each one; -1 before the first."""
    return np.concatenate([[-1], values])[:-1]


def _backwards(times: pa.Array, conversation: Integers) -> Flags:
    """Whether each message is older than an earlier one of its conversation; False for one without a time."""
    backwards = np.zeros(len(conversation), bool)
    valid = np.flatnonzero(times.is_valid().to_numpy(zero_copy_only=False))
    when = times.drop_null().to_numpy().astype(np.int64)
    which = conversation[valid]
    falls = (when[1:] < when[:-1]) & (which[1:] == which[:-1])
    suspect = np.isin(which, which[1:][falls])
    if suspect.any():
        _, rank = np.unique(when[suspect], return_inverse=True)
        of = which[suspect]
        # Ranks are raised above those of all earlier conversations, so that one running maximum serves for all.
        rank = rank + np.cumsum(np.concatenate([[False], of[1:] != of[:-1]])) * (len(rank) + 1)
        backwards[valid[suspect][1:]] = rank[1:] < np.maximum.accumulate(rank)[:-1]
    return backwards
