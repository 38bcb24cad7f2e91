"""One line that reproduces a figure of agreement, in the spirit of sacreBLEU's (Post 2018)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import version
from typing import Any
from urllib.parse import quote, unquote

import ssrem
from ssrem.errors import SsremError

FORMAT = "ssrem-agreement/2"
"""Its number rises when figures change: since 2, intervals of more than 200 contexts leave out groups of them."""
MOST_RESAMPLES = 10_000
"""Ten times as many as published figures have; millions would not fit into memory."""
_NONE = "-"
_SAFE = "@+.,=/_~"
_HASH = re.compile(r"[0-9a-f]{12,64}")


class SignatureError(SsremError):
    """The text is not a signature of a figure of agreement; the message says what is wrong with it."""


@dataclass(frozen=True)
class Signature:
    """All that determines a figure of agreement.

    evaluator: 'name@version'; weights: 12 or more hex digits of its own signature's digest (see `digest`). score: f, g
    or h. data: hex digits of the annotated set's content. excluded: what was left out, sorted. n: number of responses,
    at system level as well. resamples and seed are None where nothing was drawn. The last three are the versions in
    use. ValueError where a hash is no hash, a number is below 0, a text is empty, or resamples is not from 1 to
    MOST_RESAMPLES.
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
        if self.resamples is not None and not 1 <= self.resamples <= MOST_RESAMPLES:
            raise ValueError(f"resamples is {self.resamples}, not from 1 to {MOST_RESAMPLES:,}")
        if list(self.excluded) != sorted(set(self.excluded)) or {"", _NONE} & set(self.excluded):
            raise ValueError(f"excluded {self.excluded} is not sorted, or names nothing")
        if any("," in one for one in self.excluded):
            raise ValueError("a comma stands between what is excluded, not within it")

    def __str__(self) -> str:
        return "|".join(
            [FORMAT, *(f"{field.name}:{_written(getattr(self, field.name))}" for field in fields(self))]
        )


def parse(line: str) -> Signature:
    """The signature that was written as this line. SignatureError where it is none, or is of another format."""
    form, *parts = line.strip().split("|")
    if form != FORMAT:
        raise SignatureError(f"a signature begins with {FORMAT}, not with {form[:40]!r}; copy the whole line")
    texts: dict[str, str] = {}
    for part in parts:
        name, colon, value = part.partition(":")
        if not colon or not value or name in texts:
            raise SignatureError(
                f"{part[:40]!r} is not a part of a signature, or occurs twice; copy the whole line"
            )
        texts[name] = unquote(value)
    names = [field.name for field in fields(Signature)]
    if list(texts) != names:
        wrong = sorted(set(names) ^ set(texts), key=[*names, *texts].index) or names
        raise SignatureError(f"the parts of a signature are {', '.join(names)}; look at {', '.join(wrong)}")
    values: dict[str, Any] = dict(texts)
    try:
        values["excluded"] = () if texts["excluded"] == _NONE else tuple(texts["excluded"].split(","))
        values["n"] = int(texts["n"])
        for name in ("resamples", "seed"):
            values[name] = None if texts[name] == _NONE else int(texts[name])
        return Signature(**values)
    except ValueError as error:
        raise SignatureError(f"the signature cannot be read: {error}") from None


def differences(theirs: Signature, ours: Signature) -> list[str]:
    """The differences between another signature and ours, a sentence each, the most important first.

    Two hashes are the same if one begins with the other: either may be cut.
    """
    sentences = []
    for name, what in _WORDS.items():
        one, other = getattr(theirs, name), getattr(ours, name)
        same_hash = name in ("weights", "data") and (one.startswith(other) or other.startswith(one))
        if one != other and not same_hash:
            sentences.append(f"{what}: {_shown(one)} in the signature, {_shown(other)} here")
    return sentences


def digest(text: str) -> str:
    """12 hex digits of a text, such as of an evaluator's signature."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# Cached: reading a package's metadata takes milliseconds, and a table has hundreds of figures.
_installed = cache(version)


def versions() -> dict[str, str]:
    """The versions of ssrem, SciPy and NumPy, by the field of a signature."""
    return {"ssrem": ssrem.__version__, "numpy": _installed("numpy"), "scipy": _installed("scipy")}


_WORDS = {
    "data": "the annotated set has other content",
    "dataset": "the annotated set has another name",
    "evaluator": "another evaluator or version of it",
    "weights": "the evaluator scores differently (its settings, encoder or weights)",
    "score": "another score of the evaluator",
    "criterion": "another criterion",
    "aggregation": "the raters' scores are aggregated differently",
    "excluded": "other responses or raters are left out",
    "level": "another level",
    "grouping": "grouped differently",
    "measure": "another measure",
    "n": "another number of responses",
    "resamples": "another number of resamples",
    "seed": "another seed",
    "ssrem": "another version of ssrem",
    "scipy": "another version of SciPy",
    "numpy": "another version of NumPy",
}


def _written(value: object) -> str:
    return _NONE if value in (None, ()) else quote(_joined(value, ","), safe=_SAFE)


def _shown(value: object) -> str:
    return "none" if value in (None, ()) else _joined(value, ", ")


def _joined(value: object, separator: str) -> str:
    return separator.join(value) if isinstance(value, tuple) else str(value)
