"""A chat that WhatsApp exported: `_chat.txt`, or `WhatsApp Chat with NAME.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from ssrem.errors import DumpError
from ssrem.readers.base import Reader, Record, malformed, problem
from ssrem.readers.fields import FieldNames
from ssrem.readers.files.streams import LONGEST_ROW, DumpFile, is_utf8, too_long
from ssrem.readers.people import DELETED
from ssrem.readers.times import day_or_month

_INVISIBLE = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_HEADER = re.compile(
    r"""(?P<bracket>\[)?
    (?P<first>\d{1,4})(?P<sign>[./-])\s?(?P<second>\d{1,2})(?P=sign)\s?(?P<third>\d{1,4})\.?[,،]?\s
    (?:(?:klo|kl\.|um|at|às|à)\s)?(?:(?P<before>오전|오후|午前|午後|凌晨|清晨|早上|上午|中午|下午|傍晚|晚上)\s?)?
    (?P<hour>\d{1,2})[:.](?P<minute>\d\d)(?:[:.](?P<seconds>\d\d))?
    (?:\s?(?P<half>[AaPp](?=\.?\s?[Mm])|[صم])(?:\.?\s?[Mm]\.?)?)?
    (?(bracket)\]|\s[-–])(?:\s(?P<rest>.*))?""",
    re.VERBOSE | re.DOTALL,
)
"""`[31.12.20, 23:59:00] …` as iOS writes it, and `12/31/20, 11:59 PM - …` as Android does."""
_DATE = re.compile(r".{,60}?(?:\]|\s[-–])")
"""The start of such a line, in which Arabic has marks of direction."""
_KOREAN = re.compile(r"\A(\d{4})년 (\d{1,2})월 (\d{1,2})일 (\S+ \d{1,2}:\d\d)(?:,| -)")
"""`2023년 12월 25일 오후 9:05, …`"""
_SPOKEN = re.compile(r"([^\n]*?):(?:\s(.*)|)", re.DOTALL)
"""Name and text; a notice has no colon before a blank."""
_PLACEHOLDER = re.compile(
    r"<[^<>]*>|(?:IMG|VID|PTT|AUD|STK|DOC)-\d{8}-WA\d+\.\w+ \([^()]*\)|.* \(file attached\)"
)
_WITHOUT_TEXT = re.compile(r"null|POLL:\n.*\nOPTION: .*", re.DOTALL)
"""What Android writes in place of a message that it cannot export, and of a poll."""
_ATTACHED = re.compile(r"<attached: [^<>]*>")
_NOTICE = re.compile(
    r"[\"“„«]|end-to-end encrypted| created (?:this )?group| changed (?:the|this|their|your) | added | removed | left$"
    r"| joined using | security code | now an admin",
)
_EDITED = re.compile(
    r" <[^<>]*(?:edited|bearbeitet|editad[ao]|editó|modifié|modificato|bewerkt|изменено|düzenlendi)[^<>]*>$"
)
_AFTERNOON = frozenset(("P", "p", "م", "오후", "午後", "中午", "下午", "傍晚", "晚上"))
_LIKE_HEADER = re.compile(rb"\W*\d{1,4}[./-]\s?\d{1,2}[./-]\s?\d{1,4}\W.*: ")
"""The start of a line that may begin a message, with a date in a form that is not read."""
_Date = tuple[str, ...]
"""The three numbers of a date as written, and the sign between them."""


class WhatsappReader(Reader):
    """One conversation, named after the file; lines without a date belong to the message before them.

    Speakers are names, or phone numbers, as the phone shows them. Notices and `<Media omitted>` are left out. Whether
    day or month comes first is decided by all dates of the file, see `_order`. `line` is that of the date.
    """

    format: ClassVar[str] = "whatsapp"
    describes: ClassVar[str] = "the text file of a chat that WhatsApp exported"
    takes_mapping: ClassVar[bool] = True
    not_people: ClassVar = ("WhatsApp", "Meta AI")

    def __init__(
        self,
        files: Sequence[DumpFile],
        *,
        mapping: Mapping[str, tuple[str, ...]] | None = None,
        batch_rows: int = 65_536,
    ) -> None:
        super().__init__(files, mapping=mapping, batch_rows=batch_rows)
        self.layout = FieldNames()  # the mapping is the order of dates and names no columns

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        lines = file.head.decode("utf-8", "replace").split("\n")
        first = next((line for line in lines if line.strip()), "")
        headers = [header for line in lines if (header := _header(line))]
        return _header(first) is not None and any(
            ": " in rest and not rest.startswith("<")  # <nick> is IRC's
            for header in headers
            if (rest := header["rest"] or "")
        )

    def check(self, file: DumpFile) -> None:
        if self.layout.times.format:
            raise DumpError(
                "--time-format does not apply to whatsapp; say --map time=day-first or time=month-first, if need be"
            )
        self._order(file)  # DumpError unless the dates decide

    def records(self, file: DumpFile) -> Iterator[Record]:
        order = self.layout.times.order = self._order(file)
        number, size, held, alike = 0, 0, list[bytes](), list[int]()
        for ordinal, line in file.lines():
            opens = _header(line.decode("utf-8", "replace")) is not None
            if held and not opens:
                alike += [ordinal] if _LIKE_HEADER.match(line) else []
                held.append(line)
                size += len(line)
                if size > LONGEST_ROW:
                    raise too_long(file.path, f"the message of line {number:,}")
                continue
            if held:
                yield from self._message(file.name, number, b"\n".join(held), order)
            if opens:
                number, size, held = ordinal, len(line), [line]
            elif line.strip():
                yield malformed(file.name, ordinal, line)
        if held:
            yield from self._message(file.name, number, b"\n".join(held), order)
        if alike:
            self.notes.append(
                f"{file.path}: lines that begin with a date, but not as a message does, belong to the message before "
                f"them: {len(alike):,}; the first is line {alike[0]:,}"
            )

    def _message(self, file: str, number: int, row: bytes, order: str) -> Iterator[Record]:
        id = file.removesuffix(".txt")
        header = _header(row.decode("utf-8", "replace"))
        if header is None or not is_utf8(row):
            yield problem("undecodable", file, number, row, conversation_id=id)
            return
        spoken = _SPOKEN.fullmatch(header["rest"] or "")
        name, text = spoken.groups("") if spoken else ("", "")
        speaker = _INVISIBLE.sub("", name).strip().removeprefix("~").strip()
        bare = _INVISIBLE.sub("", text).replace("\r", "")
        # iOS marks its own texts.
        marked = text.startswith("\u200e") or _WITHOUT_TEXT.fullmatch(bare.strip()) is not None
        first, newline, rest = bare.partition("\n")
        placeholder = _PLACEHOLDER.fullmatch(first.strip()) is not None
        caption = rest if placeholder else "" if marked else _ATTACHED.sub("", first + newline + rest)
        body = _EDITED.sub("", caption.strip())
        if marked and first.strip().rstrip(".").lower() in DELETED:
            body = first.strip()
        if not spoken or _NOTICE.search(name):
            self.left_out["notices"] += 1
        elif not body and (marked or placeholder):
            self.left_out["media or notices without text"] += 1
        else:
            fields = {"speaker": speaker, "text": body, "time": _time(header, order)}
            yield self.message(file, number, fields, row, conversation_id=id)

    def _order(self, file: DumpFile) -> str:
        """`day` or `month`, which comes first in the dates that do not begin with the year, and a note of why.

        A number above 12 is a day; dots stand in dates that begin with the day; messages are in the order of time.
        `--map time=day-first` or `time=month-first` decides otherwise. DumpError if the dates contradict it or each
        other, or if nothing decides.
        """
        wanted = {(): None, ("day-first",): "day", ("month-first",): "month"}
        columns = self.mapping.get("time", ())
        if self.mapping.keys() - {"time"} or columns not in wanted:
            raise DumpError(
                "--map of a whatsapp chat takes time=day-first or time=month-first, and nothing else"
            )
        dates: list[tuple[int, int, int, str]] = []
        last: _Date | None = None
        for block in file.blocks():
            for line in block.decode("utf-8", "replace").split("\n"):
                header = _header(line)
                if header and len(header["first"]) < 3:
                    date = header.group("first", "second", "third", "sign")
                    if date != last:
                        dates.append((int(date[0]), int(date[1]), _year(date), _written(date)))
                        last = date
        order, why = day_or_month(
            dates,
            str(file.path),
            "say which with --map time=day-first or --map time=month-first",
            wanted[columns],
        )
        self.notes += [why] if why else []
        return order


def _header(line: str) -> re.Match[str] | None:
    """The date and the rest of a line that begins a message; None for other lines."""
    line = line.lstrip("\u200e\u200f\ufeff").rstrip("\r")
    if date := _DATE.match(line):
        line = _INVISIBLE.sub("", date[0]) + line[date.end() :]
    return _HEADER.fullmatch(_KOREAN.sub(r"\1. \2. \3. \4 -", line, count=1))


def _written(date: _Date) -> str:
    return date[3].join(date[:3])


def _numbers(date: _Date, order: str) -> tuple[int, int, int]:
    """Year, month and day."""
    first, second, third = map(int, date[:3])
    if len(date[0]) > 2:
        return first, second, third
    return (_year(date), second, first) if order == "day" else (_year(date), first, second)


def _year(date: _Date) -> int:
    """The year of a date that does not begin with it."""
    return int(date[2]) + 2000 if int(date[2]) < 100 else int(date[2])


def _time(header: re.Match[str], order: str) -> datetime | str:
    """The time of a message; as written if there is no such time."""
    date = header.group("first", "second", "third", "sign")
    hour, minute = int(header["hour"]), int(header["minute"])
    if half := header["half"] or header["before"]:
        hour = hour % 12 + (12 if half in _AFTERNOON else 0)
    try:
        return datetime(*_numbers(date, order), hour, minute, int(header["seconds"] or 0))
    except ValueError:
        return f"{_written(date)} {hour}:{minute:02}"
