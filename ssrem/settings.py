"""The base of all settings, and types of values that check themselves.

A model of settings is at once a group of command-line options, the parameter of a flow, and part of the ledger's
recipe: each text and each check is written once. Values come as JSON, or as text from the command line.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from ssrem.errors import SsremError
from ssrem.registry import did_you_mean

LARGEST = 2**31 - 1
"""Largest whole number of a setting: every library that gets a seed or count can hold it."""


class Settings(BaseModel, frozen=True, extra="forbid"):
    """Immutable settings; an unknown one is refused, and so is a value that is out of range."""

    def __init__(self, **values: Any) -> None:
        """SsremError, in one line, for a setting that does not exist or a value that does not fit."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise SsremError(explained(error, list(type(self).model_fields))) from None


def explained(error: ValidationError, names: list[str]) -> str:
    """The first thing that is wrong with settings, in one line; names: the settings that there are."""
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"])) or "settings"
    if first["type"] == "extra_forbidden":
        return f"no setting {name}{did_you_mean(name, names)}; there are {', '.join(names)}"
    if first["type"] == "value_error":
        return f"{name}: {first['ctx']['error']}"
    return f"{name}: {first['msg'][0].lower()}{first['msg'][1:]}, not {first['input']!r}"


def seconds(value: object) -> object:
    """A duration, such as 90, 30m or 6h, in seconds."""
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


def pairs(texts: object) -> object:
    """`KEY=VALUE` texts as a mapping: a value is JSON, or else text. Anything but a list of texts stays as it is."""
    if not isinstance(texts, list | tuple):
        return texts
    values: dict[str, Any] = {}
    for text in texts:
        key, equals, value = str(text).partition("=")
        if not equals or not key:
            raise ValueError(f"{text!r} is not KEY=VALUE")
        try:
            values[key] = json.loads(value)
        except (ValueError, RecursionError):  # nested deeply, or a number of thousands of digits
            values[key] = value
    return values


Seed = Annotated[int, Field(ge=0, le=LARGEST)]
"""Seed of a draw: a whole number from 0."""

Natural = Annotated[int, Field(ge=0, le=LARGEST)]
"""A whole number from 0."""

Count = Annotated[int, Field(ge=1, le=LARGEST)]
"""A whole number from 1."""

Positive = Annotated[float, Field(gt=0, le=1e9)]
"""A number above 0."""

Share = Annotated[float, Field(gt=0, le=1)]
"""A share above 0, up to 1."""

Percentage = Annotated[float, BeforeValidator(_percentage), Field(ge=0, le=1)]
"""A share from 0 to 1; as text, a percentage such as 5%."""

Seconds = Annotated[float, BeforeValidator(seconds), Field(ge=0)]
"""A duration in seconds; as text, with s, m, h or d after it."""

Memory = Annotated[
    str, BeforeValidator(lambda value: value if not isinstance(value, str) else _memory(value))
]
"""An amount of memory, such as 2GB."""

Pairs = Annotated[dict[str, Any], BeforeValidator(pairs)]
"""A mapping; as text, KEY=VALUE pairs, whose values are JSON or else text."""
