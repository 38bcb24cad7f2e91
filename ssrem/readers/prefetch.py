"""Reads ahead in a thread, so that the work of reader and consumer overlaps."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from queue import Full, Queue
from typing import TypeVar

Item = TypeVar("Item")

_POLL_S = 0.1


def prefetched(items: Iterable[Item], ahead: int = 4) -> Iterator[Item]:
    """The same items in the same order, produced by another thread at most `ahead` items in advance.

    An error of the source is raised after the items before it. Closing the iterator stops the thread.
    """
    # (item, error, end of the source)
    ready: Queue[tuple[Item | None, BaseException | None, bool]] = Queue(ahead)
    stopped = threading.Event()

    def put(item: Item | None, error: BaseException | None = None, *, last: bool = False) -> None:
        while not stopped.is_set():
            with suppress(Full):
                ready.put((item, error, last), timeout=_POLL_S)
                return

    def work() -> None:
        try:
            for item in items:
                put(item)
                if stopped.is_set():
                    return
            put(None, last=True)
        except BaseException as error:  # whatever it is, the consumer raises it
            put(None, error, last=True)

    thread = threading.Thread(target=work, name="prefetch", daemon=True)
    thread.start()
    try:
        while True:
            item, error, last = ready.get()
            if error is not None:
                raise error
            if last:
                return
            yield item  # type: ignore[misc]
    finally:
        stopped.set()
        thread.join()
