"""Maps over shards: in this process, or over the workers of a Dask cluster where one is connected."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ssrem.errors import RunnerError, one_line
from ssrem.tasks.settings import Runner

if TYPE_CHECKING:
    from distributed import Client

R = TypeVar("R")

CONNECT_SECONDS = 30
"""Seconds that a cluster has to answer."""

_CLIENT: ContextVar[Client | None] = ContextVar("Dask client that shards go to", default=None)


@contextmanager
def opened(runner: Runner) -> Iterator[None]:
    """Map shards on the runner, or on that of an outer block; RunnerError if its cluster does not answer."""
    if runner.runner == "process" or distributed():
        yield
        return
    with connected(runner) as client:
        token = _CLIENT.set(client)
        try:
            yield
        finally:
            _CLIENT.reset(token)


@contextmanager
def connected(runner: Runner) -> Iterator[Client]:
    """A client of the cluster at the runner's address, or of one here that lasts as long as the block."""
    # Dask logs every worker that starts or ends; failures that matter are raised as errors.
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
    import dask
    from distributed import Client, LocalCluster

    # Workers use as many threads for arithmetic as this process: another number would change the last bits.
    for kind in ("OMP", "MKL", "OPENBLAS"):
        dask.config.set({f"distributed.nanny.pre-spawn-environ.{kind}_NUM_THREADS": None})
    local: dict[str, Any] = {"n_workers": runner.workers, "threads_per_worker": 1, "memory_limit": 0}
    local["dashboard_address"] = "127.0.0.1:0"
    with ExitStack() as stack:
        try:
            cluster = runner.runner_address or stack.enter_context(LocalCluster(**local))  # type: ignore[no-untyped-call]
            client = stack.enter_context(Client(cluster, timeout=CONNECT_SECONDS))  # type: ignore[no-untyped-call]
        except Exception as error:
            where = runner.runner_address or "this machine"
            raise RunnerError(
                f"--runner {runner.runner}: no cluster at {where} ({one_line(error)}); start it, or leave out "
                "--runner-address for workers here"
            ) from error
        yield client


def distributed() -> bool:
    """Whether shards go to workers."""
    return _CLIENT.get() is not None


def shard_ranges(n: int, size: int) -> list[tuple[int, int]]:
    """First row and last row + 1 of each shard of n rows. They do not depend on the workers, so neither do results."""
    return [(first, min(first + size, n)) for first in range(0, n, size)]


def map_shards(work: Callable[..., R], shards: Sequence[Mapping[str, Any]]) -> list[R]:
    """Results of `work` for the parameters of each shard, in order; free workers take the next shard.

    `work` must be idempotent: when a worker dies, Dask gives its shard to another one, about three times at most.
    Raises RunnerError where it gives up, and what a shard raises.
    """
    client = _CLIENT.get()
    if client is None:
        return [work(**shard) for shard in shards]
    futures = [client.submit(work, **shard, pure=False) for shard in shards]
    try:
        results: list[R] = client.gather(futures)  # type: ignore[no-untyped-call]
    except Exception as error:
        if type(error).__module__.split(".")[0] != "distributed":
            raise
        raise RunnerError(
            f"{work.__name__}: the workers of its shards were lost ({one_line(error)}); nothing of this stage was "
            "published; give them more memory or use fewer, then run again"
        ) from error
    return results


def incoming(path: Path) -> Path:
    """The path of a shard's input; RunnerError where this machine does not have it."""
    if not path.exists():
        raise RunnerError(
            f"{path} does not exist on {socket.gethostname()}; every worker must see the home folder under that "
            "path: put it on a disk that they share, or use a local --runner"
        )
    return path
