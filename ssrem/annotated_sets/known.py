"""The public annotated sets that `ssrem ratings` lists: where their authors publish them, their checksums, and their
download. A downloaded file appears in its folder only after its checksum was verified."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from ssrem import __version__
from ssrem.errors import AnnotationError
from ssrem.files import sha256, temporary_folder
from ssrem.registry import did_you_mean

TIMEOUT = 30.0
"""Seconds without a byte after which a download fails."""

_CHUNK = 1 << 16


@dataclass(frozen=True)
class KnownSet:
    """A public annotated set.

    url: one version of the file, published by its authors. sha256, bytes: checksum and size of that file; None if no
    copy was verified: users then fetch it by hand, and url may be a page that leads to it. layout, map: the arguments
    layout and mapping of `read_set`. responses: number of responses. licence: as its authors state it.
    """

    name: str
    url: str
    sha256: str | None
    bytes: int | None
    layout: str
    responses: int
    licence: str
    citation: str
    map: Mapping[str, str] = field(default_factory=dict)

    def file(self, folder: Path) -> Path:
        """Path that a copy of the set has in a folder."""
        return folder / f"{self.name}{PurePosixPath(urlsplit(self.url).path).suffix.lower()}"

    def same(self, path: Path) -> bool:
        """Whether the file has the registered checksum; True if none is registered."""
        return self.sha256 in (None, sha256(path))


def known_set(name: str) -> KnownSet:
    """The set of that name; AnnotationError if there is none."""
    known = known_sets()
    if name not in known:
        near = did_you_mean(name, known) or "; give a file or such a name"
        raise AnnotationError(f"{name} does not exist, and is no set that ssrem ratings list names{near}")
    return known[name]


def known_sets() -> Mapping[str, KnownSet]:
    """All public sets by name, in the order in which they are listed."""
    written = files("ssrem.annotated_sets").joinpath("known.json").read_text(encoding="utf-8")
    return {row["name"]: KnownSet(**row) for row in json.loads(written)}


def pull(known: KnownSet, folder: Path) -> tuple[Path, bool]:
    """Fetch the set into the folder, unless it is there; returns its file, and whether it was fetched now.

    AnnotationError if it cannot be fetched, its checksum is not the registered one or none is registered, or another
    file has its name; no new file is left behind then.
    """
    from http.client import HTTPException

    target = known.file(folder)
    by_hand = f"fetch {known.url} by hand to {target}"
    if target.exists():
        if known.same(target):
            return target, False
        raise AnnotationError(f"{known.name}: {target} is something else; remove it, or use another --to")
    if known.sha256 is None:
        raise AnnotationError(f"{known.name}: no checksum is registered to verify a download; {by_hand}")
    folder.mkdir(parents=True, exist_ok=True)
    with temporary_folder(folder) as scratch:
        part = scratch / "part"
        try:
            _stream(known, part)
        except (OSError, HTTPException) as error:
            raise AnnotationError(f"{known.name}: cannot be fetched ({_reason(error)}); {by_hand}") from None
        digest, size = sha256(part), part.stat().st_size
        if digest == known.sha256:
            part.replace(target)
            return target, True
    if known.bytes is not None and size < known.bytes:
        ended = f"the connection ended after {size:,} of {known.bytes:,} bytes"
        raise AnnotationError(f"{known.name}: cannot be fetched ({ended}); try again, or {by_hand}")
    raise AnnotationError(
        f"{known.name}: what {known.url} holds is not what was registered (sha256 {digest[:12]}…, not "
        f"{known.sha256[:12]}…), so it was deleted; look there what has changed"
    )


def _stream(known: KnownSet, part: Path) -> None:
    """Download the set into the file `part`; stop at most one chunk after its registered size."""
    import urllib.request

    request = urllib.request.Request(known.url, headers={"User-Agent": f"ssrem/{__version__}"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, part.open("wb") as draft:
        while draft.tell() <= (known.bytes or 0) and (chunk := answer.read(_CHUNK)):
            draft.write(chunk)


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    text = " ".join(str(getattr(reason, "strerror", None) or reason).split()) or type(error).__name__
    return f"HTTP {error.code} {text}" if hasattr(error, "code") else text
