"""Starts the flows of commands: as plain functions, or under the Prefect server that PREFECT_API_URL names."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ssrem.errors import SsremError, one_line

ADDRESS = "PREFECT_API_URL"

QUIET = {
    "DO_NOT_TRACK": "1",
    # The command itself reports errors, in one line, instead of a flow's traceback.
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
}


def flow(name: str) -> Callable[..., Any]:
    """The flow `name` of flows/NAME.py, ready to be called.

    Raises SsremError if PREFECT_API_URL names a server that does not answer.
    """
    if ADDRESS in os.environ:
        _connect()
        return getattr(import_module("ssrem.flows.orchestration.deployed"), name)  # type: ignore[no-any-return]
    return getattr(import_module(f"flows.{name}"), name)  # type: ignore[no-any-return]


def _connect() -> None:
    for variable, value in QUIET.items():
        os.environ.setdefault(variable, value)
    # On a busy machine Prefect logs at exit how many events were not sent, which does not help the user.
    logging.getLogger("EventsWorker").setLevel(logging.CRITICAL)
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        error = client.api_healthcheck()
    if error is not None:
        raise SsremError(
            f"no Prefect server answers at {os.environ[ADDRESS]} ({one_line(error)}); start it, or run without with "
            "--no-prefect"
        )
