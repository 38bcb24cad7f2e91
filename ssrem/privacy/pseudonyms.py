"""Pseudonymises a stream of raw record batches: ids become keyed hashes, text is masked, metadata are removed."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ssrem.privacy.key import CONVERSATION, SPEAKER, UTTERANCE, PseudonymKey
from ssrem.privacy.masks import mask, mask_texts
from ssrem.privacy.mentions import Mentions

if TYPE_CHECKING:
    import polars as pl

KINDS = {
    "speaker": SPEAKER,
    "addressee": SPEAKER,
    "conversation_id": CONVERSATION,
    "utterance_id": UTTERANCE,
    "reply_to": UTTERANCE,
}
"""Column of the raw schema → the kind of its ids; equal ids of one kind get the same pseudonym."""


def speakers_of(batches: Iterable[pa.RecordBatch]) -> set[str]:
    """All speakers and addressees in the stream."""
    people: set[str] = set()
    for batch in batches:
        for name in ("speaker", "addressee"):
            people.update(value for value in pc.unique(batch.column(name)).to_pylist() if value is not None)
    return people


def pseudonymised(
    batches: Iterable[pa.RecordBatch], key: PseudonymKey, known: Iterable[str] = ()
) -> Iterator[pa.RecordBatch]:
    """The batches of RAW_SCHEMA with every id replaced by its pseudonym and text masked.

    known: ids that are masked in text where they occur as words. Metadata of messages are removed, since their fields
    may hold anything; of a conversation's metadata only the ratings stay (criteria and numbers), and of an unreadable
    row only its reason, not its bytes.
    """
    ids = set(known)
    mentions = Mentions(ids)
    for batch in batches:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name, kind in KINDS.items():
            columns[name] = _hashed(columns[name], key, kind)
        columns["text"] = _masked(columns["text"], mentions)
        described = pc.equal(columns["record"], "conversation")
        metadata = pc.if_else(described, columns["metadata"], pa.scalar(None, pa.string()))
        columns["metadata"] = _each_value(metadata, lambda value: ratings_alone(value, ids))
        columns["raw"] = pc.if_else(columns["raw"].is_valid(), pa.scalar(b"", pa.binary()), columns["raw"])
        yield pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def ratings_alone(metadata: str, known: Collection[str] = ()) -> str | None:
    """A conversation's metadata reduced to its ratings (criterion → number); None if there are none.

    A criterion that is a known id, or that a mask would change, is left out.
    """
    ratings = json.loads(metadata).get("ratings")
    if not isinstance(ratings, dict):
        return None
    fair = {n: score for n, score in ratings.items() if _is_score(score) and n not in known and _is_plain(n)}
    return (
        json.dumps({"ratings": fair}, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        if fair
        else None
    )


def _is_score(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@lru_cache(10_000)
def _is_plain(criterion: str) -> bool:
    return mask_texts([criterion]) == [criterion]


def _hashed(column: pa.Array, key: PseudonymKey, kind: str) -> pa.Array:
    """Pseudonyms of the ids. A blank id stays: it names nobody, and why its row is rejected depends on it."""
    return _each_value(column, lambda id: key.pseudonym(id, kind) if id.strip() else id)


def _each_value(column: pa.Array, change: Callable[[str], str | None]) -> pa.Array:
    """`change` applied to every value, called once for each distinct one."""
    coded = column.dictionary_encode()
    changed = pa.array([change(value) for value in coded.dictionary.to_pylist()], pa.string())
    return changed.take(coded.indices)


def _masked(column: pa.Array, mentions: Mentions) -> pa.Array:
    import polars as pl

    texts: pl.Series = pl.Series(pl.from_arrow(column), dtype=pl.String)
    return mentions.mask_series(mask(texts)).to_arrow().cast(pa.string())
