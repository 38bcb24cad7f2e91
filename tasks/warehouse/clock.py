"""The current time in the form that tables store."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """The current time in UTC, without a zone."""
    return datetime.now(UTC).replace(tzinfo=None)
