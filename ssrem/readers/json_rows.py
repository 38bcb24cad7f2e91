"""Rows of JSON: one object a line, or the entries of one array."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path
from typing import Any

from ssrem.readers.json_members import parse_json
from ssrem.readers.streams import head


def is_array(path: Path) -> bool:
    """Whether the file starts like an array of objects."""
    start = head(path).lstrip()
    return start.startswith(b"[") and start[1:].lstrip().startswith(b"{")


def first_objects(path: Path) -> list[dict[str, Any]]:
    """The JSON objects at the head of a file of rows; the last one may be cut off."""
    start = head(path)
    rows = [] if is_array(path) else [parse_json(line) for line in start.split(b"\n")]
    if not any(isinstance(row, dict) for row in rows):
        begun = _begun(start)
        rows = begun if isinstance(begun, list) else [begun]
    return [row for row in rows if isinstance(row, dict)]


def _begun(start: bytes) -> Any:
    """The first JSON value of a text that may break off."""
    import ijson
    from ijson.backends import python

    builder = ijson.ObjectBuilder()
    with suppress(ijson.JSONError, ValueError):
        for event, value in python.basic_parse(io.BytesIO(start), use_float=True):
            builder.event(event, value)
    return builder.value
