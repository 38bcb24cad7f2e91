"""Files that hold one JSON value, read piece by piece: the members of an object, or the values at certain places."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ssrem.errors import DumpError
from ssrem.readers.files.streams import LONGEST_ROW, UTF8_BOM, chunks, head, too_long
from ssrem.readers.metadata import DEEPEST, too_deep

_CHUNK = 1 << 20
_PAIR = rb"(?<!\\)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
_SURROGATES = re.compile(_PAIR + rb"|\\u[dD][89a-fA-F]")
"""Escapes of surrogates: whole pairs as group 1, and what may be half of one."""
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)


_CUT_OFF = re.compile("premature EOF|[Ii]ncomplete")
"""Messages of parsers about truncated JSON."""


class _HalfPairError(Exception):
    """The content holds an escape such as \\ud800, half of a pair."""


class _Readable:
    """The file that ijson reads: decompressed, its bytes counted.

    halves: whether escapes of half a surrogate pair may pass; otherwise they raise _HalfPairError.
    """

    def __init__(self, path: Path, progress: Callable[[int], None] | None, *, halves: bool) -> None:
        self._path = path
        self._pieces = chunks(path, _CHUNK, progress)
        self._halves = halves
        self._open = b""  # what follows the last quote: an escape in it may continue in the next piece
        self._started = False
        self.since_member = self.lines = 0

    def read(self, size: int) -> bytes:
        """The next piece, of any size; for `size` 0, by which ijson detects the type, an empty one."""
        piece = next(self._pieces, b"") if size else b""
        if size and not self._started:
            piece, self._started = piece.removeprefix(UTF8_BOM), True
        self.since_member += len(piece)
        self.lines += piece.count(b"\n")
        if self.since_member > LONGEST_ROW + _CHUNK:
            raise too_long(self._path, "a member")
        if not self._halves:
            # Raised before the parser gets the end of a string that holds half of a pair.
            strings, quote, self._open = (self._open + piece).rpartition(b'"')
            if quote and any(match[1] is None for match in _SURROGATES.finditer(strings)):
                raise _HalfPairError
        return piece


def json_members(path: Path, progress: Callable[[int], None] | None = None) -> Iterator[tuple[str, object]]:
    """The members of the file's JSON object in order, one at a time. Text with an escape such as \\ud800, half of a
    surrogate pair, keeps it, and cannot be encoded as UTF-8.

    progress: called with the number of stored bytes read so far. Raises DumpError where the JSON is broken, because
    nothing after that point can be parsed, where a member is longer than LONGEST_ROW, and where one nests deeper than
    DEEPEST.
    """
    return _read(path, progress, _members)


def json_elements(
    path: Path, places: Collection[str], progress: Callable[[int], None] | None = None
) -> Iterator[tuple[str, object]]:
    """The values at `places` of a JSON file, each with its place, in the file's order, one at a time.

    places: in ijson's notation, such as `channel` for a member, or `chats.list.item.messages.item` for the elements of
    nested lists; no place lies inside another. progress and errors as in `json_members`.
    """
    return _read(path, progress, partial(_elements, places=frozenset(places)))


_Pieces = Callable[[Any, "_Readable"], Iterator[tuple[str, object]]]


def _read(
    path: Path, progress: Callable[[int], None] | None, pieces: _Pieces
) -> Iterator[tuple[str, object]]:
    import ijson
    from ijson.backends import python

    read = 0
    try:
        for member in _checked(pieces, ijson, _Readable(path, progress, halves=False), path):
            read += 1
            yield member
    except _HalfPairError:
        # The fast parser, in C, changes halves of surrogate pairs or fails at them; the slow one keeps them.
        yield from islice(_checked(pieces, python, _Readable(path, progress, halves=True), path), read, None)


def _members(parser: Any, source: _Readable) -> Iterator[tuple[str, object]]:
    members: Iterator[tuple[str, object]] = parser.kvitems(source, "", use_float=True, buf_size=_CHUNK)
    return members


def _elements(parser: Any, source: _Readable, places: Collection[str]) -> Iterator[tuple[str, object]]:
    import ijson

    builder, place, depth = None, "", 0
    for prefix, event, value in parser.parse(source, use_float=True, buf_size=_CHUNK):
        if builder is None:
            if prefix not in places:
                continue
            builder, place = ijson.ObjectBuilder(), prefix
        builder.event(event, value)
        depth += event in ("start_map", "start_array")
        depth -= event in ("end_map", "end_array")
        if depth == 0:
            yield place, builder.value
            builder = None


def _checked(pieces: _Pieces, parser: Any, source: _Readable, path: Path) -> Iterator[tuple[str, object]]:
    import ijson

    count = 0
    try:
        for name, value in pieces(parser, source):
            count += 1
            source.since_member = 0
            if too_deep(value):
                raise DumpError(
                    f"{path}: member {count:,} nests more than {DEEPEST} levels deep; is it the right file?"
                )
            yield name, value
    except (ijson.JSONError, ValueError) as error:
        reason = error.args[0] if error.args else error
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(error)
        ends = f", where line {source.lines + 1:,} breaks off" if _CUT_OFF.search(text) else ""
        raise DumpError(
            f"{path}: broken JSON after {count:,} members{ends} ({' '.join(text.split())[:120]}); fetch the file again"
        ) from error


def top_level_names(path: Path) -> list[str]:
    """Names of the members of the JSON object in the file, as far as its first 64 KB show; none for other content."""
    import ijson
    from ijson.backends import python

    names = []
    start = head(path)
    if start.lstrip().startswith(b"{"):
        with suppress(ijson.JSONError, ValueError):
            for prefix, event, value in python.parse(io.BytesIO(start), use_float=True):
                if event == "map_key" and prefix == "":
                    names.append(value)
                elif event == "end_map" and prefix == "" and parse_json(start) is None:
                    return []  # other values follow: JSON lines
    return names


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


def has_shape(path: Path, key: str) -> bool:
    """Whether the file starts as one object {name: {…, key: …}, …}."""
    import ijson
    from ijson.backends import python

    depth = 0
    start = head(path)
    first, _, others = start.strip().partition(b"\n")
    if not first.startswith(b"{") or (others and parse_json(first) is not None):
        return False  # no object, or one object per line
    with suppress(ijson.JSONError, ValueError):
        for event, value in python.basic_parse(io.BytesIO(start), use_float=True):
            if event in ("start_map", "start_array"):
                depth += 1
            elif event in ("end_map", "end_array"):
                depth -= 1
                if depth == 1:
                    return False  # the first member is over
            elif event == "map_key" and depth == 2 and value == key:
                return True
            elif depth == 1 and event != "map_key":
                return False
    return False
