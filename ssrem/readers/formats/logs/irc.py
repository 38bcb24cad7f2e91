"""Logs of IRC channels, as irssi, ZNC, HexChat, mIRC, WeeChat and the Ubuntu project write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import ClassVar, NamedTuple

from ssrem.readers.base import Reader, Record, problem
from ssrem.readers.files.streams import excerpt, files_of, foreign, head, is_utf8, text_name

_STAMP = re.compile(
    r"\[?(?:(\d{4}-\d\d-\d\d|\d\d\.\d\d\.\d{4})[T ]|([A-Z][a-z]{2} +\d{1,2}) )?"
    r"(\d{1,2}:\d\d(?::\d\d)?(?: ?[AaPp][Mm])?(?:[+-]\d\d:?\d\d)?)Z?\]?\s+"
)
_MESSAGE = re.compile(r"<[ @+%&~!]*([^\s<>/=\"]+)>\s?(.*)")
_ELEMENT = re.compile(r"<(\S+)>.*</\1>")
"""A line of XML or HTML, which is no message of a nick unless it has a time."""
_TABBED = re.compile(r"[@+%&~]?([^\s<>*=-][^\s<>]*)\t(.*)")
"""A message of WeeChat, whose columns are time, nick and text."""
_RENAME = re.compile(r"(?:\*+|-!-|===?|---?)\s+(\S+) (?:is|are) now known as (\S+)")
_NOTICE = re.compile(
    r"(?:\*{3,4}|-!-|===|-->|<--|---?|-[^\s-]\S*-|Session (?:Start|Time|Ident|Close):)(?:\s|$)"
    r"|\*\s+(?:(?:Joins|Parts|Quits|Disconnected|Now talking|Topic|Rejoined)\b"
    r"|\S+ (?:[(\[]\S*[)\]] )?(?:has (?:joined|left)(?= [#&(\[]|$)|has quit\b|sets mode|was kicked|changes topic"
    r"|(?:gives|removes) (?:channel|voice)))"
)
_ACTION = re.compile(r"\*\s+[@+%&~]?(\S+)\s+(.*)")
_DAY = re.compile(
    r"(?:--- (?:Log opened|Day changed)|\*+ BEGIN LOGGING AT|Session (?:Start|Time):)"
    r" \w{3} (\w{3} +\d\d?) (?:[\d:]+ )?(\d{4})"
)
_DATE = re.compile(r"(\d{4})[-_.]?(\d\d)[-_.]?(\d\d)(?!\d)")
_ADDRESSED = re.compile(r"([^\s:,]+)[:,](?:\s|$)")
_FORMATTING = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|[\x02\x0f\x11\x16\x1d-\x1f]")
_GUEST = re.compile(r"guest\d+", re.IGNORECASE)
_SUFFIXES = re.compile(r"(?:\.(?:log|txt|raw|irclog|weechatlog|gz|zst))+$", re.IGNORECASE)


_HEAD_BYTES = 16_384
_LEAST_SHARE = 0.8


class _Line(NamedTuple):
    """A line of a log. kind: message, action, rename (of `nick` to `text`) or notice.

    day: such as 2008-07-14, or Jul 14 where the log has no years; None if the line has no date.
    """

    kind: str
    nick: str
    text: str
    day: str | None
    clock: str | None


class IrcReader(Reader):
    """A log, or a folder of logs; each day of a file is a conversation, with the name of the file as its id.

    Nicks that renames link anywhere in the dump are one person, named by the first of them; nicks such as Guest123,
    which the server gives to anybody, are not linked. `nick:` or `nick,` at the start of a message is its addressee if
    that nick speaks in the file. Notices of joins, parts, modes and topics are left out. The nicks are in memory.
    """

    format: ClassVar[str] = "irc"
    describes: ClassVar[str] = "IRC logs, lines such as `[12:30] <nick> text`, a file or a folder of them"
    joins_files: ClassVar[bool] = True
    aliases: ClassVar = {"time": ("time",)}
    not_people: ClassVar = ("ChanServ", "NickServ", "MemoServ", "ubottu", "ubotu")

    @classmethod
    def sniff(cls, path: Path) -> bool:
        spoken = False
        for file in files_of(path):
            if lines := _head_lines(file):
                if foreign(file) or _share(lines) < _LEAST_SHARE:
                    return False
                spoken = spoken or _has_message(lines)
        return spoken

    @classmethod
    def near_miss(cls, path: Path) -> str | None:
        for file in files_of(path):
            lines = _head_lines(file)
            other = next((line for line in lines if not _parsed(line)), None)
            if (
                other is not None
                and _has_message(lines)
                and _share(lines) < _LEAST_SHARE
                and not foreign(file)
            ):
                number = head(file, _HEAD_BYTES).split(b"\n").index(other) + 1
                return f"{text_name(file)} line {number} is not like [hh:mm] <nick> text: {excerpt(other)}"
        return None

    def files(self) -> list[Path]:
        return self.parts or files_of(self.path)

    def records(self) -> Iterator[Record]:
        people, speakers = self._people()
        self.bytes_read = 0
        files = self.files()
        stems = {file: _SUFFIXES.sub("", text_name(file, self.path)) for file in files}
        if len(set(stems.values())) < len(files):
            stems = {file: text_name(file, self.path) for file in files}
        for file in files:
            yield from self._log(file, stems[file], people, speakers[file])

    def _people(self) -> tuple[dict[str, str], dict[Path, set[str]]]:
        """Nick → person, and the nicks that speak in each file; nicks in lower case, since case does not matter."""
        groups: dict[str, list[str]] = {}  # nick → all nicks of its person, first one first
        speakers: dict[Path, set[str]] = {}
        for file in self.files():
            spoken = speakers[file] = set()
            for _, raw in self.lines(file):
                line = _parsed(raw)
                if line is None or line.kind == "notice":
                    continue
                if line.kind != "rename":
                    spoken.add(line.nick.lower())
                    groups.setdefault(line.nick.lower(), [line.nick])
                elif not _GUEST.fullmatch(line.nick) and not _GUEST.fullmatch(line.text):
                    group = groups.setdefault(line.nick.lower(), [line.nick])
                    other = groups.setdefault(line.text.lower(), [line.text])
                    if group is not other:
                        group += other
                        groups |= dict.fromkeys(map(str.lower, other), group)
        return {nick: group[0] for nick, group in groups.items()}, speakers

    def _log(self, file: Path, stem: str, people: dict[str, str], speakers: set[str]) -> Iterator[Record]:
        name = text_name(file, self.path)
        day = of_name = _date_of(name)
        for number, raw in self.lines(file):
            if not raw.strip():
                continue
            line = _parsed(raw)
            if line is None:
                yield problem("malformed_row" if is_utf8(raw) else "undecodable", name, number, raw)
                continue
            day = _next_day(day, line.day) if line.day else day
            if line.kind in ("notice", "rename"):
                self.left_out["joins, parts and other notices" if line.kind == "notice" else "renames"] += 1
                continue
            speaker = people[line.nick.lower()]
            row: dict[str, object] = {"nick": line.nick if line.nick.lower() != speaker.lower() else None}
            row |= {"action": True} if line.kind == "action" else {}
            row["time"] = " ".join(filter(None, (day, line.clock))) if line.clock else None
            addressed = _ADDRESSED.match(line.text) if line.kind == "message" else None
            named = addressed[1].lower() if addressed else ""
            id = stem if day in (None, of_name) else f"{stem} {day}"
            known = {"conversation_id": id, "speaker": speaker, "text": line.text}
            if named in speakers and people[named] != speaker:
                known["addressee"] = people[named]
            yield self.message(name, number, row, raw, **known)


def _parsed(raw: bytes) -> _Line | None:
    try:
        text = _FORMATTING.sub("", raw.decode("utf-8")).strip()
    except UnicodeDecodeError:
        return None
    stamp = _STAMP.match(text)
    day, month_day, clock = stamp.groups() if stamp else (None, None, None)
    day = "-".join(reversed(day.split("."))) if day and "." in day else day or month_day
    if clock and clock[1] == ":":
        clock = f"0{clock}"
    rest = text[stamp.end() :] if stamp else text
    if not stamp and _ELEMENT.fullmatch(rest):
        return None
    if message := _MESSAGE.fullmatch(rest) or (stamp and _TABBED.fullmatch(rest)):
        return _Line("message", message[1], message[2], day, clock)
    if renamed := _RENAME.fullmatch(rest):
        return _Line("rename", renamed[1], renamed[2], day, clock)
    if _NOTICE.match(rest):
        if opened := _DAY.match(rest):
            day = _day(*opened.groups()) or day
        return _Line("notice", "", "", day, clock)
    if action := _ACTION.fullmatch(rest):
        return _Line("action", action[1], action[2], day, clock)
    return None


def _day(month_day: str, year: str) -> str | None:
    with suppress(ValueError):
        return str(datetime.strptime(f"{month_day} {year}", "%b %d %Y").date())
    return None


def _next_day(day: str | None, written: str) -> str | None:
    """The date of a line with a date as `written`, after a line of `day`; None if its year is unknown."""
    if written[0].isdigit() or day is None:
        return written if written[0].isdigit() else None
    year = int(day[:4]) + (written.startswith("Jan") and day[5:7] == "12")
    return _day(written, str(year))


def _date_of(name: str) -> str | None:
    """The date in a file's name, such as 2008-07-14 or 20080714."""
    for match in _DATE.finditer(name):
        with suppress(ValueError):
            return str(date(*map(int, match.groups())))
    return None


def _head_lines(file: Path) -> list[bytes]:
    """The first lines that are not blank, without one that the head cuts off."""
    start = head(file, _HEAD_BYTES)
    lines = start.split(b"\n")
    whole = lines[:-1] if len(start) == _HEAD_BYTES and len(lines) > 1 else lines
    return [line for line in whole if line.strip()]


def _share(lines: list[bytes]) -> float:
    """The share of the lines that have the form of a line of a log."""
    return sum(_parsed(line) is not None for line in lines) / len(lines)


def _has_message(lines: list[bytes]) -> bool:
    """Whether a line is a message; one such as `<root>` alone, without text and time, may be markup."""
    return any(line.kind == "message" and (line.text or line.clock) for line in map(_parsed, lines) if line)
