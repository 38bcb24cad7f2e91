"""Processes the shards of a flow in this process or on workers of Dask."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ssrem.errors import RunnerError, one_line
from ssrem.flows.orchestration.options import RunnerOptions
from ssrem.tasks.stage.shards import distributed, workers

if TYPE_CHECKING:
    from distributed import Client

P = ParamSpec("P")
R = TypeVar("R")

CONNECT_SECONDS = 30

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def on_workers(run: Callable[P, R]) -> Callable[P, R]:
    """Process the shards of a flow on the runner of its parameter `runner`.

    The workers live as long as the flow, and flows that it calls share them.
    """

    parameters = signature(run, eval_str=True)

    @wraps(run)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        with opened(parameters.bind(*args, **kwargs).arguments.get("runner", RunnerOptions())):
            return run(*args, **kwargs)

    vars(inner)["__signature__"] = parameters  # Prefect looks up the names of types in this module's globals
    return inner


@contextmanager
def opened(runner: RunnerOptions) -> Iterator[None]:
    """Process shards on the runner until the block ends, or on the workers of an outer flow if it has some.

    Raises RunnerError if the cluster does not answer.
    """
    if runner.name == "process" or distributed():
        yield
        return
    with connected(runner) as client, workers(client):
        yield


@contextmanager
def connected(runner: RunnerOptions) -> Iterator[Client]:
    """A client of the cluster at the address, or of one that lasts as long as the block.

    Raises RunnerError if the cluster does not answer.
    """
    # Dask logs every worker that starts or ends; failures that matter are raised as errors.
    os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "critical")
    import dask
    from distributed import Client, LocalCluster

    # Workers use as many threads for arithmetic as this process: another number would change the last bits.
    dask.config.set({f"distributed.nanny.pre-spawn-environ.{name}": None for name in THREADS})
    local: dict[str, Any] = {
        "n_workers": runner.workers,
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",
        "memory_limit": 0,
    }
    with ExitStack() as stack:
        try:
            cluster = runner.address or stack.enter_context(LocalCluster(**local))  # type: ignore[no-untyped-call]
            client = stack.enter_context(Client(cluster, timeout=CONNECT_SECONDS))  # type: ignore[no-untyped-call]
        except Exception as error:
            where = runner.address or "this machine"
            raise RunnerError(
                f"--runner {runner.name}: no cluster at {where} ({one_line(error)}); start it, or leave out "
                "--runner-address for workers here"
            ) from error
        yield client
