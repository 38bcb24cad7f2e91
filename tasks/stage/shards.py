"""Maps over shards: in this process, or over the workers of a Prefect task runner where one is open."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from prefect import Task, task
from prefect.cache_policies import NO_CACHE

from ssrem.errors import RunnerError, SsremError

if TYPE_CHECKING:
    from prefect.client.schemas.objects import State, TaskRun
    from prefect.task_runners import TaskRunner

P = ParamSpec("P")
R = TypeVar("R")

_RUNNER: ContextVar[TaskRunner[Any] | None] = ContextVar("runner of shards", default=None)


@contextmanager
def workers(runner: TaskRunner[Any]) -> Iterator[None]:
    """Map shards over the workers of a started task runner until the block ends."""
    token = _RUNNER.set(runner)
    try:
        yield
    finally:
        _RUNNER.reset(token)


def distributed() -> bool:
    """Whether shards go to workers."""
    return _RUNNER.get() is not None


def shard_ranges(n: int, size: int) -> list[tuple[int, int]]:
    """First row and last row + 1 of each shard of n rows. They do not depend on the workers, so neither do results."""
    return [(first, min(first + size, n)) for first in range(0, n, size)]


def shard_task(name: str) -> Callable[[Callable[P, R]], Task[P, R]]:
    """A task that works on one shard: from names and paths to names and paths, idempotent.

    It is retried after an error of a disk or a network; the runner replaces workers that die.
    """
    return task(
        name=name,
        retries=2,
        retry_condition_fn=_worth_another_try,
        cache_policy=NO_CACHE,
        persist_result=False,
    )


def _worth_another_try(_: Task[..., Any], __: TaskRun, state: State[Any]) -> bool:
    return not isinstance(state.result(raise_on_failure=False), SsremError)


def map_shards(work: Task[..., R], shards: Sequence[Mapping[str, Any]]) -> list[R]:
    """Results of the task for the parameters of each shard, in order; free workers take the next shard.

    A shard whose worker dies goes to another one: Dask and Ray do that by themselves, some three times a shard.
    Raises RunnerError where they give up, and what a shard raises.
    """
    runner = _RUNNER.get()
    if runner is None:
        return [work.fn(**shard) for shard in shards]
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    # Workers get the address of this flow's server; without it, each would start a server of its own.
    with temporary_settings({PREFECT_API_URL: str(get_client(sync_client=True).api_url)}):
        futures = [runner.submit(work, dict(shard)) for shard in shards]
    try:
        return [future.result() for future in futures]
    except SsremError:
        raise
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("distributed", "ray"):
            raise
        reason = " ".join(str(error).split())
        raise RunnerError(
            f"{work.name}: the workers of its shards were lost ({reason[:300]}); nothing of this stage was "
            "published; give them more memory or use fewer, then run again"
        ) from error


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
