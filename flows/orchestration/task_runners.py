"""Where a flow's shards are worked on: in this process, or by the workers of Dask or Ray."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from flows.cli.arguments import check_runner
from ssrem.errors import RunnerError
from tasks.stage.shards import distributed, workers

if TYPE_CHECKING:
    from prefect.task_runners import TaskRunner

P = ParamSpec("P")
R = TypeVar("R")

Runner = Literal["process", "dask", "ray"]
CONNECT_SECONDS = 30


def on_workers(run: Callable[P, R]) -> Callable[P, R]:
    """A flow's function whose parameters `runner`, `runner_address` and `workers` say who works on its shards.

    The workers last as long as the flow, and flows that it calls share them. A deployment sets the parameters as it
    sets any other.
    """

    @wraps(run)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        given = signature(run).bind(*args, **kwargs)
        given.apply_defaults()
        chosen = [given.arguments[name] for name in ("runner", "runner_address", "workers")]
        with opened(*chosen):
            return run(*args, **kwargs)

    return inner


@contextmanager
def opened(runner: Runner | None, address: str | None, count: int) -> Iterator[None]:
    """Have shards worked on by the runner until the block ends; those of a flow around it, where there are some.

    address: of a cluster there is; without one, `count` workers are started here. Raises RunnerError where the
    package is missing or the cluster does not answer.
    """
    check_runner(runner, address)
    if runner in (None, "process") or distributed():
        yield
        return
    with started(runner, address, count) as task_runner, workers(task_runner):
        yield


@contextmanager
def started(runner: Runner | None, address: str | None, count: int) -> Iterator[TaskRunner[Any]]:
    """Prefect's task runner of that name, connected; RunnerError where the cluster does not answer."""
    task_runner = _dask(address, count) if runner == "dask" else _ray(address, count)
    try:
        task_runner.__enter__()
        if runner == "dask":
            _ = task_runner.client  # connects
    except Exception as error:
        task_runner.__exit__(type(error), error, error.__traceback__)
        where = address or "this machine"
        reason = " ".join(str(error).split())[:200]
        raise RunnerError(
            f"--runner {runner}: no cluster at {where} ({reason}); start it, or leave out --runner-address for "
            "workers here"
        ) from error
    try:
        yield task_runner
    finally:
        task_runner.__exit__(None, None, None)


def _dask(address: str | None, count: int) -> Any:
    # Its processes tell of workers that come and go; what matters of it, an error says.
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
    import dask
    from prefect_dask.task_runners import DaskTaskRunner

    client = {"timeout": CONNECT_SECONDS}
    if address:
        return DaskTaskRunner(address=address, client_kwargs=client)
    # Workers have as many threads for sums as this process: with another number the last bits would be others.
    dask.config.set({f"distributed.nanny.pre-spawn-environ.{name}": None for name in THREADS})
    local = {
        "n_workers": count,
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",
        "memory_limit": 0,
    }
    return DaskTaskRunner(cluster_kwargs=local, client_kwargs=client)


THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def _ray(address: str | None, count: int) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from prefect_ray import RayTaskRunner

    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "CRITICAL"}
    if not address:
        # Left alone, Ray gives each worker one thread, and the last bits would be others than here.
        threads = os.environ.get("OMP_NUM_THREADS", str(_cores()))
        options |= {"num_cpus": count, "include_dashboard": False}
        options |= {"runtime_env": {"env_vars": {"OMP_NUM_THREADS": threads}}}
    return RayTaskRunner(address=address, init_kwargs=options)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
