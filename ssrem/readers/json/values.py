"""Files that hold one JSON value, read piece by piece: the members of an object, or the values at certain places."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from ssrem.errors import DumpError
from ssrem.readers.files.streams import LONGEST_ROW, UTF8_BOM, chunks, head, too_long

DEEPEST = 100
"""Most nested levels of lists and objects that are accepted. JSON parsers fail at about a thousand levels; the exact
depth depends on the caller."""

ANY = "*"
"""In a place: a member of any name."""

_CHUNK = 1 << 20
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_BLANKS = re.compile(rb"\s*")
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_SCALAR = re.compile(rb"[^\s\[\]{},:\"]+")
_NESTING = re.compile(rb'%s|[\[{](?:[^\[\]{}"]++|%s)*+[\]}]|[\[\]{}"]' % (_STRING, _STRING), re.DOTALL)
"""A string, a list or object in which none is nested, a bracket, or a quote that opens a string which goes on."""
_TOKEN = re.compile(rb'%s|[\[\]{},:"]|[^\s\[\]{},:"]+' % _STRING, re.DOTALL)
_CLOSING = {b"[": b"]", b"{": b"}"}


class _BrokenError(ValueError):
    """The content is not JSON from here on; cut_off: because it ends."""

    def __init__(self, cut_off: bool = False) -> None:
        super().__init__()
        self.cut_off = cut_off


def json_members(path: Path, progress: Callable[[int], None] | None = None) -> Iterator[tuple[str, object]]:
    """The members of the file's JSON object in order, one at a time; else as `json_elements`."""
    return json_elements(path, (ANY,), progress)


def json_elements(
    path: Path, places: Collection[str], progress: Callable[[int], None] | None = None
) -> Iterator[tuple[str, object]]:
    """The values at `places` of a JSON file, each with its place, in the file's order, one at a time.

    places: such as `channel` for a member, `chats.list.item.messages.item` for the elements of nested lists, "" for the
    whole value, or ANY, with whose values the names of the members come. They must not be nested. A value that is
    broken or nests more than DEEPEST levels is given as its bytes. Half of a surrogate pair stays in a text, which
    UTF-8 then cannot encode.

    progress: called with the number of stored bytes read so far. Raises DumpError where the JSON around the values is
    broken, because nothing after that point can be read, and where a value is longer than LONGEST_ROW.
    """
    scanner, count = _Scanner(path, places, progress), 0
    try:
        for place, content in scanner.values():
            count += 1
            value = parse_json(content)
            yield place, content if value is None and content != b"null" else value
    except _BrokenError as error:
        where = (
            f", where line {scanner.line:,} breaks off" if error.cut_off else f", in line {scanner.line:,}"
        )
        raise DumpError(f"{path}: broken JSON after {count:,} members{where}; fetch the file again") from None


class _Scanner:
    """Finds where the values at `places` begin and end; only one is in memory."""

    def __init__(self, path: Path, places: Collection[str], progress: Callable[[int], None] | None) -> None:
        self._path = path
        self._places = frozenset(places)
        self._pieces = chunks(path, _CHUNK, progress)
        self._text = next(self._pieces, b"").removeprefix(UTF8_BOM)
        self._at = 0
        self._lines = 1

    @property
    def line(self) -> int:
        """The number of the line that is read."""
        return self._lines + self._text.count(b"\n", 0, self._at)

    def values(self) -> Iterator[tuple[str, bytes]]:
        yield from self._below("", "")
        if self._next():
            raise _BrokenError

    def _more(self) -> bool:
        """Read a further piece; False at the end of the file."""
        piece = next(self._pieces, b"")
        self._lines += self._text.count(b"\n", 0, self._at)
        self._text, self._at = self._text[self._at :] + piece, 0
        if len(self._text) > LONGEST_ROW + _CHUNK:
            raise too_long(self._path, "a member")
        return bool(piece)

    def _next(self) -> bytes:
        """The next sign that is not blank; b"" at the end of the file."""
        while True:
            self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at : self._at + 1]
            if not self._more():
                return b""

    def _below(self, place: str, name: str) -> Iterator[tuple[str, bytes]]:
        """The values at or below this place. name: what is yielded with a value at it."""
        sign = self._next()
        if place in self._places:
            yield name, self._value()
        elif sign not in _CLOSING or (place and not any(one.startswith(f"{place}.") for one in self._places)):
            self._value()
        else:
            self._at += 1
            first = True
            while self._next() != _CLOSING[sign]:
                if not first:
                    self._take(b",")
                    self._next()
                first, member = False, "item"
                if sign == b"{":
                    member = str(parse_json(self._value()))
                    self._take(b":")
                below = f"{place}.{member}" if place else member
                known = ANY if ANY in self._places and not place else below
                yield from self._below(known, member if known == ANY else below)
            self._at += 1

    def _take(self, sign: bytes) -> None:
        if (found := self._next()) != sign:
            raise _BrokenError(cut_off=not found)
        self._at += 1

    def _value(self) -> bytes:
        """The value that begins here, of which the end is found without parsing it."""
        sign = self._next()
        at = depth = 0  # from the beginning of the value
        while True:
            if sign in (b"[", b"{", b'"'):
                for token in _NESTING.finditer(self._text, self._at + at):
                    size = token.end() - token.start()
                    first = self._text[token.start()]
                    if size == 1 and first == ord('"'):
                        at = token.start() - self._at
                        break
                    if size == 1:
                        depth += 1 if first in b"[{" else -1
                    if depth == 0:
                        return self._taken(token.end())
                    at = token.end() - self._at
            else:
                scalar = _SCALAR.match(self._text, self._at)
                if scalar is None:
                    raise _BrokenError(cut_off=not sign)
                if scalar.end() < len(self._text):
                    return self._taken(scalar.end())
            if not self._more():
                if sign not in (b"[", b"{", b'"'):
                    return self._taken(len(self._text))
                raise _BrokenError(cut_off=True)

    def _taken(self, end: int) -> bytes:
        value, self._at = self._text[self._at : end], end
        return value


def parse_json(content: bytes) -> object:
    """The bytes as a JSON value; None if they are not JSON, or nest too deeply to be data.

    NaN and Infinity, which some programs write although they are not JSON, are read as null.
    """
    try:
        value = _DECODER.decode(content.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    deep = content.count(b"{") + content.count(b"[") > DEEPEST and too_deep(value)
    return None if deep else value


def too_deep(value: object) -> bool:
    """Whether lists and objects nest more than DEEPEST levels."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            member
            for outer in level
            if isinstance(outer, dict | list)
            for member in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(member, dict | list)
        ]
        if not level:
            return False
    return True


def begun(start: bytes) -> tuple[Any, bytes | None]:
    """The first JSON value of a text, and what follows it; where the text is cut off within it, as much of the value as
    is whole, and None; likewise where it nests too deeply. The value is None where the text is no list or object.
    """
    open_brackets: list[bytes] = []
    whole, closing = 0, b""
    for token in _TOKEN.finditer(start):
        sign = token[0]
        if sign == b'"':
            break
        if sign in _CLOSING:
            open_brackets.append(sign)
        elif sign in (b"]", b"}"):
            if not open_brackets or _CLOSING[open_brackets.pop()] != sign:
                return None, b""
            if not open_brackets:
                return parse_json(start[: token.end()]), start[token.end() :]
        if not open_brackets:
            return None, b""
        if len(open_brackets) > DEEPEST:
            break
        if sign in _CLOSING or sign in (b"]", b"}", b","):
            whole = token.start() if sign == b"," else token.end()
            closing = b"".join(_CLOSING[one] for one in reversed(open_brackets))
    return parse_json(start[:whole] + closing), None


def one_object(path: Path) -> Mapping[str, Any]:
    """The one JSON object in a file as far as its head shows it; empty for other content."""
    value, rest = begun(head(path).lstrip())
    return value if isinstance(value, dict) and not (rest or b"").strip() else {}
