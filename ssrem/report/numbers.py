"""Numbers, times and other values as text of the report."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

MISSING = "–"
MINUS = "−"


def is_figure(value: object) -> bool:
    """Whether `value` is a finite number (and no bool)."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def fixed(value: float) -> str:
    """A number with two decimals, however small it is."""
    return f"{value:.2f}".replace("-", MINUS)


def real(value: Any, digits: int = 3) -> str:
    """A number with `digits` decimals; a small one keeps two significant digits rather than read as zero."""
    if not is_figure(value):
        return MISSING
    text = f"{value:.{digits}f}"
    if value != 0 and float(text) == 0:
        text = f"{value:.1e}"
    return text.replace("-", MINUS)


def count(value: Any) -> str:
    """A number in whole ones, thousands apart by commas."""
    return f"{value:,.0f}" if is_figure(value) else MISSING


def percent(value: Any) -> str:
    """A share from 0 to 1 in whole per cent; 0% and 100% only if exact."""
    if not is_figure(value):
        return MISSING
    if 0 < value < 0.005:
        return "< 1%"
    if 0.995 < value < 1:
        return "> 99%"
    return f"{value:.0%}"


def signed(value: Any) -> str:
    """A difference in whole points, with its sign."""
    return f"{value:+.0f}".replace("-", MINUS) if is_figure(value) else MISSING


def change(value: Any) -> str:
    """A difference with its sign, integers without decimals; 0 if there is none."""
    if not is_figure(value):
        return MISSING
    if value == 0:
        return "0"
    text = f"{value:+,}" if isinstance(value, int) else f"{value:+.3f}"
    return text.replace("-", MINUS)


def p_value(value: Any) -> str:
    """The p-value with its sign, never 0, with no-break spaces."""
    if not is_figure(value):
        return "p unknown"
    return ("p < 0.001" if value < 0.001 else f"p = {value:.3f}").replace(" ", "\N{NO-BREAK SPACE}")


def interval(low: Any, high: Any, digits: int = 3) -> str:
    """The interval in brackets; empty if there is none."""
    return f"[{real(low, digits)}, {real(high, digits)}]" if is_figure(low) and is_figure(high) else ""


def moment(value: Any) -> str:
    """A time to the second; text stays as it is."""
    if value is None:
        return MISSING
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else str(value)


def plain(value: Any) -> str:
    """Any value, as the text of a table cell."""
    match value:
        case None | "":
            text = MISSING
        case bool():
            text = "yes" if value else "no"
        case int():
            text = count(value)
        case float():
            text = real(value)
        case datetime():
            text = moment(value)
        case Mapping():
            text = ", ".join(f"{key} {plain(item)}" for key, item in value.items()) or MISSING
        case list() | tuple():
            text = json.dumps(value, default=str, ensure_ascii=False)
        case _:
            text = str(value)
    return text
