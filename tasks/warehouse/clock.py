"""The time, as the tables hold it."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The time now, UTC, without a zone, as the tables hold it."""
    return datetime.now(UTC).replace(tzinfo=None)
