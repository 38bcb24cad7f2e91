"""Layouts: the shape of all contracts, by which a home folder of another version is told from one of this."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from schemas.contract import Table


@dataclass(frozen=True)
class Shape:
    """What of a table's contract decides whether its files can be read: part, key, and columns (name, type)."""

    part: str
    key: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]


Shapes = Mapping[str, Shape]


def shapes(tables: Iterable[Table]) -> dict[str, Shape]:
    """The shape of each table by name."""
    return {t.name: Shape(t.part, t.key, tuple((c.name, c.type) for c in t.columns)) for t in tables}


def to_json(found: Shapes) -> str:
    """Shapes as text, which a catalog keeps."""
    return json.dumps({name: [shape.part, shape.key, shape.columns] for name, shape in found.items()})


def from_json(text: str) -> dict[str, Shape]:
    """Shapes from the text that `to_json` made."""
    return {
        name: Shape(part, tuple(key), tuple((column, kind) for column, kind in columns))
        for name, (part, key, columns) in json.loads(text).items()
    }


def obstacles(old: Shapes, tables: Mapping[str, Table]) -> list[str]:
    """Why files of the shapes `old` cannot become files of `tables` without their data being made anew; none: they can.

    Harmless are new tables, tables that are gone, and new columns that may be null or have a default.
    """
    found = []
    for name, shape in old.items():
        table = tables.get(name)
        if table is None:
            continue
        if (table.part, table.key) != (shape.part, shape.key):
            found.append(f"{name}: its key or part was ({', '.join(shape.key)}) by {shape.part}")
        now = {c.name: c for c in table.columns}
        before = dict(shape.columns)
        for column, kind in before.items():
            if column not in now:
                found.append(f"{name}.{column} is gone")
            elif now[column].type != kind:
                found.append(f"{name}.{column} was {kind} and is {now[column].type}")
        for column, contract in now.items():
            if column not in before and not contract.nullable and contract.default is None:
                found.append(f"{name}.{column} is new and cannot be told from the old rows")
    return found


def changed(old: Shapes, tables: Mapping[str, Table]) -> list[str]:
    """Names of the tables that both have, whose columns differ."""
    now = shapes(tables.values())
    return [name for name in now if name in old and old[name].columns != now[name].columns]


def migrating_select(old: Shape, table: Table, source: str) -> str:
    """A SELECT of the columns of `table` from `source`, which has those of `old`; what is new takes its default."""
    before = {name for name, _ in old.columns}
    columns = ", ".join(
        f'"{c.name}"' if c.name in before else f'({c.default or "NULL"})::{c.type} AS "{c.name}"'
        for c in table.columns
    )
    return f"SELECT {columns} FROM {source}"
