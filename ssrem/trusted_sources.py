"""Restricts which files and models an evaluator from elsewhere may read while it is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from ssrem.errors import EvaluatorError
from ssrem.files import expanded

_trusted: set[str] = set()
_restriction: ContextVar[tuple[Path, frozenset[str]] | None] = ContextVar("restriction", default=None)


@contextmanager
def restricted_to(folder: Path, allowed: Iterable[str] = ()) -> Iterator[None]:
    """In this block, let `check` accept only paths in `folder`, installed packages and the specs in `allowed`.

    An evaluator that names any other path, or a model that would have to be downloaded, raises EvaluatorError.
    """
    parts = (without_prefix(part) for spec in allowed for part in (spec, *spec.split("+")))
    token = _restriction.set((folder.resolve(), frozenset(parts)))
    try:
        yield
    finally:
        _restriction.reset(token)


def trust(spec: str) -> str:
    """Accept `spec`, the name or folder of a model from an installed package, under every restriction; returns it."""
    _trusted.add(spec)
    return spec


def check(spec: str | Path) -> None:
    """Raise EvaluatorError if a restriction is active and `spec`, a path or a name to download, is outside it."""
    restriction, bare = _restriction.get(), without_prefix(str(spec))
    if restriction is None or bare in _trusted:
        return
    folder, allowed = restriction
    path = expanded(bare)
    if bare in allowed or (path.is_absolute() and path.resolve().is_relative_to(folder)):
        return
    raise EvaluatorError(
        f"the evaluator reads {str(spec)!r}, which is not part of it; if you trust that source, add it with --allow"
    )


def without_prefix(spec: str) -> str:
    """The spec without "hf:" or "file:"."""
    return spec.removeprefix("hf:").removeprefix("file:")
