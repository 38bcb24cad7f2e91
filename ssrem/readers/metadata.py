"""Metadata as canonical JSON: keys sorted, no blanks, UTF-8; a null field is the same as an absent one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_NEEDS_ESCAPE = r'[\x00-\x1f"\\]'


def canonical(value: object) -> str:
    """One value as canonical JSON; NaN and ±inf become null, values of types that JSON lacks become their text."""
    cleaned = without_nulls(value)
    return json.dumps(
        cleaned, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), default=str
    )


def escaped(value: object) -> bytes:
    """`canonical` as UTF-8; half of a surrogate pair, which UTF-8 cannot encode, is written as its escape. Bytes, of a
    value that could not be parsed, stay."""
    if isinstance(value, bytes):
        return value
    return canonical(value).encode("utf-8", "backslashreplace")


def escaped_member(name: str, value: object) -> bytes:
    """A member of an object as `escaped`; bytes, of a value that could not be parsed, stay."""
    return value if isinstance(value, bytes) else escaped({name: value})


def encodable(text: str) -> bool:
    """Whether UTF-8 can encode the text, that is, it holds no half of a surrogate pair."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def canonical_object(fields: Mapping[str, object]) -> str | None:
    """The fields that have a value as a JSON object; None where none has."""
    stripped = without_nulls(fields)
    return canonical(stripped) if stripped else None


def without_nulls(value: object) -> Any:
    """`value` with the null members of every object in it left out, and NaN and ±inf read as null."""
    if isinstance(value, Mapping):
        cleaned = ((str(key), without_nulls(member)) for key, member in value.items())
        return {key: member for key, member in cleaned if member is not None}
    if isinstance(value, list | tuple):
        return [without_nulls(member) for member in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


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
        return _quoted(column)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_struct(kind):
        members = _members([field.name for field in kind], column.flatten())
        body = pa.repeat(pa.scalar("{}"), len(column)) if members is None else _braced(members)
        return pc.if_else(column.is_valid(), body, pa.scalar(None, pa.string()))
    texts = (None if value is None else canonical(value) for value in python_values(column))
    return pa.array((None if text == "null" else text for text in texts), pa.string())


def _quoted(column: pa.Array) -> pa.Array:
    quoted = pc.binary_join_element_wise('"', column, '"', "")
    special = pc.fill_null(pc.match_substring_regex(column, _NEEDS_ESCAPE), False)
    if not pc.any(special).as_py():
        return quoted
    escaped = [json.dumps(text, ensure_ascii=False) for text in column.filter(special).to_pylist()]
    return pc.replace_with_mask(quoted, special, pa.array(escaped, pa.string()))


def python_values(column: pa.Array) -> list[object]:
    """The column's values.

    If Python cannot represent one of them (a date in the year 300,000, an unknown time zone, text that is not UTF-8),
    all times of the column are returned as the stored integers, and all texts as the stored bytes.
    """
    try:
        values: list[object] = column.to_pylist()
    except (ArithmeticError, ValueError, LookupError):
        values = column.cast(_stored(column.type), safe=False).to_pylist()
    return values


def _stored(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(kind):
        return pa.int64() if kind.bit_width == 64 else pa.int32()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_stored(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_stored(kind.key_type), _stored(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.large_list(_stored(kind.value_type))
    return kind
