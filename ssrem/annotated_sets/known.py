"""The public annotated sets that `ssrem ratings` lists: where their authors publish them, and their checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from ssrem.errors import AnnotationError
from ssrem.registry import did_you_mean


@dataclass(frozen=True)
class KnownSet:
    """A public annotated set.

    url: one version of the file, published by its authors. sha256, bytes: of that file; None if no copy was verified,
    so that users fetch it by hand, perhaps from a page that leads to it. layout, map: as `read_set` takes layout and
    mapping. responses: number of them. licence: as its authors state it.
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
        """Path of its copy in a folder."""
        return folder / f"{self.name}{PurePosixPath(urlsplit(self.url).path).suffix.lower()}"

    def same(self, path: Path) -> bool:
        """Whether the file has the registered checksum; True if none is registered."""
        if self.sha256 is None:
            return True
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest() == self.sha256


def known_set(name: str) -> KnownSet:
    """The set of that name; AnnotationError if there is none."""
    known = known_sets()
    if name not in known:
        near = did_you_mean(name, known) or "; give a file or such a name"
        raise AnnotationError(f"{name} does not exist, and is no set that ssrem ratings list names{near}")
    return known[name]


def known_sets() -> Mapping[str, KnownSet]:
    """Name → set, in the order of the listing."""
    written = files("ssrem.annotated_sets").joinpath("known.json").read_text(encoding="utf-8")
    return {row["name"]: KnownSet(**row) for row in json.loads(written)}
