"""What a person sees: tables on stdout, or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

Rows = Sequence[Mapping[str, Any]]


def as_json(value: Any) -> None:
    """Print JSON; times in ISO 8601."""
    json.dump(value, sys.stdout, default=str, indent=2, ensure_ascii=False)
    print()


def tables(found: Mapping[str, Rows]) -> None:
    """Print each list of rows as a titled table."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    for title, rows in found.items():
        table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
        for name in rows[0]:
            number = any(_is_number(row[name]) for row in rows)
            table.add_column(name, justify="right" if number else "left", overflow="fold")
        for row in rows:
            table.add_row(*(_cell(name, value) for name, value in row.items()))
        console.print(table)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "p":
        return "<.001" if value < 0.001 else f"{value:.3f}"
    if name == "gt_above":
        return f"{value:.1%}"
    if name == "seconds":
        return f"{value:.1f}"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    return str(value)
