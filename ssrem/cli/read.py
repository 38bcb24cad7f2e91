"""`ssrem report`, `sql`, `status` and `home prune`: what a home folder holds."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from ssrem import tasks
from ssrem.cli import UsageError, output
from ssrem.cli.options import Call, Raw, Verb, Writer
from ssrem.errors import SsremError, counted, printable, say
from ssrem.files import resolved
from ssrem.settings import Count, Natural, Seconds

_SHOWN = 1_000
"""Most rows that a printed table shows: it is laid out as a whole, which takes milliseconds for each row."""


@Verb
def report(call: Writer, *, open_: bool = False, figures: Path | None = None, raw: Raw = False) -> None:
    """Write the report; print its path, and open it if that is wanted.

    open_: open the page in the browser
    figures: write every figure into this folder, too, as SVG and PNG, and every table as LaTeX, Markdown and CSV
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
    """Open the page in a browser; returns whether one opened it, and prints where the page is if none did."""
    import webbrowser

    with suppress(webbrowser.Error, OSError):
        if webbrowser.open(path.resolve().as_uri()):
            return True
    say(f"no browser could be started; open {path} in one, here or elsewhere: it is one file")
    return False


@Verb
def sql(
    call: Call, query: str, *, csv: bool = False, raw: Raw = False, timeout: Seconds | None = None
) -> None:
    """Print the answer to a query of the published tables, which it cannot change.

    query: one SELECT; SHOW TABLES lists the tables
    csv: print the answer as CSV
    timeout: end a query that takes longer, such as 30 or 10m (default: never)
    """
    if call.json_ and csv:
        raise UsageError("an answer takes one form: --json or --csv")
    if csv:
        from ssrem.report.text import no_formula

        def cell(value: Any) -> Any:
            value = value if raw else no_formula(value)
            # A terminal would interpret control characters.
            return printable(value) if sys.stdout.isatty() and isinstance(value, str) else value

        tasks.query.print_csv(call.home, query, sys.stdout, cell, timeout=timeout)
        return
    columns, answer = tasks.query.ask(call.home, query, timeout=timeout)
    found = [dict(zip(columns, row, strict=True)) for row in answer]
    if output.answered(call, found):
        return
    if found:
        output.tables({counted(len(found), "row"): found[:_SHOWN]}, raw=True)
        if len(found) > _SHOWN:
            say(f"shown are the first {_SHOWN:,} of {len(found):,} rows; --csv and --json give them all")
    else:
        print(printable(f"no rows ({', '.join(columns)})"))


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
def prune(
    call: Writer, *, keep_runs: Natural = 5, keep_failures: Natural = 20, keep_versions: Count | None = None
) -> None:
    """Delete the files that no snapshot needs any more.

    keep_runs: unused run folders to keep
    keep_failures: failed runs whose rows to keep
    keep_versions: also delete versions of each evaluator, with their scores and figures, except the one in use, the
        one in use before it, those that wait for a decision, and the newest N others (default: delete none)
    """
    from ssrem.tasks.promote import retire
    from ssrem.tasks.warehouse.prune import prune as delete_unused

    retired = retire(call.root, keep_versions) if keep_versions else 0
    pruned = delete_unused(call.home, keep_runs, keep_failures)
    counts = {"removed": len(pruned.removed), "bytes": pruned.bytes, "versions": retired}
    if not output.answered(call, counts):
        if keep_versions:
            print(f"retired {counted(retired, 'version')} of evaluators")
        print(f"removed {len(pruned.removed)} files and folders, {pruned.bytes / 1e6:,.1f} MB")
