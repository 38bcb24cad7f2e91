"""The order in which a training sees its examples: shuffled, in batches of similar lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.samples import Rows

# Examples are sorted by length within groups of this many batches: little padding, and still shuffled.
_BUCKET = 50


def shuffled_epochs(
    count: int,
    size: int,
    seed: Sequence[int],
    *,
    taken: int | None = None,
    lengths: NDArray[Any] | None = None,
) -> Iterator[list[Rows]]:
    """Batches of `size` of `count` examples for any number of epochs, shuffled from the seed.

    taken: examples per epoch; the next epoch takes those that follow, so that all are used before one is repeated.
    lengths (count,): a batch has examples of about one length; the order of the batches is random.
    """
    order, between = (np.random.default_rng([*seed[:-1], seed[-1] + stream]) for stream in (0, 1))
    left = np.zeros(0, dtype=np.int64)
    while True:
        while len(left) < (taken or count):
            left = np.concatenate([left, order.permutation(count)])
        rows, left = left[: taken or count], left[taken or count :]
        batches: list[Rows] = []
        for first in range(0, len(rows), size * _BUCKET):
            bucket = rows[first : first + size * _BUCKET]
            starts = np.arange(0, len(bucket), size)
            if lengths is not None:
                bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
                starts = between.permutation(starts)
            batches += [bucket[start : start + size] for start in starts.tolist()]
        yield batches
