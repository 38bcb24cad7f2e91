"""The flows as Prefect runs them: prefect.yaml names this module, and so does a command with PREFECT_API_URL.

Every file of flows/ defines a function of its own name. Here it becomes a Prefect flow that notifies of its failure,
and the steps that it calls are tasks of its run. Called directly, it runs without Prefect.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from prefect import Flow, flow

import flows
from flows.orchestration.failure_hook import notify


def _deployed(module: str, name: str) -> Flow[..., object]:
    function = getattr(import_module(f"flows.{module}"), name)
    return flow(name=name, on_failure=[notify], on_crashed=[notify])(function)


globals().update({m.name: _deployed(m.name, m.name) for m in iter_modules(flows.__path__) if not m.ispkg})
compare = _deployed("report", "compare")
