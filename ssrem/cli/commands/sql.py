"""`ssrem sql`: answer a query or queries from a pipe, or open DuckDB's shell; print answers or write them to files."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

from ssrem.cli import output
from ssrem.errors import SsremError, printable
from ssrem.report.formats import no_formula
from ssrem.tasks.query.export import print_csv, save_csv, save_parquet
from ssrem.tasks.query.sandbox import ask
from ssrem.tasks.warehouse.home import Warehouse


def sql(options: argparse.Namespace, home: Warehouse) -> None:
    """Answer the query, or else those of standard input; on a terminal, open DuckDB's shell on the catalog."""
    if sum(map(bool, (options.json, options.csv, options.parquet))) > 1:
        raise SsremError("an answer takes one form: --json, --csv or --parquet")
    if options.query is not None:
        _answer(options, home, options.query)
    elif not sys.stdin.isatty():
        _answer_pipe(options, home)
    elif options.json or options.csv or options.parquet:
        raise SsremError('--json, --csv and --parquet need a query: ssrem sql "SELECT …" --csv FILE')
    else:
        _open_shell(home)


def _answer(options: argparse.Namespace, home: Warehouse, query: str) -> None:
    """Print the answer to one SELECT, or write it where the options say."""
    cell = _as_it_is if options.raw else no_formula
    if options.csv == "-":
        shown = (lambda value: _escaped(cell(value))) if sys.stdout.isatty() else cell
        print_csv(home, query, sys.stdout, shown)
    elif options.csv:
        _print_written(save_csv(home, query, Path(options.csv), cell), options.csv)
    elif options.parquet:
        _print_written(save_parquet(home, query, Path(options.parquet)), options.parquet)
    else:
        columns, answer = ask(home, query)
        rows = [dict(zip(columns, row, strict=True)) for row in answer]
        if options.json:
            output.as_json(rows)
        elif rows:
            output.tables({output.count(len(rows), "row"): rows}, raw=True)
        else:
            print(printable(f"no rows ({', '.join(columns)})"))


def _as_it_is(value: Any) -> Any:
    return value


def _escaped(value: Any) -> Any:
    """The cell without control characters, which a terminal would obey."""
    return printable(value) if isinstance(value, str) else value


def _print_written(rows: int, path: str) -> None:
    print(f"{output.count(rows, 'row')} in {path}", file=sys.stderr)


def _answer_pipe(options: argparse.Namespace, home: Warehouse) -> None:
    """Answer the queries of standard input, one after another, up to the first that fails."""
    try:
        text = sys.stdin.read()
    except UnicodeDecodeError as error:
        raise SsremError(f"standard input is no {error.encoding} text; convert it first") from None
    queries = _statements(text)
    if not queries:
        raise SsremError("standard input holds no query; give one, or open DuckDB's shell on a terminal")
    if len(queries) > 1 and (options.csv or options.parquet):
        raise SsremError("--csv and --parquet take the answer of one query, and standard input holds more")
    line = 1 + text[: len(text) - sum(map(len, queries))].count("\n")
    for number, query in enumerate(queries, 1):
        try:
            _answer(options, home, query)
            sys.stdout.flush()
        except SsremError as error:
            where = f" (query {number} of standard input, from line {line})"
            raise type(error)(f"{error}{where}") from None
        line += query.count("\n")


def _statements(text: str) -> list[str]:
    """The text split into statements, without comments before the first one."""
    try:
        return [statement.query for statement in duckdb.extract_statements(text)]
    except (duckdb.Error, TypeError, ValueError):  # reported by `ask`
        return [text]


def _open_shell(home: Warehouse) -> None:
    ask(home, "SELECT 1")  # HomeError if nothing is published
    if find_spec("duckdb_cli") is None:
        raise SsremError(
            "DuckDB's shell is not installed; pip install duckdb-cli, or give a query: ssrem sql QUERY"
        )
    os.execv(sys.executable, [sys.executable, "-m", "duckdb_cli", "-readonly", str(home.catalog)])
