"""The base class of all settings, and types of values that validate themselves.

One settings class serves as a group of command-line options, as the parameter of a flow, and as part of a run's recipe
in the ledger, so that each description and each check is written once. Values come as JSON, or as text from the command
line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError

from ssrem.errors import SsremError, short_repr
from ssrem.registry import did_you_mean

LARGEST = 2**31 - 1
"""Largest whole number of a setting: every library that gets a seed or count can hold it."""

DEFAULT_ENCODER = "wordllama"
"""Encoder of utterances, unless another is chosen."""

SIMILARITY_SPEAKERS = 1_500
"""Default number of speakers whose sets' similarity is measured: with a fixed number the cost does not grow with the
corpus, and the interval is about as wide as that of the default corpus."""


class Settings(BaseModel, frozen=True, extra="forbid", use_attribute_docstrings=True):
    """Immutable settings; an unknown setting is refused, and so is a value that is out of range.

    The docstring below a field is its description, which the option's help and Prefect's form show.
    """

    error: ClassVar[type[SsremError]] = SsremError
    """Class of the one-line error that is raised for an unknown setting or an invalid value."""

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise self.error(explained(error, type(self).model_fields)) from None


def explained(error: ValidationError, names: Iterable[str] = (), option: str | None = None) -> str:
    """What is wrong with settings, in one line: their first error, or every reason why no type of a union fits.

    names: the known settings. option: the option by which the value was given, named in place of the field.
    """
    first, *others = error.errors()
    name = option or str(first["loc"][0] if first["loc"] else "settings")
    if first["type"] == "extra_forbidden":
        return f"no setting {name}{did_you_mean(name, names)}; there are {', '.join(names) or 'none'}"
    if first["type"] == "value_error":
        return f"{name}: {first['ctx']['error']}"
    # The types of a union have the field in common or, where no field is named, the value.
    alike = (one for one in others if one["loc"][:1] == first["loc"][:1] or one["input"] is first["input"])
    said = [one["msg"].partition(", unable to parse")[0] for one in (first, *alike)]
    reasons = [f"{text[0].lower()}{text[1:]}" for text in said]
    choices = [one for reason in reasons for one in re.findall(r"'([^']*)'", reason)]
    near = did_you_mean(str(first["input"])[:40], choices)
    return f"{name}: {' or '.join(reasons)}, not {short_repr(first['input'])}{near}"


def seconds(value: object) -> object:
    """A duration as text, such as 90, 30m or 6h, in seconds; a value that is not text stays as it is."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", value.strip())
    if match is None:
        raise ValueError(f"{value!r} is no duration such as 90, 30m or 6h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


def _memory(value: str) -> str:
    size = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT])i?B", value, re.IGNORECASE)
    if not size:
        raise ValueError(f"{value!r} is no amount of memory, such as 2GB or 500MB")
    if not 1e6 <= float(size[1]) * 1000 ** (1 + "KMGT".index(size[2].upper())) <= 1e15:
        raise ValueError(f"{value!r} is not from 1MB to 1000TB, such as 2GB or 500MB")
    return value


def _percentage(value: object) -> object:
    if not isinstance(value, str):
        return value
    number = re.fullmatch(r"(\d+(?:\.\d+)?)%", value)
    if not number or float(number[1]) > 100:
        raise ValueError(f"{value!r} is no percentage from 0% to 100%, such as 5%")
    return float(number[1]) / 100


def by_key(texts: object, form: str, value: str = ".+", once: str = "") -> Any:
    """`KEY=VALUE` texts as a mapping; anything but a list of texts stays as it is.

    form: how the ValueError for any other text describes the right form. value: pattern of values. once: if not empty,
    a key that is given twice is a ValueError, and this says what to do instead.
    """
    if not isinstance(texts, list | tuple):
        return texts
    values: dict[str, str] = {}
    for text in map(str, texts):
        match = re.fullmatch(f"([^=]+)=({value})", text, re.DOTALL)
        if not match:
            raise ValueError(f"{text!r} is not {form}")
        if once and match[1] in values:
            raise ValueError(f"{match[1]} is given twice; {once}")
        values[match[1]] = match[2]
    return values


def pairs(texts: object) -> object:
    """`KEY=VALUE` texts as a mapping; values are parsed as JSON or stay text. Any other input stays as it is."""
    values = by_key(texts, "KEY=VALUE", ".*")
    for key, value in values.items() if values is not texts else ():
        with suppress(ValueError, RecursionError):  # plain text, deeply nested, or a huge number
            values[key] = json.loads(value)
    return values


columns = partial(
    by_key,
    form="FIELD=COLUMN or FIELD=COLUMN+COLUMN, for example speaker=Name",
    value=r"[^+]+(\+[^+]+)*",
    once="join columns with +, as in speaker=A+B",
)
"""`FIELD=COLUMN` texts as a mapping of texts. Anything but a list of texts stays as it is."""


Natural = Annotated[int, Field(ge=0, le=LARGEST)]
"""A whole number from 0, such as a seed."""
Seed = Natural
Count = Annotated[int, Field(ge=1, le=LARGEST)]
Positive = Annotated[float, Field(gt=0, le=1e9)]
Share = Annotated[float, Field(gt=0, le=1)]
"""A share above 0, up to 1."""
Percentage = Annotated[float, BeforeValidator(_percentage), Field(ge=0, le=1)]
"""A share from 0 to 1; as text, a percentage such as 5%."""
Seconds = Annotated[float, BeforeValidator(seconds), Field(ge=0)]
"""A duration in seconds; as text, it may end with the unit s, m, h or d."""
Memory = Annotated[str, AfterValidator(_memory)]
"""An amount of memory, such as 2GB."""
Pairs = Annotated[dict[str, Any], BeforeValidator(pairs)]
"""A mapping; as text, KEY=VALUE pairs, whose values are JSON or else text."""
Columns = Annotated[dict[str, str], BeforeValidator(columns)]
"""Field to column, or columns joined by +; as text, FIELD=COLUMN pairs."""


class TableSettings(Settings):
    """What determines the speaker tables of a corpus."""

    seed: Seed = 0
    """seed of every draw"""
    context_turns: Count = 5
    """turns of a context at most"""
    encoder: str = DEFAULT_ENCODER
    """encoder of the set similarity: wordllama, word2vec, glove-6b-50d, all-minilm-l6-v2, minilm-mpnet,
    all-mpnet-base-v2, a vectors file, a transformer's folder or hf:NAME, a gensim.downloader name, or A+B"""
    addressees: Literal["all", "stated"] = "all"
    """turns in SP, the same-partner sets: all, or only those whose addressee the dump states or that reply to a message
    (the addressee of the others is the previous speaker)"""
    similarity: Count | Literal["all", "none"] = SIMILARITY_SPEAKERS
    """number of speakers, drawn at random, of whose sets the similarity is measured; or all, or none"""
