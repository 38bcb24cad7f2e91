"""Opens conversations in Python objects, such as lists and data frames, as a dump that a reader reads."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssrem.errors import DumpError, short_repr
from ssrem.readers import guess_format, open_dump
from ssrem.readers.fields import FieldNames, checked_mapping
from ssrem.readers.files.streams import DumpFile
from ssrem.readers.rows import escaped

if TYPE_CHECKING:
    from ssrem.readers.base import Reader

Columns = Mapping[str, str | Sequence[str]]
"""Field → column or columns."""

_FILE = "data"
_ARGUMENTS = (
    (r" or KEY\.KEY|, or conversation=@file if each .+ tell them apart", ""),
    (r"--map (\w+)=([^\s:;,]+)", r"columns={'\1': '\2'}"),
    (r"--map\b", "columns={…}"),
    (r"--encoding (\S+):", r"encoding='\1':"),
    (r"--time-format (.+?):(?= )", r"time_format='\1':"),
    (r"--time-format\b", "time_format=…"),
    (r"give --format (\w[\w-]*)", r"give format='\1'"),
    (r"--(format|encoding)\b", r"\1=…"),
)
"""(pattern of a command-line option in a message, argument of `ssrem.conversations` to write instead)"""


def reader_of(data: Any, columns: Columns | None, reading: Mapping[str, Any], folder: Path) -> Reader:
    """A reader of the data given to `ssrem.conversations`, which are written into `folder` unless they name a dump.

    columns: field → column or columns. reading: further arguments of `open_dump`. DumpError for data of another shape.
    """
    if not isinstance(columns, Mapping | None):
        raise DumpError(
            f"columns={columns!r:.60}: it is a mapping of fields to columns, such as {{'text': 'body'}}"
        )
    fields = checked_mapping(columns)
    if not isinstance(data, str | Path):
        data, format = _written(data, FieldNames(fields), folder / _FILE)
        reading = {"format": format, **reading}
    return open_dump(data, mapping=fields, **reading)


def _written(data: Any, layout: FieldNames, path: Path) -> tuple[Path, str | None]:
    """Write the data into the file `path`; return it and its format, None if that is unknown."""
    if hasattr(data, "__arrow_c_stream__"):
        import pyarrow as pa
        import pyarrow.parquet

        try:
            table = pa.table(data)
        except (pa.ArrowException, TypeError) as error:
            raise DumpError(f"a column of the frame holds values of several types: {error}") from error
        kinds = {field.name: str(field.type) for field in table.schema}
        whole = not any(
            pa.types.is_nested(kind) or pa.types.is_dictionary(kind) for kind in table.schema.types
        )
        if whole and len(layout.mapping.get("text", ())) < 2:
            for name in layout.plan(tuple(kinds)).sources.get("text", ()):
                if "string" not in kinds[name]:
                    raise DumpError(
                        f"the column {name!r} of the texts holds values of type {kinds[name]}, not texts"
                    )
            pyarrow.parquet.write_table(table, path)
            return path, "parquet"
        data = table.to_pylist()
    with path.open("wb") as file:
        file.writelines(escaped(row) + b"\n" for row in _rows(data, layout))
    return path, guess_format(DumpFile(path))


def in_python(message: str) -> str:
    """A reader's message with arguments of `ssrem.conversations` in place of options of the command line."""
    for option, argument in _ARGUMENTS:
        message = re.sub(option, argument, message)
    return message


@contextmanager
def told_in_python(folder: Path) -> Iterator[None]:
    """Context for opening and reading data in `folder`: errors name arguments, not options, and no temporary file."""
    try:
        yield
    except DumpError as error:
        message, file = in_python(str(error)), str(folder / _FILE)
        raise DumpError(message.replace(f"{file}: ", "").replace(file, "the data")) from error.__cause__


def _rows(data: Any, layout: FieldNames) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of JSON lines, each of which is a conversation or a message."""
    if isinstance(data, bytes) or not isinstance(data, Iterable):
        raise _shape(f"the data are {_called(data)}")
    number, ids = 0, dict[str, object]()
    for number, item in enumerate(data, 1):
        id, messages = (item, data[item]) if isinstance(data, Mapping) else (number, item)
        if (other := ids.setdefault(str(id), id)) != id:
            raise DumpError(f"the conversations {other!r} and {id!r} have the same id as text; rename one")
        if isinstance(messages, dict) and not isinstance(data, Mapping):
            yield _message(messages, layout, f"row {number}")
        elif isinstance(messages, Sequence) and not isinstance(messages, str | bytes):
            yield _conversation(messages, layout, f"conversation {id}", str(id))
        else:
            raise _shape(f"conversation {id} is {_called(messages)}")
    if not number:
        raise DumpError("there is no conversation; give at least one with two speakers")


def _conversation(messages: Sequence[Any], layout: FieldNames, where: str, id: str) -> Mapping[str, Any]:
    if isinstance(messages, tuple) and len(messages) == 2 and all(isinstance(part, str) for part in messages):
        raise _shape(f"{where} is one message, {short_repr(messages)}")
    roles = all(isinstance(message, dict) and {"role", "content"} <= message.keys() for message in messages)
    if roles and messages and "speaker" not in layout.plan(tuple(messages[0])).sources:
        return {"conversation_id": id, "messages": list(messages)}
    entries = [_message(entry, layout, f"{where}, message {at}") for at, entry in enumerate(messages, 1)]
    return {"conversation_id": id, "utterances": entries}


def _message(message: Any, layout: FieldNames, where: str) -> dict[str, Any]:
    """A message, or a row with a conversation, as JSON lines hold it."""
    if isinstance(message, Sequence) and not isinstance(message, str) and len(message) == 2:
        names = [(layout.mapping.get(name) or (name,))[0] for name in ("speaker", "text")]
        message = dict(zip(names, message, strict=True))
    if not isinstance(message, dict):
        raise _shape(f"{where} is {_called(message)}")
    for name in layout.plan(tuple(message)).sources.get("text", ()):
        text = message[name]
        if not is_null(text) and not isinstance(text, str | list | dict):
            raise DumpError(f"{where}: the text is {_called(text)}, not a string")
    return message


def _shape(fault: str) -> DumpError:
    return DumpError(
        f"{fault}; give a list of conversations, each a list of (speaker, text), or a frame with the columns "
        "conversation, speaker and text"
    )


def is_null(value: object) -> bool:
    """Whether a value is None or NaN, by which frames of pandas stand for one that is missing."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _called(value: Any) -> str:
    return f"{short_repr(value)}, of type {type(value).__name__}"
