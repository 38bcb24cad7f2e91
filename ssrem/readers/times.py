"""Parses times in dumps to microseconds since 1970-01-01 UTC.

Accepted are ISO 8601, with `T` or a space, with or without `Z` or an offset (UTC by default), and seconds since 1970 as
a number or a numeric string; years 1 to 9999.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EARLIEST_S, _LATEST_S = -62_135_596_800, 253_402_300_799
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
# Lengths of YYYY-MM-DD HH:MM:SS without and with milli- or microseconds, which Arrow and Python parse equally.
_PLAIN_LENGTHS = (19, 23, 26)


class NotVectorisableError(Exception):
    """Only reading row by row is exact for these values; never raised outside the readers."""


def parse_time(value: object) -> int | None:
    """Microseconds since 1970 UTC of one value of a dump; None if it is not a time."""
    if isinstance(value, str):
        value = value.strip()
        try:
            value = float(value) if _NUMBER.fullmatch(value) else datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        micros = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
        return micros if _in_years(micros) else None  # an offset may lead out of the years 1 to 9999
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Compared before conversion: a JSON integer may be larger than any float. NaN is in no range.
    return round(float(value) * 1e6) if _EARLIEST_S <= value <= _LATEST_S else None


def _in_years(micros: int) -> bool:
    return _EARLIEST_S * 1_000_000 <= micros < (_LATEST_S + 1) * 1_000_000


def parse_times(values: pa.Array) -> pa.Array:
    """`parse_time` for a column (strings, numbers, timestamps or dates), as timestamp('us').

    Raises NotVectorisableError if a value is neither a time nor an empty string, so that the caller can store it as
    written.
    """
    kind = values.type
    if pa.types.is_null(kind):
        return values.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        # Timestamps with a zone are stored in UTC, so removing the zone leaves UTC.
        zone = getattr(kind, "tz", None)
        finer = getattr(kind, "unit", None) == "ns"  # casting ns truncates; casting others may overflow
        try:
            times = values.cast(pa.timestamp("us", zone), safe=not finer).cast(pa.timestamp("us"))
        except pa.ArrowInvalid:
            raise NotVectorisableError from None
        ends = pc.min_max(times.cast(pa.int64())).as_py().values()
        if not all(_in_years(micros) for micros in ends if micros is not None):
            raise NotVectorisableError
        return times
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        seconds = values.cast(pa.float64(), safe=False)
        inside = pc.and_(pc.greater_equal(seconds, _EARLIEST_S), pc.less_equal(seconds, _LATEST_S))
        if pc.all(inside).as_py() is False:
            raise NotVectorisableError
        micros = pc.round(pc.multiply(seconds, 1e6), round_mode="half_to_even")
        return micros.cast(pa.int64()).cast(pa.timestamp("us"))
    if pa.types.is_string(kind):
        return _from_strings(pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values))
    raise NotVectorisableError


def _from_strings(values: pa.Array) -> pa.Array:
    zulu = pc.ends_with(values, "Z")
    bare = pc.utf8_slice_codeunits(values, 0, -1) if pc.all(zulu).as_py() else values
    length = pc.min_max(pc.binary_length(bare)).as_py()
    # Arrow accepts year 0, Python does not.
    if length["min"] == length["max"] in _PLAIN_LENGTHS and not pc.any(pc.starts_with(bare, "0000")).as_py():
        with suppress(pa.ArrowInvalid):
            return bare.cast(pa.timestamp("us"))
    parsed = [None if value is None else parse_time(value) for value in values.to_pylist()]
    times = pa.array(parsed, pa.int64()).cast(pa.timestamp("us"))
    if times.null_count != values.null_count:
        raise NotVectorisableError
    return times
