"""The contract of a table: grain, columns, key and expectations, from which DDL, Parquet files and gates derive.

Every expectation has `says`, its text in `check_results`, and `query(table)`, a query for the rows that violate it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column: name, DuckDB type, meaning, and whether it may be null."""

    name: str
    type: str
    meaning: str
    nullable: bool = False


def columns(**texts: str) -> tuple[Column, ...]:
    """Make columns from name="TYPE: meaning", or from name="TYPE?: meaning" for a column that may be null."""
    parts = [(name, *text.split(": ", 1)) for name, text in texts.items()]
    return tuple(Column(n, kind.removesuffix("?"), meaning, kind.endswith("?")) for n, kind, meaning in parts)


WHO = {"evaluator": "VARCHAR: name of the evaluator", "version": "BIGINT: its version"}
"""The columns that name a version of an evaluator."""


class OfRows:
    """An expectation that each row meets or breaks by itself: `broken_if` is true of the rows that break it."""

    @property
    def broken_if(self) -> str:
        """The condition, in SQL."""
        raise NotImplementedError

    def query(self, table: str) -> str:
        """The rows of the table that break it."""
        return f"SELECT * FROM {table} WHERE {self.broken_if}"


@dataclass(frozen=True)
class Between(OfRows):
    """Every non-null value of `column` lies in [low, high]; None means no bound."""

    column: str
    low: float | None = None
    high: float | None = None

    @property
    def says(self) -> str:
        bounds = (("at least", self.low), ("at most", self.high))
        return f"{self.column} to be {' and '.join(f'{words} {b}' for words, b in bounds if b is not None)}"

    @property
    def broken_if(self) -> str:
        bounds = (("<", self.low), (">", self.high))
        return " OR ".join(f'"{self.column}" {sign} {b}' for sign, b in bounds if b is not None)


def at_least(**bounds: int) -> Iterator[Between]:
    """For each column=bound: every non-null value of the column is `bound` or more."""
    return (Between(column, low) for column, low in bounds.items())


@dataclass(frozen=True)
class OneOf(OfRows):
    """Every non-null value of `column` is one of `values`."""

    column: str
    values: tuple[str, ...]

    @property
    def says(self) -> str:
        return f"{self.column} to be one of {', '.join(self.values)}"

    @property
    def broken_if(self) -> str:
        listed = ", ".join(f"'{value}'" for value in self.values)
        return f'"{self.column}" NOT IN ({listed})'


@dataclass(frozen=True)
class NotEmpty:
    """The table has at least one row."""

    says = "at least one row"

    def query(self, table: str) -> str:
        return f"SELECT 'empty' AS {table} WHERE NOT EXISTS (FROM {table})"


@dataclass(frozen=True)
class References:
    """Foreign key: every combination of `columns` without a null occurs in columns `target` of `table` (default: the
    same names).

    ranks: the last target column has all values from 0 to its maximum (see `Ranks`) and each other one has a single
    value, so that no join is needed.
    """

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...] = ()
    ranks: bool = False

    @property
    def says(self) -> str:
        return f"({', '.join(self.columns)}) to be found in {self.table}"

    def query(self, table: str) -> str:
        target = self.target or self.columns
        match = " AND ".join(f"a.{c} = b.{t}" for c, t in zip(self.columns, target, strict=True))
        present = " AND ".join(f"a.{c} IS NOT NULL" for c in self.columns)
        named = ", ".join(f"a.{c}" for c in self.columns)
        if self.ranks:
            *same, (rank, last) = zip(self.columns, target, strict=True)
            wrong = [f"a.{c} <> (SELECT any_value({t}) FROM {self.table})" for c, t in same]
            wrong.append(f"a.{rank} NOT BETWEEN 0 AND (SELECT coalesce(max({last}), -1) FROM {self.table})")
            return f"SELECT {named} FROM {table} AS a WHERE {present} AND ({' OR '.join(wrong)})"
        return f"SELECT {named} FROM {table} AS a ANTI JOIN {self.table} AS b ON {match} WHERE {present}"


@dataclass(frozen=True)
class Ranks:
    """The values of `column`, which are unique and at least 0, are those from 0 to the number of rows - 1."""

    column: str

    @property
    def says(self) -> str:
        return f"{self.column} to run from 0 without a gap"

    def query(self, table: str) -> str:
        last = f"max({self.column})"
        return f"SELECT {last} AS last, count(*) AS times FROM {table} HAVING {last} <> count(*) - 1"


@dataclass(frozen=True)
class WithinBounds:
    """Every non-null value of `columns` lies in [low, high], the columns of `evaluators` for the row's evaluator and
    version; a null bound is no bound."""

    columns: tuple[str, ...]

    @property
    def says(self) -> str:
        return f"({', '.join(self.columns)}) to be in the range of evaluators"

    def query(self, table: str) -> str:
        outside = " OR ".join(f"a.{c} < b.low OR a.{c} > b.high" for c in self.columns)
        versions = f"{table} AS a INNER JOIN evaluators AS b USING (evaluator, version)"
        return f"SELECT a.*, b.low, b.high FROM {versions} WHERE {outside}"


@dataclass(frozen=True)
class Finite(OfRows):
    """Every non-null value of the floating-point `columns` is finite."""

    columns: tuple[str, ...]

    @property
    def says(self) -> str:
        return f"({', '.join(self.columns)}) to be finite"

    @property
    def broken_if(self) -> str:
        return " OR ".join(f"NOT isfinite({c})" for c in self.columns)


Expectation = Between | OneOf | NotEmpty | References | Ranks | WithinBounds | Finite


@dataclass(frozen=True)
class Table:
    """A published table.

    few: the last columns of the key, if each combination of the other key columns has only few rows: the gate then
    groups by those others alone, in a third of the time.
    """

    name: str
    grain: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    expectations: Sequence[Expectation] = ()
    few: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if missing := [c for c in self.key if c not in self.column_names]:
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
        """CREATE TABLE statement, without constraints: the gate checks nulls and keys, and names the rows at fault."""
        listed = ", ".join(f'"{c.name}" {c.type}' for c in self.columns)
        return f"CREATE OR REPLACE TABLE {self.name} ({listed})"

    def empty_select(self) -> str:
        """A SELECT of no rows with the table's columns: the view of a table that has no partition yet."""
        listed = ", ".join(f'NULL::{c.type} AS "{c.name}"' for c in self.columns)
        return f"SELECT {listed} WHERE false"


@dataclass(frozen=True)
class View:
    """A query of the published tables that the catalog holds under a name: the statement `sql/views/NAME.sql`."""

    name: str
    grain: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
