"""Audit after an erasure: count people's ids and words that are left in the files of a home folder."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssrem.encoders.store import text_hashes
from ssrem.privacy.traces import Traces
from ssrem.readers.rows import PROBLEMS
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    import duckdb
    import polars as pl

SHORTEST_PART = 4
"""Minimum length of a text that is also searched inside longer texts; shorter ones occur in anyone's texts."""

NAMES = ("speaker", "addressee")
MENTIONING = ("conversation_id", "utterance_id", "reply_to", "outputs")
MENTIONING_AS_JSON = ("metadata", "ratings", "raw", "parameters")
"""Columns in which an id is a whole value, and columns of plain text and of JSON in which it may be part of a value."""

READABLE = f"""
    SELECT corpus, row_no, CASE
        WHEN reason NOT IN {PROBLEMS} AND octet_length(raw) > 0
            THEN decode(raw)::JSON
    END AS row
    FROM quarantine WHERE record = 'message' AND row IS NOT NULL"""
"""Quarantined messages whose fields were readable."""

_BATCH = 65_536


@dataclass(frozen=True)
class Words:
    """Texts that only certain people wrote. whole: those that are nobody else's message. parts: those of them that do
    not occur in anybody else's message either."""

    whole: frozenset[str]
    parts: frozenset[str]

    def in_bytes(self, raw: bytes) -> bool:
        """Whether an unreadable row contains one of `parts`."""
        text = raw.decode("utf-8", "replace")
        return any(part in text for part in self.parts)


def words_of(connection: duckdb.DuckDBPyConnection, ids: Collection[str], corpora: Collection[str]) -> Words:
    """The messages of these people in these corpora that nobody else wrote in any corpus, annotated set or readable
    quarantined row."""
    theirs = "list_contains(?, speaker) AND list_contains(?, corpus)"
    who = [list(ids), list(corpora)]
    messages = connection.execute(f"SELECT DISTINCT text FROM utterances WHERE {theirs}", who).fetchall()
    whole = {text for (text,) in messages}
    parts = {text for text in whole if len(text.strip()) >= SHORTEST_PART}
    for texts in _fetched(
        connection,
        f"SELECT text FROM utterances WHERE NOT ({theirs}) UNION ALL SELECT response FROM rated_responses "
        "UNION ALL SELECT reference FROM rated_responses WHERE reference IS NOT NULL "
        "UNION ALL SELECT unnest(context) FROM rated_responses "
        f"UNION ALL SELECT row->>'$.text' AS text FROM ({READABLE}) AS readable "
        "WHERE NOT (list_contains(?, coalesce(row->>'$.speaker', '')) AND list_contains(?, corpus)) AND text <> ''",
        who * 2,
    ):
        whole.difference_update(texts.to_list())
        if parts:
            patterns = sorted(parts)
            quoting = texts.filter(texts.str.contains_any(patterns))
            quoted = quoting.str.extract_many(patterns, overlapping=True).explode().drop_nulls()
            parts.difference_update(quoted.to_list())
    return Words(frozenset(whole), frozenset(parts & whole))


def _fetched(connection: duckdb.DuckDBPyConnection, query: str, values: list[Any]) -> Iterator[pl.Series]:
    import polars as pl

    cursor = connection.execute(query, values)
    while rows := cursor.fetchmany(_BATCH):
        yield pl.Series([text for (text,) in rows], dtype=pl.String)


def left_of(home: Warehouse, traces: Traces, words: Words, skip: Collection[Path] = ()) -> dict[str, int]:
    """Search every Parquet file of the home folder, published or not, except those in `skip`.

    Returns the number of files read, of values that are or mention an id (ids), of values that contain their words
    (texts), and of encodings of their words (vectors).
    """
    import pyarrow.parquet as pq

    counts = {"files": 0, "ids": 0, "texts": 0, "vectors": 0}
    hashes = text_hashes(sorted(words.whole))
    for path in sorted(home.root.rglob("*.parquet")):
        if path in skip:
            continue
        counts["files"] += 1
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH):
                if {"text_hash", "vector"} <= set(batch.schema.names):
                    stored = batch.column("text_hash").to_numpy(zero_copy_only=False)
                    counts["vectors"] += int(np.isin(stored, hashes).sum())
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    texts = _texts(column)
                    if texts is not None and len(texts):
                        counts["ids"] += _ids(name, texts, traces)
                        counts["texts"] += _words(texts, words)
    return counts


def _texts(column: Any) -> pl.Series | None:
    """The values of a column of text, lists of text or bytes as text; None for other types."""
    import polars as pl
    import pyarrow as pa

    if pa.types.is_list(column.type):
        column = column.flatten()
    if pa.types.is_binary(column.type):
        decoded = [raw.decode("utf-8", "replace") for raw in column.drop_null().to_pylist()]
        return pl.Series(decoded, dtype=pl.String)
    if not pa.types.is_string(column.type):
        return None
    return pl.Series(pl.from_arrow(column.drop_null()), dtype=pl.String)


def _ids(name: str, texts: pl.Series, traces: Traces) -> int:
    ids = sorted(traces.ids)
    if ids and name in NAMES:
        return int(texts.is_in(ids).sum())
    if not ids or name not in (*MENTIONING, *MENTIONING_AS_JSON):
        return 0
    mentions = traces.in_json if name in MENTIONING_AS_JSON else traces.mentions
    return sum(mentions(text) for text in texts.filter(texts.str.contains_any(ids)).to_list())


def _words(texts: pl.Series, words: Words) -> int:
    hits = texts.is_in(sorted(words.whole))
    if words.parts:
        hits |= texts.str.contains_any(sorted(words.parts))
    return int(hits.sum())


def other_files(home: Warehouse, traces: Traces) -> list[str]:
    """Other files, such as the database of Prefect, whose bytes contain a telling id; models are not searched."""
    ids = [id.encode() for id in traces.ids if traces.mentions(id)]
    skipped = (home.models, home.vectors, home.staging)
    files = []
    for path in sorted(home.root.rglob("*")):
        if path.suffix == ".parquet" or not path.is_file() or any(map(path.is_relative_to, skipped)):
            continue
        with suppress(OSError):  # deleted since it was listed, as temporary files of Prefect are
            content = path.read_bytes()
            if any(id in content for id in ids):
                files.append(str(path))
    return files
