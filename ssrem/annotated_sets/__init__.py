"""Annotated sets (responses with human ratings) in every layout in which they are published; one file a layout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ssrem.annotated_sets.base import AnnotatedSet, Content, Layout
from ssrem.errors import AnnotationError
from ssrem.registry import did_you_mean, registered

__all__ = ["EVAL", "LAYOUTS", "AnnotatedSet", "layout_of", "read_set"]

EVAL = "eval"
"""The layout of `*_eval.json`, our own."""

LAYOUTS: Mapping[str, str] = {
    "pairwise": "ssrem.annotated_sets.pairwise:PairwiseLayout",
    "parquet": "ssrem.annotated_sets.tables:ParquetLayout",
    "usr": "ssrem.annotated_sets.usr:UsrLayout",
    "grade": "ssrem.annotated_sets.grade:GradeLayout",
    "fed": "ssrem.annotated_sets.fed:FedLayout",
    "conture": "ssrem.annotated_sets.conture:ContureLayout",
    "zhao": "ssrem.annotated_sets.zhao:ZhaoLayout",
    "dailydialog-plusplus": "ssrem.annotated_sets.dailydialog_pp:DailyDialogPlusPlusLayout",
    "label-studio": "ssrem.annotated_sets.label_studio:LabelStudioLayout",
    "humod": "ssrem.annotated_sets.humod:HumodLayout",
    "tsv": "ssrem.annotated_sets.tables:TsvLayout",
    "csv": "ssrem.annotated_sets.tables:CsvLayout",
    "jsonl": "ssrem.annotated_sets.tables:JsonLinesLayout",
    EVAL: "ssrem.annotated_sets.eval_json:EvalLayout",
}
"""Layout → where its `Layout` is, in the order in which content is tried; imported when first used."""


def read_set(path: Path, layout: str | None = None, mapping: Mapping[str, str] | None = None) -> AnnotatedSet:
    """Read a file or folder as an annotated set.

    layout: a key of LAYOUTS, or `grade:PART` for one of several sets in a file; recognised from the content if None.
    mapping: fields to columns, used by the layouts for tables only. Raises AnnotationError that names the row that
    cannot be read, or the known layouts.
    """
    content = Content(path)
    name, _, part = (layout or layout_of(content)).partition(":")
    if name not in LAYOUTS:
        near = did_you_mean(name, LAYOUTS)
        raise AnnotationError(f"there is no layout {name!r}{near}; the layouts are {', '.join(LAYOUTS)}")
    if part and not layout_class(name).holds_parts:
        several = ", ".join(one for one in LAYOUTS if layout_class(one).holds_parts)
        raise AnnotationError(
            f"--layout {layout}: only {several} files hold several sets; give --layout {name}"
        )
    return layout_class(name)(content, mapping, part or None).read()


def layout_of(content: Content) -> str:
    """The layout that the content looks like; AnnotationError that lists the known layouts if it is none of them."""
    for name in LAYOUTS:
        if layout_class(name).looks_like(content):
            return name
    path = content.path
    if path.is_dir():
        raise AnnotationError(
            f"{path}: the folder is of no known layout (GRADE's has a folder a model, with human_ctx.txt); give a file"
        )
    raise AnnotationError(
        f"{path}: the content is of no known layout; the layouts are {', '.join(LAYOUTS)}; name one with --layout"
    )


def layout_class(name: str) -> type[Layout]:
    """The layout of a name in LAYOUTS."""
    layout: type[Layout] = registered(LAYOUTS[name])
    return layout
