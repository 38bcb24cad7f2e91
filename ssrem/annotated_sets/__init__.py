"""Annotated sets: responses with human ratings, in every layout in which they are published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ssrem.annotated_sets.base import AnnotatedSet, Layout, Source, rated
from ssrem.errors import AnnotationError, short_repr
from ssrem.registry import did_you_mean, object_at

__all__ = ["EVAL", "LAYOUTS", "AnnotatedSet", "layout_called", "layout_of", "read_set"]

EVAL = "eval"
"""Name of this project's own layout, that of `*_eval.json`."""

LAYOUTS: Mapping[str, str] = {
    "pairwise": "ssrem.annotated_sets.published:pairwise",
    "parquet": "ssrem.annotated_sets.tables:parquet",
    "usr": "ssrem.annotated_sets.published:usr",
    "grade": "ssrem.annotated_sets.published:grade",
    "fed": "ssrem.annotated_sets.published:fed",
    "conture": "ssrem.annotated_sets.published:conture",
    "zhao": "ssrem.annotated_sets.published:zhao",
    "dailydialog-plusplus": "ssrem.annotated_sets.published:dailydialog_plusplus",
    "label-studio": "ssrem.annotated_sets.tables:label_studio",
    "tsv": "ssrem.annotated_sets.tables:tsv",
    "csv": "ssrem.annotated_sets.tables:csv",
    "jsonl": "ssrem.annotated_sets.tables:jsonl",
    EVAL: "ssrem.annotated_sets.published:eval_json",
}
"""Name of a layout → import path of its `Layout`, imported when first used. Content is tried in this order."""


def read_set(path: Path, layout: str | None = None, mapping: Mapping[str, str] | None = None) -> AnnotatedSet:
    """Read a file as an annotated set.

    layout: a key of LAYOUTS, or `grade:PART` for one of several sets in a file; recognised from the content if None.
    mapping: field → column, used by the layouts for tables only. Raises AnnotationError for an unknown layout, and for
    a row that cannot be read, which it names.
    """
    source = Source(path, mapping)
    name, _, part = (layout or layout_of(source)).partition(":")
    if name not in LAYOUTS:
        near = did_you_mean(name, LAYOUTS)
        raise AnnotationError(f"there is no layout {name!r}{near}; the layouts are {', '.join(LAYOUTS)}")
    if part and name != "grade":
        raise AnnotationError(f"--layout {layout}: only grade files hold several sets; give --layout {name}")
    chosen = layout_called(name)
    source.part, source.named = part, chosen.takes_mapping
    rows = tuple(rated(source, chosen.rows(source)))
    counts = {what: count for what, count in source.left_out.items() if count}
    read = AnnotatedSet(name, rows, counts, part or None, chosen.takes_mapping, source.columns, source.scores)
    if not rows:
        raise AnnotationError(f"{path}: {read.summary}; there is nothing to compare with")
    return read


def layout_of(source: Source) -> str:
    """Name of the layout that the source looks like; AnnotationError, which lists all layouts, if there is none."""
    if found := next((name for name in LAYOUTS if layout_called(name).looks_like(source)), None):
        return found
    way_out = "name one with --layout"
    if source.first:
        row = short_repr(dict(source.first), 300)
        keys = "--map context=KEY.KEY response=KEY score=KEY"
        way_out += f"; a row is {row}; name its keys with --map, as in {keys}"
    raise AnnotationError(
        f"{source.path}: the content is of no known layout; the layouts are {', '.join(LAYOUTS)}; {way_out}"
    )


def layout_called(name: str) -> Layout:
    """The `Layout` with this name, a key of LAYOUTS."""
    layout: Layout = object_at(LAYOUTS[name])
    return layout
