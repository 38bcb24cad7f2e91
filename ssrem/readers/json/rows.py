"""Rows of JSON: one object a line, the entries of one array, or what one object holds; or rows of Parquet that hold
lists of objects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from ssrem.errors import DumpError
from ssrem.readers.fields import Layout
from ssrem.readers.files.streams import chunks, head, is_parquet
from ssrem.readers.json.values import ANY, begun, parse_json

_LAYOUT = Layout()
_OF_MESSAGES = {
    "utterances",
    "turns",
    "dialog",
    "dialogue",
    "messages",
    "conversation",
    "conversations",
    "items",
}
"""Keys whose list holds the messages of a conversation, unless its entries hold messages themselves."""
_OF_CHAT_LOGS = ({"role", "content"}, {"from", "value"})


def row_places(path: Path) -> tuple[str, ...]:
    """Where a file that is one JSON value holds its rows, in the notation of `json_elements`, as its head shows; empty
    for one object a line, and for other content.

    `item`: an array of objects or lists. `KEY.item`: an object with lists of rows. `""`: an object on several lines
    that is a row, such as a chat with its messages. ANY: an object of conversations by id.
    """
    start = head(path).lstrip()
    if start[:1] == b"[":
        return ("item",) if start[1:].lstrip()[:1] in (b"{", b"[") else ()
    value, rest = begun(start)
    several = b"\n" in start.strip()
    if not isinstance(value, dict) or (rest or b"").strip():
        return ()
    if not several and _continues(path):
        return ()
    firsts = {key: entries[0] for key, entries in value.items() if isinstance(entries, list) and entries}
    if value and all(isinstance(member, dict) for member in value.values()):
        return (ANY,)
    members = list(value)
    if rest is None:
        del members[-1:]  # it may be cut off
    shown = [firsts.get(key) for key in members]
    if len(members) > 1 and (all(map(_is_turn, shown)) or _are_bare_turns(value, shown)):
        return (ANY,)
    if any(map(_is_turn, firsts.values())):
        return ("",) if several else ()
    lists = {key: first for key, first in firsts.items() if isinstance(first, dict | list)}
    if any(not _is_conversation(first) for key, first in firsts.items() if key in _OF_MESSAGES):
        return ("",) if several else ()
    chosen = [key for key, first in lists.items() if _is_message(first) or _is_conversation(first)]
    if chosen or len(lists) == 1:
        return tuple(f"{key}.item" for key in chosen or lists)
    return ("",) if several else ()


def _continues(path: Path) -> bool:
    """Whether something follows the first line that has content."""
    begun = ended = False
    for piece in chunks(path, 1 << 20):
        content = piece if begun else piece.lstrip()
        begun = begun or bool(content)
        if not ended:
            _, newline, content = content.partition(b"\n")
            ended = bool(newline)
        if ended and content.strip():
            return True
    return False


def _is_message(entry: object) -> bool:
    """Whether an object has a speaker and a text, by their well-known names."""
    if not isinstance(entry, dict):
        return False
    sources = _LAYOUT.plan(tuple(entry)).sources
    return {"speaker", "text"} <= sources.keys() or any(names <= entry.keys() for names in _OF_CHAT_LOGS)


def _is_turn(entry: object) -> bool:
    """Whether it is a message that does not say of which conversation."""
    return (
        isinstance(entry, dict)
        and _is_message(entry)
        and "conversation" not in _LAYOUT.plan(tuple(entry)).sources
    )


def _are_bare_turns(value: dict[str, Any], firsts: list[Any]) -> bool:
    """Whether an object's members begin with a pair of speaker and text, or with a text, and none is named like a part
    of one conversation."""
    if value.keys() & {*_OF_MESSAGES, "speakers"} or _LAYOUT.plan(tuple(value)).sources:
        return False
    return all(isinstance(first, str) or is_pair(first) for first in firsts)


def is_pair(entry: object) -> bool:
    """Whether it is a speaker and a text."""
    return (
        isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[0], str | int)
        and isinstance(entry[1], str)
    )


def _is_conversation(entry: object) -> bool:
    """Whether it holds messages: a list of them, or an object with a list of messages or of texts."""
    if isinstance(entry, list):
        return bool(entry) and _is_message(entry[0])
    lists = (
        [value for value in entry.values() if isinstance(value, list) and value]
        if isinstance(entry, dict)
        else []
    )
    return any(_is_message(value[0]) or isinstance(value[0], str) for value in lists)


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
            entries = [
                kind.value_type
                for kind in file.schema_arrow.types
                if pa.types.is_list(kind) or pa.types.is_large_list(kind)
            ]
            if (
                any(map(pa.types.is_struct, file.schema_arrow.types))
                or any(map(pa.types.is_struct, entries))
                or {pa.string(), pa.large_string()} & {*entries}
            ):
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
