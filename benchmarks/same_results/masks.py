"""What differs from run to run, and is left out of comparisons: ids, times, folders, hashes of weights, versions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.same_results.command import ROOT

NAMES = frozenset(
    ("run_id", "landed_at", "trained_at", "decided_at", "promoted_at", "seconds", "bytes", "ssrem_version")
)
"""Columns of tables and keys of JSON objects whose values differ from run to run."""

IN_TABLES = {"runs": ("key", "inputs", "started", "ended")}
"""Table to its columns of that kind, whose names mean something else in other tables."""

ANYWHERE = (
    (r"\d{8}T\d{6}-[0-9a-f]{12}", "<run>"),
    (r"seconds=[0-9.e-]+", "seconds=<masked>"),
    (r'"people": \["[0-9a-f]{32}"\]', '"people": ["<salted hash>"]'),
)
TIME = (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?", "<time>")
IN_SIGNATURES = (
    # Figures are compared with a tolerance, which a hash of the weights does not have.
    (r"\b(w|weights):[0-9a-f]{8,64}\b", "${1}:<hash>"),
    (r"\b(ssrem|numpy|scipy):[0-9.]+\w*", "${1}:<version>"),
)


def masked(value: Any, folder: Path, name: str = "") -> Any:
    """A value as JSON has it without what differs from run to run; `name` is its key."""
    if isinstance(value, Mapping):
        return {key: masked(one, folder, key) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [masked(one, folder, name) for one in value]
    if value is not None and name in NAMES:
        return "<masked>"
    if isinstance(value, str):
        value = value.replace(str(folder), "<folder>").replace(str(ROOT), "<repository>")
        for pattern, instead in (*ANYWHERE, TIME, *(IN_SIGNATURES if "signature" in name else ())):
            value = re.sub(pattern, instead.replace("${1}", r"\1"), value)
    return value


def masked_table(table: str, frame: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """A table without what differs from run to run; texts of the corpus stay as they are."""
    for column, kind in frame.schema.items():
        cells = pl.col(column)
        if column in (*NAMES, *IN_TABLES.get(table, ())):
            cells = pl.when(cells.is_null()).then(None).otherwise(pl.lit("<masked>")).alias(column)
        elif kind == pl.String and column not in ("text", "response", "reference"):
            cells = cells.str.replace_all(str(folder), "<folder>", literal=True)
            for pattern, instead in (*ANYWHERE, *(IN_SIGNATURES if "signature" in column else ())):
                cells = cells.str.replace_all(pattern, instead)
        else:
            continue
        frame = frame.with_columns(cells)
    return frame


def parsed(output: str) -> Any:
    """The output as JSON, as a list of JSON lines, or else as lines of text."""
    try:
        return json.loads(output)
    except ValueError:
        lines = output.splitlines()
        return [json.loads(line) for line in lines] if output.startswith("{") else lines
