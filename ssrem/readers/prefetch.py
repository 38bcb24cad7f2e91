"""Reads ahead in a thread, so that reader and consumer work at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")

_END = object()


def prefetched(items: Iterable[Item], ahead: int = 4) -> Iterator[Item]:
    """The same items in the same order, produced by another thread at most `ahead` items in advance.

    An error of the source is raised after the items before it. Closing the iterator stops the thread.
    """
    source = iter(items)
    pool = ThreadPoolExecutor(1, "prefetch")
    try:
        ready = deque(pool.submit(next, source, _END) for _ in range(ahead))
        while (item := ready.popleft().result()) is not _END:
            ready.append(pool.submit(next, source, _END))
            yield item  # type: ignore[misc]
    finally:
        pool.shutdown(cancel_futures=True)
