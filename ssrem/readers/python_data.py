"""Conversations that Python holds, such as lists and frames, as a dump that a reader reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssrem.errors import DumpError, short_repr
from ssrem.readers import guess_format, open_dump
from ssrem.readers.fields import Layout, checked_mapping
from ssrem.readers.metadata import escaped

if TYPE_CHECKING:
    import pyarrow as pa

    from ssrem.readers.base import Reader

Columns = Mapping[str, str | Sequence[str]]
"""Field → column or columns."""

_LISTS = ("utterances", "messages", "conversations", "conversation")
"""Keys of a row that may hold the messages of a whole conversation, as the readers of `jsonl` and of chat logs take."""

_FILE = "data"
_ARGUMENTS = (
    (r"--map (\w+)=([^\s:;,]+)", r"columns={'\1': '\2'}"),
    (r"--map\b", "columns={…}"),
    (r"--encoding (\S+):", r"encoding='\1':"),
    (r"--time-format (.+?):(?= )", r"time_format='\1':"),
    (r"--(format|encoding)\b", r"\1=…"),
)
"""Option of the command line → argument of `ssrem.conversations`."""


def reader_of(data: Any, columns: Columns | None, reading: Mapping[str, Any], folder: Path) -> Reader:
    """A reader of data as `ssrem.conversations` takes them. Unless they are a dump, they are written into `folder`.

    columns: field → column or columns. reading: further arguments of `open_dump`. DumpError for data of another shape.
    """
    try:
        return _reader_of(data, columns, reading, folder)
    except DumpError as error:
        raise DumpError(in_python(str(error)).replace(f"{folder / _FILE}: ", "")) from error.__cause__


def in_python(message: str) -> str:
    """A reader's message with arguments of `ssrem.conversations` in place of options of the command line."""
    for option, argument in _ARGUMENTS:
        message = re.sub(option, argument, message)
    return message


def _reader_of(data: Any, columns: Columns | None, reading: Mapping[str, Any], folder: Path) -> Reader:
    fields = checked_mapping(columns)
    if isinstance(data, str | Path):
        return open_dump(data, mapping=fields, **reading)
    if hasattr(data, "__arrow_c_stream__"):
        table = _table(data)
        if not any(_is_list(part.type) for part in table.schema if part.name in _LISTS):
            return open_dump(
                _parquet(table, fields, folder), mapping=fields, **{"format": "parquet", **reading}
            )
        data = table.to_pylist()
    path = folder / _FILE
    with path.open("wb") as file:
        file.writelines(escaped(row) + b"\n" for row in _rows(data, Layout(fields)))
    return open_dump(path, mapping=fields, **{"format": guess_format(path), **reading})


def _table(data: Any) -> pa.Table:
    import pyarrow as pa

    try:
        return pa.table(data)
    except (pa.ArrowException, TypeError) as error:
        raise DumpError(f"a column of the frame holds values of several types: {error}") from error


def _is_list(kind: pa.DataType) -> bool:
    """Whether Arrow, pandas or Polars write lists of any length as this type."""
    import pyarrow as pa

    known = (pa.types.is_list, pa.types.is_large_list, pa.types.is_list_view, pa.types.is_large_list_view)
    return any(is_kind(kind) for is_kind in known)


def _parquet(table: pa.Table, fields: Mapping[str, tuple[str, ...]], folder: Path) -> Path:
    """The file of a table of messages."""
    import pyarrow as pa
    import pyarrow.parquet

    if not table.num_rows:
        raise DumpError("the frame has no row; give conversations with at least two messages")
    layout = Layout(fields)
    sources = _sources(layout, table.column_names, layout.needed)
    for name in sources["text"]:
        kind = table.schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise DumpError(f"the column {name!r} of the texts holds values of type {kind}, not texts")
    path = folder / _FILE
    pyarrow.parquet.write_table(table, path)
    return path


def _rows(data: Any, layout: Layout) -> Iterator[Mapping[str, Any]]:
    """Rows of JSON lines: a conversation each, or a message each."""
    if isinstance(data, bytes) or not isinstance(data, Iterable):
        raise _shape(f"the data are {_called(data)}")
    number = 0
    for number, item in enumerate(data, 1):
        id, messages = (item, data[item]) if isinstance(data, Mapping) else (number, item)
        where = f"conversation {id}"
        if isinstance(messages, dict) and not isinstance(data, Mapping):
            yield _row(messages, layout, f"row {number}")
        elif isinstance(messages, Sequence) and not isinstance(messages, str | bytes):
            yield _conversation(messages, layout, where, str(id))
        else:
            raise _shape(f"{where} is {_called(messages)}")
    if not number:
        raise DumpError("there is no conversation; give at least one with two speakers")


def _row(row: dict[str, Any], layout: Layout, where: str) -> Mapping[str, Any]:
    """A message, or a conversation, as the readers of JSON lines and of chat logs take it."""
    if not any(isinstance(row.get(name), list) for name in _LISTS):
        sources = _sources(layout, list(row), layout.needed, f"{where}: ")
        _check_text([row[name] for name in sources["text"]], where)
    return row


def _conversation(messages: Sequence[Any], layout: Layout, where: str, id: str) -> Mapping[str, Any]:
    if isinstance(messages, tuple) and len(messages) == 2 and all(isinstance(part, str) for part in messages):
        raise _shape(f"{where} is one message, {short_repr(messages)}")
    roles = all(isinstance(message, dict) and {"role", "content"} <= message.keys() for message in messages)
    if roles and messages and "speaker" not in layout.plan(tuple(messages[0])).sources:
        return {"conversation_id": id, "messages": list(messages)}
    entries = [_message(entry, layout, f"{where}, message {at}") for at, entry in enumerate(messages, 1)]
    return {"conversation_id": id, "utterances": entries}


def _message(message: Any, layout: Layout, where: str) -> dict[str, Any]:
    if isinstance(message, dict):
        entry = message
        sources = _sources(layout, list(message), ("speaker", "text"), f"{where}: ")
        speaker, texts = message[sources["speaker"][0]], [message[name] for name in sources["text"]]
    elif isinstance(message, Sequence) and not isinstance(message, str) and len(message) == 2:
        speaker, texts = message[0], [message[1]]
        names = [(layout.mapping.get(name) or (name,))[0] for name in ("speaker", "text")]
        entry = dict(zip(names, message, strict=True))
    else:
        raise _shape(f"{where} is {_called(message)}")
    if isinstance(speaker, bool) or not isinstance(speaker, str | Integral) or not str(speaker).strip():
        raise DumpError(
            f"{where}: the speaker is {short_repr(speaker)}; name who says it, by a text or whole number"
        )
    _check_text(texts, where)
    return entry


def _check_text(values: Iterable[Any], where: str) -> None:
    for value in values:
        if value is not None and not isinstance(value, str):
            raise DumpError(f"{where}: the text is {_called(value)}, not a string")


def _sources(
    layout: Layout, names: Sequence[Any], needed: Iterable[str], where: str = ""
) -> Mapping[str, tuple[str, ...]]:
    """Field → its columns among the names; DumpError unless the needed fields have some."""
    sources = layout.plan(tuple(names)).sources
    missing = [name for name in needed if name not in sources]
    listed = f"the columns are {', '.join(map(str, names))}"
    for field in missing:
        if absent := [name for name in layout.mapping.get(field, ()) if name not in names]:
            raise DumpError(
                f"{where}columns={{{field!r}: …}} names {absent[0]!r}, which is not there; {listed}"
            )
    if missing:
        raise DumpError(
            f"{where}nothing is known as {' or '.join(missing)}; {listed}; say which is which, for example "
            f"columns={{{missing[0]!r}: 'NAME'}}"
        )
    return sources


def _shape(fault: str) -> DumpError:
    return DumpError(
        f"{fault}; give a list of conversations, each a list of (speaker, text), or a frame with the columns "
        "conversation, speaker and text"
    )


def _called(value: Any) -> str:
    return f"{short_repr(value)}, of type {type(value).__name__}"
