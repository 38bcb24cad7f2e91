"""A home folder of an earlier version becomes one of this: by the command, with what was done still done."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import duckdb
import pytest

from schemas import TABLES, fingerprint, first_layout
from schemas.contract import Column, Table
from schemas.layouts import Shape, from_json, obstacles, shapes, to_json
from ssrem.errors import GateError, HomeError
from support.old_homes import FUTURE, KEPT, LAYOUTS, old_home
from support.paths import ROOT
from support.small_home import QUIET
from tasks.maintenance import backup, upgrade
from tasks.warehouse import home as home_module
from tasks.warehouse.catalog import LAYOUT, read_parts
from tasks.warehouse.garbage import collect_old
from tasks.warehouse.home import Warehouse

RUN = """
    import contextlib, io, json
    from flows.cli.main import main

    said = []
    for line in json.loads(sys.argv[1]):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            code = main(line)
        said.append([code, out.getvalue(), err.getvalue()])
    print(json.dumps(said))
"""


def tomorrow(code: str, *arguments: str) -> str:
    """The last line that code of a later version prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", FUTURE + dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        env={**{k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "SSREM_"))}, **QUIET},
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]  # above it DuckDB shows its progress where code comes from -c


def commands(home: Warehouse, *lines: list[str]) -> list[tuple[int, str, str]]:
    """Exit status, stdout and stderr of commands of a later version, one after another."""
    said = tomorrow(RUN, json.dumps([[*line, "--home", str(home.root)] for line in lines]))
    return [(code, out, err) for code, out, err in json.loads(said)]


DONE = """
    import json
    from tasks.warehouse.home import Warehouse
    from tasks.stage.ledger import already_done
    home = Warehouse.at(sys.argv[1])
    with home.reader() as reader:
        runs = reader.execute("SELECT stage, parameters, inputs FROM runs WHERE stage <> 'upgrade'").fetchall()
    print(all(already_done(home, stage, json.loads(asked), json.loads(read)) for stage, asked, read in runs), len(runs))
"""


LAND = """
    from tasks.ingest.land import land  # without Prefect, whose server takes its time
    found = [land.fn(dump, sys.argv[1]) for dump in sys.argv[2:]]
    print(found)
"""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_home_of_an_earlier_version_migrates(layout: str, tmp_path: Path) -> None:
    home = old_home(layout, tmp_path / "home")
    files = set(home.lake.rglob("*"))
    asked = "SELECT looked_at = trained_at AS same, colour, promoted FROM evaluators"
    refused, done, evaluators, corpora, new, gone, status, again = commands(
        home,
        ["status"],
        ["upgrade", "--json"],
        ["sql", asked, "--json"],
        ["sql", "SELECT host FROM corpora", "--json"],
        ["sql", "SELECT count(*) AS n FROM moods", "--json"],
        ["sql", "SELECT count(*) FROM learning_curves"],
        ["status"],
        ["upgrade"],
    )
    assert refused[0] == 1
    (line,) = refused[2].splitlines()
    assert f"layout {layout}" in line and "run ssrem upgrade" in line
    assert done[0] == 0, done
    said = json.loads(done[1])
    assert (said["old"], said["upgraded"]) == (layout, True)
    assert {"evaluators", "runs", "corpora"} <= set(said["tables"])
    assert files <= set(home.lake.rglob("*")), "the old files stay"
    assert {p.table for p in read_parts(Path(said["kept"]))} >= {"evaluators", "learning_curves"}
    assert json.loads(evaluators[1]) == [{"same": True, "colour": None, "promoted": True}] * 2
    assert json.loads(corpora[1]) == [{"host": "jsonl here"}]
    assert json.loads(new[1]) == [{"n": 0}]
    assert (gone[0], status[0], again[0]) == (1, 0, 0)
    assert "nothing to do" in again[1]

    assert tomorrow(DONE, str(home.root)) == "True 7"
    before = {(p.table, p.key): p for p in read_parts(home.catalog)}
    other = tmp_path / "other.jsonl"
    row = {"conversation_id": "c", "utterance_id": "u", "speaker": "p", "text": "another"}
    other.write_text(json.dumps(row))
    landed = tomorrow(LAND, str(home.root), str(KEPT / layout / "tiny.jsonl"), str(other))
    assert landed == str([("tiny", False), ("other", True)])
    after = {(p.table, p.key): p for p in read_parts(home.catalog)}
    ledger = ("runs", "check_results")
    assert all(after[place] == part for place, part in before.items() if part.table not in ledger)


@pytest.fixture
def version(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Make this process one of another version, whose table of that name is changed."""
    kept = dict(TABLES)  # in their order, which monkeypatch does not keep

    def change(name: str, **changes: Any) -> None:
        monkeypatch.setitem(TABLES, name, replace(TABLES[name], **changes))
        for module in (home_module, upgrade, backup):
            monkeypatch.setattr(module, "LAYOUT", f"1-{fingerprint()}")

    yield change
    TABLES.clear()
    TABLES.update(kept)


def test_what_cannot_be_carried_over_is_refused_in_one_line(
    tmp_path: Path, version: Callable[..., None]
) -> None:
    home = old_home(LAYOUTS[0], tmp_path / "home")
    content = home.catalog.read_bytes(), sorted(home.root.rglob("*"))
    columns = TABLES["turns"].columns
    kinds = tuple(replace(c, type="DOUBLE") if c.name == "turn" else c for c in columns)
    version("turns", columns=(*kinds, Column("mood", "VARCHAR", "")))
    with pytest.raises(HomeError) as error:
        upgrade.upgrade(home)
    says = str(error.value)
    assert len(says.splitlines()) == 1
    assert "turns.turn was BIGINT and is DOUBLE; turns.mood is new" in says
    assert "version of ssrem that made it" in says and "land its dumps" in says
    assert (home.catalog.read_bytes(), sorted(home.root.rglob("*"))) >= content


OLD = Table("t", "a row", "corpus", ("a",), (Column("a", "BIGINT", ""), Column("b", "VARCHAR", "")))


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (replace(OLD, key=("a", "b")), r"t: its key or part was \(a\) by corpus"),
        (replace(OLD, part="run"), "t: its key or part"),
        (replace(OLD, columns=OLD.columns[:1]), "t.b is gone"),
        (replace(OLD, columns=(*OLD.columns, Column("c", "BIGINT", ""))), "t.c is new"),
    ],
)
def test_obstacles(new: Table, says: str) -> None:
    (found,) = obstacles(shapes([OLD]), {"t": new})
    assert re.match(says, found)


@pytest.mark.parametrize(
    "new",
    [
        OLD,
        replace(OLD, columns=OLD.columns[::-1]),
        replace(OLD, columns=(*OLD.columns, Column("c", "BIGINT", "", nullable=True))),
        replace(OLD, columns=(*OLD.columns, Column("c", "BIGINT", "", default="a + 1"))),
    ],
)
def test_no_obstacles(new: Table) -> None:
    assert obstacles(shapes([OLD]), {"t": new, "another": replace(OLD, name="another")}) == []
    assert obstacles(shapes([OLD]), {}) == []


def test_a_default_that_breaks_the_contract_stops_at_the_gate(
    tmp_path: Path, version: Callable[..., None]
) -> None:
    home = old_home(LAYOUTS[0], tmp_path / "home")
    old = home.catalog.read_bytes(), sorted(home.lake.rglob("*"))
    version(
        "evaluators",
        columns=(*TABLES["evaluators"].columns, Column("more", "BIGINT", "", default="best_epoch * NULL")),
    )
    with pytest.raises(GateError, match="more not to be null"):
        upgrade.upgrade(home)
    assert (home.catalog.read_bytes(), sorted(home.lake.rglob("*"))) == old
    assert not list(home.root.glob("catalog.*.duckdb"))


def test_the_old_files_are_kept_until_the_old_catalog_goes(
    tmp_path: Path, version: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = old_home(LAYOUTS[0], tmp_path / "home")
    monkeypatch.delitem(TABLES, "learning_curves")  # which lie beside the evaluators
    version(
        "evaluators", columns=(*TABLES["evaluators"].columns, Column("more", "BIGINT", "", nullable=True))
    )
    done = upgrade.upgrade(home)
    assert done is not None
    collect_old(home, keep_runs=0, keep_seconds=0)
    for part in read_parts(done.kept):
        assert (home.root / part.path).exists()
    done.kept.unlink()
    gone = collect_old(home, keep_runs=0, keep_seconds=0).removed
    with home.reader() as reader:
        assert reader.execute("SELECT count(*), count(more) FROM evaluators").fetchone() == (2, 0)
    assert len(gone) == 2


def test_a_layout_that_nobody_knows(tmp_path: Path) -> None:
    home = old_home(LAYOUTS[0], tmp_path / "home")
    with duckdb.connect(str(home.catalog)) as connection:
        connection.execute("UPDATE ssrem.home SET layout = '0-other'")
    with pytest.raises(
        HomeError, match=r"layout 0-other, which ssrem .* does not know; read it with the version"
    ):
        upgrade.upgrade(home)


def test_shapes_are_kept_whole() -> None:
    assert from_json(to_json(shapes(TABLES.values()))) == shapes(TABLES.values())
    home = Warehouse.at("nowhere")
    assert upgrade.upgrade(home) is None, "nothing is published"


def test_the_first_layout_is_what_it_was() -> None:
    shape = [(name, s.part, s.key, list(s.columns)) for name, s in first_layout.SHAPES.items()]
    assert f"1-{hashlib.sha256(repr(shape).encode()).hexdigest()[:8]}" == first_layout.NAME
    assert isinstance(first_layout.SHAPES["turns"], Shape)
    assert LAYOUT.startswith("1-")
