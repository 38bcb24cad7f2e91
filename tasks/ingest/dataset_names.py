"""Valid names of corpora and annotated sets."""

from __future__ import annotations

import os

from ssrem.errors import SsremError

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
