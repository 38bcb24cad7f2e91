"""What a table promises: its grain, columns, key and expectations. DDL, Parquet files and gates derive from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Column:
    """A column: DuckDB type, meaning, and whether it may be null.

    default: for rows of home folders that are older than the column, SQL over the row's other columns.
    """

    name: str
    type: str
    meaning: str
    nullable: bool = False
    default: str | None = None


@dataclass(frozen=True)
class Between:
    """Every value of `column` that is not null lies in [low, high]; None leaves that side open."""

    column: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class OneOf:
    """Every value of `column` that is not null is one of `values`."""

    column: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class NotEmpty:
    """The table has at least one row."""


@dataclass(frozen=True)
class References:
    """Every combination of `columns` without a null stands in `table` under `target` (default: the same names)."""

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...] = ()

    def query(self, table: str) -> str:
        """The columns of the rows of `table` that refer to nothing."""
        target = self.target or self.columns
        match = " AND ".join(f"a.{c} = b.{t}" for c, t in zip(self.columns, target, strict=True))
        present = " AND ".join(f"a.{c} IS NOT NULL" for c in self.columns)
        named = ", ".join(f"a.{c}" for c in self.columns)
        return f"SELECT {named} FROM {table} AS a ANTI JOIN {self.table} AS b ON {match} WHERE {present}"


@dataclass(frozen=True)
class WithinBounds:
    """Every value of `columns` that is not null lies in [low, high] of the row of `table` with the same `key`; a
    bound that is null leaves that side open."""

    columns: tuple[str, ...]
    table: str
    key: tuple[str, ...]

    def query(self, table: str) -> str:
        """The rows of `table` that hold a value outside."""
        match = " AND ".join(f"a.{c} = b.{c}" for c in self.key)
        outside = " OR ".join(f"a.{c} < b.low OR a.{c} > b.high" for c in self.columns)
        return f"SELECT a.*, b.low, b.high FROM {table} AS a INNER JOIN {self.table} AS b ON {match} WHERE {outside}"


@dataclass(frozen=True)
class Finite:
    """Every value of the floating-point `columns` that is not null is finite."""

    columns: tuple[str, ...]

    def query(self, table: str) -> str:
        """Rows of `table` that hold NaN or an infinity."""
        broken = " OR ".join(f"NOT isfinite({c})" for c in self.columns)
        return f"SELECT * FROM {table} WHERE {broken}"


Expectation = Between | OneOf | NotEmpty | References | WithinBounds | Finite


@dataclass(frozen=True)
class Table:
    """A published table. `part` names what one Parquet part of it covers, such as one corpus."""

    name: str
    grain: str
    part: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    expectations: Sequence[Expectation] = field(default=())

    def __post_init__(self) -> None:
        names = self.column_names
        if missing := [c for c in self.key if c not in names]:
            raise ValueError(f"table {self.name}: key columns {missing} are not among its columns")

    @property
    def column_names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(c.name for c in self.columns)

    @property
    def required(self) -> tuple[str, ...]:
        """Columns that may not be null."""
        return tuple(c.name for c in self.columns if not c.nullable)

    def ddl(self) -> str:
        """CREATE TABLE statement. Nulls and keys are left to the gate, which can say which rows break them."""
        columns = ", ".join(f'"{c.name}" {c.type}' for c in self.columns)
        return f"CREATE OR REPLACE TABLE {self.name} ({columns})"

    def empty_select(self) -> str:
        """A SELECT of no rows with the table's columns: the view of a table that has no part yet."""
        columns = ", ".join(f'NULL::{c.type} AS "{c.name}"' for c in self.columns)
        return f"SELECT {columns} WHERE false"
