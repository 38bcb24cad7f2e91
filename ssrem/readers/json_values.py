"""Parses JSON of bounded depth, and finds the rows of a dump that is one JSON value."""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from token import NAME, NEWLINE, NUMBER, STRING
from tokenize import TokenError, generate_tokens
from typing import Any

from ssrem.errors import DumpError
from ssrem.readers.fields import ALIASES, FieldNames, normalise

DEEPEST = 100
"""Most nested levels of lists and objects that are accepted. JSON parsers fail at about a thousand levels; the exact
depth depends on the caller."""

_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_LAYOUT = FieldNames()
_OF_ONE = {"speakers", "utterances", "turns", "dialog", "dialogue", "messages", "conversation", "items"}
"""Keys of an object that is one conversation, rather than an object of several conversations by id."""
_WORDS_OF_PYTHON = {"null": "None", "nan": "None", "true": "True", "false": "False"}
_VALUES, _OPEN, _CLOSE = (STRING, NUMBER, NAME), ("[", "{", "(", "-"), ("]", "}", ")")
_FIRST_TURNS = 10
"""Number of first entries of a list that are examined: it holds turns if any is a turn. The very first may be a
picture."""


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


def opened(value: Any) -> Any:
    """Parse a text that is a list or object, written as JSON or as Python prints lists, arrays and dictionaries; any
    other value is returned unchanged."""
    text = value.strip() if isinstance(value, str) else ""
    if (text[:1], text[-1:]) not in (("[", "]"), ("{", "}")):
        return value
    parsed = parse_json(text.encode("utf-8", "surrogatepass"))
    if parsed is None:
        with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError, TokenError):
            parsed = _printed(text)
    return parsed if isinstance(parsed, list | dict) else value


def _printed(text: str) -> Any:
    """Parse what Python printed, also an array, which has no commas between its values."""
    written, before = "", None
    for token in generate_tokens(io.StringIO(text).readline):
        ended = before is not None and (before.type in _VALUES or before.string in _CLOSE)
        written += ", " * (ended and (token.type in _VALUES or token.string in _OPEN))
        written += _WORDS_OF_PYTHON.get(
            token.string, token.string.strip() if token.type == NEWLINE else token.string
        )
        before = token if token.string.strip() else before
    return ast.literal_eval(written)


def json_value(content: bytes, name: str) -> Any:
    """Parse a file that is one JSON value; DumpError if it is broken. name: of the file, for error messages.

    Bytes that are not UTF-8 become lone surrogates.
    """
    try:
        value = _DECODER.decode(content.decode("utf-8", "surrogateescape"))
        if not too_deep(value):
            return value
    except json.JSONDecodeError as error:
        place = f"line {error.lineno:,}, column {error.colno:,} ({error.msg})"
        way_out = "fetch the file again"
        if error.msg == "Extra data":
            way_out = "several values are written one a line, as by jq -c"
        raise DumpError(f"{name}: broken JSON in {place}; {way_out}") from None
    except (ValueError, RecursionError):
        pass
    fault = f"nests more than {DEEPEST} levels, or has a number of too many digits"
    raise DumpError(f"{name}: the JSON {fault}; take that value out of it")


def too_deep(value: object) -> bool:
    """Whether lists and objects nest more than DEEPEST levels."""
    level = [value]
    for _ in range(DEEPEST):
        outers = [outer for outer in level if isinstance(outer, dict | list)]
        level = [one for outer in outers for one in (outer.values() if isinstance(outer, dict) else outer)]
    return any(isinstance(value, dict | list) for value in level)


def rows_in(value: Any) -> Iterator[object]:
    """The rows of a file that is one JSON value.

    Of a list, these are its members; of an object with one list of rows, or several whose rows have the same keys, the
    members of these lists; of a data frame as pandas writes it, its rows (`frame_rows`); of an object of conversations
    by id, one row for each. Any other object is one row itself, such as an object that is one conversation. A row that
    is a list becomes an object with this list as `utterances`.
    """
    rows = value if isinstance(value, list) else [value]
    if frame := frame_rows(value):
        rows = frame
    elif isinstance(value, dict):
        firsts = {key: inner[0] for key, inner in value.items() if isinstance(inner, list) and inner}
        turns = {key for key in firsts if any(map(_is_turn, value[key][:_FIRST_TURNS]))}
        said = turns | {key for key, first in firsts.items() if isinstance(first, str)}
        lists = [key for key, first in firsts.items() if isinstance(first, dict | list)]
        kinds = {tuple(firsts[key]) if isinstance(firsts[key], dict) else () for key in lists}
        of_one = _OF_ONE & value.keys() or _LAYOUT.plan((*value,)).sources
        by_id = all(isinstance(inner, dict) for inner in value.values())
        if value and (by_id or (len(value) > 1 and said.issuperset(value) and not of_one)):
            rows = [_member(id, inner) for id, inner in value.items()]
        elif len(kinds) == 1 and not (turns and of_one):
            rows = [row for key in lists for row in value[key]]
    return ({"utterances": row} if isinstance(row, list) else row for row in rows)


def frame_rows(value: object) -> list[dict[str, object]]:
    """The rows of a data frame that pandas wrote as JSON; empty for anything else.

    Two forms are read: orient="split", which has the names of the columns and a list of cells for each row, and the
    default, which has an object of cells by row for each column, if a column is known for texts or responses."""
    if not isinstance(value, Mapping) or not value:
        return []
    inside = list(value.values())
    names, cells = value.get("columns"), value.get("data")
    if isinstance(names, list) and isinstance(cells, list):
        fit = all(isinstance(row, list) and len(row) == len(names) for row in cells)
        return [dict(zip(names, row, strict=True)) for row in cells] if fit else []
    is_frame = all(isinstance(one, dict) and one and one.keys() == inside[0].keys() for one in inside)
    if not is_frame or {*map(normalise, value)}.isdisjoint((*ALIASES["text"], *ALIASES["response"])):
        return []
    return [{name: column[row] for name, column in value.items()} for row in inside[0]]


def row_of(line: bytes) -> object:
    """The row in a line; a list of messages becomes an object with `utterances`. None if the line is not JSON."""
    value = parse_json(line)
    is_messages = isinstance(value, list) and value and (isinstance(value[0], dict) or is_pair(value[0]))
    return {"utterances": value} if is_messages else value


def _is_turn(entry: object) -> bool:
    """Whether an entry is a message, with speaker and text or as in chat logs, that does not name its conversation."""
    if not isinstance(entry, dict):
        return is_pair(entry)
    fields = _LAYOUT.plan(tuple(entry)).sources.keys()
    is_message = {"speaker", "text"} <= fields or bool({"role", "from"} & entry.keys())
    return is_message and "conversation" not in fields


def is_pair(entry: object) -> bool:
    """Whether an entry is a list of a speaker, as text or number, and a text."""
    is_list = isinstance(entry, list) and len(entry) == 2
    return is_list and isinstance(entry[0], str | int) and isinstance(entry[1], str)  # type: ignore[index]


def _member(id: str, value: object) -> object:
    """The row of one conversation in an object of conversations by id; a list becomes its `utterances`."""
    if isinstance(value, list):
        return {"conversation_id": id, "utterances": value}
    return {"conversation_id": id, **value} if isinstance(value, Mapping) else value
