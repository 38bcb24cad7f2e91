"""Great Expectations finds in every table the rows that DuckDB alone finds, and shows them on its pages."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb
import pytest

from ssrem.errors import GateError
from ssrem.schemas import TABLES
from ssrem.schemas.contract import Table
from ssrem.tasks.stage import gate
from ssrem.tasks.stage.gate import Rule, rules

pytestmark = [pytest.mark.prefect, pytest.mark.xdist_group("prefect")]  # one worker imports it


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    """All tables, each with a row whose values are all null."""
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA published; SET search_path = 'main,published'")
    for table in TABLES.values():
        connection.execute(table.ddl())
        connection.execute(f"INSERT INTO {table.name} BY NAME SELECT NULL AS {table.column_names[0]}")
    return connection


def kinds(tables: Iterable[Table]) -> set[object]:
    """The kinds of rules of the tables."""
    return {kind for table in tables for kind in (bool(table.few), *map(type, table.expectations))}


def test_both_count_the_same_rows(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    from ssrem.flows.expectations import Gates

    tables = [TABLES[name] for name in ("candidates", "utterances", "turns", "negatives", "scores")]
    assert kinds(tables) == kinds(TABLES.values())
    wanted = [rule for table in tables for rule in rules(table)]
    gates = Gates(tmp_path)
    counted = gates.broken_rows(connection, wanted)
    assert counted == gate.broken_rows(connection, wanted)
    assert 20 < sum(map(bool, counted)) < len(counted) - 20
    assert gates.broken_rows(connection, [Rule("turns", "none", "SELECT 1 WHERE false")]) == [0]
    index = gates.write().read_text()
    (page,) = tmp_path.glob("validations/utterances*/**/*.html")
    assert "text not to be null" in page.read_text()
    for gate_of_turns in ("turns 1", "turns 2"):  # the pages show every gate
        assert gate_of_turns in index
    with pytest.raises(GateError, match=r"^the gate could not check table corpora: .*CatalogException"):
        gates.broken_rows(connection, [Rule("corpora", "x", "SELECT * FROM nowhere")])
