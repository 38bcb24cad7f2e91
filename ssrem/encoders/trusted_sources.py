"""What an evaluator from elsewhere may reach for while it is loaded: what it brings and what packages bring."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from ssrem.errors import EvaluatorError


@dataclass(frozen=True)
class _Seal:
    folder: Path
    allowed: frozenset[str]


_vouched: set[str] = set()
_seal: ContextVar[_Seal | None] = ContextVar("seal", default=None)


@contextmanager
def sealed(folder: Path, allowed: Iterable[str] = ()) -> Iterator[None]:
    """Inside, encoders and models are read from `folder`, from packages, or are among the specs in `allowed`.

    Anything else that an evaluator names, a path or what would have to be fetched, is an EvaluatorError.
    """
    parts = (_bare(part) for spec in allowed for part in (spec, *spec.split("+")))
    token = _seal.set(_Seal(folder.resolve(), frozenset(parts)))
    try:
        yield
    finally:
        _seal.reset(token)


def vouch(spec: str) -> str:
    """`spec`, the name or folder of what an installed package brings, which no seal keeps from being read."""
    _vouched.add(spec)
    return spec


def check(spec: str | Path) -> None:
    """EvaluatorError where a seal keeps what `spec` names, a path or a name to be fetched, from being read."""
    seal, bare = _seal.get(), _bare(str(spec))
    if seal is None or bare in seal.allowed or bare in _vouched:
        return
    path = Path(bare).expanduser()
    if path.is_absolute() and path.resolve().is_relative_to(seal.folder):
        return
    raise EvaluatorError(
        f"it reaches for {str(spec)!r}, which it does not bring; if you trust it, name that with --allow"
    )


def _bare(spec: str) -> str:
    return spec.removeprefix("hf:").removeprefix("file:")
