"""Prefect's settings for runs from the command line: quiet, offline, with its files in the home folder."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack
from pathlib import Path

from ssrem.errors import HomeError

DEFAULTS = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    # The command itself reports errors, in one line, instead of a flow's traceback.
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "90",
}

_settings = ExitStack()
"""Settings that hold until the process ends."""


def prepare(home: Path) -> None:
    """Set Prefect's environment variables that are unset, then import Prefect, which must not be imported before.

    Raises HomeError if the home folder cannot be written.
    """
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    if "PREFECT_HOME" not in os.environ:
        folder = home / ".prefect"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HomeError(
                f"cannot write to {home}: {error.strerror}; choose another folder with --home"
            ) from None
        os.environ["PREFECT_HOME"] = str(folder)
    # On a busy machine it logs at exit how many events are left to send, which is of no use to anybody.
    logging.getLogger("EventsWorker").setLevel(logging.CRITICAL)
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    # A run from the command line needs no heartbeat, whose end costs each flow a second.
    _settings.enter_context(temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}))
