"""One line that says what a figure of agreement was computed from, in the spirit of sacreBLEU's (Post 2018)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import version
from urllib.parse import quote

import ssrem

FORMAT = "ssrem-agreement/2"
"""Its number rises when figures change: since 2, intervals of more than 200 contexts leave out groups of them."""
_NONE = "-"
_SAFE = "@+.,=/_~"
_HASH = re.compile(r"[0-9a-f]{12,64}")


@dataclass(frozen=True)
class Signature:
    """All that determines a figure of agreement.

    evaluator: 'name@version'; weights: 12 or more hex digits of its own signature's digest (see `digest`). score: f, g
    or h. data: hex digits of the annotated set's content. excluded: what was left out, sorted. n: number of responses,
    at system level as well. resamples and seed are None where nothing was drawn. The last three are the versions in
    use. ValueError where a hash is no hash, a number is below 0, or a text is empty.
    """

    evaluator: str
    weights: str
    score: str
    dataset: str
    data: str
    criterion: str
    aggregation: str
    level: str
    grouping: str
    measure: str
    excluded: tuple[str, ...]
    n: int
    resamples: int | None
    seed: int | None
    ssrem: str
    numpy: str
    scipy: str

    def __post_init__(self) -> None:
        for name in ("weights", "data"):
            if not _HASH.fullmatch(getattr(self, name)):
                raise ValueError(f"{name} is {getattr(self, name)!r}, not 12 to 64 hex digits")
        for field in fields(self):
            value = getattr(self, field.name)
            if value in ("", _NONE) or (isinstance(value, int) and value < 0):
                raise ValueError(f"{field.name} cannot be {value!r}")
        if list(self.excluded) != sorted(set(self.excluded)) or {"", _NONE} & set(self.excluded):
            raise ValueError(f"excluded {self.excluded} is not sorted, or names nothing")
        if any("," in one for one in self.excluded):
            raise ValueError("a comma stands between what is excluded, not within it")

    def __str__(self) -> str:
        return "|".join(
            [FORMAT, *(f"{field.name}:{_written(getattr(self, field.name))}" for field in fields(self))]
        )


def digest(text: str) -> str:
    """12 hex digits of a text, such as of an evaluator's signature."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# Cached: reading a package's metadata takes milliseconds, and a table has hundreds of figures.
_installed = cache(version)


def versions() -> dict[str, str]:
    """The versions of ssrem, SciPy and NumPy, by the field of a signature."""
    return {"ssrem": ssrem.__version__, "numpy": _installed("numpy"), "scipy": _installed("scipy")}


def _written(value: object) -> str:
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    return _NONE if value in (None, ()) else quote(text, safe=_SAFE)
