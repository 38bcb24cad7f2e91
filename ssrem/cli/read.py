"""`ssrem report`, `sql`, `status` and `home prune`: what a home folder holds."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ssrem import tasks
from ssrem.cli import UsageError, output
from ssrem.cli.options import Call, Raw, Verb, Writer
from ssrem.errors import SsremError, printable, say
from ssrem.files import resolved
from ssrem.settings import Natural, Seconds

if TYPE_CHECKING:
    from ssrem.tasks.warehouse.home import Warehouse


@Verb
def report(call: Writer, *, open_: bool = False, figures: Path | None = None, raw: Raw = False) -> None:
    """Write the report; print its path, and open it if that is wanted.

    open_: open the page in the browser
    figures: write every figure into this folder, too, as SVG, PDF and PNG, and every table as LaTeX, Markdown and CSV
    """
    folder = resolved(figures, SsremError) if figures else None
    for place in (folder, *folder.parents) if folder else ():
        if place.exists() and not place.is_dir():
            raise SsremError(
                f"cannot write figures into {figures}: {place} is not a folder; name another folder"
            )
    path = tasks.report.write_report(call.root)
    answer: dict[str, object] = {"report": path}
    if folder:
        tasks.report.write_figures(call.root, str(folder), raw=raw)
        answer["figures"] = str(folder)
    if open_:
        answer["opened"] = opened(Path(path))
    if not output.answered(call, answer):
        print(path, *([f"figures and tables: {folder}"] if folder else []), sep="\n")


def opened(path: Path) -> bool:
    """Whether a browser opened the page; if none did, a line says where the page is."""
    import webbrowser

    with suppress(webbrowser.Error, OSError):
        if webbrowser.open(path.resolve().as_uri()):
            return True
    say(f"no browser could be started; open {path} in one, here or elsewhere: it is one file")
    return False


@Verb
def sql(
    call: Call,
    query: str | None = None,
    *,
    csv: str | None = None,
    parquet: str | None = None,
    raw: Raw = False,
    timeout: Seconds | None = None,
) -> None:
    """Answer the query, or else those of standard input; on a terminal, open DuckDB's shell on the catalog.

    query: one SELECT; SHOW TABLES lists the tables (default: DuckDB's shell, or the queries of a pipe)
    csv: write the answer there as CSV; - for the terminal
    parquet: write the answer there as Parquet
    timeout: end a query that takes longer, such as 30 or 10m (default: never)
    """
    if sum(map(bool, (call.json_, csv, parquet))) > 1:
        raise UsageError("an answer takes one form: --json, --csv or --parquet")
    if query is None and sys.stdin.isatty():
        if call.json_ or csv or parquet:
            raise SsremError('--json, --csv and --parquet need a query: ssrem sql "SELECT …" --csv FILE')
        _open_shell(call.home)
    queries, line = _piped() if query is None else ([query], 0)
    if len(queries) > 1 and (csv or parquet):
        raise SsremError("--csv and --parquet take the answer of one query, and standard input holds more")
    for number, one in enumerate(queries, 1):  # up to the first that fails
        try:
            _answer(call, one, csv, parquet, raw, timeout)
            sys.stdout.flush()
        except SsremError as error:
            where = f" (query {number} of standard input, from line {line})" if query is None else ""
            raise type(error)(f"{error}{where}") from None
        line += one.count("\n")


def _open_shell(home: Warehouse) -> NoReturn:
    """Replace this process by DuckDB's shell on the catalog."""
    tasks.query.ask(home, "SELECT 1")  # HomeError if nothing is published
    if find_spec("duckdb_cli") is None:
        raise SsremError(
            "DuckDB's shell is not installed; pip install duckdb-cli, or give a query: ssrem sql QUERY"
        )
    os.execv(sys.executable, [sys.executable, "-m", "duckdb_cli", "-readonly", str(home.catalog)])


def _answer(
    call: Call, query: str, csv: str | None, parquet: str | None, raw: bool, timeout: float | None
) -> None:
    """Print the answer to one SELECT, or write it where the options say."""
    from ssrem.report.formats import no_formula

    def cell(value: Any) -> Any:
        value = value if raw else no_formula(value)
        # A terminal would obey control characters.
        escaped = csv == "-" and sys.stdout.isatty() and isinstance(value, str)
        return printable(value) if escaped else value

    if csv == "-":
        tasks.query.print_csv(call.home, query, sys.stdout, cell, timeout=timeout)
    elif csv or parquet:
        save = partial(tasks.query.save_csv, cell=cell) if csv else tasks.query.save_parquet
        rows = save(call.home, query, Path(csv or parquet or ""), timeout=timeout)
        print(f"{output.count(rows, 'row')} in {csv or parquet}", file=sys.stderr)
    else:
        columns, answer = tasks.query.ask(call.home, query, timeout=timeout)
        found = [dict(zip(columns, row, strict=True)) for row in answer]
        if output.answered(call, found):
            return
        if found:
            output.tables({output.count(len(found), "row"): found}, raw=True)
        else:
            print(printable(f"no rows ({', '.join(columns)})"))


def _piped() -> tuple[list[str], int]:
    """The queries of standard input, without comments before the first, and the line where the first begins."""
    import duckdb

    try:
        text = sys.stdin.read()
    except UnicodeDecodeError as error:
        raise SsremError(f"standard input is no {error.encoding} text; convert it first") from None
    try:
        queries = [statement.query for statement in duckdb.extract_statements(text)]
    except (duckdb.Error, TypeError, ValueError):  # reported when it is asked
        queries = [text]
    if not queries:
        raise SsremError("standard input holds no query; give one, or open DuckDB's shell on a terminal")
    return queries, 1 + text[: len(text) - sum(map(len, queries))].count("\n")


@Verb
def status(call: Call, *, deep: bool = False) -> None:
    """Show what has landed, how far each corpus is, and what went wrong.

    deep: read every published file and compare it with its digest
    """
    from ssrem.tasks.warehouse.prune import health

    names = ["corpora", "progress", "addressees", "quarantine", "annotated", "evaluators"]
    rows = tasks.query.summary(call.home, names, tolerant=True)
    notes = health(call.home, deep=deep)
    if output.answered(call, {"home": call.root, **rows, "remarks": notes}):
        return
    print(f"home: {call.home.root}\n")
    output.summaries(rows)
    if not call.home.partitions():
        print("nothing has landed yet; ssrem run lands the corpus that comes with the install")
    for note in notes:
        print(f"note: {note}")


@Verb
def prune(call: Writer, *, keep_runs: Natural = 5, keep_failures: Natural = 20) -> None:
    """Delete the files that no snapshot needs any more.

    keep_runs: unused run folders to keep
    keep_failures: failed runs whose rows to keep
    """
    from ssrem.tasks.warehouse.prune import prune as delete_unused

    pruned = delete_unused(call.home, keep_runs, keep_failures)
    if not output.answered(call, {"removed": len(pruned.removed), "bytes": pruned.bytes}):
        print(f"removed {len(pruned.removed)} files and folders, {pruned.bytes / 1e6:,.1f} MB")
