"""How long a writer waits for the one before it."""

from __future__ import annotations

import os
import re

from ssrem.errors import HomeError

VARIABLE = "SSREM_WAIT"
"""Environment variable: how long writers of this process and its children wait, as a schedule should."""

POLL_SECONDS = 0.2

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: str) -> float:
    """Seconds that `text` means: a number, with s, m, h or d after it, such as 90, 30m or 6h; ValueError otherwise."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no time to wait, such as 90, 30m or 6h")
    return float(match[1]) * _UNITS[match[2]]


def patience() -> float:
    """Seconds to wait for another writer: $SSREM_WAIT, or 0. HomeError where that is no time."""
    try:
        return seconds(os.environ.get(VARIABLE) or "0")
    except ValueError as error:
        raise HomeError(f"${VARIABLE}: {error}") from None
