"""Maps source rows to fields of the raw schema, one row (`row_values`) or whole columns (`raw_batch`), equally."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ssrem.readers.base import RAW_SCHEMA
from ssrem.readers.layout import FIELDS, Layout, Plan, joiner
from ssrem.readers.metadata import canonical_object, json_objects
from ssrem.readers.times import NotVectorisableError, parse_time, parse_times


class MalformedRowError(ValueError):
    """A field holds a list, an object, true or false; never raised outside the readers."""


def as_text(value: object) -> str | None:
    """A field's value as text; numbers become their shortest form. Raises MalformedRowError for other types."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | list | dict | bytes):
        raise MalformedRowError
    return str(value)


def row_values(row: Mapping[str, object], plan: Plan, layout: Layout) -> dict[str, object]:
    """The values of RAW_SCHEMA's columns for one source row.

    If a time cannot be parsed, `time` is null, and the metadata hold it as written, under "time". Raises
    MalformedRowError.
    """
    values: dict[str, object] = {}
    for name, column in plan.single:
        value = row[column]
        values[name] = value if isinstance(value, str) else as_text(value)
    for field in plan.composite:
        values[FIELDS[field]] = _composite(row, plan.sources[field], joiner(field))
    extras = {name: row[name] for name in plan.metadata}
    if layout.unwrapped is not None and isinstance(unwrapped := extras.get(layout.unwrapped), dict):
        del extras[layout.unwrapped]
        extras.update(unwrapped)
    if "time" in plan.sources:
        written = values["time"] if "time" in values else row[plan.sources["time"][0]]
        values["time"] = None
        if written is not None and written != "":
            values["time"] = parse_time(written)
            if values["time"] is None:
                extras["time"] = written
    if extras:
        values["metadata"] = canonical_object(extras)
    return values


def _composite(row: Mapping[str, object], columns: tuple[str, ...], join: str) -> str | None:
    parts = [as_text(row[column]) for column in columns]
    return (
        None if any(part is None for part in parts) else join.join(part for part in parts if part is not None)
    )


def raw_batch(
    columns: Mapping[str, pa.Array], plan: Plan, layout: Layout, file: str, lines: pa.Array
) -> pa.RecordBatch:
    """The results of `row_values` for every row of these columns, as one batch of messages.

    lines: int64 of shape (rows,). Raises NotVectorisableError if only reading row by row is exact.
    """
    if plan.ambiguous:
        raise NotVectorisableError
    rows = len(lines)
    filled = {"record": pa.repeat("message", rows), "file": pa.repeat(file, rows), "line": lines}
    for field, sources in plan.sources.items():
        if field == "time" and len(sources) == 1:
            filled["time"] = parse_times(_blank_as_null(columns[sources[0]]))
            continue
        parts = [_text_column(columns[source]) for source in sources]
        text = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, joiner(field))
        filled[FIELDS[field]] = parse_times(_blank_as_null(text)) if field == "time" else text
    filled["metadata"] = _metadata(columns, plan, layout, rows)
    arrays = [filled[f.name] if f.name in filled else pa.nulls(rows, f.type) for f in RAW_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=RAW_SCHEMA)


def _metadata(columns: Mapping[str, pa.Array], plan: Plan, layout: Layout, rows: int) -> pa.Array:
    extras = {name: columns[name] for name in plan.metadata}
    inner = None if layout.unwrapped is None else extras.get(layout.unwrapped)
    if layout.unwrapped is not None and inner is not None and pa.types.is_struct(inner.type):
        del extras[layout.unwrapped]
        for i, member in enumerate(inner.flatten()):
            name = inner.type.field(i).name
            if name in extras:
                raise NotVectorisableError
            extras[name] = member
    return json_objects(list(extras), list(extras.values()), rows)


def _blank_as_null(values: pa.Array) -> pa.Array:
    if not pa.types.is_string(values.type):
        return values
    return pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)


def _text_column(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_string(kind):
        return values
    if pa.types.is_integer(kind) or pa.types.is_null(kind):
        return values.cast(pa.string())
    raise NotVectorisableError
