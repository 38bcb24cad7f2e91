"""Connections to a published snapshot: each sees its own, and those with settings of their own disturb no other."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pytest

from ssrem.tasks.query import confined
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import Made
from support.stages import publish

BYTES = "SELECT bytes FROM corpora"
CREATED = "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'mine'"


def test_readers_of_two_snapshots_and_of_two_homes_see_each_their_own(
    home: Warehouse, tmp_path: Path
) -> None:
    other = Warehouse.at(tmp_path / "other")
    publish(home.root, 1)
    publish(other.root, 7)
    with home.reader() as first:
        publish(home.root, 2)
        with home.reader() as second, other.reader() as third:
            rows = [reader.execute(BYTES).fetchall() for reader in (first, second, third)]
    assert rows == [[(1,)], [(2,)], [(7,)]]


def test_a_confined_query_has_a_database_of_its_own(made: Made) -> None:
    def created(own: duckdb.DuckDBPyConnection) -> list[object]:
        own.execute("CREATE TABLE mine AS SELECT 1")
        return [reader.execute(CREATED).fetchone() for reader in (own, shared)]

    with made.home.reader() as shared:
        assert confined(made.home, created) == [(1,), (0,)]


def test_threads_read_while_another_publishes(home: Warehouse) -> None:
    publish(home.root, 1)
    failures: list[Exception] = []
    seen: list[int] = []

    def read() -> None:
        try:
            for _ in range(6):
                ((number,),) = home.query(BYTES)
                seen.append(number)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in (2, 3):
        publish(home.root, number)
    for thread in threads:
        thread.join()
    assert failures == []
    assert set(seen) <= {1, 2, 3} and len(seen) == 18


def test_a_wrong_query_is_the_querys_own_error(made: Made) -> None:
    with pytest.raises(duckdb.CatalogException, match="nothing_of_that_name"):
        made.home.query("SELECT * FROM nothing_of_that_name, corpora")
    with pytest.raises(duckdb.BinderException, match="no_column"):
        made.home.query("SELECT no_column FROM corpora")


def test_a_catalog_that_cannot_be_written_is_let_go_of(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where DuckDB refuses every further statement, so that the same process reads on."""
    publish(home.root, 1)

    def refused(cursor: duckdb.DuckDBPyConnection, *_: object) -> None:
        cursor.execute("BEGIN")
        cursor.execute("FROM nowhere")

    with monkeypatch.context() as patched, pytest.raises(duckdb.Error):
        patched.setattr("ssrem.tasks.warehouse.catalog.create_views", refused)
        publish(home.root, 2)
    assert home.query(BYTES) == [(1,)]
    publish(home.root, 3)
    assert home.query(BYTES) == [(3,)]
