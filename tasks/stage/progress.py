"""Progress on stderr for what takes more than a moment; silent where stderr is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Advance(Protocol):
    """Reports how far the work is."""

    def __call__(self, done: float, total: float | None = None, /) -> None:
        """The amount done so far, in the unit of the total; a total that became known only now."""


Listener = Callable[[str, float | None], Advance]
"""Called with the name and the total of a piece of work when it begins; returns what is then called as it proceeds."""

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Report all progress to the listener, too, until the block ends."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def progress(what: str, total: float | None = None) -> Iterator[Advance]:
    """Show a bar (a spinner without a total) named `what` until the block ends."""
    reports = [listener(what, total) for listener in _listeners]

    def advance(done: float, new_total: float | None = None) -> None:
        for report in reports:
            report(done, new_total)

    if not sys.stderr.isatty():
        yield advance
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        reports.append(lambda done, new=None: bar.update(task, completed=done, total=new or total))
        yield advance
