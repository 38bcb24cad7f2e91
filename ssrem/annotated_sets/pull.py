"""Downloads a public annotated set; the file appears at its place only after its checksum was verified."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from pathlib import Path

from ssrem import __version__
from ssrem.annotated_sets.known import KnownSet
from ssrem.errors import AnnotationError
from ssrem.files import temporary_folder

TIMEOUT = 30.0
"""Seconds without a byte after which a download fails."""

_CHUNK = 1 << 16


def pull(known: KnownSet, folder: Path) -> tuple[Path, bool]:
    """Fetch the set into the folder; returns its file, and whether it was fetched now.

    AnnotationError, with the URL and the path, if it cannot be fetched, its checksum is not the registered one, or
    another file has its name; nothing is left behind then.
    """
    target = known.file(folder)
    by_hand = f"fetch {known.url} by hand to {target}"
    if known.sha256 is None:
        if target.exists():
            return target, False
        raise AnnotationError(f"{known.name}: no checksum is registered to verify a download; {by_hand}")
    if target.exists():
        if known.same(target):
            return target, False
        raise AnnotationError(f"{known.name}: {target} is something else; remove it, or use another --to")
    folder.mkdir(parents=True, exist_ok=True)
    with temporary_folder(folder) as scratch:
        part = scratch / "part"
        try:
            digest, size = _stream(known, part)
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            raise AnnotationError(f"{known.name}: cannot be fetched ({_reason(error)}); {by_hand}") from None
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


def _stream(known: KnownSet, part: Path) -> tuple[str, int]:
    """sha256 and size in bytes of the download, which stops after one chunk more than registered."""
    digest, size = hashlib.sha256(), 0
    request = urllib.request.Request(known.url, headers={"User-Agent": f"ssrem/{__version__}"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, part.open("wb") as draft:
        while chunk := answer.read(_CHUNK):
            draft.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            if known.bytes is not None and size > known.bytes:
                break
    return digest.hexdigest(), size


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    reason = getattr(error, "reason", error)
    return " ".join(str(getattr(reason, "strerror", None) or reason).split()) or type(error).__name__
