"""Progress on stderr for what takes more than a moment: bars on a terminal, lines elsewhere if a command wants them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Protocol

from ssrem.errors import say

HEARTBEAT_SECONDS, PATIENCE_SECONDS = 30.0, 2.0
"""Seconds between lines that say how far the work is; before the first line of work that is not a stage."""


class Advance(Protocol):
    """Reports the amount done, in the unit of the total; a total that became known only now; what else to show."""

    def __call__(self, done: float, total: float | None = None, note: str = "", /) -> None: ...


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


@dataclass
class Work:
    """A piece of work in progress. counts: rows that it has published, by table, to be printed when it ends."""

    what: str
    started: float = field(default_factory=time.monotonic)
    counts: Mapping[str, int] = field(default_factory=dict)
    share: str = ""
    told: bool = False

    def advance(self, done: float, total: float | None = None, note: str = "") -> None:
        """Note the share that is done, for the next line."""
        said = ", ".join(filter(None, (f"{min(done / total, 1):.0%}" if total else "", note)))
        self.share = said and f" ({said})"

    def tell(self, what: str) -> None:
        """Print a line, with the time since the start for `{}`; if stderr is closed, the work goes on without."""
        seconds = time.monotonic() - self.started
        minutes, rest = divmod(round(seconds), 60)
        elapsed = f"{minutes} min {rest:02} s" if minutes else f"{seconds:.1f} s"
        self.told = True
        with suppress(BrokenPipeError):
            say(f"{self.what}: {what.replace('{}', elapsed)}")


_told: list[list[Work]] = []
"""For each `lines_without_terminal` that lasts, the work in progress, each piece within the one before."""


@contextmanager
def lines_without_terminal() -> Iterator[None]:
    """Until the block ends, print lines of all progress if stderr is not a terminal."""
    if sys.stderr.isatty():
        yield
        return
    _told.append([])
    try:
        yield
    finally:
        _told.pop()


@contextmanager
def _lines(what: str, patience: float) -> Iterator[Work]:
    """A line after `patience` seconds of the outermost work, then what is done in it, and one when it has ended."""
    work, running, ended = Work(what), _told[-1], threading.Event()

    def heartbeat() -> None:
        if patience and not ended.wait(patience):
            work.tell("started")
        while not ended.wait(HEARTBEAT_SECONDS):
            now = running[-1]
            work.tell("{} so far" + (f", {now.what}" if now is not work else "") + now.share)

    teller = threading.Thread(target=heartbeat, daemon=True)
    running.append(work)
    try:
        if running[0] is work:
            if not patience:
                work.tell("started")
            teller.start()
        yield work
    finally:
        ended.set()
        if teller.ident:
            teller.join()
        running.remove(work)
    if work.told:
        counts = ", ".join(f"{table} {rows:,}" for table, rows in work.counts.items())
        work.tell("done in {}" + (counts and f" ({counts})"))


@contextmanager
def _bar(what: str, total: float | None) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), *Progress.get_default_columns()[:-1], TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def show(done: float, total: float | None = None, note: str = "") -> None:
            bar.update(task, completed=done, total=total, description=f"{what} {note}".strip())

        yield show


@contextmanager
def staged(what: str) -> Iterator[Work]:
    """A whole stage, with its pieces of work within it; shown in lines alone, since the pieces have bars."""
    with _lines(what, 0) if _told else nullcontext(Work(what)) as work:
        yield work


@contextmanager
def progress(what: str, total: float | None = None) -> Iterator[Advance]:
    """Show a bar (a spinner without a total) named `what`, or lines, until the block ends."""
    reports = [listener(what, total) for listener in _listeners]

    def advance(done: float, new_total: float | None = None, note: str = "") -> None:
        nonlocal total
        total = new_total or total
        for report in reports:
            report(done, total, note)

    with ExitStack() as stack:
        if _told:
            reports.append(stack.enter_context(_lines(what, PATIENCE_SECONDS)).advance)
        elif sys.stderr.isatty():
            reports.append(stack.enter_context(_bar(what, total)))
        yield advance
