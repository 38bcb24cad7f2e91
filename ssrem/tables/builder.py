"""Tables of a DuckDB database, created by their contracts in `schemas` and filled by the statements in `sql`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssrem.schemas import TABLES
from ssrem.sql import statement

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


PARQUET = "FORMAT parquet, COMPRESSION snappy, DICTIONARY_SIZE_LIMIT 1000"
"""How DuckDB writes tables as Parquet."""


class TableBuilder:
    """Creates tables in the database of `connection`. staged: names of the tables with a contract created so far.

    unique: names of those in which no key repeats, as was found while they were written. scratch: a folder for files
    that live as long as the connection. Tables made by `write` are views of Parquet files in it.
    """

    connection: duckdb.DuckDBPyConnection
    staged: list[str]
    unique: set[str]
    scratch: Path

    def create(self, table: str, sql_name: str | None = None, **parameters: Any) -> None:
        """Create the table by its contract and fill it from the statement; a scratch table has no contract."""
        if table in TABLES:
            self.connection.execute(TABLES[table].ddl())
            self.staged.append(table)
            if sql_name is not None:
                self.append(table, sql_name, **parameters)
        else:
            text = statement(sql_name or table)
            self.connection.execute(f"CREATE OR REPLACE TABLE {table} AS {text}", bound(text, parameters))

    def write(self, table: str, sql_name: str, **parameters: Any) -> None:
        """Write what the statement selects as the Parquet file of a table with a contract.

        Its rows are stored only once; those of a table in the database are stored again when it is published.
        """
        text = statement(sql_name)
        names = ", ".join(f'"{c.name}"::{c.type} AS "{c.name}"' for c in TABLES[table].columns)
        draft = self.scratch / f"{table}.draft"  # the statement may read the table's present file
        query = f"COPY (SELECT {names} FROM ({text})) TO '{quoted(draft)}' ({PARQUET})"
        self.connection.execute(query, bound(text, parameters))
        draft.replace(self.file(table))
        self.show(table)
        if table not in self.staged:
            self.staged.append(table)

    def show(self, table: str) -> None:
        """Make the table a view of its file."""
        file = quoted(self.file(table))
        self.connection.execute(
            f"CREATE OR REPLACE VIEW {table} AS FROM read_parquet('{file}', hive_partitioning = false)"
        )

    def file(self, table: str) -> Path:
        """The Parquet file of a table that is written to one."""
        return self.scratch / f"{table}.parquet"

    def append(self, table: str, sql_name: str, **parameters: Any) -> None:
        """Insert what the statement selects into a table with a contract."""
        text = statement(sql_name)
        self.connection.execute(f"INSERT INTO {table} BY NAME {text}", bound(text, parameters))

    def create_from_rows(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Create the table by its contract and fill it with `rows`, each a mapping of column to value."""
        import pyarrow as pa

        self.create(table)
        if rows:
            names = TABLES[table].column_names
            self.insert(table, pa.table({name: [row[name] for row in rows] for name in names}))

    def insert(self, table: str, rows: pa.Table) -> None:
        """Append rows to a table; columns are matched by name."""
        self.connection.register("rows_to_insert", rows)
        self.connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM rows_to_insert")
        self.connection.unregister("rows_to_insert")


def quoted(value: str | Path) -> str:
    """The text escaped for use between single quotes in SQL."""
    return str(value).replace("'", "''")


def bound(text: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that the statement `text` uses; DuckDB refuses any others."""
    return {name: parameters[name] for name in set(re.findall(r"\$([a-z]\w*)", text))}
