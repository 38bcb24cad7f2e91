"""Numbers the records of a dump as they stream by: their rank, and the run of neighbours that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssrem.readers.base import RAW_SCHEMA


def numbered_schema() -> pa.Schema:
    """RAW_SCHEMA with `row_no`, the record's rank in the dump, and `run_no`, its run of one conversation's records."""
    return RAW_SCHEMA.append(pa.field("row_no", pa.int64())).append(pa.field("run_no", pa.int64()))


def numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches with `row_no` and `run_no`, both from 0; a run ends where conversation_id changes."""
    schema = numbered_schema()
    first, run, last = 0, -1, object()
    for batch in batches:
        if batch.num_rows == 0:
            continue
        ids = batch.column("conversation_id")
        opens = np.empty(batch.num_rows, dtype=np.int64)
        opens[0] = ids[0].as_py() != last
        same = pc.fill_null(pc.equal(ids[1:], ids[:-1]), False)
        opens[1:] = ~same.to_numpy(zero_copy_only=False)
        runs = run + np.cumsum(opens)
        rows = np.arange(first, first + batch.num_rows)
        yield pa.RecordBatch.from_arrays([*batch.columns, pa.array(rows), pa.array(runs)], schema=schema)
        first, run, last = first + batch.num_rows, int(runs[-1]), ids[-1].as_py()
