"""What is damaged, missing or in the way is named in one line with the way out, and never taken for an empty home."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from ssrem.errors import HomeError
from ssrem.tasks.stage.stage import Output
from ssrem.tasks.warehouse.catalog import LAYOUT, PartitionKey, _snapshot, made_by
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.prune import health
from support.small_home import Made, called
from support.stages import publish, staging
from support.whole_home import content


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    """Change some bytes; size and modification time stay, as when a disk fails in silence."""
    before, data = path.stat(), bytearray(path.read_bytes())
    place = len(data) // 5
    data[place : place + 8] = bytes(255 - byte for byte in data[place : place + 8])
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def file_of(home: Warehouse, table: str, **key: object) -> Path:
    """The first file of the table whose key has these values."""
    return next(
        home.root / partition.path
        for partition in home.partitions()
        if partition.table == table and key.items() <= partition.key.values().items()
    )


def line_of(home: Warehouse, *arguments: str) -> str:
    """The only line on stderr of a command that fails."""
    done = called(*arguments, "--home", str(home.root))
    assert done.returncode == 1, done.stdout
    (line,) = done.stderr.splitlines()
    return line


# Damaged files

DAMAGES: dict[str, Callable[[Path], object]] = {"is missing": Path.unlink, "bytes": cut, "was changed": flip}


@pytest.mark.parametrize("says", DAMAGES)
def test_a_damaged_file_is_named_and_all_other_tables_read(copy: Warehouse, says: str) -> None:
    path = file_of(copy, "turns")
    DAMAGES[says](path)
    shown = str(path.relative_to(copy.root))
    (note,) = [note for note in health(copy, deep=True) if note.startswith("damaged: ")]
    assert (
        shown in note
        and says in note
        and "run ssrem tables --corpus tiny, with the options that it had, to make it anew" in note
    )
    assert ("delete it, then" in note) is (says == "was changed")
    assert any(shown in note for note in health(copy)) is (says != "was changed"), "its size is the same"
    assert copy.query("SELECT count(*) > 0 FROM utterances") == [(True,)]
    if says != "was changed":  # which a query notices only where the bytes cannot be decoded
        line = line_of(copy, "sql", "SELECT sum(length(text)), count(DISTINCT speaker) FROM turns")
        assert shown in line and "ssrem tables --corpus tiny" in line
    assert called("status", "--home", str(copy.root)).returncode == 0


MADE_AGAIN = [
    *("corpora", "conversations", "utterances", "turns", "responses", "candidates", "set_similarity"),
    *("identification", "scores", "agreement", "comparisons", "rankings", "rater_agreement"),
    *("rated_responses", "ratings", "human_scores", "studies"),
]


@pytest.mark.slow
@pytest.mark.parametrize("table", MADE_AGAIN)
def test_the_command_that_status_names_makes_the_table_anew(copy: Warehouse, made: Made, table: str) -> None:
    before = content(copy)
    of_set = {"dataset": "people"} if table in ("scores", "agreement") else {}
    path = file_of(copy, table, **of_set)
    (partition,) = [p for p in copy.partitions() if copy.root / p.path == path]
    path.unlink()
    command = made_by(table, partition.key)
    assert command is not None and f"run {command} to make it anew" in "".join(health(copy))
    command = command.split(",")[0].replace("SOURCE", str(made.dump)).replace("FILE", str(made.annotated))
    if table in ("corpora", "conversations", "utterances"):
        command += f"; ssrem tables --corpus {partition.key.corpus}"
    for one in command.split("; "):
        done = called(*shlex.split(one)[1:], "--home", str(copy.root))
        assert done.returncode == 0, done.stderr
    assert not any("damaged" in note for note in health(copy, deep=True))
    after = content(copy)
    assert after[table] == before[table] != ""


@pytest.mark.parametrize("table", ["runs", "evaluators"])
def test_what_no_command_makes_again_is_to_be_restored(copy: Warehouse, table: str) -> None:
    path = file_of(copy, table)
    kept = path.read_bytes()
    path.unlink()
    (note,) = [note for note in health(copy) if note.startswith("damaged: ")]
    assert f"{table}.parquet" in note and "restore it from a backup copy" in note and "anew" not in note
    assert f"{table}.parquet" in line_of(copy, "sql", f"SELECT * FROM {table}")
    path.write_bytes(kept)
    assert health(copy) == []
    assert copy.query(f"SELECT count(*) > 0 FROM {table}") == [(True,)]


def test_others_are_published_while_a_file_is_missing(home: Warehouse) -> None:
    publish(home.root, 1)
    path = file_of(home, "conversations")
    kept = path.read_bytes()
    path.unlink()
    with staging(home, "ingest", {"number": 2}) as stage:
        stage.create("corpora")
        stage.connection.execute("INSERT INTO corpora BY NAME SELECT 'b' AS corpus, 2 AS bytes")
        stage.publish([Output("corpora", PartitionKey(corpus="b"))])
    assert home.query("SELECT corpus FROM corpora ORDER BY ALL") == [("a",), ("b",)]
    with pytest.raises(
        HomeError, match=r"conversations\.parquet .* is missing; run ssrem ingest SOURCE --name a"
    ):
        home.query("SELECT * FROM conversations")
    path.write_bytes(kept)
    with staging(home, "tables") as stage:
        assert stage.connection.execute("SELECT count(*) FROM conversations").fetchall() == [(3,)]
    with duckdb.connect(str(home.catalog), read_only=True) as client:
        assert client.execute("SELECT count(*) FROM conversations").fetchall() == [(3,)]


@pytest.mark.parametrize(
    ("harm", "name"),
    [
        (flip, "weights.safetensors"),
        (flip, "encoder/encoder.safetensors"),
        (flip, "evaluator.json"),
        (shutil.rmtree, "encoder"),
    ],
)
def test_changed_weights_are_refused_by_whatever_scores(
    copy: Warehouse, tmp_path: Path, harm: Callable[[Path], object], name: str
) -> None:
    harm(copy.models / "ssrem" / "1" / name)
    responses = tmp_path / "responses.jsonl"
    responses.write_text('{"context": ["do you like pizza"], "response": "yes i cook pizza"}\n')
    line = line_of(copy, "score", str(responses), "--evaluator", "ssrem")
    assert str(copy.models / "ssrem" / "1") in line and "again" in line


# The index


def _another_layout(catalog: Path) -> None:
    catalog.unlink()
    with duckdb.connect(str(catalog)) as connection:
        connection.execute("CREATE SCHEMA ssrem")
        connection.execute("CREATE TABLE ssrem.home AS SELECT '1-a246dc5f' AS layout, 1::BIGINT AS snapshot")


def _pipe(catalog: Path) -> None:
    catalog.unlink()
    os.mkfifo(catalog)


LOST: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, r"catalog\.duckdb is missing, .* backup copy"),
    "empty": (lambda catalog: catalog.write_bytes(b""), r"catalog\.duckdb cannot be read"),
    "cut short": (
        lambda catalog: os.truncate(catalog, catalog.stat().st_size - 200_000),
        r"catalog\.duckdb cannot be read",
    ),
    "another layout": (_another_layout, f"layout 1-a246dc5f, this version reads {LAYOUT}"),
    "a pipe": (_pipe, r"catalog\.duckdb is not a regular file"),
}


@pytest.mark.parametrize("damage", LOST)
def test_a_lake_without_a_readable_index_is_refused_and_left_alone(home: Warehouse, damage: str) -> None:
    publish(home.root, 1)
    harm, says = LOST[damage]
    harm(home.catalog)
    before = _files(home)
    for use in (
        home.snapshot,
        home.partitions,
        lambda: home.query("FROM runs"),
        lambda: publish(home.root, 2),
    ):
        with pytest.raises(HomeError, match=says) as error:
            use()
        assert len(str(error.value).splitlines()) == 1
        assert "--home" in str(error.value)
    assert _files(home) == before
    assert "catalog.duckdb" in line_of(home, "status") or damage == "another layout"


def _files(home: Warehouse) -> dict[str, bytes]:
    files = [path for path in home.root.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(home.root)): path.read_bytes() for path in files}


def test_an_index_that_a_program_has_open_for_writing_is_not_called_damaged(home: Warehouse) -> None:
    publish(home.root, 1)
    _snapshot.cache_clear()  # as in a process that begins
    program = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(home.catalog)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "open\n"
        with pytest.raises(HomeError, match="a program has it open for writing; close that"):
            home.partitions()
        other.kill()
    assert home.partitions()


# The folder


def test_a_new_home_is_for_its_owner_alone(home: Warehouse) -> None:
    before = os.umask(0)
    try:
        publish(home.root, 1)
    finally:
        os.umask(before)
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    home.root.chmod(0o750)
    with home.lock("train"):
        pass
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o750, "the owner has opened it to others"


def test_a_home_works_at_another_place(home: Warehouse, tmp_path: Path) -> None:
    publish(home.root, 1)
    place = tmp_path / "new place" / "it's home"
    place.parent.mkdir()
    home.root.rename(place)
    there = Warehouse.at(place)
    assert there.query("SELECT bytes, conversations FROM corpora") == [(1, 3)]
    assert health(there, deep=True) == []
    assert called("home", "prune", "--home", str(place)).returncode == 0  # any command that takes the lock
    publish(home.root, 5)  # a new one at the old place
    with duckdb.connect(str(there.catalog), read_only=True) as client:
        assert client.execute("SELECT bytes FROM corpora").fetchall() == [(1,)]
    publish(there.root, 2)
    assert there.query("SELECT bytes FROM corpora") == [(2,)]
    assert home.query("SELECT bytes FROM corpora") == [(5,)]


@pytest.fixture
def read_only(copy: Warehouse) -> Iterator[Warehouse]:
    """The small home on a file system that is mounted read-only."""
    if subprocess.run(["mount", "--bind", copy.root, copy.root], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(copy.root)], check=True)
        yield copy
    finally:
        subprocess.run(["umount", str(copy.root)], check=True)


@pytest.mark.parametrize(
    "verb", ["ingest SOURCE", "tables", "train ssrem", "report", "study behaviour", "home prune"]
)
def test_a_read_only_home_is_refused_before_any_work(
    read_only: Warehouse, made: Made, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssrem.tasks.report.report_data", pytest.fail)
    line = line_of(read_only, *verb.replace("SOURCE", str(made.dump)).split())
    assert line.startswith(f"ssrem: cannot write to {read_only.root}: ") and "--home" in line


def test_a_read_only_home_is_read(read_only: Warehouse, made: Made) -> None:
    for verb in (["status", "--deep"], ["sql", "SELECT count(*) FROM turns"], ["evaluators", "list"]):
        done = called(*verb, "--home", str(read_only.root))
        assert done.returncode == 0, done.stderr
