"""Logs of IRC channels, as irssi, ZNC, energymech, WeeChat, HexChat, mIRC, eggdrop, Textual,
IRCCloud and the Ubuntu project write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import ClassVar

from ssrem.readers.base import Reader, Record, malformed
from ssrem.readers.cells import cells_of, delimiter_of
from ssrem.readers.fields import FieldNames
from ssrem.readers.files.streams import DumpFile, text_name

_LINE = re.compile(
    r"""
    (?P<stamp>\[?(?:(?P<day>\d{4}-\d\d-\d\d|\d\d\.\d\d\.\d{4}|[A-Z][a-z]{2}\ +\d{1,2})[T\ ])?
        (?P<clock>\d{1,2}:\d\d(?::\d\d)?(?:\ ?[AaPp][Mm])?(?:[+-]\d\d:?\d\d)?)Z?\]?\s+)?
    (?:(?(stamp)|(?!<(?P<tag>[^\s<>]+)>.*</(?P=tag)>$))  # a line of XML or HTML has no time
        (?:<[\ @+%&~!]*(?P<nick>[^\s<>/="]+)>\s?
            |(?(day)[@+%&~]?(?P<column>[^\s<>*=-][^\s<>]*)\t|(?!)))  # the columns of WeeChat; LINE has no day in its
        (?P<text>.*)
    |(?:\*+|-!-|===?|---?)\s+(?P<old>\S+)\ (?:is|are)\ now\ known\ as\ (?P<new>\S+)$
    |(?P<notice>(?:---\ (?:Log\ opened|Day\ changed)|\*+\ BEGIN\ LOGGING\ AT|Session\ (?:Start|Time):)
            \ \w{3}\ (?P<opened>\w{3}\ +\d\d?)\ (?:[\d:]+\ )?(?P<year>\d{4})
        |(?:\*{3,4}|-!-|===|=!=|-->|<--|---?|-[^\s-]\S*-|Session\ (?:Start|Time|Ident|Close):)(?:\s|$)
        |\*\s+(?:(?:Joins|Parts|Quits|Disconnected|Now\ talking|Topic|Rejoined)\b
            |\S+\ (?:[(\[]\S*[)\]]\ )?(?:has\ (?:joined|left)(?=\ [#&(\[]|$)|has\ quit\b|sets\ mode|was\ kicked
                |changes\ topic|(?:gives|removes)\ (?:channel|voice)))
        |(?(stamp)(?:[→←⇐⇒]\s|\S+\ (?:\(\S+@\S+\)\ )?(?:has\ )?(?:joined|left|quit)(?:\ (?:[#(]|the\ channel)|$))|(?!)))
    |\*\s+[@+%&~]?(?P<actor>\S+)\s+(?P<action>.*))
    """,
    re.VERBOSE,
)
"""Matches a line of a log: a message, a change of nick, a notice, which may begin a new day, or an action."""
_DATE = re.compile(r"(\d{4})[-_.]?(\d\d)[-_.]?(\d\d)(?!\d)")
_ADDRESSED = re.compile(r"([^\s:,]+)[:,](?:\s|$)")
_FORMATTING = re.compile(r"\x03(?:\d{1,2}(?:,\d{1,2})?)?|[\x02\x0f\x11\x16\x1d-\x1f]")
_GUEST = re.compile(r"guest\d+", re.IGNORECASE)
_SUFFIXES = re.compile(r"(?:\.(?:log|txt|raw|irclog|weechatlog|gz|zst))+$", re.IGNORECASE)
_HEAD_BYTES = 16_384


class IrcReader(Reader):
    """A log, or a folder of logs. Each day of a file is a conversation; its id is the name of the file, followed by the
    date if the name does not contain it.

    Nicks that are linked by renames anywhere in the dump are one person, who is called by the first of them; nicks such
    as Guest123, which the server gives to anybody, are not linked. `nick:` or `nick,` at the start of a message names
    its addressee if that nick speaks in the file. Notices of joins, parts, modes and topics are left out. The nicks are
    in memory.
    """

    format: ClassVar[str] = "irc"
    describes: ClassVar[str] = "IRC logs, lines such as `[12:30] <nick> text`, a file or a folder of them"
    joins_files: ClassVar[bool] = True
    aliases: ClassVar = {"time": ("time",)}
    not_people: ClassVar = ("ChanServ", "NickServ", "MemoServ", "ubottu", "ubotu")

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        """Whether at least half of the first lines have the form of a log, and somebody speaks. A table with well-known
        columns is not a log, although its cells may begin with `<p>` or `<mention>`."""
        written = [line for line in file.head[:_HEAD_BYTES].split(b"\n") if line.strip()]
        lines = list(map(_parsed, written))
        # `<root>` alone, without text and time, may be markup.
        spoken = any(line and (line["text"] or (line["nick"] and line["clock"])) for line in lines)
        if not spoken or 2 * lines.count(None) > len(lines):
            return False
        if len(lines) < 2 or lines[0] or (lines[1] and lines[1]["clock"]):
            return True
        sign = "\t" if b"\t" in written[0] else delimiter_of(written[0])
        header = tuple(dict.fromkeys(cells_of(written[0], sign)))
        return len(FieldNames().plan(header).sources) < 2

    def open(self) -> None:
        super().open()
        self._people, self._speakers = _people_in(self.parts)
        names = [text_name(part.path.absolute(), self.path) for part in self.parts]
        self._differ = len({_SUFFIXES.sub("", name) for name in names}) == len(names)

    def records(self, file: DumpFile) -> Iterator[Record]:
        people, speakers = self._people, self._speakers[file.path]
        name = text_name(file.path.absolute(), self.path)
        stem = _SUFFIXES.sub("", name) if self._differ else name
        day = of_name = _date_of(name)
        for number, raw in file.lines():
            if not raw.strip():
                continue
            line = _parsed(raw)
            if line is None:
                yield malformed(name, number, raw)
                continue
            if line["opened"]:
                day = _date(f"{line['opened']} {line['year']}", day) or day
            elif line["day"]:
                day = _date(line["day"], day)
            nick = _nick(line)
            if nick is None:
                self.left_out["renames" if line["old"] else "joins, parts and other notices"] += 1
                continue
            speaker, text = people[nick.lower()], line["action"] or line["text"] or ""
            row: dict[str, object] = {
                "nick": nick if nick.lower() != speaker.lower() else None,
                "action": True if line["actor"] else None,
                "time": f"{day} {line['clock']}" if day and line["clock"] else None,
                "clock": None if day else line["clock"],
            }
            id = stem if day in (None, of_name) else f"{stem} {day}"
            known = {"conversation_id": id, "speaker": speaker, "text": text}
            addressed = _ADDRESSED.match(line["text"] or "")
            named = addressed[1].lower() if addressed else ""
            if named in speakers and people[named] != speaker:
                known["addressee"] = people[named]
            yield self.message(name, number, row, raw, **known)


def _people_in(files: Iterable[DumpFile]) -> tuple[dict[str, str], dict[Path, set[str]]]:
    """Nick → person, and file → nicks that speak in it; nicks are in lower case, since case does not matter."""
    groups: dict[str, list[str]] = {}  # nick → all nicks of its person, first one first
    speakers: dict[Path, set[str]] = {}
    for file in files:
        spoken = speakers.setdefault(file.path, set())
        for line in filter(None, (_parsed(raw) for _, raw in file.lines())):
            if nick := _nick(line):
                spoken.add(nick.lower())
                groups.setdefault(nick.lower(), [nick])
            elif line["old"] and not any(map(_GUEST.fullmatch, line.group("old", "new"))):
                group, other = (groups.setdefault(n.lower(), [n]) for n in line.group("old", "new"))
                if group is not other:
                    group += other
                    groups |= dict.fromkeys(map(str.lower, other), group)
    return {nick: group[0] for nick, group in groups.items()}, speakers


def _parsed(raw: bytes) -> re.Match[str] | None:
    """The match of _LINE for a line; None if the line has another form or is not UTF-8."""
    with suppress(UnicodeDecodeError):
        return _LINE.match(_FORMATTING.sub("", raw.decode()).strip())
    return None


def _nick(line: re.Match[str]) -> str | None:
    """The nick that says or does something in a line; None for a rename or a notice."""
    return line["nick"] or line["column"] or line["actor"]


def _date(written: str, before: str | None) -> str | None:
    """The date of a line of a log as 2008-07-14; None if it has no year and the line before has no date."""
    if "." in written:
        return "-".join(reversed(written.split(".")))
    if written[0].isdigit():
        return written
    if not written[-4:].isdigit() and before is not None:
        written += f" {int(before[:4]) + (written.startswith('Jan') and before[5:7] == '12')}"
    with suppress(ValueError):
        return str(datetime.strptime(written, "%b %d %Y").date())
    return None


def _date_of(name: str) -> str | None:
    """The date in a file's name, such as 2008-07-14 or 20080714."""
    for match in _DATE.finditer(name):
        with suppress(ValueError):
            return str(date(*map(int, match.groups())))
    return None
