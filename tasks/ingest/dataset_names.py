"""Valid names of corpora and annotated sets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ssrem.errors import DumpError, SsremError
from ssrem.readers.files.sources import STDIN, base_name, common_name

_SUFFIXES = (
    ".jsonl",
    ".json",
    ".csv",
    ".tsv",
    ".parquet",
    ".gz",
    ".zst",
    ".bz2",
    ".zip",
    ".tar",
    ".tgz",
    ".ndjson",
    ".txt",
    ".log",
)

_LONGEST = 200


def checked_name(name: str, what: str, way_out: str, error: type[SsremError]) -> str:
    """Return `name` if it is valid for a corpus or annotated set: one line of printable text that is not a path.

    Otherwise raises `error` that says why `what` cannot have this name, followed by `way_out`.
    """
    if not name.strip():
        wrong = "is empty"
    elif len(name) > _LONGEST:
        wrong = f"has more than {_LONGEST} characters"
    elif name != name.strip():
        wrong = "begins or ends with a blank"
    elif not name.isprintable():
        wrong = "holds a character that cannot be printed"
    elif "/" in name or "\\" in name or name in (".", ".."):
        wrong = "is a path"
    else:
        return name
    raise error(f"{what} cannot be called {name[:_LONGEST]!r}: the name {wrong}; {way_out}")


def as_text(path: str) -> str:
    """A path as text that tables can store: bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def corpus_name(source: str | Sequence[str]) -> str:
    """Default name of a corpus: of its file or folder without the suffixes of formats, or of the folder of several."""
    if not isinstance(source, str) and len(source) > 1:
        return common_name(source)
    only = source if isinstance(source, str) else source[0]
    if only == STDIN:
        raise DumpError("- is what is piped in and has no name; name the corpus with --name")
    name = base_name(only)
    while Path(name).suffix in _SUFFIXES:
        name = Path(name).stem
    return name
