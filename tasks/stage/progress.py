"""Progress on stderr for what takes more than a moment: bars on a terminal, lines elsewhere if a command wants them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

from ssrem.errors import say

HEARTBEAT_SECONDS = 30.0
"""Seconds between lines that say how far the work is."""


class Advance(Protocol):
    """Callback that reports the amount done, in the unit of the total, and the total if it became known only now."""

    def __call__(self, done: float, total: float | None = None, /) -> None: ...


@dataclass
class Work:
    """A piece of work in progress. counts: rows published, by table, printed at its end. share: part done, as text."""

    what: str
    started: float = field(default_factory=time.monotonic)
    counts: Mapping[str, int] = field(default_factory=dict)
    share: str = ""

    def tell(self, what: str) -> None:
        """Print a line with the time since the start in place of `{}`, or nothing if stderr is closed."""
        seconds = time.monotonic() - self.started
        minutes, rest = divmod(round(seconds), 60)
        elapsed = f"{minutes} min {rest:02} s" if minutes else f"{seconds:.1f} s"
        with suppress(BrokenPipeError):
            say(f"{self.what}: {what.replace('{}', elapsed, 1)}")


_told: list[list[Work]] = []
"""A list for each `lines_without_terminal` block that is running: its pieces of work in progress, outermost first."""


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
def _lines(work: Work) -> Iterator[None]:
    """Print a line every HEARTBEAT_SECONDS while the outermost work lasts, which also names the innermost one."""
    running, ended = _told[-1], threading.Event()

    def heartbeat() -> None:
        while not ended.wait(HEARTBEAT_SECONDS):
            now = running[-1]
            work.tell("{} so far" + (f", {now.what}" if now is not work else "") + now.share)

    teller = None if running else threading.Thread(target=heartbeat, daemon=True)
    running.append(work)
    try:
        if teller:
            teller.start()
        yield
    finally:
        ended.set()
        if teller and teller.ident:
            teller.join()
        running.remove(work)


@contextmanager
def staged(what: str) -> Iterator[Work]:
    """Report a whole stage, which consists of pieces of work. It prints lines only: bars are shown by its pieces."""
    work = Work(what)
    if not _told:
        yield work
        return
    work.tell("started")
    with _lines(work):
        yield work
    counts = ", ".join(f"{table} {rows:,}" for table, rows in work.counts.items())
    work.tell("done in {}" + (counts and f" ({counts})"))


@contextmanager
def progress(what: str, total: float | None = None) -> Iterator[Advance]:
    """Show a bar (a spinner without a total) named `what`, or lines, until the block ends. Where the amount falls, as
    where a training has made its negatives and now learns, the next part of the work begins, and is named so."""
    part, last = 1, 0.0

    def of_part(done: float) -> str:
        nonlocal part, last
        part, last = part + (done < last), done
        return f", part {part}" if part > 1 else ""

    if _told:
        work = Work(what)

        def note_share(done: float, new_total: float | None = None) -> None:
            whole = new_total or total
            # What remains to be done at 100%, such as a check, has no share.
            work.share = of_part(done) + (f" ({done / whole:.0%})" if whole and done < whole else "")

        with _lines(work):
            yield note_share
        return
    if not sys.stderr.isatty():
        yield lambda done, total=None: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), *Progress.get_default_columns()[:-1], TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def show(done: float, new_total: float | None = None) -> None:
            bar.update(task, completed=done, total=new_total, description=f"{what}{of_part(done)}")

        yield show
