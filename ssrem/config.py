"""Settings of what is trained: typed, checked, and the same from JSON and from the command line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from ssrem.errors import EvaluatorError

LARGEST = 2**31 - 1
"""Largest whole number of a setting, of either sign: every library that gets a seed or count can hold it."""

DEFAULT_ENCODER = "wordllama"
"""Encoder of utterances, unless another is chosen."""

SIMILARITY_SPEAKERS = 1_500
"""Speakers whose sets' similarity is measured, unless another number is chosen: the cost then does not grow with the
corpus, and the interval is about as wide as that of the default corpus."""


@dataclass(frozen=True)
class Config:
    """Base of dataclasses of settings: each has a default, whose type its value must have; None allows text or None."""

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_type(field.name, getattr(self, field.name), field.default)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Names of the settings."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """From a mapping; EvaluatorError for a setting that does not exist or a value that it cannot have."""
        if unknown := sorted(set(settings) - set(cls.names())):
            raise EvaluatorError(f"no setting {', '.join(unknown)}; there are {', '.join(cls.names())}")
        return cls(**settings)

    def at_least(self, lowest: float, *names: str) -> None:
        """EvaluatorError if one of these settings is below `lowest`."""
        for name in names:
            if getattr(self, name) < lowest:
                raise EvaluatorError(f"{name} is {getattr(self, name)}; expected {lowest} or more")

    def above_zero(self, *names: str) -> None:
        """EvaluatorError if one of these settings is not above 0."""
        for name in names:
            if getattr(self, name) <= 0:
                raise EvaluatorError(f"{name} is {getattr(self, name)}; expected above 0")

    def is_share(self, name: str) -> None:
        """EvaluatorError unless this setting is above 0 and at most 1."""
        self.above_zero(name)
        if getattr(self, name) > 1:
            raise EvaluatorError(f"{name} is {getattr(self, name)}; expected at most 1")

    def one_of(self, **choices: tuple[str, ...]) -> None:
        """EvaluatorError if a setting is none of its choices."""
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise EvaluatorError(
                    f"{name} is {getattr(self, name)!r}; expected one of {', '.join(allowed)}"
                )


def _check_type(name: str, value: object, default: object) -> None:
    """EvaluatorError unless `value` is of its default's type; a float may be an int, and None may be text."""
    kind: Any = {float: (int, float), type(None): (str, type(None))}.get(type(default), type(default))
    # In Python a bool is an int.
    fits = isinstance(value, kind) and isinstance(value, bool) == isinstance(default, bool)
    endless = isinstance(value, float) and not math.isfinite(value)
    if not fits or endless or (isinstance(value, int) and abs(value) > LARGEST):
        wanted = {int: f"a whole number up to {LARGEST:,}", float: "a number", bool: "true or false"}.get(
            type(default), "text"
        )
        raise EvaluatorError(f"{name} is {value!r}; expected {wanted}")
