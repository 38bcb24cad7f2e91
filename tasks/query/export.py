"""Answers of `ssrem sql` as files, written by Python: the confined DuckDB connection cannot write files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

import duckdb

from ssrem.errors import SsremError
from ssrem.report.formats import no_formula
from ssrem.tasks.query.sandbox import confined, distinct, only_select, too_large
from ssrem.tasks.warehouse.files import whole_file
from ssrem.tasks.warehouse.home import Warehouse

_ROWS = 10_000


Cell = Callable[[Any], Any]
"""From a plain value to the cell of a CSV file."""


def save_csv(home: Warehouse, query: str, path: Path, cell: Cell = no_formula) -> int:
    """Write the answer as CSV, atomically; returns the number of rows, which need not fit into memory.

    Lists and structures are JSON, bytes text, null is empty. Raises SsremError if the query is invalid or the file
    cannot be written.
    """

    def write(connection: duckdb.DuckDBPyConnection, draft: Path) -> int:
        with draft.open("w", encoding="utf-8", newline="") as out:
            return _rows(connection, query, out, cell)

    return _save(home, path, write)


def print_csv(home: Warehouse, query: str, out: TextIO, cell: Cell = no_formula) -> int:
    """Write the answer as CSV to an open stream; returns the number of rows. Raises SsremError as `save_csv`."""
    return confined(home, lambda connection: _rows(connection, query, out, cell))


def save_parquet(home: Warehouse, query: str, path: Path) -> int:
    """Write the answer as Parquet, with DuckDB's types, atomically; returns the number of rows. Raises SsremError."""
    import pyarrow.parquet  # noqa: F401 - loaded before the limit on memory is set

    return _save(home, path, lambda connection, draft: _parquet(connection, query, draft))


def _save(home: Warehouse, path: Path, write: Callable[[duckdb.DuckDBPyConnection, Path], int]) -> int:
    try:
        with whole_file(path) as draft:
            return confined(home, lambda connection: write(connection, draft))
    except OSError as error:
        raise SsremError(f"cannot write {path}: {error.strerror or error}; choose another file") from None


def _rows(connection: duckdb.DuckDBPyConnection, query: str, out: TextIO, cell: Cell) -> int:
    select = only_select(connection, query)
    try:
        cursor = connection.execute(select)
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(map(cell, distinct([column[0] for column in cursor.description or []])))
        written = 0
        while rows := cursor.fetchmany(_ROWS):
            writer.writerows([cell(_plain(value)) for value in row] for row in rows)
            written += len(rows)
    except (MemoryError, duckdb.OutOfMemoryException):
        raise too_large() from None
    return written


def _parquet(connection: duckdb.DuckDBPyConnection, query: str, draft: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    select = only_select(connection, query)
    written = 0
    try:
        with connection.sql(select).to_arrow_reader(_ROWS) as batches:
            names = distinct(batches.schema.names)
            schema = pa.schema([f.with_name(name) for f, name in zip(batches.schema, names, strict=True)])
            with pq.ParquetWriter(draft, schema, compression="zstd") as writer:
                for batch in _read(batches):
                    writer.write_batch(pa.record_batch(batch.columns, schema=schema))
                    written += batch.num_rows
    except pa.ArrowNotImplementedError as error:
        raise SsremError(f"Parquet cannot hold the answer: {error}; cast that column, or use --csv") from None
    except (MemoryError, pa.ArrowMemoryError, duckdb.OutOfMemoryException):
        raise too_large() from None
    return written


def _read(batches: Any) -> Iterator[Any]:
    """The batches of an Arrow reader; its OSError is translated back to an error of DuckDB or memory."""
    while True:
        try:
            batch = batches.read_next_batch()
        except StopIteration:
            return
        except OSError as error:
            if "Out of Memory" in str(error):
                raise too_large() from None
            raise duckdb.OperationalError(str(error)) from None
        yield batch


def _plain(value: Any) -> Any:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return value.decode("utf-8", "backslashreplace")
        case list() | tuple() | dict():
            return json.dumps(value, ensure_ascii=False, default=_json_value)
    return value


def _json_value(value: Any) -> str | float:
    return float(value) if isinstance(value, Decimal) else str(_plain(value))
