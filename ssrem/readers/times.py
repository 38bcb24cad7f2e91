"""Times in dumps, in every common form, as microseconds since 1970-01-01 UTC.

Forms: ISO 8601, also without dashes; seconds, milli- or microseconds since 1970, distinguished by their size; numeric
dates such as 31.12.2018 or 12/31/2018; dates with English names of months as in mails (RFC 2822) and tweets. All may
have a time of the day, AM or PM, and a zone (UTC by default). Years 1 to 9999.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, cast

from ssrem.errors import DumpError
from ssrem.readers.date_order import DateOrder

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EARLIEST_S, _LATEST_S = -62_135_596_800, 253_402_300_799
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
# Lengths of YYYY-MM-DD HH:MM:SS without and with milli- or microseconds, which Arrow and Python parse equally.
_PLAIN_LENGTHS = (19, 23, 26)

_COMPACT = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
"""Number of digits → form of a number that is read as a date, not as seconds, if it is valid in 1900 to 2100."""
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
_ZONES = {"z": 0, "utc": 0, "gmt": 0, "ut": 0, "est": -5, "edt": -4, "cst": -6, "cdt": -5}
_ZONES |= {"mst": -7, "mdt": -6, "pst": -8, "pdt": -7}
"""The names of zones that RFC 2822 defines → hours from UTC."""

_CLOCK = (
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d\d)(?:[:.](?P<second>\d\d)(?:[.,](?P<fraction>\d+))?)?"
    r"(?:\s*(?P<half>[ap])\.?m\b\.?)?"
)
_ZONE = r"(?:\(?(?P<zone>[+-]\d\d:?\d\d|[a-z]{1,3})\)?)"
_END = rf"(?:(?:\s*[,T]\s*|\s+(?:at\s+)?){_CLOCK})?(?:\s*{_ZONE})?(?:\s*\([\w ]*\))?"
_NAME = r"(?P<name>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE | re.ASCII)
    for form in (
        rf"(?P<first>\d{{1,2}})(?P<sign>[./-])(?P<second_number>\d{{1,2}})(?P=sign)(?P<year>\d{{4}}|\d\d){_END}",
        rf"(?P<year>\d{{4}})([./-])(?P<month>\d{{1,2}})\2(?P<day>\d{{1,2}}){_END}",
        rf"{_WEEKDAY}(?P<day>\d{{1,2}})(?:st|nd|rd|th)?[\s-]+{_NAME}[\s,-]+(?P<year>\d{{4}}|\d\d){_END}",
        rf"{_WEEKDAY}{_NAME}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}}){_END}",
        rf"{_WEEKDAY}{_NAME}\s+(?P<day>\d{{1,2}})\s+{_CLOCK}(?:\s+{_ZONE})?\s+(?P<year>\d{{4}})",
    )
)


_CLOCK_ALONE = re.compile(r"'\d{1,2}:\d\d(?!.*\d{4})")


class NotVectorisableError(Exception):
    """Only reading row by row is exact for these values; never raised outside the readers."""


class Times:
    """Parses the times of one dump, and counts values that are not times (`failures`).

    format: the form of texts for `datetime.strptime`; texts of another form are then not times. decide: a weak
    reference to a function that says whether `day` or `month` comes first, called at the first date that may be either.
    survey: collects such dates instead.
    """

    def __init__(self, format: str | None = None, survey: DateOrder | None = None) -> None:
        self.format = format
        self.order: str | None = None
        self.decide: Callable[[], Callable[[], str] | None] | None = None
        self._survey = survey
        self.clear()

    def clear(self) -> None:
        """Restart the counts."""
        self.failures = 0
        self._example, self._place = "", ""

    def fail(self, written: object) -> None:
        """Count a value that is not a time."""
        self.failures += 1
        self._example = self._example or repr(written)[:60]

    def place(self, file: str, line: int) -> None:
        """Called after each row: remembers the place of the first row with a value that is not a time."""
        if self.failures and not self._place:
            self._place = f"{file} line {line:,}"

    def notes(self) -> list[str]:
        """How many values are not times and what became of them, in at most one sentence."""
        if not self.failures:
            return []
        what = (
            "value is no time and became null"
            if self.failures == 1
            else "values are no times and became null"
        )
        way_out = "--time-format says how times are written"
        if _CLOCK_ALONE.match(self._example):
            way_out = "a time of the day needs a date: --map time=DATE+TIME joins two columns"
        return [
            f"{self.failures:,} {what}, such as {self._example} ({self._place}); their text is in the metadata, "
            f"and {way_out}"
        ]

    def parse(self, value: object) -> int | None:
        """Microseconds since 1970 UTC of one value of a dump; None if it is not a time."""
        if isinstance(value, str):
            return self._text(value.strip())
        if isinstance(value, date):
            return _micros(
                value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        # Compared before conversion: a JSON integer may be larger than any float. NaN is in no range.
        compact = _compact(f"{value:.0f}") if 1e7 < value < 1e14 and value == int(value) else None
        return _since_1970(value) if compact is None else compact

    def parse_column(self, values: pa.Array) -> pa.Array:
        """`parse` for a column (strings, numbers, timestamps or dates), as timestamp('us').

        Raises NotVectorisableError if a value is neither a time nor an empty string, so that the caller can store it as
        written.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = values.type
        if pa.types.is_null(kind):
            return values.cast(pa.timestamp("us"))
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return _from_timestamps(values)
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return _from_numbers(values)
        if pa.types.is_string(kind):
            return self._from_strings(pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values))
        raise NotVectorisableError

    def _from_strings(self, values: pa.Array) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        zulu = pc.ends_with(values, "Z")
        bare = pc.utf8_slice_codeunits(values, 0, -1) if pc.all(zulu).as_py() else values
        length = pc.min_max(pc.binary_length(bare)).as_py()
        # Arrow accepts year 0, Python does not.
        plain = length["min"] == length["max"] in _PLAIN_LENGTHS and not self.format
        if plain and not pc.any(pc.starts_with(bare, "0000")).as_py():
            with suppress(pa.ArrowInvalid):
                return bare.cast(pa.timestamp("us"))
        parsed = [None if value is None else self.parse(value) for value in values.to_pylist()]
        times = pa.array(parsed, pa.int64()).cast(pa.timestamp("us"))
        if times.null_count != values.null_count and self._survey is None:
            raise NotVectorisableError
        return times

    def _text(self, text: str) -> int | None:
        with suppress(ValueError):
            if self.format:
                return _micros(datetime.strptime(text, self.format))
            if _NUMBER.fullmatch(text):
                compact = _compact(text)
                return compact if compact is not None else _since_1970(float(text))
            return _micros(datetime.fromisoformat(text))
        if self.format or not text[:1].isalnum():
            return None
        match = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
        if match is not None:
            with suppress(ValueError, OverflowError):
                return self._matched(match, text)
        return None

    def _matched(self, match: re.Match[str], text: str) -> int | None:
        parts = match.groupdict()
        year = int(parts["year"])
        if len(parts["year"]) == 2:
            year += 2000 if year < 69 else 1900
        if "first" in parts:
            first, second = int(parts["first"]), int(parts["second_number"])
            written = text[: match.end("year")]
            if self._survey is not None:
                self._survey.add(first, second, year, written)
                return None
            order = "day" if parts["sign"] == "." else self._order()
            month, day = (second, first) if order == "day" else (first, second)
        else:
            month = _MONTHS.index(parts["name"].lower()) + 1 if "name" in parts else int(parts["month"])
            day = int(parts["day"])
        hour = int(parts["hour"] or 0)
        if parts["half"]:
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + (12 if parts["half"].lower() == "p" else 0)
        micros = int(f"{parts['fraction'] or '':0<6.6}")
        moment = datetime(
            year, month, day, hour, int(parts["minute"] or 0), int(parts["second"] or 0), micros
        )
        return _micros(moment.replace(tzinfo=_zone(parts["zone"])))

    def _order(self) -> str:
        if self.order is None:
            decide = self.decide() if self.decide else None
            self.order = decide() if decide else "day"
        return self.order


def checked_format(format: str | None) -> str | None:
    """The value of `--time-format`; DumpError if it is none."""
    if format is None:
        return None
    moment = datetime(2003, 4, 5, 13, 7, 9)
    try:
        parsed = datetime.strptime(moment.strftime(format), format)
    except (ValueError, re.error) as error:
        raise DumpError(f"--time-format {format}: {error}; write for example '%d.%m.%Y %H:%M'") from None
    if parsed.date() != moment.date():
        raise DumpError(
            f"--time-format {format}: has no day, month and year; write for example '%d.%m.%Y %H:%M'"
        )
    return format


def _zone(written: str | None) -> timezone:
    """The zone of this name or offset, UTC if there is none; ValueError for an unknown name."""
    if written is None:
        return UTC
    if written[0] in "+-":
        hours, minutes = int(written[1:3]), int(written[-2:])
        return timezone((-1 if written[0] == "-" else 1) * timedelta(hours=hours, minutes=minutes))
    if written.lower() not in _ZONES:
        raise ValueError(written)
    return timezone(timedelta(hours=_ZONES[written.lower()]))


def _compact(digits: str) -> int | None:
    if len(digits) not in _COMPACT or not digits.startswith(("19", "20")) or not digits.isdigit():
        return None
    with suppress(ValueError):
        return _micros(datetime.strptime(digits, _COMPACT[len(digits)]))
    return None


def _since_1970(value: float) -> int | None:
    """Microseconds of seconds since 1970, or of the finer unit with which the number is in the years 1 to 9999."""
    if _EARLIEST_S <= value <= _LATEST_S:
        return round(float(value) * 1e6)
    for exponent in (3, 6):
        if _LATEST_S < value <= _LATEST_S * 10**exponent:
            micros: float = value * 10 ** (6 - exponent)
            return round(micros)
    return None


def _micros(moment: datetime) -> int | None:
    """None outside of the years 1 to 9999, where an offset may lead."""
    micros: int = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
    return micros if _in_years(micros) else None


def _in_years(micros: int) -> bool:
    return _EARLIEST_S * 1_000_000 <= micros < (_LATEST_S + 1) * 1_000_000


def _from_timestamps(values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    # Timestamps with a zone are stored in UTC, so removing the zone leaves UTC.
    zone = getattr(values.type, "tz", None)
    finer = getattr(values.type, "unit", None) == "ns"  # casting ns truncates; casting others may overflow
    try:
        times = values.cast(pa.timestamp("us", zone), safe=not finer).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        raise NotVectorisableError from None
    ends = pc.min_max(times.cast(pa.int64())).as_py().values()
    if not all(_in_years(micros) for micros in ends if micros is not None):
        raise NotVectorisableError
    return times


def _from_numbers(values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = values.cast(pa.float64(), safe=False)
    ends = cast("dict[str, float | None]", pc.min_max(numbers).as_py())
    low, high = ends["min"], ends["max"]
    if low is None or high is None:
        return pa.nulls(len(values), pa.timestamp("us"))
    scale = 1e6
    if low > _LATEST_S and high < 9e12:  # milliseconds, whose microseconds float64 holds exactly
        scale = 1e3
    elif not (low >= _EARLIEST_S and high <= _LATEST_S):
        raise NotVectorisableError
    dates = pc.or_(
        pc.and_(pc.greater_equal(numbers, 19_000_101.0), pc.less_equal(numbers, 21_001_231.0)),
        pc.and_(pc.greater_equal(numbers, 190_001_010_000.0), pc.less_equal(numbers, 210_012_312_359.0)),
    )
    if pc.any(dates).as_py() or pc.any(pc.is_nan(numbers)).as_py():
        raise NotVectorisableError
    micros = pc.round(pc.multiply(numbers, scale), round_mode="half_to_even")
    return micros.cast(pa.int64()).cast(pa.timestamp("us"))
