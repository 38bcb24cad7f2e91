"""Valid names of corpora, annotated sets and evaluators."""

from __future__ import annotations

from ssrem.errors import SsremError

_LONGEST = 200


def checked_name(name: str, what: str, way_out: str, error: type[SsremError]) -> str:
    """Return `name` if it is valid: one line of printable text that is not a path.

    Otherwise raises `error` that says why `what` cannot have this name, followed by `way_out`.
    """
    faults = {
        "is empty": not name.strip(),
        f"has more than {_LONGEST} characters": len(name) > _LONGEST,
        "begins or ends with a blank": name != name.strip(),
        "holds a character that cannot be printed": not name.isprintable(),
        "is a path": "/" in name or "\\" in name or name in (".", ".."),
    }
    if wrong := next((wrong for wrong, found in faults.items() if found), None):
        raise error(f"{what} cannot be called {name[:_LONGEST]!r}: the name {wrong}; {way_out}")
    return name
