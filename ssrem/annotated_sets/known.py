"""Public annotated sets that are known: where their authors publish them, and what to hold a copy against."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit


@dataclass(frozen=True)
class KnownSet:
    """A public annotated set.

    url: at its authors', of one version. sha256, bytes: of that file; None where nobody has checked one, and it is
    fetched by hand. layout: as `read_set` takes it. responses: how many it holds. licence: what its authors state.
    """

    name: str
    url: str
    sha256: str | None
    bytes: int | None
    layout: str
    responses: int
    licence: str
    citation: str

    def file(self, folder: Path) -> Path:
        """Where a copy of it lies in a folder."""
        return folder / f"{self.name}{PurePosixPath(urlsplit(self.url).path).suffix.lower()}"

    def same(self, path: Path) -> bool:
        """Whether the file is what was registered; where no checksum is known, any file is."""
        if self.sha256 is None:
            return True
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest() == self.sha256


def known_sets() -> Mapping[str, KnownSet]:
    """Name → set, in the order in which they are listed."""
    written = files("ssrem.annotated_sets").joinpath("known.json").read_text(encoding="utf-8")
    return {row["name"]: KnownSet(**row) for row in json.loads(written)}
