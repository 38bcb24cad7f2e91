"""Times: every form that dumps write, and whole columns the same as single values."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ssrem.errors import DumpError
from ssrem.readers.times import NotVectorisableError, Times, checked_format, day_or_month
from support.random_examples import TIMES

parse_time, parse_times = Times().parse, Times().parse_column


def _micros(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp()) * 1_000_000  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    "written",
    [
        "2018-05-02T19:38:15Z", "2018-05-02T19:38:15", "2018-05-02 19:38:15", " 2018-05-02 19:38:15 ",
        "2018-05-02T21:38:15+02:00", "2018-05-02T14:38:15-0500", "2018-05-02T19:38:15.000000Z",
        1525289895, 1525289895.0, "1525289895", "1525289895.0", 1525289895000, "1525289895000", 1525289895000000,
        "20180502193815", 20180502193815, "2018-05-02 19:38:15 UTC", "2018-05-02 21:38:15 +0200",
        "2018/05/02 19:38:15", "02.05.2018 19:38:15", "2.5.2018, 19:38:15", "05/02/18, 7:38:15 PM",
        "5/2/2018 07:38:15 pm", "Wed May 02 19:38:15 +0000 2018", "Wed May  2 19:38:15 2018",
        "Wed, 02 May 2018 21:38:15 +0200", "Wed, 2 May 2018 19:38:15 GMT", "2 May 2018 12:38:15 PDT",
        "May 2, 2018 at 7:38:15 PM", "Wednesday, May 2nd, 2018 19:38:15 (UTC)",
        "Wed May 02 2018 21:38:15 GMT+0200 (Central European Summer Time)",
        "2018.05.02 7:38:15 p.m.", "02-May-2018 19:38:15", datetime(2018, 5, 2, 19, 38, 15),
        datetime(2018, 5, 2, 21, 38, 15, tzinfo=timezone(timedelta(hours=2))),
    ],
)  # fmt: skip
def test_all_forms_mean_the_same_moment(written: object) -> None:
    times = Times()
    times.order = "month"
    assert times.parse(written) == _micros(2018, 5, 2, 19, 38, 15)


def test_a_day_is_its_midnight_and_fractions_are_kept() -> None:
    assert parse_time(date(2018, 5, 2)) == parse_time("2018-05-02") == _micros(2018, 5, 2)
    assert parse_time("2018-05-02T00:00:00.25") == _micros(2018, 5, 2) + 250_000
    assert parse_time(-1.5) == -1_500_000


@pytest.mark.parametrize(
    "written",
    [
        "yesterday", "", "00:16:16,059", "2018-13-01", "31.02.2018", "13:45 PM", "May 2018", "2 May 2018 10:00 XYZ",
        "2 May 2018 10:00 " + "+0000 (" * 100_000, True, [1], 1e300, 10**400, float("nan"),
    ],
)  # fmt: skip
def test_what_is_no_time_is_none(written: object) -> None:
    assert parse_time(written) is None


@pytest.mark.parametrize(
    "column",
    [
        ["2018-05-02T19:38:15Z", None, "1999-01-01T00:00:00Z"], ["2018-05-02 19:38:15", "2018-05-02T19:38:16"],
        ["2018-05-02Z", "2018-05-03Z"], ["2018-05-02T19:38:15.123", None], [None, None], [20180502],
        ["2018-05-02T19:38:15Z", "2018-05-02T19:38:15+02:00", "1525289895"], ["1525289895", "0", "-3.25"],
        ["2018-05-02T10:11+01", "2018-05-02T10:11+02"], [0, 1525289895, -62135596800], [0.1, 1525289895.123457],
        [1525289895000, 1525289895001], [1525289895000.5, None], [1, 10**15],
        ["1525289895000", "Wed May 02 19:38:15 +0000 2018", "02.05.2018 19:38"],
    ],
)  # fmt: skip
def test_columns_read_as_their_values_do(column: list[object]) -> None:
    times = parse_times(pa.array(column)).cast(pa.int64()).to_pylist()
    assert times == [None if value is None else parse_time(value) for value in column]


@pytest.mark.parametrize(
    "column", [["2018-05-02T19:38:15Z", "soon"], ["0000-01-01 00:00:00"], [1, 1e300], [True]]
)
def test_a_column_with_something_else_is_left_to_the_exact_path(column: list[object]) -> None:
    with pytest.raises(NotVectorisableError):
        parse_times(pa.array(column))


def test_timestamp_columns_become_naive_utc_microseconds() -> None:
    moment = datetime(2018, 5, 2, 19, 38, 15, 123456)
    for unit, zone in (("us", None), ("ns", None), ("us", "UTC"), ("us", "+03:00")):
        stored = pa.array([moment], pa.timestamp("us")).cast(pa.timestamp(unit, zone))
        assert parse_times(stored).to_pylist() == [moment]
        assert parse_times(stored).type == pa.timestamp("us")


@settings(max_examples=50 * TIMES)
@given(
    st.lists(st.datetimes() | st.none(), min_size=1), st.sampled_from(["T", " "]), st.sampled_from(["", "Z"])
)
def test_any_moment_survives(moments: list[datetime | None], between: str, zone: str) -> None:
    written = [None if moment is None else moment.isoformat(between) + zone for moment in moments]
    assert parse_times(pa.array(written, pa.string())).to_pylist() == moments
    for moment, text in zip(moments, written, strict=True):
        if moment is not None:
            assert parse_time(text) == (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)


_seconds = st.floats(allow_nan=False, min_value=-6e10, max_value=2e11) | st.integers(-(10**10), 10**11)


@settings(max_examples=50 * TIMES)
@given(st.lists(_seconds, min_size=1))
def test_numbers_round_alike(seconds: list[float]) -> None:
    assume(not any(19e6 < s < 22e6 or 19e10 < s < 22e10 for s in seconds))  # dates without dashes
    whole = parse_times(pa.array([float(s) for s in seconds])).cast(pa.int64()).to_pylist()
    assert whole == [parse_time(s) for s in seconds]


def _order(dates: list[tuple[int, int, int]], chosen: str | None = None) -> tuple[str, str | None]:
    written = [(first, second, year, f"{first}/{second}/{year}") for first, second, year in dates]
    return day_or_month(written, "dump.csv", "give --time-format", chosen)


def test_all_dates_decide_whether_the_day_is_first() -> None:
    note = "dates are read with the day first, because"
    assert _order([(3, 4, 2020), (13, 4, 2020)]) == ("day", f"{note} of 13/4/2020")
    assert _order([(4, 30, 2020), (5, 1, 2020)])[0] == "month"
    backwards = f"{note} with the month first time would run backwards"
    assert _order([(11, 1, 2020), (1, 2, 2020)]) == ("day", backwards)
    assert _order([(5, 5, 2020)]) == ("day", None)


@pytest.mark.parametrize(
    ("dates", "says"),
    [
        ([(3, 4, 2020), (3, 5, 2020)], "dates such as 3/4/2020 may have the day or the month first"),
        ([(13, 4, 2020), (4, 13, 2020)], "13/4/2020 has the day first, but 4/13/2020 the month"),
    ],
)
def test_dates_that_decide_nothing_are_refused(dates: list[tuple[int, int, int]], says: str) -> None:
    with pytest.raises(DumpError, match=says):
        _order(dates)


def test_a_format_reads_texts_alone() -> None:
    times = Times(checked_format("%d.%m.%y %Hh%M"))
    assert times.parse("02.05.18 19h38") == _micros(2018, 5, 2, 19, 38)
    assert times.parse("2018-05-02T19:38:15Z") is None
    assert times.parse(1525289895) == _micros(2018, 5, 2, 19, 38, 15)


@pytest.mark.parametrize("format", ["%d.%m.", "%H:%M", "%Q", "%d %d", "", "%"])
def test_what_is_no_format_of_times(format: str) -> None:
    with pytest.raises(DumpError, match=r"write for example '%d\.%m\.%Y %H:%M'"):
        checked_format(format)
