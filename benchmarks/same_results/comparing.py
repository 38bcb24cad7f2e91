"""Differences between kept results: numbers up to a tolerance, names as RENAMES has them."""

from __future__ import annotations

import fnmatch
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.same_results.masks import parsed
from benchmarks.same_results.renames import RENAMES, worded

TOLERANCES = {"correlations": 1e-9}
"""Table to how much its numbers may differ, relative to the larger of both and of 1; others by `--tolerance`."""

LEDGER = ("runs", "quality_results")
"""Tables whose keys are words of the software, and not of people."""


NUMBER = re.compile(r"[-−]?\d+\.\d+(?:e[-+]?\d+)?")


def near(old: Any, new: Any, tolerance: float) -> bool:
    """Whether two values are equal, numbers up to the tolerance, also those in a text."""
    if isinstance(old, str) and isinstance(new, str) and old != new:
        first, second = NUMBER.findall(old), NUMBER.findall(new)
        if NUMBER.sub("#", old) != NUMBER.sub("#", new):
            return False
        pairs = [[float(one.replace("−", "-")) for one in pair] for pair in zip(first, second, strict=True)]
        return all(math.isclose(*pair, rel_tol=tolerance, abs_tol=tolerance) for pair in pairs)
    if isinstance(old, float) or isinstance(new, float):
        try:
            return math.isclose(old, new, rel_tol=tolerance, abs_tol=tolerance) or repr(old) == repr(new)
        except TypeError:
            return False
    return bool(old == new and isinstance(old, bool) == isinstance(new, bool))


def differences(place: str, old: Any, new: Any, tolerance: float) -> Iterator[tuple[str, str]]:
    """Place and description of each difference between two values as JSON has them."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = {key: RENAMES["keys"][key] if RENAMES["keys"].get(key) in new else key for key in old}
        for key, renamed in keys.items():
            if renamed not in new:
                yield f"{place}.{key}", f"is gone, was {str(old[key])[:100]}"
            else:
                yield from differences(f"{place}.{renamed}", old[key], new[renamed], tolerance)
        for key in new.keys() - keys.values():
            yield f"{place}.{key}", f"is new: {str(new[key])[:100]}"
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield place, f"has {len(new)} entries, had {len(old)}"
        pairs = [(n, *pair) for n, pair in enumerate(zip(old, new, strict=False))]
        if old and all(not isinstance(one, dict | list) for one in old):
            pairs = [pair for pair in pairs if not near(pair[1], pair[2], tolerance)]
            if pairs:
                number, first, second = pairs[0]
                yield place, f"{len(pairs)} of {len(old)} differ, first [{number}]: {first!r} → {second!r}"
            return
        for number, first, second in pairs:
            yield from differences(f"{place}[{number}]", first, second, tolerance)
    elif not near(old, new, tolerance) and not (
        isinstance(old, str) and isinstance(new, str) and near(worded(old), worded(new), tolerance)
    ):
        yield place, f"{str(old)[:200]!r} → {str(new)[:200]!r}"


def table_differences(
    place: str, old: Path, new: Path, key: list[str], tolerance: float
) -> Iterator[tuple[str, str]]:
    """Place and description of each difference between two tables, rows matched by key."""
    before, after = pl.read_parquet(old), pl.read_parquet(new)
    columns = {c: RENAMES["columns"].get(f"{old.stem}.{c}", c) for c in before.columns}
    before = before.rename({c: to for c, to in columns.items() if to in after.columns})
    for column in before.columns:
        if column not in after.columns:
            yield f"{place} lacks the column {column}", f"it had {before.height} rows"
    for column in after.columns:
        if column not in before.columns:
            yield f"{place} has the new column {column}", "compared with nothing"
    key = [columns.get(c, c) for c in key if columns.get(c, c) in after.columns]
    if old.stem in LEDGER:
        renamed = pl.col(key).map_elements(worded, return_dtype=pl.String)
        before, after = before.with_columns(renamed), after.with_columns(renamed)
    before, after = (
        frame.with_columns(pl.int_range(pl.len()).over(key or pl.lit(0)).alias("nth"))
        for frame in (before, after)
    )
    key.append("nth")
    for what, one, other in (("lacks", before, after), ("has the new", after, before)):
        alone = one.join(other, on=key, how="anti", nulls_equal=True)
        if alone.height:
            yield f"{place} {what} rows", f"{alone.height} of {one.height}, first {alone.select(key).row(0)}"
    both = before.join(after, on=key, how="inner", nulls_equal=True, suffix=" now", maintain_order="left")
    for column in before.columns:
        if column in key or column not in after.columns:
            continue
        yield from column_differences(f"{place}.{column}", both, column, key, tolerance)


def column_differences(
    place: str, both: pl.DataFrame, column: str, key: list[str], tolerance: float
) -> Iterator[tuple[str, str]]:
    """What differs between a column of matched rows and the one of the same name and " now", in one line."""
    unlike = both.filter(pl.col(column).ne_missing(pl.col(f"{column} now")))
    lines, most = [], 0.0
    for first, second, *row in unlike.select(column, f"{column} now", *key).iter_rows():
        old, new = first, second
        if isinstance(old, float) and isinstance(new, float):
            most = max(most, abs(old - new))
        if isinstance(old, str) and isinstance(new, str) and old[:1] == new[:1] and old[:1] in ("{", "["):
            old, new = parsed(old), parsed(new)
        if line := next(differences("", old, new, tolerance), None):
            lines.append(f"{row}{line[0]}: {line[1]}")
    if lines:
        yield place, f"{len(lines)} of {both.height} rows, first {lines[0]}; max difference {most:.3g}"
    elif most:
        print(f"within tolerance  {place}: max difference {most:.3g}")


def compare(old: Path, new: Path, tolerance: float) -> int:
    """Print each difference between the results kept in two folders on a line; how many of them count.

    Places are HOME/answers.NAME…, HOME/tables/TABLE.COLUMN, HOME/report.SECTION… and HOME/files.NAME….
    """
    before, after = (json.loads((folder / "kept.json").read_text()) for folder in (old, new))

    def every() -> Iterator[tuple[str, str]]:
        for home in after:
            for part in ("answers", "report", "files"):
                first, second = (results[home].get(part, {}) for results in (before, after))
                yield from differences(f"{home}/{part}", first, second, tolerance)
            tables, now = before[home]["tables"], after[home]["tables"]
            names = {name: RENAMES["tables"].get(name, name) for name in tables}
            names = {name: new_name if new_name in now else name for name, new_name in names.items()}
            for name in now.keys() - names.values():
                yield f"{home}/tables/{name} is new", f"{now[name]['rows']} rows"
            for name, new_name in names.items():
                place = f"{home}/tables/{new_name}"
                if new_name not in now:
                    yield f"{place} is gone", f"it had {tables[name]['rows']} rows"
                elif tables[name]["columns"] != now[new_name]["columns"]:
                    files = (old / f"tables/{home}/{name}.parquet", new / f"tables/{home}/{new_name}.parquet")
                    most = TOLERANCES.get(name, tolerance)
                    yield from table_differences(place, *files, tables[name]["key"], most)

    counted = 0
    for place, what in every():
        reasons = [why for pattern, why in RENAMES["allowed"].items() if fnmatch.fnmatch(place, pattern)]
        counted += not reasons
        print(f"note ({reasons[0]})" if reasons else "differs", f" {place}: {what}")
    return counted
