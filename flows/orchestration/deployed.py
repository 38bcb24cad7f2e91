"""The flows as Prefect runs them: prefect.yaml names this module, and so does a command with PREFECT_API_URL.

Every file of flows/ defines a function of its own name. Here it becomes a Prefect flow that notifies of its failure,
and the steps that it calls are tasks of its run. Called directly, it runs without Prefect.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from prefect import Flow, flow

from ssrem.flows.orchestration.failure_hook import notify


@cache
def __getattr__(name: str) -> Flow[..., object]:
    """The flow `name`, whose module is imported only now."""
    module = f"flows.{name}"
    if find_spec(module) is None:
        raise AttributeError(f"there is no flow {name!r} in flows/")
    function = getattr(import_module(module), name)
    return flow(name=name, on_failure=[notify], on_crashed=[notify])(function)
