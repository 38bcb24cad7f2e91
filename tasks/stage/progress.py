"""Progress on stderr for what takes more than a moment; silent where stderr is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Advance(Protocol):
    """Tells how far the work is."""

    def __call__(self, done: float, total: float | None = None, /) -> None:
        """The amount done so far, in the unit of the total; a total that became known only now."""


Listener = Callable[[str, float | None], Advance]
"""Is told what begins and its total, and then how far it is."""

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell the listener, too, of all progress until the block ends."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def progress(what: str, total: float | None = None) -> Iterator[Advance]:
    """Show a bar (a spinner without a total) named `what` until the block ends."""
    told = [listener(what, total) for listener in _listeners]

    def advance(done: float, new_total: float | None = None) -> None:
        for one in told:
            one(done, new_total)

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
        told.append(lambda done, new=None: bar.update(task, completed=done, total=new or total))
        yield advance
