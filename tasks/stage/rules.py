"""The rules of a gate: each is a query for the rows that break it, derived from a table's contract or a SQL check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ssrem.errors import GateError
from ssrem.schemas.contract import OfRows, Table


@dataclass(frozen=True)
class Rule:
    """One expectation: its table, what it says, and the query for the rows that break it.

    of_rows: whether that query only filters the rows of the table, and so takes no memory.
    """

    table: str
    says: str
    offending: str
    of_rows: bool = False


def rules(table: Table) -> Iterator[Rule]:
    """The rules that a contract implies: its key, its columns that may not be null, and its expectations."""
    name, key = table.name, ", ".join(table.key)
    # Grouping by whole keys takes three times the memory; equal hashes of different keys are told apart.
    if table.few:
        # One bit for each combination of `few`: rows with the same bit may be the same key.
        bit = f"1::UBIGINT << (hash({', '.join(table.few)}) % 64)::INTEGER"
        hashed = ", ".join(column for column in table.key if column not in table.few)
        shared = (
            f"SELECT h FROM (SELECT hash({hashed}) AS h, {bit} AS bit FROM {name}) GROUP BY h "
            "HAVING count(*) > bit_count(bit_or(bit))"
        )
    else:
        hashed = key
        shared = f"SELECT h FROM (SELECT hash({key}) AS h FROM {name}) GROUP BY h HAVING count(*) > 1"
    repeated = f"FROM {name} WHERE hash({hashed}) IN ({shared}) GROUP BY {key} HAVING count(*) > 1"
    yield Rule(name, f"({key}) to be unique", f"SELECT {key}, count(*) AS times {repeated}")
    for column in table.required:
        yield Rule(name, f"{column} not to be null", f'SELECT * FROM {name} WHERE "{column}" IS NULL', True)
    for expectation in table.expectations:
        yield Rule(name, expectation.says, expectation.query(name), isinstance(expectation, OfRows))


def not_checked(table: str, reason: object) -> GateError:
    """The error of a gate that cannot evaluate a rule."""
    return GateError(f"the gate could not check table {table}: {shortened(reason)}; nothing was published")


def shortened(value: Any) -> str:
    """The value as text of at most 40 characters on one line."""
    text = " ".join(str(value).split())
    return text if len(text) <= 40 else text[:37] + "..."
