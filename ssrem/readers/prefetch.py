"""Reading ahead in a thread, so that a consumer's work and the reader's overlap."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from queue import Full, Queue
from typing import TypeVar

Item = TypeVar("Item")

_POLL_S = 0.1


def prefetched(items: Iterable[Item], ahead: int = 4) -> Iterator[Item]:
    """The same items in the same order, made in another thread, at most `ahead` before they are asked for.

    An error in the source is raised here, after the items before it. Closing the iterator stops the thread.
    """
    # (item, error, whether it is the last)
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
        except BaseException as error:  # handed on to the consumer, whatever it is
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
