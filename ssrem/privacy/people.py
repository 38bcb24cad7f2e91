"""Removes people from streams of raw record batches, or replaces ids by pseudonyms and masks text in them."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ssrem.privacy.key import CONVERSATION, SPEAKER, UTTERANCE, PseudonymKey
from ssrem.privacy.text import USER, Mentions, is_telling, mask, mask_texts, mention
from ssrem.readers.people import DELETED_ACCOUNTS

FORGOTTEN = "forgotten"
"""The problem that is given for the messages of excluded people."""

SHORTEST_WORDS = 4
"""Minimum length of a message that is looked for in unreadable rows; shorter ones occur in anyone's rows."""

_THEIRS = ("speaker", "addressee", "reply_to", "text", "time", "metadata")
"""Columns that are emptied in messages of excluded people. The ids of conversation and message stay, so that replies to
the message are accounted for."""

_KINDS = {
    "speaker": SPEAKER,
    "addressee": SPEAKER,
    "conversation_id": CONVERSATION,
    "utterance_id": UTTERANCE,
    "reply_to": UTTERANCE,
    "source": CONVERSATION,
}
"""Column of the raw schema → the kind of its ids; equal ids of one kind get the same pseudonym."""

_REMOVED = object()
"""Stands for a JSON value that was one of the ids and is left out."""

_ESCAPES = re.compile(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')
"""Escapes of JSON. Unicode escapes in a row are one match, since two of them may be one character."""


def digest(id: str, salt: bytes) -> str:
    """32 hex digits of a salted hash of an id, which recognise a forgotten id without revealing it."""
    return hmac.digest(salt, id.encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


class Traces:
    """The ids of one or several people, in clear, with methods that find and remove them in texts, other ids and JSON.

    An id that may be an ordinary word or number (see `is_telling`) is recognised only as a whole value. words: messages
    that these people wrote, by which unreadable rows that name nobody are recognised as theirs.
    """

    def __init__(self, ids: Collection[str], words: Collection[str] = ()) -> None:
        self.ids, self.words = frozenset(ids), words
        telling = sorted((id for id in self.ids if is_telling(id)), key=len, reverse=True)
        joined = "|".join(map(mention, telling))
        # An underscore separates ids as a hyphen does: ann_bob names two people.
        self._mention = re.compile(rf"(?<![^\W_])(?:{joined})(?![^\W_])" if telling else r"(?!)")

    def mentions(self, text: str) -> bool:
        """Whether a telling id occurs in the text as a whole word."""
        return self._mention.search(text) is not None

    def clean_id(self, id: str) -> str:
        """Another id, such as a conversation's, with mentioned ids hashed, so that distinct ids stay distinct."""
        return self._mention.sub(lambda m: hashlib.blake2b(m[0].encode(), digest_size=6).hexdigest(), id)

    def clean_json(self, text: str) -> str | None:
        """A JSON object without members that are one of the ids, and with mentions masked; None if nothing is left."""
        cleaned = self._clean(json.loads(text))
        if not cleaned or cleaned is _REMOVED:
            return None
        return json.dumps(cleaned, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    def _clean(self, value: Any) -> Any:
        if isinstance(value, dict):
            members = ((key, self._clean(member)) for key, member in value.items() if key not in self.ids)
            return {self._mention.sub(USER, key): value for key, value in members if value is not _REMOVED}
        if isinstance(value, list):
            return [member for member in map(self._clean, value) if member is not _REMOVED]
        if isinstance(value, str):
            return _REMOVED if value in self.ids else self._mention.sub(USER, value)
        number = isinstance(value, int) and not isinstance(value, bool)
        return _REMOVED if number and str(value) in self.ids and is_telling(str(value)) else value

    def in_bytes(self, raw: bytes) -> bool:
        """Whether an unreadable row contains one of the ids or one of the messages in `words`, also if it is written
        with JSON escapes."""
        plain, before = (text := raw.decode("utf-8", "replace")), ""
        while plain != before:  # a string in JSON may itself be JSON
            plain, before = _ESCAPES.sub(lambda match: str(json.loads(f'"{match[0]}"')), plain), plain
        if self.mentions(plain) or any(word in plain for word in self.words):
            return True
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return any(f'"{id}"' in plain for id in self.ids)
        return bool(self._clean(value) != value)


def speakers_of(batches: Iterable[pa.RecordBatch], *, seats: bool = False) -> set[str]:
    """All speakers and addressees in the stream; with `seats`, also as CONVERSATION/SPEAKER."""
    people: set[str] = set()
    for batch in batches:
        for name in ("speaker", "addressee"):
            for column in (batch.column(name), *([_seats(batch, name)] if seats else ())):
                people.update(pc.unique(column).drop_null().to_pylist())
    return people


def without(batches: Iterable[pa.RecordBatch], traces: Traces) -> Iterator[pa.RecordBatch]:
    """Yield the batches of RAW_SCHEMA without these people: their messages are emptied and get the problem `forgotten`,
    and their ids are removed from the rows of others."""
    ids = pa.array(sorted(traces.ids), pa.string())
    for batch in batches:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        theirs, to_them = (
            pc.or_(pc.is_in(columns[name], ids), pc.is_in(_seats(batch, name), ids))
            for name in ("speaker", "addressee")
        )
        for where, names in ((to_them, ("addressee",)), (theirs, _THEIRS)):
            for name in names:
                columns[name] = pc.if_else(where, pa.scalar(None, columns[name].type), columns[name])
        for name in ("source", "conversation_id", "utterance_id", "reply_to"):
            columns[name] = _each_value(columns[name], traces.clean_id)
        columns["metadata"] = _each_value(columns["metadata"], traces.clean_json)
        columns["problem"] = pc.if_else(theirs, pa.scalar(FORGOTTEN), columns["problem"])
        raw = [b"" if row is not None and traces.in_bytes(row) else row for row in columns["raw"].to_pylist()]
        columns["raw"] = pc.if_else(theirs, pa.scalar(b"", pa.binary()), pa.array(raw, pa.binary()))
        yield pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def pseudonymised(
    batches: Iterable[pa.RecordBatch], key: PseudonymKey, known: Iterable[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of RAW_SCHEMA with every id replaced by its pseudonym and text masked.

    known: ids that are masked in text where they occur as words. Metadata of messages are removed, since their fields
    may hold anything; of a conversation's metadata only the ratings stay (criteria and numbers), and of an unreadable
    row only its reason, not its bytes.
    """
    ids = set(known)
    mentions = Mentions(ids)
    for batch in batches:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name, kind in _KINDS.items():
            columns[name] = _each_value(columns[name], partial(_pseudonym, key, kind))
        columns["text"] = mentions.mask_all(mask(columns["text"]))
        described = pc.equal(columns["record"], "conversation")
        metadata = pc.if_else(described, columns["metadata"], pa.scalar(None, pa.string()))
        columns["metadata"] = _each_value(metadata, lambda value: ratings_alone(value, ids))
        columns["raw"] = pc.if_else(columns["raw"].is_valid(), pa.scalar(b"", pa.binary()), columns["raw"])
        yield pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def _pseudonym(key: PseudonymKey, kind: str, id: str) -> str:
    """The pseudonym of an id. A blank id stays: it names nobody, and the reason why its row is rejected depends on it.
    The id of deleted accounts stays, too: their messages are never taken for those of one person."""
    nobody = not id.strip() or (kind == SPEAKER and id.lower() in DELETED_ACCOUNTS)
    return id if nobody else key.pseudonym(id, kind)


def ratings_alone(metadata: str, known: Collection[str] = ()) -> str | None:
    """A conversation's metadata reduced to its ratings (criterion → number); None if there are none.

    A criterion that is a known id, or that a mask would change, is left out.
    """
    ratings = json.loads(metadata).get("ratings")
    scores = {
        criterion: score
        for criterion, score in (ratings.items() if isinstance(ratings, dict) else ())
        if isinstance(score, int | float) and not isinstance(score, bool)
        if criterion not in known and _is_plain(criterion)
    }
    if not scores:
        return None
    return json.dumps({"ratings": scores}, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@lru_cache(10_000)
def _is_plain(criterion: str) -> bool:
    return mask_texts([criterion]) == [criterion]


def _seats(batch: pa.RecordBatch, name: str) -> pa.Array:
    """CONVERSATION/PERSON for every row. name: the column of the person, `speaker` or `addressee`."""
    return pc.binary_join_element_wise(batch.column("conversation_id"), batch.column(name), "/")


def _each_value(column: pa.Array, change: Callable[[str], str | None]) -> pa.Array:
    """`change` applied to every value, called once for each distinct one."""
    coded = column.dictionary_encode()
    changed = pa.array([change(value) for value in coded.dictionary.to_pylist()], pa.string())
    return changed.take(coded.indices)
