"""Maps over shards: in this process, or over the workers of a Dask cluster where one is connected."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ssrem.errors import RunnerError, SsremError, one_line

if TYPE_CHECKING:
    from distributed import Client

R = TypeVar("R")

RETRIES = 2
"""Further tries of a shard after an error, which may come from a disk or a network."""

_CLIENT: ContextVar[Client | None] = ContextVar("Dask client that shards go to", default=None)


@contextmanager
def workers(client: Client) -> Iterator[None]:
    """Map shards over the workers of a Dask cluster until the block ends."""
    token = _CLIENT.set(client)
    try:
        yield
    finally:
        _CLIENT.reset(token)


def distributed() -> bool:
    """Whether shards go to workers."""
    return _CLIENT.get() is not None


def shard_ranges(n: int, size: int) -> list[tuple[int, int]]:
    """First row and last row + 1 of each shard of n rows. They do not depend on the workers, so neither do results."""
    return [(first, min(first + size, n)) for first in range(0, n, size)]


def map_shards(work: Callable[..., R], shards: Sequence[Mapping[str, Any]]) -> list[R]:
    """Results of `work` for the parameters of each shard, in order; free workers take the next shard.

    `work` goes from names and paths to names and paths and is idempotent: Dask gives a shard whose worker dies to
    another one, some three times. Raises RunnerError where it gives up, and what a shard raises.
    """
    client = _CLIENT.get()
    if client is None:
        return [work(**shard) for shard in shards]
    futures = [client.submit(_answer, work, dict(shard), pure=False, retries=RETRIES) for shard in shards]
    try:
        answers: list[R | SsremError] = client.gather(futures)  # type: ignore[no-untyped-call]
    except Exception as error:
        if type(error).__module__.split(".")[0] != "distributed":
            raise
        raise RunnerError(
            f"{work.__name__}: the workers of its shards were lost ({one_line(error)}); nothing of this stage was "
            "published; give them more memory or use fewer, then run again"
        ) from error
    results = []
    for answer in answers:
        if isinstance(answer, SsremError):
            raise answer
        results.append(answer)
    return results


def _answer(work: Callable[..., R], shard: Mapping[str, Any]) -> R | SsremError:
    """The result of a shard, or the SsremError that it raises: another try would not help."""
    try:
        return work(**shard)
    except SsremError as error:
        return error


def incoming(path: Path) -> Path:
    """The path of a shard's input; RunnerError where this machine does not have it."""
    if not path.exists():
        raise RunnerError(
            f"{path} does not exist on {socket.gethostname()}; every worker must see the home folder under that "
            "path: put it on a disk that they share, or use a local --runner"
        )
    return path


@contextmanager
def room_for_shards(scratch: Path) -> Iterator[Path]:
    """A new folder for the files of shards, deleted with the block, whatever a lost worker still writes there."""
    folder = Path(mkdtemp(prefix="shards-", dir=scratch))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A draft to write to, which becomes `path` when the block ends: two workers on one shard leave a complete file."""
    aside = path.with_name(f".{socket.gethostname()}-{os.getpid()}-{path.name}")
    yield aside
    aside.replace(path)


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> str:
    """Write named arrays as `path`, complete or not at all; returns the path as text, for a shard's answer."""
    with atomic_write(path) as draft, draft.open("wb") as stream:
        np.savez(stream, **arrays)
    return str(path)
