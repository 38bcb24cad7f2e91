"""Excludes people from a stream of raw record batches: their messages become empty rows with problem `forgotten`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from ssrem.privacy.traces import Traces

FORGOTTEN = "forgotten"

_THEIRS = ("speaker", "addressee", "reply_to", "text", "time", "metadata")
"""Columns that are emptied. Ids of conversation and message stay, so that replies to the message are accounted for."""


def listed_in(
    batches: Iterable[pa.RecordBatch], is_listed: Callable[[str], bool], *, scoped: bool = False
) -> set[str]:
    """The ids in the stream for which `is_listed` is true; with `scoped`, also ids of the form CONVERSATION/SPEAKER."""
    listed: dict[str, bool] = {}
    for batch in batches:
        columns = [batch.column("speaker"), batch.column("addressee")]
        if scoped:
            columns += [_scoped(batch, name) for name in ("speaker", "addressee")]
        for column in columns:
            for id in pc.unique(column).to_pylist():
                if id is not None and id not in listed:
                    listed[id] = is_listed(id)
    return {id for id, is_on_list in listed.items() if is_on_list}


def without(batches: Iterable[pa.RecordBatch], traces: Traces) -> Iterator[pa.RecordBatch]:
    """The batches of RAW_SCHEMA with these people's messages emptied, and their ids removed from the rows of others."""
    ids = pa.array(sorted(traces.ids), pa.string())
    for batch in batches:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        gone = _is_one(columns["speaker"], _scoped(batch, "speaker"), ids)
        spoken_to = _is_one(columns["addressee"], _scoped(batch, "addressee"), ids)
        columns["addressee"] = _null_where(spoken_to, columns["addressee"])
        for name in _THEIRS:
            columns[name] = _null_where(gone, columns[name])
        for name in ("conversation_id", "utterance_id", "reply_to"):
            columns[name] = _changed(columns[name], traces.clean_id)
        columns["metadata"] = _changed(columns["metadata"], traces.clean_json)
        columns["problem"] = pc.if_else(gone, pa.scalar(FORGOTTEN), columns["problem"])
        raw = [b"" if row is not None and traces.in_bytes(row) else row for row in columns["raw"].to_pylist()]
        columns["raw"] = pc.if_else(gone, pa.scalar(b"", pa.binary()), pa.array(raw, pa.binary()))
        yield pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def _scoped(batch: pa.RecordBatch, name: str) -> pa.Array:
    return pc.binary_join_element_wise(batch.column("conversation_id"), batch.column(name), "/")


def _is_one(column: pa.Array, scoped: pa.Array, ids: pa.Array) -> pa.Array:
    return pc.or_(pc.is_in(column, ids), pc.is_in(scoped, ids))


def _null_where(where: pa.Array, column: pa.Array) -> pa.Array:
    return pc.if_else(where, pa.scalar(None, column.type), column)


def _changed(column: pa.Array, change: Callable[[str], str | None]) -> pa.Array:
    coded = column.dictionary_encode()
    changed = pa.array([change(value) for value in coded.dictionary.to_pylist()], pa.string())
    return changed.take(coded.indices)
