"""One line that reproduces a figure of agreement, in the spirit of sacreBLEU's (Post 2018)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import version
from urllib.parse import quote, unquote

import ssrem
from ssrem.errors import SsremError

FORMAT = "ssrem-agreement/1"
_NONE = "-"
_SAFE = "@+.,=/_~"
_HASH = re.compile(r"[0-9a-f]{12,64}")


class SignatureError(SsremError):
    """A line is no signature of agreement: what is wrong with it."""


@dataclass(frozen=True)
class Signature:
    """What a figure rests on.

    evaluator: 'name@version'; weights: 12 or more hex digits of its own signature's digest (see `digest`). score: f, g
    or h. data: hex digits of the annotated set's content. excluded: what was left out, sorted. n: responses (system
    level: too). resamples and seed are None where nothing was drawn. The last three are the versions in use.
    ValueError where a hash is no hash, a number is below 0, or a text is empty.
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


def parse(line: str) -> Signature:
    """The signature that was written as this line. SignatureError where it is none, or is of another format."""
    form, *parts = line.strip().split("|")
    if form != FORMAT:
        raise SignatureError(f"a signature begins with {FORMAT}, not with {form[:40]!r}; copy the whole line")
    found: dict[str, str] = {}
    for part in parts:
        name, colon, value = part.partition(":")
        if not colon or not value or name in found:
            raise SignatureError(
                f"{part[:40]!r} is no part of a signature, or a second one; copy the whole line"
            )
        found[name] = unquote(value)
    names = [field.name for field in fields(Signature)]
    if list(found) != names:
        wrong = [name for name in names if name not in found] or [name for name in found if name not in names]
        raise SignatureError(
            f"the parts of a signature are {', '.join(names)}; look at {', '.join(wrong or names)}"
        )
    try:
        signature = Signature(
            **{name: found[name] for name in names if name not in ("excluded", "n", "resamples", "seed")},
            excluded=() if found["excluded"] == _NONE else tuple(found["excluded"].split(",")),
            n=int(found["n"]),
            resamples=None if found["resamples"] == _NONE else int(found["resamples"]),
            seed=None if found["seed"] == _NONE else int(found["seed"]),
        )
    except ValueError as error:
        raise SignatureError(f"the signature cannot be read: {error}") from None
    return signature


def differences(there: Signature, here: Signature) -> list[str]:
    """What differs between two signatures, a sentence each, what matters most first; empty where nothing does.

    A hash is the same as one that it begins: either may be cut.
    """
    said = []
    for name, what in _WORDS.items():
        one, other = getattr(there, name), getattr(here, name)
        if one == other:
            continue
        if name in ("weights", "data") and (one.startswith(other) or other.startswith(one)):
            continue
        said.append(f"{what}: {_shown(one)} there, {_shown(other)} here")
    return said


def digest(text: str) -> str:
    """12 hex digits of a text, such as of an evaluator's signature."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


_installed = cache(
    version
)  # reading a package's metadata takes milliseconds, and a table has hundreds of figures


def versions() -> dict[str, str]:
    """The versions that a signature names, by its fields."""
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
    if value is None or value == ():
        return _NONE
    return quote(",".join(value) if isinstance(value, tuple) else str(value), safe=_SAFE)


def _shown(value: object) -> str:
    if value is None or value == ():
        return "none"
    return ", ".join(value) if isinstance(value, tuple) else str(value)
