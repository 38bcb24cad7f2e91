"""Prints the output of commands: tables or JSON on stdout, messages on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssrem import tasks
from ssrem.cli import UsageError
from ssrem.errors import SsremError, printable
from ssrem.report.text import json_ready

if TYPE_CHECKING:
    from ssrem.cli.options import Call

Rows = Sequence[Mapping[str, Any]]

SHARES = ("gt_above", "better", "stated", "reply", "previous_speaker")
"""Columns that hold a share from 0 to 1, printed as a percentage."""

UNBOUNDED = 100_000
"""Output width when stdout is not a terminal: each row stays on one line, for tools such as grep."""


def answered(call: Call, value: Any) -> bool:
    """Print the answer as JSON if --json is given, and return whether it is. The JSON has times in ISO 8601, bytes as
    text, and null for NaN and infinity."""
    if call.json_:
        print(json.dumps(json_ready(value), indent=2, ensure_ascii=False, allow_nan=False))
    return call.json_


def tables(titled: Mapping[str, Rows], *, raw: bool = False) -> None:
    """Print each list of rows as a titled table. raw: numbers have six digits at most and no thousands separators."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    terminal = sys.stdout.isatty()
    # Utterances are shown as they are: [words in brackets] and :names: are not markup.
    console = Console(width=None if terminal else UNBOUNDED, highlight=False, markup=False, emoji=False)
    for heading, rows in titled.items():
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for name in rows[0]:
            number = any(_is_number(row[name]) for row in rows)
            whole = number or any(isinstance(row[name], datetime) for row in rows)
            table.add_column(
                printable(name), justify="right" if number else "left", overflow="fold", no_wrap=whole
            )
        for row in rows:
            table.add_row(*(_cell("" if raw else name, value, raw) for name, value in row.items()))
        with console.capture() as capture:
            console.print(table)
        lines = (line.rstrip() for line in capture.get().splitlines())
        print(f"\033[1m{heading}\033[0m" if terminal else heading, *lines, "", sep="\n")


def outcome(
    call: Call, names: Sequence[str], outcomes: Mapping[str, str], datasets: Collection[str] | None = None
) -> None:
    """Print what a command did and the summaries `names` of the home folder; if these have figures of evaluators, also
    which evaluators are no better than chance or a baseline. outcomes: name → what was done. datasets: annotated sets
    to which the summaries are limited; None for no limit."""
    rows = tasks.query.summary(call.home, names)
    if datasets is not None:
        rows = {name: [row for row in some if row["dataset"] in datasets] for name, some in rows.items()}
    rows = {name: some for name, some in rows.items() if some}
    known = call.json_ or {"identification", "agreement"} & rows.keys()
    findings = tasks.query.no_better(call.home, datasets) if known else []
    if answered(call, {"done": outcomes, **rows, "no_better": findings}):
        return
    listed(outcomes)
    print()
    summaries(rows)
    sentences(findings)


def done(new: Mapping[str, bool], what: str) -> dict[str, str]:
    """Name → what was done: `what` if something is new, else "there already"."""
    return {name: what if new[name] else "there already" for name in new}


def listed(outcomes: Mapping[str, str]) -> None:
    """Print what was done, a line for each name."""
    for name, what in outcomes.items():
        print(f"{name}: {what}", flush=True)


def requests(call: Call, rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows of `dry_run_row`: what a run would request from an endpoint; rows without any request are left out."""
    rows = [row for row in rows if row["requests"] or row["answered_before"]]
    if answered(call, rows):
        return
    if rows:
        tables(
            {"what would be asked; prompt tokens are estimated, completion tokens are an upper limit": rows}
        )
    else:
        print("nothing would be asked of an endpoint")


def sentences(lines: Sequence[str]) -> None:
    """Print sentences and a blank line."""
    if lines:
        print(*map(printable, lines), "", sep="\n")


def summaries(rows: Mapping[str, Rows]) -> None:
    """Print summaries as tables, without columns that have no value yet, and without signatures, which are too long."""
    for name, some in rows.items():
        shown = {key for row in some for key, value in row.items() if value is not None} - {"signature"}
        tables({tasks.query.title(name): [{k: v for k, v in row.items() if k in shown} for row in some]})


def check(target: Path, *read: str | Path | None) -> None:
    """Raise SsremError unless the file of --output can be written; UsageError if it is one of the files to `read`."""
    from ssrem.tasks.warehouse.files import check_target

    if target.exists() and any(file and Path(file).exists() and target.samefile(file) for file in read):
        raise UsageError(f"--output {target} is a file that is read; choose another")
    with _writing(target):
        check_target(target)


def write(target: Path, text: str) -> None:
    """Write the text into the file of --output; SsremError if that is not possible."""
    from ssrem.tasks.warehouse.files import whole_file

    with _writing(target), whole_file(target) as draft:
        draft.write_text(text, encoding="utf-8")


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SsremError(f"cannot write {target}: {error.strerror}; choose another --output") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _cell(name: str, value: Any, raw: bool) -> str:
    """A value as a table shows it, rounded as suits its column; if `raw`, to six significant digits below a
    million."""
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        if name in ("p", "p_holm"):
            return "<.001" if value < 0.001 else f"{value:.3f}"
        if raw:  # six digits, or all before the point
            return f"{value:.6g}" if abs(value) < 1e6 else str(value)
        return format(value, ".1%" if name in SHARES else ".1f" if name == "seconds" else ".3f")
    if _is_number(value) and name != "version" and not raw:
        return f"{value:,}"
    if isinstance(value, datetime) and not raw:
        return f"{value:%Y-%m-%d %H:%M}"
    return printable(str(json_ready(value) if isinstance(value, bytes | datetime) else value))
