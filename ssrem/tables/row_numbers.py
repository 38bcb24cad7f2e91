"""Numbers the records of a dump in a stream, and marks records that cannot land because of their own content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssrem.readers.people import is_placeholder
from ssrem.readers.rows import RAW_SCHEMA

SCHEMA = pa.schema([*RAW_SCHEMA, ("row_no", pa.int64()), ("run_no", pa.int64()), ("reason", pa.string())])
"""RAW_SCHEMA with row_no, the rank in the dump; run_no, the number of the run of consecutive records of one
conversation of one file; and reason, why the record cannot land regardless of others, or null."""

REMOVED = "removed_text"
"""Reason of a message whose text says only that a text was removed: nothing is wrong with the dump."""

REQUIRED = (("conversation_id", "no_conversation"), ("speaker", "no_speaker"), ("text", "no_text"))


def numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of RAW_SCHEMA as batches of SCHEMA; numbers start at 0."""
    first, run, last = 0, -1, (object(), object())
    for batch in batches:
        if batch.num_rows == 0:
            continue
        ids, sources = batch.column("conversation_id"), batch.column("source")
        opens = np.empty(batch.num_rows, dtype=np.int64)
        opens[0] = (sources[0].as_py(), ids[0].as_py()) != last
        same = pc.fill_null(pc.equal(ids[1:], ids[:-1]), False)
        if sources.null_count == 0:
            same = pc.and_(same, pc.equal(sources[1:], sources[:-1]))
        opens[1:] = ~same.to_numpy(zero_copy_only=False)
        runs = run + np.cumsum(opens)
        rows = np.arange(first, first + batch.num_rows)
        columns = [*batch.columns, pa.array(rows), pa.array(runs), _reasons(batch)]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
        first, run, last = first + batch.num_rows, int(runs[-1]), (sources[-1].as_py(), ids[-1].as_py())


def _reasons(batch: pa.RecordBatch) -> pa.Array:
    """Each record's problem by the reader, else the code of its first required field that is missing or blank, else
    REMOVED."""
    blanks = [_blank(batch.column(name)) for name, _ in REQUIRED]
    blanks.append(is_placeholder(batch.column("text")))
    if batch.column("problem").null_count == batch.num_rows and not any(pc.any(b).as_py() for b in blanks):
        return pa.nulls(batch.num_rows, pa.string())
    cases = pc.make_struct(pc.is_valid(batch.column("problem")), *blanks)
    reasons = pc.case_when(
        cases, batch.column("problem"), *map(pa.scalar, (*(reason for _, reason in REQUIRED), REMOVED))
    )
    is_message = pc.equal(batch.column("record"), "message")
    return pc.if_else(is_message, reasons, pa.scalar(None, pa.string()))


def _blank(column: pa.Array) -> pa.Array:
    return pc.fill_null(pc.or_(pc.equal(column, ""), pc.utf8_is_space(column)), True)
