"""`ssrem sql`: a query that was given, those of a pipe, or a prompt; and how answers are shown or written."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from flows.cli import output as show
from ssrem.errors import SsremError
from tasks.warehouse.home import Warehouse

SHOWN_ROWS = 200
"""Rows of an answer that the prompt shows: more would take minutes to lay out, and nobody scrolls back so far."""


def sql(options: argparse.Namespace, home: Warehouse) -> None:
    """Answer the query, or where there is none, those of standard input; at a terminal that is a prompt."""
    if sum(map(bool, (options.json, options.csv, options.parquet))) > 1:
        raise SsremError("an answer takes one form: --json, --csv or --parquet")
    if options.query is not None:
        answer(options, home, options.query)
    elif not sys.stdin.isatty():
        _piped(options, home)
    elif options.csv or options.parquet:
        raise SsremError('--csv and --parquet need a query: ssrem sql "SELECT …" --csv FILE')
    else:
        from flows.cli.shell.prompt import prompt

        prompt(options, home)


def answer(options: argparse.Namespace, home: Warehouse, query: str, most: int | None = None) -> None:
    """Print the answer to one SELECT, `most` of its rows, or write it where the options say."""
    if options.csv or options.parquet:
        _write(options, home, query)
        return
    from tasks.query.sandbox import ask

    columns, rows = ask(home, query)
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    if options.json:
        show.as_json(found)
    elif found:
        show.tables({show.count(len(found), "row"): found[:most]}, raw=True)
        if most is not None and len(found) > most:
            print(
                f"the first {most:,} of {show.count(len(found), 'row')}; LIMIT and ORDER BY choose others\n"
            )
    else:
        print(show.printable(f"no rows ({', '.join(columns)})"))


def _write(options: argparse.Namespace, home: Warehouse, query: str) -> None:
    from tasks.query import export as answer_files

    if options.csv == "-":
        answer_files.print_csv(home, query, sys.stdout)
        return
    if options.csv:
        written, path = answer_files.save_csv(home, query, Path(options.csv)), options.csv
    else:
        written, path = answer_files.save_parquet(home, query, Path(options.parquet)), options.parquet
    print(f"{show.count(written, 'row')} in {path}", file=sys.stderr)


def _piped(options: argparse.Namespace, home: Warehouse) -> None:
    """Answer the queries of standard input, one after another, up to the first that fails."""
    from flows.cli.shell.statements import Statements

    statements, asked, begins = Statements(), 0, 1
    for number, line in enumerate(_lines(), 1):
        for query in statements.take(line.rstrip("\n")):
            _asked(options, home, query, asked := asked + 1, begins)
            begins = number
        if not statements.pending:
            begins = number + 1
    if query := statements.rest():
        asked += 1
        _asked(options, home, query, asked, begins)
    if not asked:
        raise SsremError("standard input holds no query; give one, or open the prompt in a terminal")


def _lines() -> Iterator[str]:
    try:
        yield from sys.stdin
    except UnicodeDecodeError as error:
        raise SsremError(f"standard input is no {error.encoding} text; convert it first") from None


def _asked(options: argparse.Namespace, home: Warehouse, query: str, number: int, line: int) -> None:
    if number > 1 and (options.csv or options.parquet):
        raise SsremError("--csv and --parquet take the answer of one query, and standard input holds more")
    try:
        answer(options, home, query)
        sys.stdout.flush()
    except SsremError as error:
        where = f" (query {number} of standard input, from line {line})"
        raise type(error)(f"{error}{where}") from None
