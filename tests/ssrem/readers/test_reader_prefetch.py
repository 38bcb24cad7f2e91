"""Reading ahead changes nothing but the time at which things happen."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from ssrem.readers.files.streams import prefetched


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "prefetch"]


def test_the_same_items_in_order() -> None:
    assert list(prefetched(range(1000), ahead=3)) == list(range(1000))
    assert list(prefetched([None, None])) == [None, None]
    assert list(prefetched([])) == []
    assert not _threads()


def test_an_error_comes_after_the_items_before_it() -> None:
    def source() -> Iterator[int]:
        yield 1
        raise KeyError("lost")

    items = prefetched(source())
    assert next(items) == 1
    with pytest.raises(KeyError, match="lost"):
        next(items)
    assert not _threads()


def test_no_more_than_asked_are_made_ahead_and_closing_stops() -> None:
    produced: list[int] = []

    def source() -> Iterator[int]:
        for i in range(1000):
            produced.append(i)
            yield i

    items = prefetched(source(), ahead=2)
    assert next(items) == 0
    time.sleep(0.3)
    assert len(produced) <= 4  # one taken, two waiting, one in hand
    items.close()  # type: ignore[attr-defined]
    assert not _threads()
    assert len(produced) <= 5
