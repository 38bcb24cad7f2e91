"""Fixtures that look at what `ssrem run` made."""

from __future__ import annotations

from support.small_home import copy, made

__all__ = ["copy", "made"]
