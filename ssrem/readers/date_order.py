"""Whether the day or the month comes first in the numeric dates of a dump."""

from __future__ import annotations

from ssrem.errors import DumpError


class DateOrder:
    """Decides whether the day or the month comes first in dates such as 03/04/2020, from the first dates of a dump.

    A number above 12 is a day, and messages are in chronological order.
    """

    def __init__(self) -> None:
        self._first: str | None = None
        self._last: dict[str, tuple[int, int, int]] = {}
        self._above: dict[str, str] = {}  # order → a date that is valid only in this order
        self._backwards = {"day": 0, "month": 0}
        self._differ = self._dotted = False

    def add(self, first: int, second: int, year: int, written: str) -> None:
        """Count a date with these numbers. written: its text."""
        if first > 12 and second > 12:
            return  # not a date
        if self._first is None:
            self._first, self._dotted = written, "." in written
        self._dotted = self._dotted and "." in written
        self._differ |= first != second
        for order, number in (("day", first), ("month", second)):
            if number > 12:
                self._above.setdefault(order, written)
        for order, when in (("day", (year, second, first)), ("month", (year, first, second))):
            self._backwards[order] += order in self._last and when < self._last[order]
            self._last[order] = when

    def decision(self, what: str, way_out: str, chosen: str | None = None) -> tuple[str, str | None]:
        """`day` or `month`, and the reason if the user should check it.

        what, way_out: the dump, and what the user can do, for messages. chosen: the order that the user states.
        DumpError if the dates contradict it or each other, or if they do not decide.
        """
        if len(self._above) == 2:
            raise DumpError(
                f"{what}: {self._above['day']} has the day first, but {self._above['month']} the month; "
                f"make one dump of each form, or {way_out}"
            )
        if chosen or not self._differ:
            if against := next((date for order, date in self._above.items() if order != chosen), None):
                raise DumpError(f"{what}: {against} is not {chosen} first; leave out --map")
            return chosen or "day", None
        for order, decisive in self._above.items():
            return order, f"dates are read with the {order} first, because of {decisive}"
        if self._dotted:
            return "day", f"dates with dots, such as {self._first}, are read with the day first"
        for order, other in (("day", "month"), ("month", "day")):
            if not self._backwards[order] and self._backwards[other]:
                why = f"with the {other} first time would run backwards"
                return order, f"dates are read with the {order} first, because {why}"
        raise DumpError(
            f"{what}: dates such as {self._first} may have the day or the month first, and none of them decides; "
            f"{way_out}"
        )
