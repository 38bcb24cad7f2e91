"""The raw schema, and its values from one source row (`row_values`) or, with the same results, columns (`raw_batch`).

Metadata are canonical JSON: keys sorted, no blanks, UTF-8, no null members.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssrem.readers.fields import FIELDS, IDS_OF_PEOPLE, FieldNames, by_words, joiner
from ssrem.readers.times import NotVectorisableError

Integers = np.ndarray[Any, np.dtype[np.int64]]

RAW_SCHEMA = pa.schema(
    [
        ("source", pa.string()),  # which file or folder of the dump; null = it has only one
        ("record", pa.string()),  # 'message' | 'conversation'; a row with a problem is always a 'message'
        ("file", pa.string()),
        ("line", pa.int64()),  # from 1; the row's ordinal if the format has no lines
        ("conversation_id", pa.string()),
        ("utterance_id", pa.string()),
        ("speaker", pa.string()),
        ("is_person", pa.bool_()),  # false for a speaker that is known to be no person, else null
        ("addressee", pa.string()),
        ("reply_to", pa.string()),
        ("in_thread", pa.bool_()),  # true for a reply that only its thread shows; else false or null
        ("text", pa.string()),
        ("time", pa.timestamp("us")),  # naive, UTC
        ("metadata", pa.string()),  # a canonical JSON object
        ("problem", pa.string()),  # one of PROBLEMS; null = readable
        ("raw", pa.binary()),  # the source row, only where there is a problem
    ]
)


SOURCE_SCHEMA = pa.schema([*RAW_SCHEMA, ("person", pa.string())])
"""RAW_SCHEMA, and `person`: who holds the seat that is the row's speaker; null if no column says so."""

PROBLEMS = ("broken_json", "undecodable", "malformed_row", "speaker_count", "duplicate_conversation")
"""Why a row cannot be read, so that its record holds bytes instead of fields; see `schemas.ingest.REASONS`."""

_PEOPLE = ("speaker", "addressee")
_NO_IDS = ("text", "time")
_SET = ("true", "1")
"""How files write that a flag is set, in lower case."""
_INEXACT = 2.0**53
"""From this number on, floats cannot represent every integer, so a float may differ from the id it was made of."""
FORMS = (
    ("reply_to", "id", r"^(\d{1,15}|[1-8]\d{15})\.0$"),
    ("addressee", "speaker", r"^(\d{1,15}|[1-8]\d{15})\.0$"),
    ("reply_to", "id", r"^t[13]_(\w+)$"),
)
"""(column of references, field of the ids that they name, pattern of a form of references, whose group 1 is the id).
The forms are integers below 2^53 that were stored as floats because some are missing, and references of Reddit, whose
prefix names the kind of the post."""
_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
_UNUSUAL = ("null", "NaN", "Infinity", ".0")
"""What JSON contains if a value is absent, is a number that JSON lacks, or is a float that is a whole number."""


class MalformedRowError(ValueError):
    """Raised if a row is not an object, or a field is a list, an object, true or false; caught within the readers."""


def canonical(value: object) -> str:
    """One value as canonical JSON: NaN and ±inf become null, 1.0 becomes 1, null members of objects are left out, and
    values of types that JSON lacks become their text."""
    written = _CANONICAL.encode(value)
    return _CANONICAL.encode(_cleaned(value)) if any(word in written for word in _UNUSUAL) else written


def _cleaned(value: object) -> object:
    """`value` without null members in any object, and with numbers as `canonical` writes them."""
    if isinstance(value, dict):
        cleaned = {str(key): _cleaned(member) for key, member in value.items()}
        return {key: member for key, member in cleaned.items() if member is not None}
    if isinstance(value, list | tuple):
        return [_cleaned(member) for member in value]
    return _as_integer(value) if isinstance(value, float) else value


def canonical_object(fields: Mapping[str, object]) -> str | None:
    """The fields that have a value, as a canonical JSON object; None if no field has one."""
    written = canonical(fields)
    return None if written == "{}" else written


def escaped(value: object) -> bytes:
    """The value as canonical JSON in UTF-8, with escapes for lone surrogates, which UTF-8 lacks; bytes unchanged."""
    return value if isinstance(value, bytes) else canonical(value).encode("utf-8", "backslashreplace")


def joined_text(row: Mapping[str, object], columns: tuple[str, ...], field: str) -> str | None:
    """The values of these columns joined as the text of a field; None if any has no value. Raises MalformedRowError.

    Numbers take their shortest form. In ids, floats that are whole numbers below 2^53 are written as integers, and
    floats that are not finite are no value, since pandas stores integers as floats if some are missing.
    """
    values = [row[column] for column in columns]
    for at, value in enumerate(values):
        if value is None or isinstance(value, bool | list | dict | bytes):
            if value is not None:
                raise MalformedRowError
        elif isinstance(value, float) and field not in _NO_IDS:
            values[at] = _as_integer(value)
    return None if None in values else joiner(field).join(map(str, values))


def _as_integer(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < _INEXACT else value


def row_values(row: object, layout: FieldNames) -> dict[str, object]:
    """The values of SOURCE_SCHEMA's columns that one source row gives.

    If a speaker or addressee is an object, its id is the value, and the object stays in the metadata. If a time cannot
    be parsed, `time` is null, the metadata hold it as written, under "time", and `layout.times` counts it. `is_person`
    is false if the row says that a bot speaks. Raises MalformedRowError.
    """
    if not isinstance(row, dict):
        raise MalformedRowError
    plan = layout.plan(tuple(row))
    extras = {name: row[name] for name in plan.metadata}
    key = layout.unwrapped or ""
    if isinstance(extras.get(key), dict):
        extras |= extras.pop(key)
    values: dict[str, object] = {}
    for field, columns in plan.sources.items():
        written = row[columns[0]] if len(columns) == 1 else joined_text(row, columns, field)
        if field == "time":
            values["time"] = layout.times.parse(written)
            if values["time"] is None and written is not None and written != "":
                extras["time"] = written
                layout.times.fail(written)
            continue
        if field in _PEOPLE and isinstance(written, dict):
            extras[columns[0]] = written
            bot = written.get("type") == "Bot" or _is_set(written.get("bot")) or _is_flagged(written)
            if field == "speaker" and bot:
                values["is_person"] = False
            written = id_of(written)
        values[FIELDS[field]] = written if type(written) is str else joined_text({"": written}, ("",), field)
    if extras:
        values["metadata"] = canonical_object(extras)
    if _is_flagged(extras):
        values["is_person"] = False
    return values


def _is_flagged(about: Mapping[str, Any]) -> bool:
    """Whether a row, or an object in place of a speaker, says by `isBot` or the like that a bot speaks."""
    return any(_is_set(value) for name, value in about.items() if by_words(name) == "is_bot")


def _is_set(flag: object) -> bool:
    return isinstance(flag, bool | int | str) and str(flag).lower() in _SET


def id_of(person: Mapping[str, Any]) -> Any:
    """The id, or else the name, of an object in place of a speaker; the object itself if it has neither."""
    match [one for one in person.values() if one is not None]:
        case [dict() as only]:  # as in Microsoft Graph: {"application": null, "user": {…}}
            person = only
    return next((person[id] for id in IDS_OF_PEOPLE if person.get(id) is not None), person)


def raw_batch(
    table: pa.Table, lines: Integers, layout: FieldNames, file: str, *, optional: bool = True
) -> pa.RecordBatch:
    """The results of `row_values` for every row of a table, as one batch of messages, of SOURCE_SCHEMA.

    lines: the number of each row, shape (rows,). optional: whether a null means that the row lacks the column. Raises
    NotVectorisableError if only reading row by row is exact, or if the table does not have as many rows as `lines`.
    """
    rows = len(lines)
    chunks = (one.chunk(0) if one.num_chunks == 1 else one.combine_chunks() for one in table.columns)
    columns = dict(zip(table.column_names, chunks, strict=True))
    plan = layout.plan(tuple(columns))
    if table.num_rows != rows or (optional and plan.ambiguous):
        raise NotVectorisableError
    filled = {"record": pa.repeat("message", rows), "file": pa.repeat(file, rows), "line": pa.array(lines)}
    for field, names in plan.sources.items():
        parts = [columns[name] for name in names]
        if field != "time" or len(parts) > 1:
            parts = [_text_column(part, field) for part in parts]
        values = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, joiner(field))
        filled[FIELDS[field]] = layout.times.parse_column(values) if field == "time" else values
    extras = {name: columns[name] for name in plan.metadata}
    key = layout.unwrapped or ""
    if key in extras and pa.types.is_struct(extras[key].type):
        inner = extras.pop(key)
        members = dict(zip((field.name for field in inner.type), inner.flatten(), strict=True))
        if extras.keys() & members.keys() or len(members) < inner.type.num_fields:
            raise NotVectorisableError
        extras |= members
    for name in (name for name in extras if by_words(name) == "is_bot"):
        kind = extras[name].type
        if not (pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind)):
            raise NotVectorisableError
        is_set = pc.is_in(pc.utf8_lower(extras[name].cast(pa.string())), pa.array(_SET))
        filled["is_person"] = pc.if_else(is_set, False, pa.scalar(None, pa.bool_()))
    filled["metadata"] = json_objects(list(extras), list(extras.values()), rows)
    arrays = [filled[f.name] if f.name in filled else pa.nulls(rows, f.type) for f in SOURCE_SCHEMA]
    return pa.RecordBatch.from_arrays(arrays, schema=SOURCE_SCHEMA)


def plain_forms(ids: Mapping[str, Collection[object]]) -> list[tuple[str, str]]:
    """(column of references, pattern) for each form of FORMS that no id has. ids: field → its first values."""
    return [
        (column, form)
        for column, field, form in FORMS
        if not any(isinstance(id, str) and re.match(form, id) for id in ids[field])
    ]


def resolved(batch: pa.RecordBatch, forms: Iterable[tuple[str, str]]) -> pa.RecordBatch:
    """The batch, in which references of these forms are replaced by the ids that they name."""
    for column, form in forms:
        if batch[column].null_count < len(batch):
            plain = pc.replace_substring_regex(batch[column], form, r"\1")
            batch = batch.set_column(batch.schema.get_field_index(column), column, plain)
    return batch


def _text_column(values: pa.Array, field: str) -> pa.Array:
    if pa.types.is_floating(values.type) and field not in _NO_IDS:
        values = values.cast(pa.float64())
        values = pc.if_else(pc.is_finite(values), values, pa.scalar(None, pa.float64()))
        if not pc.all(pc.and_(pc.equal(pc.floor(values), values), pc.less(pc.abs(values), _INEXACT))).as_py():
            raise NotVectorisableError
        values = values.cast(pa.int64())
    if pa.types.is_string(values.type):
        return values
    if pa.types.is_integer(values.type) or pa.types.is_null(values.type):
        return values.cast(pa.string())
    raise NotVectorisableError


def json_objects(names: Sequence[str], columns: Sequence[pa.Array], rows: int) -> pa.Array:
    """`canonical_object` of every row of these columns: strings of shape (rows,)."""
    members = _members(names, columns)
    if members is None:
        return pa.nulls(rows, pa.string())
    return pc.if_else(pc.equal(members, ""), pa.scalar(None, pa.string()), _braced(members))


def _members(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Array | None:
    parts = []
    for name, column in sorted(zip(names, columns, strict=True), key=lambda pair: pair[0]):
        if column.null_count < len(column):
            key = f",{json.dumps(name, ensure_ascii=False)}:"
            parts.append(pc.fill_null(pc.binary_join_element_wise(key, _json(column), ""), ""))
    if not parts:
        return None
    # Not null_handling="skip": it leaves out rows in which all parts are null (pyarrow 26).
    return pc.utf8_slice_codeunits(pc.binary_join_element_wise(*parts, ""), 1)


def _braced(members: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise("{", members, "}", "")


def _json(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_string(kind):
        quoted = pc.binary_join_element_wise('"', column, '"', "")
        special = pc.fill_null(pc.match_substring_regex(column, r'[\x00-\x1f"\\]'), False)
        escapes = [canonical(text) for text in column.filter(special).to_pylist()]
        return pc.replace_with_mask(quoted, special, pa.array(escapes, pa.string()))
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_struct(kind):
        members = _members([field.name for field in kind], column.flatten())
        body = pa.repeat(pa.scalar("{}"), len(column)) if members is None else _braced(members)
        return pc.if_else(column.is_valid(), body, pa.scalar(None, pa.string()))
    texts = (None if value is None else canonical(value) for value in python_values(column))
    return pa.array((None if text == "null" else text for text in texts), pa.string())


def python_values(column: pa.Array) -> list[Any]:
    """The column's values; times that Python cannot represent, such as in the year 300,000, as the stored integers.

    Within lists and objects such times, and text that is not UTF-8, are errors.
    """
    try:
        return list(column.to_pylist())
    except (ArithmeticError, ValueError, LookupError):
        if not pa.types.is_temporal(column.type):
            raise
        return list(column.cast(pa.int64() if column.type.bit_width == 64 else pa.int32()).to_pylist())
