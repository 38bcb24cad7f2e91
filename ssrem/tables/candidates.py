"""Load the candidates of corpora from the speaker tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np

from ssrem.samples import SPLIT_CODES, Candidates, Rows
from ssrem.tables.speaker_sets import DRAWS

if TYPE_CHECKING:
    import pyarrow as pa


def load_candidates(connection: duckdb.DuckDBPyConnection, corpora: Sequence[str]) -> Candidates:
    """The published candidates of the corpora, corpus by corpus, in order of response."""
    if not corpora:
        none = np.empty(0, dtype=np.int64)
        return Candidates([], none, none, none, {}, np.empty(0, dtype=np.uint8))
    loaded = [_load(connection, corpus) for corpus in corpora]
    parts = [part for part in loaded if len(part.response)] or loaded[:1]
    if len(parts) == 1:
        return parts[0]
    offsets = np.cumsum([0, *(len(part.texts) for part in parts[:-1])])

    def joined(columns: Sequence[Any]) -> Any:
        """Convert positions within each corpus to positions within all texts; -1 stays."""
        return np.concatenate([np.where(c < 0, -1, c + o) for c, o in zip(columns, offsets, strict=True)])

    return Candidates(
        texts=[text for part in parts for text in part.texts],
        response=joined([p.response for p in parts]),
        context_start=joined([p.context_start for p in parts]),
        context_stop=joined([p.context_stop for p in parts]),
        negatives={kind: joined([p.negatives[kind] for p in parts]) for kind in DRAWS},
        split=np.concatenate([p.split for p in parts]),
    )


def _spans(contexts: pa.ListArray, texts: list[str]) -> tuple[Rows, Rows]:
    """Start and stop of each context in `texts`, to which contexts of turns that are not adjacent are appended.

    contexts: the turns of each response's context, at least one, ascending; in threads they may not be adjacent.
    """
    ends = contexts.offsets.to_numpy()
    turns = contexts.flatten().to_numpy()
    start, stop = turns[ends[:-1]], turns[ends[1:] - 1] + 1
    appended: dict[tuple[int, ...], int] = {}
    for row in np.flatnonzero(stop - start != np.diff(ends)).tolist():
        chain = tuple(turns[ends[row] : ends[row + 1]].tolist())
        if chain not in appended:
            appended[chain] = len(texts)
            texts.extend([texts[turn] for turn in chain])
        start[row] = appended[chain]
        stop[row] = start[row] + len(chain)
    return start, stop


def _load(connection: duckdb.DuckDBPyConnection, corpus: str) -> Candidates:
    texts = (
        connection.execute("SELECT text FROM turns WHERE corpus = ? ORDER BY turn_id", [corpus])
        .fetchnumpy()["text"]
        .tolist()
    )
    responses = connection.sql(
        "SELECT response_id, context, split FROM responses WHERE corpus = ? ORDER BY response_id",
        params=[corpus],
    ).to_arrow_table()
    start, stop = _spans(responses["context"].combine_chunks(), texts)
    negatives, n = {}, len(responses)
    for kind in DRAWS:
        drawn = connection.execute(
            "SELECT coalesce(turn_id, -1) AS turn_id FROM candidates WHERE corpus = ? AND kind = ? "
            "ORDER BY response_id, k",
            [corpus, kind],
        ).fetchnumpy()["turn_id"]
        negatives[kind] = drawn.astype(np.int64).reshape(n, len(drawn) // max(n, 1))
    return Candidates(
        texts=texts,
        response=responses["response_id"].to_numpy(),
        context_start=start,
        context_stop=stop,
        negatives=negatives,
        split=np.array([SPLIT_CODES[s] for s in responses["split"].to_pylist()], dtype=np.uint8),
    )
