"""Arrow columns as Python values, whatever is in them."""

from __future__ import annotations

import pyarrow as pa


def python_values(column: pa.Array) -> list[object]:
    """The column's values.

    Where one of them has no form in Python, a date in the year 300,000, a zone that nobody knows or text that is
    not UTF-8, the column's times are given as the integers and its texts as the bytes that are stored.
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
