"""Contracts agree with each other, with DuckDB, and with the statements that fill their tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import duckdb
import pytest

from ssrem import schemas
from ssrem.schemas import TABLES, VIEWS
from ssrem.schemas.contract import Between, Column, Finite, OneOf, References, Table
from ssrem.sql import checks, statement
from ssrem.tables.builder import bound
from ssrem.tables.landing import RECORDS
from ssrem.tasks.stage.gate import create_shared
from support.paths import ROOT

SQL = ROOT / "sql"
STATEMENTS = sorted(str(p.relative_to(SQL).with_suffix("")) for p in SQL.glob("[0-9]_*/*.sql"))

# What a statement fills, where that is not the table of its own name.
FILLS = {"2_speaker_tables/turns_addressed": "turns"}
VALUES: dict[str, Any] = {
    **{"corpus": "c", "format": "jsonl", "source": "s", "sha256": "h", "bytes": 1, "messages": 1},
    **{"speaker_scope": "person", "landed_at": datetime(2026, 1, 1), "seed": 0, "seed_hash": 0},
    **{"context_turns": 5, "addressees": "stated", "kind": "SS", "kind_code": 3, "draws": 2, "speakers": 2},
    **{"dataset": "d", "evaluator": "e", "champion": 1, "challenger": 2, "seats": False, "part": "f"},
    **{"unreadable": ["not_json"], "fields": '{"text": "VARCHAR"}', "version": 1, "split": "valid"},
    **{"most": 1, "short": 1, "middle": 2, "long": 3},
}


def filled(name: str) -> str | None:
    """The table with a contract that a statement fills; None for a scratch table."""
    table = FILLS.get(name, name.split("/")[1])
    return table if table in TABLES else None


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Every table of the contracts, empty, and the scratch tables of the stages; as it was after the test."""
    connection = empty_tables().begin()
    yield connection
    connection.rollback()


@lru_cache
def empty_tables() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    for table in TABLES.values():
        opened.execute(table.ddl())
    for name in VIEWS:
        opened.execute(f"CREATE VIEW {name} AS {statement(f'views/{name}')}")
    opened.execute("CREATE SCHEMA published")
    for name in TABLES:
        opened.execute(f"CREATE VIEW published.{name} AS FROM main.{name}")
    opened.execute("CREATE TABLE forgotten_people (id VARCHAR)")
    opened.register("empty", RECORDS.empty_table())
    for records in ("aside", "raw", "without_files", "without_conversations"):
        opened.execute(f"CREATE TABLE {records} AS FROM empty")
    opened.execute("CREATE TABLE vector_norms (turn_id BIGINT, norm DOUBLE)")
    opened.execute(statement("macros"))
    scratch = [name for name in STATEMENTS if filled(name) is None]
    while scratch:  # a scratch table may need others first
        waiting = [name for name in scratch if not _created(opened, name)]
        assert len(waiting) < len(scratch), f"these statements read tables that nothing makes: {waiting}"
        scratch = waiting
    return opened


def _created(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    text = statement(name)
    try:
        connection.execute(f"CREATE OR REPLACE TABLE {name.split('/')[1]} AS {text}", bound(text, VALUES))
    except duckdb.CatalogException:
        return False
    return True


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda t: t.name)
def test_a_contract_is_consistent(table: Table) -> None:
    names = table.column_names
    assert len(set(names)) == len(names)
    assert table.key and set(table.key) <= set(table.required), "a key without nulls"
    assert table.grain.startswith("One row is ") and table.grain.endswith(".")
    types = {c.name: c.type for c in table.columns}
    for column in table.columns:
        assert column.meaning.strip() == column.meaning != "", column.name
    for expectation in table.expectations:
        match expectation:
            case Between(column, low, high):
                assert types[column] in ("BIGINT", "DOUBLE")
                assert low is not None or high is not None
                assert low is None or high is None or low < high
            case OneOf(column, values):
                assert types[column] == "VARCHAR" and len(set(values)) == len(values) > 0
            case Finite(columns):
                assert {types[c] for c in columns} == {"DOUBLE"}
            case References(columns, other, target):
                referenced = {c.name: c.type for c in TABLES[other].columns}
                targets = target or columns
                assert [types[c] for c in columns] == [referenced[t] for t in targets]
                assert set(targets) <= set(TABLES[other].key), "what is pointed at is a key"


def test_every_contract_is_published_and_one_whose_key_is_no_column_refused() -> None:
    modules = [import_module(f"ssrem.schemas.{module.name}") for module in iter_modules(schemas.__path__)]
    defined = {id(v) for module in modules for v in vars(module).values() if isinstance(v, Table)}
    assert defined == {id(table) for table in TABLES.values()}
    assert all(name == table.name for name, table in TABLES.items())
    with pytest.raises(ValueError, match="nowhere"):
        Table("t", "One row is x.", ("nowhere",), (Column("a", "VARCHAR", "a"),))


def test_ddl_and_empty_view_have_the_columns() -> None:
    with duckdb.connect() as connection:
        for table in TABLES.values():
            connection.execute(table.ddl())
            for query in (table.name, f"({table.empty_select()})"):
                described = connection.execute(f"DESCRIBE SELECT * FROM {query}").fetchall()
                assert [(name, kind) for name, kind, *_ in described] == [
                    (c.name, c.type) for c in table.columns
                ]


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_yields_the_columns_of_its_contract(
    connection: duckdb.DuckDBPyConnection, name: str
) -> None:
    text = statement(name)
    assert text.startswith("-- One row is ") and "Grain: " in text.split("SELECT")[0]
    cursor = connection.execute(text, bound(text, VALUES))
    described = [d[0] for d in cursor.description or []]
    assert len(set(described)) == len(described)
    if (target := filled(name)) is not None:
        assert sorted(described) == sorted(TABLES[target].column_names)
        connection.execute(f"INSERT INTO {target} BY NAME {text}", bound(text, VALUES))


def test_draws_never_depend_on_chance() -> None:
    chance = re.compile(r"\b(random|uuid|setseed)\s*\(|USING SAMPLE|TABLESAMPLE", re.IGNORECASE)
    assert [name for name in STATEMENTS if chance.search(statement(name))] == []


def test_checks_say_what_and_why_and_run(connection: duckdb.DuckDBPyConnection) -> None:
    for stage in sorted(p.name for p in (SQL / "checks").iterdir() if p.is_dir()):
        connection.rollback()
        create_shared(connection.begin(), stage)
        for check in checks(stage):
            assert check.table in TABLES or check.table == "vector_norms", check.name
            assert check.why.endswith("."), check.name
            assert connection.execute(check.query).fetchall() == [], check.name
