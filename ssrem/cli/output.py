"""Prints the output of commands: tables or JSON on stdout, messages on stderr."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from ssrem.errors import SsremError, printable
from ssrem.tasks.query.summaries import no_better, summary, title
from ssrem.tasks.warehouse.home import Warehouse

Rows = Sequence[Mapping[str, Any]]

SHARES = ("gt_above", "stated", "reply", "previous_speaker")
"""Columns that hold a share from 0 to 1, printed as a percentage."""

UNBOUNDED = 100_000
"""Output width when stdout is not a terminal: each row stays on one line, for tools such as grep."""


def as_json(value: Any) -> None:
    """Print JSON: times in ISO 8601, bytes as text, null for NaN and infinity."""
    json.dump(_plain(value), sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    print()


def tables(titled: Mapping[str, Rows], *, raw: bool = False) -> None:
    """Print each list of rows as a titled table; raw: do not round numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    # Utterances are shown as they are: [words in brackets] and :names: are not markup.
    console = Console(
        width=None if sys.stdout.isatty() else UNBOUNDED, highlight=False, markup=False, emoji=False
    )
    for heading, rows in titled.items():
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for name in rows[0]:
            number = any(_is_number(row[name]) for row in rows)
            whole = number or any(isinstance(row[name], datetime) for row in rows)
            table.add_column(
                printable(name), justify="right" if number else "left", overflow="fold", no_wrap=whole
            )
        for row in rows:
            table.add_row(*(_raw(value) if raw else _cell(name, value) for name, value in row.items()))
        with console.capture() as capture:
            console.print(table)
        print(_bold(heading))
        print("\n".join(line.rstrip() for line in capture.get().splitlines()))
        print()


def outcome(
    options: argparse.Namespace,
    home: Warehouse,
    names: list[str],
    outcomes: Mapping[str, str],
    datasets: Collection[str] | None = None,
) -> None:
    """Print what a command did, the named summaries of the home folder, and, if they contain figures of evaluators,
    which evaluators are no better than chance or a baseline. outcomes: name → what was done; datasets: annotated sets
    to which these figures are limited."""
    rows = summary(home, names)
    if datasets is not None:
        rows = {name: [row for row in some if row["dataset"] in datasets] for name, some in rows.items()}
        rows = {name: some for name, some in rows.items() if some}
    if options.json:
        as_json({"done": outcomes, **rows, "no_better": no_better(home, datasets)})
        return
    for name, what in outcomes.items():
        print(f"{name}: {what}")
    print()
    summaries(rows)
    if {"identification", "agreement"} & rows.keys():
        sentences(no_better(home, datasets))


def sentences(lines: Sequence[str]) -> None:
    """Print sentences and a blank line."""
    if lines:
        print(*map(printable, lines), "", sep="\n")


def summaries(rows: Mapping[str, Rows]) -> None:
    """Print summaries as tables, without columns that have no value yet.

    Signatures, which are too long for a table, follow the table of evaluators.
    """
    for name, some in rows.items():
        shown = {key for row in some for key, value in row.items() if value is not None} - {"signature"}
        tables({title(name): [{k: v for k, v in row.items() if k in shown} for row in some]})
        if name == "evaluators":
            for row in some:
                print(f"{row['evaluator']} version {row['version']}: {row['signature']}")
            print()


def count(number: int, what: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


@contextmanager
def writing(target: Path | None) -> Iterator[None]:
    """A block that writes the file of --output; SsremError if that fails."""
    try:
        yield
    except OSError as error:
        raise SsremError(f"cannot write {target}: {error.strerror}; choose another --output") from None


def _bold(text: str) -> str:
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _cell(name: str, value: Any) -> str:
    if isinstance(value, float):
        if name in ("p", "p_holm"):
            return "<.001" if value < 0.001 else f"{value:.3f}"
        if name in SHARES:
            return f"{value:.1%}"
        return f"{value:.1f}" if name == "seconds" else f"{value:.3f}"
    if _is_number(value) and name != "version":
        return f"{value:,}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return _raw(value)


def _raw(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(_plain(value)) if isinstance(value, bytes | datetime) else str(value)
    return printable(text)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, date):  # datetime is one
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if value is None or isinstance(value, str | int) else str(value)
