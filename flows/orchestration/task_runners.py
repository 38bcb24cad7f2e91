"""Where the shards of a flow are processed: in this process, or by workers of Dask or Ray."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from flows.orchestration.options import RunnerOptions
from ssrem.errors import RunnerError
from tasks.stage.shards import distributed, workers

if TYPE_CHECKING:
    from prefect.task_runners import TaskRunner

P = ParamSpec("P")
R = TypeVar("R")

CONNECT_SECONDS = 30


def on_workers(run: Callable[P, R]) -> Callable[P, R]:
    """Process the shards of a flow where its parameter `runner` says.

    The workers last as long as the flow, and flows that it calls share them.
    """

    taken = signature(run, eval_str=True)

    @wraps(run)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        with opened(taken.bind(*args, **kwargs).arguments.get("runner", RunnerOptions())):
            return run(*args, **kwargs)

    vars(inner)["__signature__"] = taken  # Prefect looks up the names of types in this module's globals
    return inner


@contextmanager
def opened(runner: RunnerOptions) -> Iterator[None]:
    """Process shards on the runner until the block ends, or on the workers of a flow around it where it has some.

    Raises RunnerError if the cluster does not answer.
    """
    if runner.name == "process" or distributed():
        yield
        return
    with started(runner) as task_runner, workers(task_runner):
        yield


@contextmanager
def started(runner: RunnerOptions) -> Iterator[TaskRunner[Any]]:
    """Prefect's task runner of that name, connected; RunnerError if the cluster does not answer."""
    task_runner = (_dask if runner.name == "dask" else _ray)(runner.address, runner.workers)
    try:
        task_runner.__enter__()
        if runner.name == "dask":
            _ = task_runner.client  # connects
    except Exception as error:
        task_runner.__exit__(type(error), error, error.__traceback__)
        where = runner.address or "this machine"
        reason = " ".join(str(error).split())[:200]
        raise RunnerError(
            f"--runner {runner.name}: no cluster at {where} ({reason}); start it, or leave out --runner-address "
            "for workers here"
        ) from error
    try:
        yield task_runner
    finally:
        task_runner.__exit__(None, None, None)


def _dask(address: str | None, count: int) -> Any:
    # Dask logs every worker that starts or ends; failures that matter are raised as errors.
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
    import dask
    from prefect_dask.task_runners import DaskTaskRunner

    client = {"timeout": CONNECT_SECONDS}
    if address:
        return DaskTaskRunner(address=address, client_kwargs=client)
    # Workers use as many threads for arithmetic as this process: another number would change the last bits.
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
        # By default Ray gives each worker one thread, which would change the last bits.
        threads = os.environ.get("OMP_NUM_THREADS", str(_cores()))
        options |= {"num_cpus": count, "include_dashboard": False}
        options |= {"runtime_env": {"env_vars": {"OMP_NUM_THREADS": threads}}}
    return RayTaskRunner(address=address, init_kwargs=options)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
