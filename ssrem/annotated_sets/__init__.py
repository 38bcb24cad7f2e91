"""Annotated sets in every layout that they are published in → responses with raters' scores; one file a layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ssrem.agreement.annotated import file_text, json_rows, read_annotated
from ssrem.annotated_sets import fed, grade, humod, tables, usr
from ssrem.annotated_sets.base import AnnotatedSet, annotated_set
from ssrem.errors import AnnotationError
from ssrem.readers.delimited import CsvReader, TsvReader

__all__ = ["EVAL", "LAYOUTS", "MAPPED", "AnnotatedSet", "layout_of", "read_set"]

EVAL = "eval"
"""`*_eval.json`, whose reader takes nothing that it would have to leave out."""

MAPPED = ("csv", "tsv", "jsonl")
"""Layouts that take a mapping."""

LAYOUTS = (EVAL, usr.LAYOUT, fed.LAYOUT, grade.LAYOUT, humod.LAYOUT, *MAPPED)

_FIELDS = {"context", "response", "annotations"}


def read_set(path: Path, layout: str | None = None, mapping: Mapping[str, str] | None = None) -> AnnotatedSet:
    """Read a file or folder as an annotated set.

    layout: a key of LAYOUTS, `grade:PART` for one of several sets in a file; told from the content where it is not
    given. mapping: fields to columns, which only tables have (MAPPED); others' are known. AnnotationError names what
    cannot be read, with its row, or the layouts there are.
    """
    name, _, part = (layout or layout_of(path)).partition(":")
    if name not in LAYOUTS:
        raise AnnotationError(f"there is no layout {name!r}; the layouts are {', '.join(LAYOUTS)}")
    if part and name != grade.LAYOUT:
        raise AnnotationError(
            f"--layout {layout}: only {grade.LAYOUT} files hold several sets; give --layout {name}"
        )
    if name in MAPPED:
        return tables.read(path, name, mapping)
    if name == grade.LAYOUT:
        return grade.read_folder(path) if path.is_dir() else grade.read(path, part or None)
    if name == EVAL:
        return annotated_set(EVAL, read_annotated(path), Counter(), [path])
    return {usr.LAYOUT: usr.read, fed.LAYOUT: fed.read, humod.LAYOUT: humod.read}[name](path)


def layout_of(path: Path) -> str:
    """The layout that the content looks like; AnnotationError, with the layouts there are, where it is none."""
    if path.is_dir():
        if grade.looks_like_folder(path):
            return grade.LAYOUT
        raise AnnotationError(
            f"{path}: the folder is of no known layout (GRADE's has a folder a model, with human_ctx.txt); give a file"
        )
    text = file_text(path)
    start = text.lstrip()[:1]
    if start in ("[", "{"):
        return _json_layout(path, listed=start == "[")
    if path.suffix.lower() in (".json", ".jsonl"):
        return EVAL  # whose reader says what is wrong with it
    if humod.looks_like(text.partition("\n")[0]):
        return humod.LAYOUT
    for reader in (TsvReader, CsvReader):
        if reader.sniff(path):
            return reader.format
    raise _unknown(path)


def _json_layout(path: Path, *, listed: bool) -> str:
    rows = json_rows(path)
    first: Any = rows[0] if rows else None
    if not isinstance(first, dict):
        return EVAL
    if usr.looks_like(first):
        return usr.LAYOUT
    if grade.looks_like(first):
        return grade.LAYOUT
    if fed.looks_like(first):
        return fed.LAYOUT
    if not listed and not isinstance(first.get("annotations"), dict):
        return "jsonl"
    if not _FIELDS & first.keys():
        raise _unknown(path)
    return EVAL


def _unknown(path: Path) -> AnnotationError:
    return AnnotationError(
        f"{path}: the content is of no known layout; the layouts are {', '.join(LAYOUTS)}; name one with --layout"
    )
