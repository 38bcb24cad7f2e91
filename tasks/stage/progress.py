"""Progress on stderr for what takes more than a moment: bars on a terminal, lines elsewhere if a command wants them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

from ssrem.errors import say

HEARTBEAT_SECONDS = 30.0
"""Without a terminal, seconds between the lines that say how far the work is."""

PATIENCE_SECONDS = 2.0
"""Seconds before work that is not a stage, such as scoring a file, prints its first line."""


class Advance(Protocol):
    """Reports how far the work is."""

    def __call__(self, done: float, total: float | None = None, note: str = "", /) -> None:
        """The amount done so far, in the unit of the total; a total that became known only now; what else to show."""


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
    total: float | None = None
    done: float = 0
    note: str = ""
    started: float = field(default_factory=time.monotonic)
    counts: Mapping[str, int] = field(default_factory=dict)

    def advance(self, done: float, new_total: float | None = None, note: str = "") -> None:
        """As `Advance`."""
        self.done, self.total, self.note = done, new_total or self.total, note

    @property
    def elapsed(self) -> str:
        """The time since it started: `1.5 s`, `2 min 05 s`."""
        seconds = time.monotonic() - self.started
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest:02} s" if minutes else f"{seconds:.1f} s"

    @property
    def share(self) -> str:
        """How much of it is done, if that is known, and the note."""
        known = [f"{min(self.done / self.total, 1):.0%}"] if self.total else []
        return f" ({', '.join([*known, *filter(None, [self.note])])})" if known or self.note else ""


class Lines:
    """Lines on stderr: when the outermost work starts and ends, and what is done every HEARTBEAT_SECONDS between.

    Those of a stage begin at once, those of other work only if it takes longer than PATIENCE_SECONDS.
    """

    def __init__(self) -> None:
        self._running: list[Work] = []

    @contextmanager
    def of(self, work: Work, *, patience: float) -> Iterator[None]:
        """The lines of one piece of work, within others or not. patience: seconds until its first line."""
        self._running.append(work)
        try:
            if len(self._running) > 1:
                yield
                return
            ended, started = threading.Event(), threading.Event()
            teller = threading.Thread(target=self._tell, args=(work, patience, started, ended), daemon=True)
            teller.start()
            if not patience:
                started.wait()
            try:
                yield
            finally:
                ended.set()
                teller.join()
            if started.is_set():
                counts = ", ".join(f"{what} {count:,}" for what, count in work.counts.items())
                say(f"{work.what}: done in {work.elapsed}{counts and f' ({counts})'}")
        finally:
            self._running.remove(work)

    def _tell(self, work: Work, patience: float, started: threading.Event, ended: threading.Event) -> None:
        if ended.wait(patience):
            return
        with suppress(BrokenPipeError):  # stderr is closed: the lines end, the work goes on
            try:
                say(f"{work.what}: started")
            finally:
                started.set()
            while not ended.wait(HEARTBEAT_SECONDS):
                now = next(iter(self._running[-1:]), work)
                doing = "" if now is work else f", {now.what}"
                say(f"{work.what}: {work.elapsed} so far{doing}{now.share}")


_lines: list[Lines] = []


@contextmanager
def lines_without_terminal() -> Iterator[None]:
    """Until the block ends, print Lines of all progress if stderr is not a terminal."""
    if sys.stderr.isatty():
        yield
        return
    _lines.append(Lines())
    try:
        yield
    finally:
        _lines.pop()


@contextmanager
def staged(what: str) -> Iterator[Work]:
    """A whole stage, with its pieces of work within it; shown in lines alone, since the pieces have bars."""
    work = Work(what)
    if not _lines:
        yield work
        return
    with _lines[-1].of(work, patience=0):
        yield work


@contextmanager
def progress(what: str, total: float | None = None) -> Iterator[Advance]:
    """Show a bar (a spinner without a total) named `what`, or lines, until the block ends."""
    reports = [listener(what, total) for listener in _listeners]

    def advance(done: float, new_total: float | None = None, note: str = "") -> None:
        for report in reports:
            report(done, new_total, note)

    if _lines:
        work = Work(what, total)
        reports.append(work.advance)
        with _lines[-1].of(work, patience=PATIENCE_SECONDS):
            yield advance
        return
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
        reports.append(
            lambda done, new=None, note="": bar.update(
                task, completed=done, total=new or total, description=f"{what} {note}".strip()
            )
        )
        yield advance
