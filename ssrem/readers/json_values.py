"""JSON values of bounded depth; files that hold one value, read piece by piece, and where these hold rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from ssrem.errors import DumpError
from ssrem.readers.fields import Layout
from ssrem.readers.files.streams import LONGEST_ROW, UTF8_BOM, chunks, head, is_parquet, too_long

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

_LAYOUT = Layout()
_OF_ONE = {"speakers", "utterances", "turns", "dialog", "dialogue", "messages", "conversation", "items"}
"""Keys of one conversation, not ids of several."""


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
        outers = [outer for outer in level if isinstance(outer, dict | list)]
        level = [one for outer in outers for one in (outer.values() if isinstance(outer, dict) else outer)]
    return any(isinstance(value, dict | list) for value in level)


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
    except _BrokenError:
        raise DumpError(
            f"{path}: broken JSON after {count:,} members, in line {scanner.line:,}; fetch the file again"
        ) from None


class _BrokenError(ValueError):
    """The content is not JSON from here on."""


class _Scanner:
    """Finds where the values at `places` begin and end; only one is in memory."""

    def __init__(self, path: Path, places: Collection[str], progress: Callable[[int], None] | None) -> None:
        self._path, self._places = path, frozenset(places)
        self._pieces = chunks(path, _CHUNK, progress)
        self._text = next(self._pieces, b"").removeprefix(UTF8_BOM)
        self._at, self._lines = 0, 1

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
        piece, self._lines = next(self._pieces, b""), self.line
        self._text, self._at = self._text[self._at :] + piece, 0
        if len(self._text) > LONGEST_ROW + _CHUNK:
            raise too_long(self._path, "a member")
        return bool(piece)

    def _next(self) -> bytes:
        """The next sign that is not blank; b"" at the end of the file."""
        while True:
            self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

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
        if self._next() != sign:
            raise _BrokenError
        self._at += 1

    def _value(self) -> bytes:
        """The value that begins here, of which the end is found without parsing it."""
        sign = self._next()
        at = depth = 0  # from the beginning of the value
        while True:
            if sign in (b"[", b"{", b'"'):
                for token in _NESTING.finditer(self._text, self._at + at):
                    if token[0] == b'"':
                        at = token.start() - self._at
                        break
                    if token.end() - token.start() == 1:
                        depth += 1 if token[0] in _CLOSING else -1
                    if depth == 0:
                        return self._taken(token.end())
                    at = token.end() - self._at
            elif (scalar := _SCALAR.match(self._text, self._at)) is None:
                raise _BrokenError
            elif scalar.end() < len(self._text):
                return self._taken(scalar.end())
            if not self._more():
                if sign not in (b"[", b"{", b'"'):
                    return self._taken(len(self._text))
                raise _BrokenError

    def _taken(self, end: int) -> bytes:
        value, self._at = self._text[self._at : end], end
        return value


def row_places(path: Path) -> tuple[str, ...]:
    """Where a file that is one JSON value holds its rows, in the notation of `json_elements`, as its head shows; empty
    for one object a line, and for other content.

    `item`: an array of objects or lists. `KEY.item`: an object with a list of rows, or several of the same keys. ANY:
    an object of conversations by id. `""`: any other object on several lines, which is a row.
    """
    start = head(path).lstrip()
    if start[:1] == b"[":
        return ("item",) if start[1:].lstrip()[:1] in (b"{", b"[") else ()
    value, rest = begun(start)
    several = b"\n" in start.strip()
    if not isinstance(value, dict) or (rest or b"").strip() or not (several or not _continues(path)):
        return ()
    if value and all(isinstance(member, dict) for member in value.values()):
        return (ANY,)
    firsts = {key: entries[0] for key, entries in value.items() if isinstance(entries, list) and entries}
    turns = {key for key, first in firsts.items() if _is_turn(first)}
    said = turns | {key for key, first in firsts.items() if isinstance(first, str)}
    whole = list(value)[: None if rest is not None else -1]  # the last may be cut off
    if (
        len(whole) > 1
        and said.issuperset(whole)
        and not (_OF_ONE & value.keys() or _LAYOUT.plan((*value,)).sources)
    ):
        return (ANY,)
    rows = {key: first for key, first in firsts.items() if isinstance(first, dict | list)}
    if not turns and len({tuple(row) if isinstance(row, dict) else () for row in rows.values()}) == 1:
        return tuple(f"{key}.item" for key in rows)
    return ("",) if several else ()


def _continues(path: Path) -> bool:
    """Whether something follows the first line that has content."""
    begun = b""
    for piece in chunks(path, 1 << 20):
        line, newline, rest = (begun + piece).lstrip().partition(b"\n")
        if rest.strip():
            return True
        begun = line[:1] + newline
    return False


def _is_turn(entry: object) -> bool:
    """Whether it is a message, or the beginning of one of a chat log, that does not say of which conversation."""
    if not isinstance(entry, dict):
        return is_pair(entry)
    fields = _LAYOUT.plan(tuple(entry)).sources.keys()
    is_message = {"speaker", "text"} <= fields or bool({"role", "from"} & entry.keys())
    return is_message and "conversation" not in fields


def is_pair(entry: object) -> bool:
    """Whether it is a speaker and a text."""
    is_list = isinstance(entry, list) and len(entry) == 2
    return is_list and isinstance(entry[0], str | int) and isinstance(entry[1], str)  # type: ignore[index]


def member_row(id: str, value: object) -> object:
    """The row of a conversation that is a member of an object; `utterances` are those of a list."""
    if isinstance(value, list):
        return {"conversation_id": id, "utterances": value}
    return {"conversation_id": id, **value} if isinstance(value, dict) else value


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file that has a column of lists of objects or of texts, or of objects; none of other files.
    DumpError if the file is damaged."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            kinds = file.schema_arrow.types
            inner = [
                kind.value_type for kind in kinds if pa.types.is_list(kind) or pa.types.is_large_list(kind)
            ]
            of_texts = {pa.string(), pa.large_string()} & {*inner}
            if of_texts or any(map(pa.types.is_struct, (*kinds, *inner))):
                for batch in file.iter_batches(256):
                    yield from batch.to_pylist()
    except (OSError, pa.ArrowException, ValueError, ArithmeticError, LookupError) as error:
        raise DumpError(f"{path}: not a whole Parquet file; fetch the file again") from error


def first_objects(path: Path) -> list[dict[str, Any]]:
    """The JSON objects at the head of a file of rows; the last one may be cut off."""
    if is_parquet(path):
        with suppress(DumpError):
            return list(islice(parquet_rows(path), 8))
        return []
    start = head(path)
    places = row_places(path)
    rows: list[Any] = [] if places else [parse_json(line) for line in start.split(b"\n")]
    if not any(isinstance(row, dict) for row in rows):
        value, _ = begun(start.lstrip())
        if isinstance(value, dict) and places == (ANY,):
            rows = [member_row(id, member) for id, member in value.items()]
        elif isinstance(value, dict) and places and places != ("",):
            rows = [row for place in places for row in value.get(place.removesuffix(".item"), ())]
        else:
            rows = value if isinstance(value, list) else [value]
    return [row for row in rows if isinstance(row, dict)]
