"""The small home that `ssrem run` made, to ask."""

from __future__ import annotations

from support.small_home import made

__all__ = ["made"]
