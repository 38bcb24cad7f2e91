"""Connections to a published snapshot: shared by readers, but for those that change settings."""

from __future__ import annotations

from typing import Any

import pytest

from ssrem.tasks.warehouse import home as module
from ssrem.tasks.warehouse.home import Warehouse
from support.stages import publish

BYTES = "SELECT bytes FROM corpora"
CREATED = "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'mine'"


def test_readers_of_a_snapshot_create_a_view_once(home: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    created: list[set[str]] = []
    create = module.create_views

    def recorded(*arguments: Any, names: set[str], **options: Any) -> None:
        created.append(names)
        create(*arguments, names=names, **options)

    monkeypatch.setattr(module, "create_views", recorded)
    publish(home.root, 1)
    for _ in range(2):
        assert home.query(BYTES) == [(1,)]
    assert created == [{"corpora"}, set()]
    with home.reader() as first, home.reader() as second:
        assert [reader.execute(BYTES).fetchone() for reader in (first, second)] == [(1,), (1,)]
    assert "corpora" not in created[2] and "turns" in created[2] and created[3] == set()
    publish(home.root, 2)
    assert home.query(BYTES) == [(2,)]
    assert created[-1] == {"corpora"}


def test_the_reader_of_a_chosen_snapshot_has_a_database_of_its_own(home: Warehouse) -> None:
    publish(home.root, 1)
    with home.reader() as shared, home.reader(snapshot=home.snapshot()) as own:
        own.execute("CREATE TABLE mine AS SELECT 1")
        assert [reader.execute(CREATED).fetchone() for reader in (own, shared)] == [(1,), (0,)]
