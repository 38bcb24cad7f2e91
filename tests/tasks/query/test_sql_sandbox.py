# ruff: noqa: E501 - a table of attempts reads best with several on a line
"""`ssrem sql` sees only the published tables, whatever the query; the contents of cells are shown as text."""

from __future__ import annotations

import io
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ssrem.cli.main import main
from ssrem.errors import SsremError
from ssrem.tasks import query
from ssrem.tasks.query import ask, print_csv
from ssrem.tasks.warehouse.catalog import create_views, new_engine
from ssrem.tasks.warehouse.home import Warehouse
from support.stages import start_python

pytestmark = pytest.mark.xdist_group("sandbox")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with secrets; afterwards its files are unchanged and none is new."""
    monkeypatch.chdir(tmp_path)
    duckdb.sql("SELECT 'hidden' AS x").write_parquet(str(tmp_path / "secret.parquet"))
    (tmp_path / "secret.csv").write_text("x\nhidden\n")
    (tmp_path / "secret.json").write_text('{"x": "hidden"}\n')
    duckdb.connect(str(tmp_path / "secret.duckdb")).close()
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    yield tmp_path
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


# {d}: the working directory; {p}: a published file; {h}: the home folder
READS = [
    "FROM read_csv('{d}/secret.csv')", "FROM read_csv_auto('secret.csv')", "FROM sniff_csv('{d}/secret.csv')",
    "FROM 'secret.csv'", "FROM \"secret.csv\"", "FROM '{d}/secret.parquet'", "FROM 'file://{d}/secret.parquet'",
    "FROM read_parquet('{d}/secret.parquet')", "FROM parquet_scan('{d}/secret.parquet')",
    "FROM parquet_metadata('{d}/secret.parquet')", "FROM parquet_schema('{d}/secret.parquet')",
    "FROM parquet_file_metadata('{d}/secret.parquet')", "FROM parquet_kv_metadata('{d}/secret.parquet')",
    "FROM read_json('{d}/secret.json')", "FROM read_json_auto('{d}/secret.json')", "FROM read_json_objects('{d}/secret.json')",
    "FROM read_ndjson('{d}/secret.json')", "FROM read_ndjson_objects('{d}/secret.json')",
    "FROM read_text('{d}/secret.csv')", "FROM read_blob('{d}/secret.csv')", "FROM read_text(['{p}', '{d}/secret.csv'])",
    "FROM read_parquet(['{p}', '{d}/secret.parquet'], union_by_name = true)",
    "FROM read_text('/proc/self/environ')", "FROM '/etc/passwd'", "FROM read_csv('/etc/passwd')", "FROM read_text('/dev/stdin')",
    "FROM read_text('{h}/catalog.duckdb')", "FROM read_text('{h}/.lock')", "FROM read_blob('{p}x')",
    "FROM read_blob('{p}/../../../catalog.duckdb')", "FROM read_blob('{h}/lake/../catalog.duckdb')",
    "FROM read_parquet('{p}/../../../../secret.parquet')", "FROM read_parquet('{h}/lake/*/*.parquet')",
    "FROM read_blob('{h}/**')", "FROM glob('{h}/*')", "FROM glob('/etc/*')", "FROM glob('*')", "FROM glob('{p}*')",
    "FROM read_text('http://127.0.0.1:9/x')", "FROM 'https://example.org/x.parquet'", "FROM 's3://bucket/x.parquet'",
    "FROM read_csv('hf://datasets/x/y.csv')", "FROM query('FROM read_text(''{d}/secret.csv'')')",
    "FROM query_table('{d}/secret.parquet')", "FROM query_table(['{d}/secret.parquet'])", "FROM query_table('secret.csv')",
    "FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''{d}/secret.csv'')'))",
    "SELECT (SELECT content FROM read_text('{d}/secret.csv'))", "WITH x AS (FROM 'secret.csv') FROM x",
    "FROM read_duckdb('{d}/secret.duckdb')", "FROM duckdb_extensions()", "SELECT getenv('HOME')",
    "SELECT getvariable('x') FROM statements", "FROM connection", "FROM os", "FROM home", "FROM query", "FROM READS",
    "FROM pandas_scan(1)", "FROM arrow_scan(1, 2, 3)", "FROM arrow_scan_dumb(1, 2, 3)", "FROM python_map_function(1)",
    "FROM sqlite_scan('{d}/secret.duckdb', 'x')", "FROM postgres_scan('', '', '')", "FROM mysql_query('', '')",
    "FROM st_read('{d}/secret.json')", "FROM read_xlsx('{d}/x.xlsx')", "FROM iceberg_scan('{d}')", "FROM delta_scan('{d}')",
    "SELECT load_aws_credentials()", "SELECT shell('id')", "SELECT system('id')", "SELECT python('1')",
]  # fmt: skip
STATEMENTS = [
    "COPY (SELECT 1) TO '{d}/out'", "COPY corpora TO '{p}'", "COPY corpora FROM '{d}/secret.csv'",
    "COPY FROM DATABASE memory TO x", "EXPORT DATABASE '{d}/out'", "IMPORT DATABASE '{d}'",
    "ATTACH '{d}/new.duckdb' AS x", "ATTACH '{d}/secret.duckdb' (READ_ONLY)", "ATTACH ':memory:' AS x", "DETACH memory", "USE memory",
    "INSTALL httpfs", "FORCE INSTALL httpfs", "LOAD httpfs", "LOAD '{d}/x.duckdb_extension'", "UPDATE EXTENSIONS",
    "SET memory_limit = '100GB'", "SET GLOBAL threads = 1", "SET SESSION x = 1", "SET VARIABLE x = 1", "RESET lock_configuration",
    "SET enable_external_access = true", "SET allowed_paths = ['{d}']", "SET allowed_directories = ['/']", "SET lock_configuration = false",
    "SET temp_directory = '{d}'", "SET secret_directory = '{d}'", "SET log_query_path = '{d}/log'", "SET home_directory = '{d}'",
    "SET python_enable_replacements = true", "SET search_path = 'x'", "SET schema = 'x'",
    "PRAGMA database_list", "PRAGMA enable_profiling = 'json'", "PRAGMA profiling_output = '{d}/out'", "PRAGMA memory_limit='9GB'",
    "PRAGMA import_database('{d}')", "PRAGMA version", "CALL pragma_version()", "CALL enable_logging(storage_path = '{d}')",
    "CALL create_fts_index('x')", "CREATE TABLE t (x INT)", "CREATE TEMP TABLE t AS FROM corpora", "CREATE OR REPLACE VIEW corpora AS SELECT 1",
    "CREATE MACRO f(x) AS x", "CREATE FUNCTION f(x) AS x", "CREATE TYPE t AS INT", "CREATE SCHEMA s", "CREATE SEQUENCE s",
    "CREATE SECRET (TYPE s3)", "CREATE PERSISTENT SECRET s (TYPE s3)", "DROP SECRET s", "CREATE INDEX i ON corpora (corpus)", "DROP VIEW corpora",
    "INSERT INTO corpora FROM corpora", "UPDATE corpora SET bytes = 0", "DELETE FROM corpora", "TRUNCATE corpora", "MERGE INTO corpora USING corpora AS b ON true WHEN MATCHED THEN DELETE",
    "ALTER TABLE corpora RENAME TO x", "COMMENT ON VIEW corpora IS 'x'", "CHECKPOINT", "FORCE CHECKPOINT", "VACUUM", "ANALYZE",
    "BEGIN", "COMMIT", "ROLLBACK", "PREPARE x AS SELECT 1", "EXECUTE x", "DEALLOCATE x", "PREPARE x AS COPY (SELECT 1) TO '{d}/out'",
    "EXPLAIN SELECT 1", "EXPLAIN ANALYZE COPY (SELECT 1) TO '{d}/out'", "SELECT 1; SELECT 2", "SELECT 1; COPY (SELECT 1) TO '{d}/out'",
    "SELECT 1;;DROP VIEW corpora", "/* */ COPY (SELECT 1) TO '{d}/out' --", "FROM query('COPY (SELECT 1) TO ''{d}/out''')",
    "FROM query('SELECT 1; SELECT 2')", "FROM (COPY (SELECT 1) TO '{d}/out')", "WITH x AS (INSERT INTO corpora FROM corpora RETURNING *) FROM x",
    "CREATE TABLE t AS PIVOT corpora ON corpus USING max(bytes)", "INSERT INTO corpora FROM (PIVOT corpora ON corpus USING max(bytes))",
    "EXPLAIN PIVOT corpora ON corpus USING max(bytes)", "PIVOT corpora ON corpus USING max(bytes); COPY (SELECT 1) TO '{d}/out'",
    "SELECT nextval('s')", "", ";", "--", "\0", "\ud800", "SELECT '\ud800'", "SELECT " + "(" * 5000 + "1" + ")" * 5000,
]  # fmt: skip


@pytest.fixture(scope="module")
def confined(
    home: Warehouse, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The connection that `ask` makes, for many queries."""
    with new_engine() as connection:
        create_views(connection, home.root, home.partitions(), "VIEW ")
        files = [home.root / partition.path for partition in home.partitions()]
        query._confine(connection, files, tmp_path_factory.mktemp("spill"))
        yield connection


def test_nothing_is_written_read_loaded_or_run(
    home: Warehouse, confined: duckdb.DuckDBPyConnection, here: Path
) -> None:
    published = {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()}
    names = {"{d}": str(here), "{h}": str(home.root), "{p}": str(home.root / home.partitions()[0].path)}
    through = []
    for attempt in (*READS, *STATEMENTS):
        text = attempt
        for short, full in names.items():
            text = text.replace(short, full)
        try:
            through.append((attempt, query._answer(confined, text)))
        except SsremError as error:
            assert str(error).isprintable() and "hidden" not in str(error)
        except duckdb.Error as error:  # which `ask` reports in one line
            assert "hidden" not in str(error)
        except Exception as error:
            through.append((attempt, repr(error)))
    assert through == []
    assert {path: path.read_bytes() for path in home.root.rglob("*") if path.is_file()} == published


def test_queries_that_are_allowed(home: Warehouse, confined: duckdb.DuckDBPyConnection) -> None:
    published = home.root / home.partitions()[0].path
    for text in (
        "SELECT count(*) FROM utterances", "FROM corpora", "SHOW TABLES", "DESCRIBE corpora", "SUMMARIZE corpora", "VALUES (1)",
        "WITH x AS (SELECT 1 AS y) FROM x;", "FROM query('SELECT 1')", "FROM query_table('corpora')", "FROM duckdb_secrets()",
        "PIVOT corpora ON corpus USING max(bytes);", "-- x\nFROM (PIVOT corpora ON corpus USING max(bytes) GROUP BY format) -- y",
        "SELECT current_setting('enable_external_access')", f"FROM '{published}'",
    ):  # fmt: skip
        assert query._answer(confined, text)[0]
    setting = "SELECT value FROM duckdb_settings() WHERE name = 'enable_external_access'"
    assert ask(home, setting)[1] == [("false",)]


# Bombs


def test_a_query_spills_neither_into_the_working_directory_nor_the_home_folder(
    home: Warehouse, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "MEMORY_LIMIT", "30MB")
    places: list[str] = []
    answered = query._answer

    def watched(connection: duckdb.DuckDBPyConnection, text: str) -> query.Answer:
        answer = answered(connection, text)
        (setting,) = connection.execute("SELECT current_setting('temp_directory')").fetchone() or ("",)
        places.append(setting)
        return answer

    monkeypatch.setattr(query, "_answer", watched)
    before = set(home.root.rglob("*"))
    columns = "hash(range) AS h, range AS r, repeat('x', 40) || range AS t"
    _, rows = ask(home, f"SELECT {columns} FROM range(700000) ORDER BY h LIMIT 3 OFFSET 600000")
    assert len(rows) == 3
    folder = Path(places[0])
    assert not folder.exists() and here not in folder.parents and home.root not in folder.parents
    assert set(home.root.rglob("*")) == before


def test_what_does_not_fit_is_one_line(home: Warehouse, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "MEMORY_LIMIT", "40MB")
    monkeypatch.setattr(query, "SPILL_LIMIT", "10MB")
    monkeypatch.setattr(query, "ANSWER_BYTES", 1 << 20)
    endless = ("FROM range(1000000000000)", "SELECT repeat('x', 100000) FROM range(1000000000000)")
    for text in ("FROM range(3000000) ORDER BY hash(range)", *endless):
        with pytest.raises(SsremError, match=r"does not fit into memory.*LIMIT") as error:
            ask(home, text)
        assert str(error.value).isprintable()


ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range + b.range) = 1"


def test_ctrl_c_stops_a_query(home: Warehouse, here: Path) -> None:
    code = (
        "import sys\nfrom ssrem.cli.main import main\nfrom ssrem.tasks import query\nanswered = query._answer\n"
        "def watched(*arguments):\n    print('running', flush=True)\n    return answered(*arguments)\n"
        "query._answer = watched\nsys.exit(main(['sql', sys.argv[2], '--home', sys.argv[1]]))"
    )
    with start_python(code, home.root, ENDLESS, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "running\n"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()  # else the block waits for a query without an end
    assert process.returncode == 130
    assert errors == "ssrem: interrupted\n"


def test_ctrl_c_while_the_thread_starts_stops_the_query(
    home: Warehouse, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(ThreadPoolExecutor):
        def submit(self, *arguments: Any, **options: Any) -> Any:
            super().submit(*arguments, **options)
            raise KeyboardInterrupt

    monkeypatch.setattr(query, "ThreadPoolExecutor", Interrupted)
    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        ask(home, ENDLESS)
    assert threading.active_count() == threads


@pytest.mark.parametrize("text", [ENDLESS, "FROM range(1000000000000)"])
def test_a_time_limit_stops_a_query(home: Warehouse, here: Path, text: str) -> None:
    before, threads = set(here.iterdir()), threading.active_count()
    says = r"^the query took longer than 0.2 s; .*--timeout$"
    with pytest.raises(SsremError, match=says):
        ask(home, text, timeout=0.2)
    with pytest.raises(SsremError, match=says):
        print_csv(home, text, io.StringIO(), timeout=0.2)
    assert set(here.iterdir()) == before and threading.active_count() == threads
    assert ask(home, "SELECT 1", timeout=60)[1] == [(1,)]


# What it shows


def test_cells_and_names_of_columns_are_shown_as_text(
    home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ([], ["--json"]):
        text = 'SELECT corpus, speaker, text, 1 AS "\x1b[31m\n[bold]" FROM utterances'
        assert main(["sql", text, *more, "--home", str(home.root)]) == 0
        output = capsys.readouterr().out
        shown = output.replace("\u202e", "") if more else output
        assert all(sign.isprintable() or sign == "\n" for sign in shown)
        assert "[bold]b[/bold] :smile:" in output and "{{ 7*7 }} {% raw %}" in output
    assert main(["sql", 'SELECT 1 AS "\x1b[31m\n[bold]" WHERE false', "--home", str(home.root)]) == 0
    assert "\\x1b[31m\\n[bold]" in capsys.readouterr().out
    for verb in ("status", "evaluators"):
        assert main([verb, "--home", str(home.root)]) == 0
        assert "\x1b" not in capsys.readouterr().out
