"""Parses times in dumps into microseconds since 1970-01-01 UTC.

Forms: seconds, milli- or microseconds since 1970, distinguished by their size; ISO 8601, also without dashes; numeric
dates such as 31.12.2018 or 12/31/2018; dates with English names of months as in mails (RFC 2822) and tweets. Dates
may have a time of the day, AM or PM, and a zone (UTC by default). Years 1 to 9999.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from ssrem.errors import DumpError

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST_S, _LATEST_S = -62_135_596_800, 253_402_300_799
_LONGEST = 100
"""Most characters that a time may have."""
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_COMPACT = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
"""Number of digits → form of a number that is read as a date, not as seconds, if it is valid in 1900 to 2099."""

_NOISE = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b|\b(?:gmt|utc)(?=[+-]\d)|(?<=[+-]\d{4}) \(.*\)$|\bat\b")
_BLANKS = re.compile(r"[\s,()]+|(?<=\d)(?=[ap]m\b)")
_NAMES = dict.fromkeys("jan feb mar apr may jun jul aug sep oct nov dec".split(), "%b")  # noqa: SIM905
_NAMES |= dict.fromkeys("mon tue wed thu fri sat sun".split(), "%a")  # noqa: SIM905
_ZONES = dict.fromkeys(("z", "ut", "utc", "gmt"), "+0000") | {"edt": "-0400", "est": "-0500", "cdt": "-0500"}
_ZONES |= {"cst": "-0600", "mdt": "-0600", "mst": "-0700", "pdt": "-0700", "pst": "-0800"}
"""The names of zones that RFC 2822 defines → offset from UTC."""
_NUMERIC = re.compile(r"(\d\d?|\d{4})([./-])(\d\d?)\2(\d{4}|\d\d?)")
_FORMS = {
    r"\d\d?:\d\d": "%H:%M",
    r"\d\d?:\d\d:\d\d": "%H:%M:%S",
    r"\d\d?:\d\d:\d\d\.\d{1,6}": "%H:%M:%S.%f",
    r"\d\d?:\d\d:\d\d[+-]\d\d:?\d\d": "%H:%M:%S%z",
    r"[+-]\d\d:?\d\d": "%z",
    r"[ap]m": "%p",
    r"\d{4}": "%Y",
    r"\d\d?": "%d",
    r"\d\d?-[a-z]{3}-\d{4}": "%d-%b-%Y",
}
"""Pattern of words of a date, in lower case, other than names and numeric dates → directive of `datetime.strptime`."""
_WORD = re.compile("|".join(f"({word})" for word in _FORMS))
_DIRECTIVES = (*_FORMS.values(),)


class NotVectorisableError(Exception):
    """Raised if only reading row by row is exact for these values; caught within the readers."""


class _UndecidedError(DumpError):
    """Raised if nothing decides whether dates have the day or the month first."""


Date = tuple[int, int, int, str]
"""The three numbers of a date as written, the year last, and its text."""


def day_or_month(
    dates: Sequence[Date], what: str, way_out: str, chosen: str | None = None
) -> tuple[str, str | None]:
    """Whether `day` or `month` comes first in dates such as 03/04/2020, and the reason if the user should check it.

    The rules: a number above 12 is a day, dates with dots begin with the day, and messages are in chronological order.
    what, way_out: for error messages, the name of the dump and what the user can do. chosen: the order that the user
    states. DumpError if the dates contradict it or each other, or if they do not decide.
    """
    dates = [date for date in dates if min(date[:2]) <= 12]
    above: dict[str, str] = {}  # order → a date that is valid only in this order
    for first, second, _, written in dates:
        if max(first, second) > 12:
            above.setdefault("day" if first > 12 else "month", written)
    if len(above) == 2:
        raise DumpError(
            f"{what}: {above['day']} has the day first, but {above['month']} the month; make one dump of each form, or "
            f"{way_out}"
        )
    if chosen or all(first == second for first, second, *_ in dates):
        if against := next((written for order, written in above.items() if order != chosen), None):
            raise DumpError(f"{what}: {against} is not {chosen} first; leave out --map")
        return chosen or "day", None
    for order, decisive in above.items():
        return order, f"dates are read with the {order} first, because of {decisive}"
    example = next(written for first, second, _, written in dates if first != second)
    if all("." in written for *_, written in dates):
        return "day", f"dates with dots, such as {example}, are read with the day first"
    days = [(year, second, first) for first, second, year, _ in dates]
    months = [(year, first, second) for first, second, year, _ in dates]
    if (days == sorted(days)) != (months == sorted(months)):
        order, other = ("day", "month") if days == sorted(days) else ("month", "day")
        why = f"with the {other} first time would run backwards"
        return order, f"dates are read with the {order} first, because {why}"
    raise _UndecidedError(
        f"{what}: dates such as {example} may have the day or the month first, and none of them decides; {way_out}"
    )


class Times:
    """Parses the times of one dump, and counts values that are not times (`failures`).

    format: how texts are written, for `datetime.strptime`; texts of another form are then not times. order: `day` or
    `month`, whichever dates begin with, or "" until that is decided. dump: name of the dump, for the error that nothing
    decides it; without a name, undecided dates begin with the day.
    """

    def __init__(self, format: str | None = None) -> None:
        self.format = format
        self.dump, self.order, self._why = "", "", ""
        self.clear()

    def clear(self) -> None:
        """Set the count of failures to zero."""
        self.failures = 0
        self._example, self._place = "", ""

    def fail(self, written: object) -> None:
        """Count a value that is not a time."""
        self.failures += 1
        self._example = self._example or repr(written)[:60]

    def place(self, file: str, line: int) -> None:
        """Remember the place of the first row with a value that is not a time; called after each row."""
        if self.failures and not self._place:
            self._place = f"{file} line {line:,}"

    def notes(self) -> list[str]:
        """Why day or month is first, and how many values are not times, in a sentence each."""
        notes = [self._why] if self._why else []
        if self.failures:
            what = "value is no time" if self.failures == 1 else "values are no times"
            way_out = "--time-format says how times are written"
            if re.match(r"'\d\d?:\d\d(?!.*\d{4})", self._example):
                way_out = "a time of the day needs a date: --map time=DATE+TIME joins two columns"
            notes.append(
                f"{self.failures:,} {what} and became null, such as {self._example} ({self._place}); their text is in "
                f"the metadata, and {way_out}"
            )
        return notes

    def decide(self, values: Iterable[object], *, later: bool = False) -> None:
        """Decide from the first times of a dump whether day or month is first. DumpError if they contradict each other,
        or if they do not decide, unless `later` times may."""
        texts = [value for value in values if isinstance(value, str)] if not self.format else []
        found = (_NUMERIC.fullmatch(word) for text in texts for word in _BLANKS.split(text.strip()))
        dates = [
            (int(date[1]), int(date[3]), int(date[4]), date[0])
            for date in found
            if date and len(date[1]) < 3 and date[2] != "."
        ]
        ways = "'%d/%m/%Y %H:%M' or '%m/%d/%Y %H:%M'"
        way_out = f"say which with --time-format (in Python time_format=…), such as {ways}"
        with suppress(*([_UndecidedError] if later else [])):
            order, why = day_or_month(dates, self.dump, way_out)
            self.order, self._why = (order, why) if why else ("", "")

    def parse(self, value: object) -> int | None:
        """Microseconds since 1970 UTC of one value of a dump; None if it is not a time."""
        if isinstance(value, str):
            with suppress(KeyError, ValueError, OverflowError, re.error):
                return self._text(value.strip())
        elif isinstance(value, date):
            midnight = datetime(value.year, value.month, value.day)
            return _micros(value if isinstance(value, datetime) else midnight)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            return _number(value)
        return None

    def parse_column(self, values: pa.Array) -> pa.Array:
        """`parse` for a column (strings, numbers, timestamps or dates), as timestamp('us').

        Raises NotVectorisableError if a value is neither a time nor an empty string, so that the caller can store it as
        written.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = values.type
        text, number = pa.types.is_string(kind), pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if text:
            values = pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            if number:
                numbers = values.cast(pa.float64(), safe=False)
                low, high = pc.min_max(numbers).as_py().values()
                seconds = low is None or (low > 22e6 and high < 19e10)  # none can be a date without dashes
                if seconds or (low > _LATEST_S and high < 9e12):  # microseconds that float64 holds exactly
                    micros = pc.multiply(numbers, 1e6 if seconds else 1e3)
                    whole = pc.round(micros, round_mode="half_to_even").cast(pa.int64())
                    return whole.cast(pa.timestamp("us"))
            elif not (text and self.format):
                zulu = text and pc.all(pc.ends_with(values, "Z")).as_py()
                moments = pc.utf8_slice_codeunits(values, 0, -1) if zulu else values
                # Timestamps with a zone are stored in UTC, so removing the zone leaves UTC; casting ns truncates.
                utc = pa.timestamp("us", getattr(kind, "tz", None))
                times = moments.cast(utc, safe=getattr(kind, "unit", None) != "ns").cast(pa.timestamp("us"))
                ends = pc.min_max(times.cast(pa.int64())).as_py().values()
                if not all(end is None or _EARLIEST_S <= end / 1e6 < _LATEST_S + 1 for end in ends):
                    raise NotVectorisableError
                return times
        if not (text or number):
            raise NotVectorisableError
        try:
            parsed = list(map(self.parse, values.to_pylist()))
        except _UndecidedError:
            self.decide(values.to_pylist())
            parsed = list(map(self.parse, values.to_pylist()))
        times = pa.array(parsed, pa.int64()).cast(pa.timestamp("us"))
        if times.null_count != values.null_count:
            raise NotVectorisableError
        return times

    def _text(self, text: str) -> int | None:
        """Microseconds since 1970 UTC of a text; None, KeyError, ValueError or re.error if it is not a time."""
        if self.format:
            return _micros(datetime.strptime(text, self.format))
        if len(text) > _LONGEST:
            return None
        if _NUMBER.fullmatch(text):
            return _number(float(text))
        with suppress(ValueError):
            return _micros(datetime.fromisoformat(text.removesuffix("Z")))
        text = _NOISE.sub("", text.lower().replace("a.m.", "am").replace("p.m.", "pm"))
        words = [
            _ZONES.get(word, word[:3] if word.isalpha() else word) for word in _BLANKS.split(text) if word
        ]
        form = " ".join(map(self._directive, words))
        if "%d" not in form or "%y" not in form.lower():
            return None
        form = form.replace("%H", "%I") if "%p" in form else form
        return _micros(datetime.strptime(" ".join(words), form))

    def _directive(self, word: str) -> str:
        """The directive with which `datetime.strptime` reads a word of a date; KeyError if there is none."""
        if match := _WORD.fullmatch(word):
            return _DIRECTIVES[match.lastindex - 1] if match.lastindex else ""
        if date := _NUMERIC.fullmatch(word):
            first, sign, _, year = date.groups()
            if len(first) == 4:
                return sign.join(("%Y", "%m", "%d"))
            if sign != "." and not self.order and self.dump:
                self.decide([word])
            day_first = sign == "." or self.order != "month"
            return sign.join(
                (*(("%d", "%m") if day_first else ("%m", "%d")), "%Y" if len(year) == 4 else "%y")
            )
        return _NAMES[word]


def checked_format(format: str | None) -> str | None:
    """The value of `--time-format`; DumpError if it is not a form that has day, month and year."""
    if format is None:
        return None
    moment = datetime(2003, 4, 5, 13, 7, 9)
    try:
        if datetime.strptime(moment.strftime(format), format).date() != moment.date():
            raise ValueError("it has no day, month and year")
    except (ValueError, re.error) as error:
        raise DumpError(f"--time-format {format}: {error}; write for example '%d.%m.%Y %H:%M'") from None
    return format


def _number(value: float) -> int | None:
    """Microseconds since 1970 UTC of a number, read as a date without dashes, else as seconds since 1970, or as milli-
    or microseconds if only these are in the years 1 to 9999; None if it is none of these."""
    # Compared before conversion: a JSON integer may be larger than any float. NaN is in no range.
    digits = f"{value:.0f}" if 1e7 < value < 1e14 and value == int(value) else ""
    if len(digits) in _COMPACT and digits.startswith(("19", "20")):
        with suppress(ValueError):
            return _micros(datetime.strptime(digits, _COMPACT[len(digits)]))
    if _EARLIEST_S <= value <= _LATEST_S:
        return round(float(value) * 1e6)
    for exponent in (3, 6):
        if _LATEST_S < value <= _LATEST_S * 10**exponent:
            micros: float = value * 10 ** (6 - exponent)
            return round(micros)
    return None


def _micros(moment: datetime) -> int | None:
    """Microseconds since 1970 UTC; None outside of the years 1 to 9999, which a zone's offset may leave."""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    micros = (moment - _EPOCH) // timedelta(microseconds=1)
    return micros if _EARLIEST_S <= micros / 1e6 < _LATEST_S + 1 else None
