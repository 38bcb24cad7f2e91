"""Steps: plain functions which, within a run of a Prefect flow, are tasks of that run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from prefect import Task
    from prefect.client.schemas.objects import State, TaskRun

P = ParamSpec("P")
R = TypeVar("R")

RETRIES = 2
"""Further tries of a task after an error of a disk or network."""

RETRY_SECONDS = 5


def step(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that Prefect shows as the task `name`, and retries, when a flow run calls it; otherwise it runs as it
    is, and Prefect is not even imported."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @cache
        def as_task() -> Task[P, R]:
            from prefect import task
            from prefect.cache_policies import NO_CACHE

            return task(
                name=name,
                retries=RETRIES,
                retry_delay_seconds=RETRY_SECONDS,
                retry_condition_fn=_is_transient,
                cache_policy=NO_CACHE,  # the ledger says what is done
                persist_result=False,
            )(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            if in_flow_run() and not _in_task():
                return as_task()(*args, **kwargs)
            return function(*args, **kwargs)

        return call

    return decorate


def in_flow_run() -> bool:
    """Whether a run of a Prefect flow called this."""
    context = sys.modules.get("prefect.context")
    return context is not None and context.FlowRunContext.get() is not None


def _in_task() -> bool:
    return sys.modules["prefect.context"].TaskRunContext.get() is not None


def _is_transient(_: Task[..., Any], __: TaskRun, state: State[Any]) -> bool:
    return isinstance(state.result(raise_on_failure=False), OSError)
