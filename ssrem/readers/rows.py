"""The raw schema, and its values from one source row (`row_values`) or from whole columns (`raw_batch`), equally."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ssrem.readers.blocks import Block
from ssrem.readers.fields import FIELDS, IDS_OF_PEOPLE, Layout, joiner
from ssrem.readers.metadata import canonical_object, json_objects
from ssrem.readers.times import NotVectorisableError

RAW_SCHEMA = pa.schema(
    [
        ("source", pa.string()),  # which of several files or folders; null = there is one
        ("record", pa.string()),  # 'message' | 'conversation'; a row with a problem is always a 'message'
        ("file", pa.string()),
        ("line", pa.int64()),  # from 1; the row's ordinal if the format has no lines
        ("conversation_id", pa.string()),
        ("utterance_id", pa.string()),
        ("speaker", pa.string()),
        ("is_person", pa.bool_()),  # false for a speaker that is known to be no person, else null
        ("addressee", pa.string()),
        ("reply_to", pa.string()),
        (
            "in_thread",
            pa.bool_(),
        ),  # true for a reply that messages outside its thread do not answer; else null
        ("text", pa.string()),
        ("time", pa.timestamp("us")),  # naive, UTC
        ("metadata", pa.string()),  # JSON object, see ssrem.readers.metadata
        ("problem", pa.string()),  # one of PROBLEMS; null = readable
        ("raw", pa.binary()),  # the source row, only where there is a problem
    ]
)


SOURCE_SCHEMA = pa.schema([*RAW_SCHEMA, ("person", pa.string())])
"""RAW_SCHEMA, and the person who holds the seat that the row names as its speaker; null if no column says so."""

PROBLEMS = ("broken_json", "undecodable", "malformed_row", "speaker_count", "duplicate_conversation")
"""Why a row cannot be read, so that there are its bytes rather than fields; see `schemas.ingest.REASONS`."""

_PEOPLE = ("speaker", "addressee")


class MalformedRowError(ValueError):
    """A row is no object, or a field holds a list, an object, true or false; never raised outside the readers."""


_NO_IDS = ("text", "time")
"""The fields that are not ids."""

_INEXACT = 2.0**53
"""From here on floats no longer hold every integer, so one may stand for an id that differs from it."""


def joined_text(row: Mapping[str, object], columns: tuple[str, ...], field: str) -> str | None:
    """The text of these columns, joined as one field; None if one has no value. Raises MalformedRowError.

    Numbers become their shortest form; in ids, floats that are whole numbers below 2^53 that of the integer, and those
    that are not finite no value, as pandas stores integers of which some are missing.
    """
    values = [row[column] for column in columns]
    if any(isinstance(value, bool | list | dict | bytes) for value in values):
        raise MalformedRowError
    if field not in _NO_IDS:
        values = [_as_integer(value) if isinstance(value, float) else value for value in values]
    return None if None in values else joiner(field).join(map(str, values))


def _as_integer(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _INEXACT else value


def row_values(row: object, layout: Layout) -> dict[str, object]:
    """The values of RAW_SCHEMA's columns for one source row.

    An object in place of a speaker or addressee is its id, and stays in the metadata. If a time cannot be parsed,
    `time` is null, the metadata hold it as written, under "time", and `layout.times` counts it. Raises
    MalformedRowError.
    """
    if not isinstance(row, dict):
        raise MalformedRowError
    plan = layout.plan(tuple(row))
    extras = {name: row[name] for name in plan.metadata}
    key = layout.unwrapped
    if key is not None and isinstance(extras.get(key), dict):
        extras |= extras.pop(key)
    values: dict[str, object] = {}
    for field, columns in plan.sources.items():
        if field in _PEOPLE and len(columns) == 1 and isinstance(person := row[columns[0]], dict):
            extras[columns[0]] = person
            row = {**row, columns[0]: _id_of(person)}
        if field != "time":
            values[FIELDS[field]] = joined_text(row, columns, field)
            continue
        written = row[columns[0]] if len(columns) == 1 else joined_text(row, columns, field)
        values["time"] = layout.times.parse(written)
        if values["time"] is None and written is not None and written != "":
            extras["time"] = written
            layout.times.fail(written)
    if extras:
        values["metadata"] = canonical_object(extras)
    return values


def _id_of(person: Mapping[str, object]) -> object:
    """What names a person in an object about them; the object if nothing does."""
    ids = (person[name] for name in IDS_OF_PEOPLE if person.get(name) is not None)
    return next(ids, person)


def raw_batch(
    columns: Mapping[str, pa.Array], layout: Layout, file: str, lines: pa.Array, *, optional: bool = True
) -> pa.RecordBatch:
    """The results of `row_values` for every row of these columns, as one batch of messages, of SOURCE_SCHEMA.

    lines: int64 of shape (rows,). optional: whether a null means that the row lacks the column. Raises
    NotVectorisableError if only reading row by row is exact.
    """
    plan = layout.plan(tuple(columns))
    if optional and plan.ambiguous:
        raise NotVectorisableError
    rows = len(lines)
    filled = {"record": pa.repeat("message", rows), "file": pa.repeat(file, rows), "line": lines}
    for field, names in plan.sources.items():
        parts = [columns[name] for name in names]
        if field != "time" or len(parts) > 1:
            parts = [_text_column(part, field) for part in parts]
        values = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, joiner(field))
        filled[FIELDS[field]] = layout.times.parse_column(values) if field == "time" else values
    extras = {name: columns[name] for name in plan.metadata}
    key = layout.unwrapped
    if key is not None and key in extras and pa.types.is_struct(extras[key].type):
        inner = extras.pop(key)
        members = dict(zip((field.name for field in inner.type), inner.flatten(), strict=True))
        if extras.keys() & members.keys() or len(members) < inner.type.num_fields:
            raise NotVectorisableError
        extras |= members
    filled["metadata"] = json_objects(list(extras), list(extras.values()), rows)
    arrays = [filled[f.name] if f.name in filled else pa.nulls(rows, f.type) for f in SOURCE_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SOURCE_SCHEMA)


def table_batch(
    table: pa.Table, block: Block, layout: Layout, file: str, *, optional: bool = True
) -> pa.RecordBatch:
    """`raw_batch` of the columns that a block was parsed into; NotVectorisableError unless they have its rows."""
    if table.num_rows != len(block):
        raise NotVectorisableError
    columns = {name: _joined(table.column(name)) for name in table.column_names}
    return raw_batch(columns, layout, file, pa.array(block.lines), optional=optional)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


def _text_column(values: pa.Array, field: str) -> pa.Array:
    if pa.types.is_string(values.type):
        return values
    if field not in _NO_IDS and values.type in (pa.float32(), pa.float64()):
        values = _integers(values.cast(pa.float64()))
    if pa.types.is_integer(values.type) or pa.types.is_null(values.type):
        return values.cast(pa.string())
    raise NotVectorisableError


def _integers(values: pa.Array) -> pa.Array:
    """Whole numbers as `_as_integer` gives them, of float64; raises NotVectorisableError if there are others."""
    values = pc.if_else(pc.is_finite(values), values, pa.scalar(None, pa.float64()))
    whole = pc.and_(pc.equal(pc.floor(values), values), pc.less(pc.abs(values), _INEXACT))
    if not pc.all(whole).as_py():
        raise NotVectorisableError
    return values.cast(pa.int64())
