"""Prefect's settings for runs from the command line: quiet, offline, and at home in the project's own folder."""

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
    # Errors reach the user as one line from the command itself, not as a flow's traceback.
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "90",
}

_settings = ExitStack()
"""What holds until the process ends."""


def prepare(home: Path) -> None:
    """Set what the environment does not say yet; call it before Prefect is imported, which it does in the end.

    Raises HomeError where the home folder cannot be written.
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
    # On a busy machine it says what is left to send when the command ends; nobody can act on it.
    logging.getLogger("EventsWorker").setLevel(logging.CRITICAL)
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    # Nobody listens for the heartbeat of a run from the command line, and its end costs each flow a second.
    _settings.enter_context(temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}))
