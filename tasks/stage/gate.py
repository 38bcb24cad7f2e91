"""Gates: the staged tables are checked by their contracts and the SQL checks.

Every rule is a query for the rows that break it. DuckDB evaluates it, or the function given to `evaluated_by`, by which
flows have Great Expectations evaluate it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ssrem.errors import GateError, one_line
from ssrem.schemas import TABLES
from ssrem.schemas.contract import OfRows, Table
from ssrem.sql import checks, shared
from ssrem.tasks.warehouse.home import records

if TYPE_CHECKING:
    import duckdb

SHOWN_ROWS, SAVED_ROWS = 3, 1000
"""At most how many of the rows that break a rule the message shows, and how many are saved under `failures/`."""

RESPONSES_AT_ONCE = 12_000_000
"""Width of the range of response ids whose candidates are joined at once; it bounds the space that a check takes."""


PARTS_OF_KEYS = 4
"""Parts in which the keys of a table with `Table.few` are grouped: 370 million candidates then spill 4 GB, not 14."""


@dataclass(frozen=True)
class Rule:
    """One expectation: its table, what it says, and the query for the rows that break it.

    broken_if: the condition by which the query filters the rows of the table, if it does nothing else. of_key: whether
    the rule is that the key of the table is unique.
    """

    table: str
    says: str
    offending: str
    broken_if: str = ""
    of_key: bool = False


Evaluate = Callable[["duckdb.DuckDBPyConnection", Sequence[Rule]], list[int]]
"""Counts the rows that break each rule, in order; a table's rules are adjacent. GateError if a rule cannot be run."""

_EVALUATE: ContextVar[Evaluate | None] = ContextVar("what evaluates rules instead of DuckDB", default=None)


@contextmanager
def evaluated_by(evaluate: Evaluate) -> Iterator[None]:
    """Let `evaluate` count the rows that break the rules of all gates, until the block ends."""
    token = _EVALUATE.set(evaluate)
    try:
        yield
    finally:
        _EVALUATE.reset(token)


class Result(NamedTuple):
    """Outcome of a rule: the row of `check_results`, and the rule."""

    row: dict[str, Any]
    rule: Rule


def check_tables(
    connection: duckdb.DuckDBPyConnection,
    stage: str,
    run_id: str,
    tables: Sequence[str],
    unique: Collection[str] = (),
) -> list[Result]:
    """Check the staged `tables` and run the SQL checks of `stage`; returns one Result per rule, grouped by table.

    unique: tables in which no key repeats, as is known already; DuckDB does not check these keys again. Raises
    GateError if a rule cannot be evaluated at all.
    """
    wanted = [rule for name in tables for rule in rules(TABLES[name])]
    wanted += [Rule(c.table, f"no row of {c.name}: {c.why}", c.query) for c in checks(stage)]
    order = list(dict.fromkeys(rule.table for rule in wanted))
    wanted.sort(key=lambda rule: order.index(rule.table))
    create_shared(connection, stage)
    if evaluate := _EVALUATE.get():
        broken = evaluate(connection, wanted)
    else:
        met = [rule.of_key and rule.table in unique for rule in wanted]
        others = iter(
            broken_rows(connection, [rule for rule, is_met in zip(wanted, met, strict=True) if not is_met])
        )
        broken = [0 if is_met else next(others) for is_met in met]
    counts = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in order)
    sizes = dict(connection.execute(counts).fetchall())
    names, results = TABLES["check_results"].column_names, []
    for rule, rows in zip(wanted, broken, strict=True):
        values = (run_id, stage, rule.table, rule.says, rows == 0, sizes[rule.table], rows)
        results.append(Result(dict(zip(names, values, strict=True)), rule))
    return results


def rules(table: Table) -> Iterator[Rule]:
    """The rules that a contract implies: its key, its columns that may not be null, and its expectations."""
    name, key = table.name, ", ".join(table.key)
    # Grouping by hashes takes a third of the memory of grouping by keys; keys with equal hashes are then compared.
    hashed, of_each, more, parts = key, "", "1", [""]
    if table.few:  # one of 64 bits for each combination of their values; rows with equal bits may be one key
        *_, last = others = [column for column in table.key if column not in table.few]
        hashed = ", ".join(others)
        of_each = f", 1::UBIGINT << (hash({', '.join(table.few)}) % 64)::INTEGER AS bit"
        more = "bit_count(bit_or(bit))"
        parts = [f" WHERE hash({last}) % {PARTS_OF_KEYS} = {part}" for part in range(PARTS_OF_KEYS)]
    hashes = f"SELECT hash({hashed}) AS h{of_each} FROM {name}"
    shared = " UNION ALL ".join(
        f"SELECT h FROM ({hashes}{part}) GROUP BY h HAVING count(*) > {more}" for part in parts
    )
    repeated = f"FROM {name} WHERE hash({hashed}) IN ({shared}) GROUP BY {key} HAVING count(*) > 1"
    yield Rule(name, f"({key}) to be unique", f"SELECT {key}, count(*) AS times {repeated}", of_key=True)
    for column in table.required:
        null = f'"{column}" IS NULL'
        yield Rule(name, f"{column} not to be null", f"SELECT * FROM {name} WHERE {null}", null)
    for expectation in table.expectations:
        of_rows = expectation.broken_if if isinstance(expectation, OfRows) else ""
        yield Rule(name, expectation.says, expectation.query(name), of_rows)


def create_shared(connection: duckdb.DuckDBPyConnection, stage: str) -> None:
    """Create the tables that several SQL checks of the stage read; GateError if one of their queries fails.

    A query with $first and $last is run for RESPONSES_AT_ONCE response ids at a time.
    """
    for query in shared(stage):
        into = f"CREATE OR REPLACE TABLE main.{query.name} AS"
        slices: list[dict[str, int]] = [{}]
        if "$first" in query.text:
            ids = "SELECT coalesce(min(response_id), 0), coalesce(max(response_id), 0) FROM responses"
            ((lowest, highest),) = connection.execute(ids).fetchall()
            starts = range(lowest, highest + 1, RESPONSES_AT_ONCE)
            slices = [{"first": first, "last": first + RESPONSES_AT_ONCE - 1} for first in starts]
        # DuckDB greatly underestimates slices of tables, so the joins keep the order in which they are written.
        connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        for values in slices:
            _checked(connection, query.name, f"{into} {query.text}", values)
            into = f"INSERT INTO main.{query.name}"
        connection.execute("RESET disabled_optimizers")


def broken_rows(connection: duckdb.DuckDBPyConnection, wanted: Sequence[Rule]) -> list[int]:
    """The number of rows that break each rule, in order. Raises GateError if a rule cannot be evaluated."""
    # Conditions on the rows of a table are counted in one scan, since planning takes most of a small table's time.
    # Each of the other rules, which may take much memory, has a statement of its own.
    together: dict[object, list[int]] = {}
    for number, rule in enumerate(wanted):
        together.setdefault(rule.table if rule.broken_if else number, []).append(number)
    counts: dict[int, int] = {}
    for numbers in together.values():
        first, *_ = of_one = [wanted[number] for number in numbers]
        query = f"SELECT count(*) FROM ({first.offending})"
        if first.broken_if:
            conditions = (f"coalesce(count_if({rule.broken_if}), 0)" for rule in of_one)
            query = f"SELECT {', '.join(conditions)} FROM {first.table}"
        (row,) = _checked(connection, first.table, query)
        counts.update(zip(numbers, row, strict=True))
    return [counts[number] for number in range(len(wanted))]


def _checked(connection: duckdb.DuckDBPyConnection, table: str, query: str, values: Any = None) -> list[Any]:
    """The rows that a query for checking `table` returns; GateError if DuckDB cannot run it."""
    import duckdb

    try:
        return connection.execute(query, values).fetchall()
    except duckdb.Error as error:
        raise not_checked(table, error) from error


def offending_rows(connection: duckdb.DuckDBPyConnection, result: Result) -> str:
    """The first rows that broke a rule, on one line."""
    rows = records(connection, f"SELECT * FROM ({result.rule.offending}) LIMIT {SHOWN_ROWS}")
    cells = ([f"{name}={one_line(value, 40)}" for name, value in row.items()] for row in rows)
    return "; ".join(f"({', '.join(row)})" for row in cells)


def not_checked(table: str, reason: object) -> GateError:
    """The GateError that says that a rule of the table could not be evaluated, and why."""
    return GateError(f"the gate could not check table {table}: {one_line(reason)}; nothing was published")
