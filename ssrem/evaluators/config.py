"""The settings of bilinear evaluators."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ssrem.errors import EvaluatorError
from ssrem.evaluators.reference import METRICS

_CHOICES = {
    "init": ("zero", "identity", "normal"),
    "logits": ("raw", "tanh"),
    "reference": METRICS,
}


@dataclass(frozen=True)
class BilinearConfig:
    """Settings of a fit; every one is kept with the model.

    context_turns: how many of the last turns V(c) averages.
    logits: what the softmax takes, 'raw' cᵀMr as the authors' code does, or 'tanh' of it as eq. (4) has it.
    init: M at the start: 'zero', 'identity' (/ d), or 'normal', N(0, 1) as in the authors' code.
    reference: g, 'sms' | 'embedding-average'.
    """

    context_turns: int = 3
    epochs: int = 30
    batch_size: int = 1024
    learning_rate: float = 0.005
    weight_decay: float = 0.0
    patience: int = 3
    seed: int = 0
    init: str = "zero"
    logits: str = "raw"
    reference: str = "sms"

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_type(field.name, getattr(self, field.name), type(field.default))
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise EvaluatorError(
                    f"{name} is {getattr(self, name)!r}; expected one of {', '.join(allowed)}"
                )
        for name in ("context_turns", "epochs", "batch_size", "patience"):
            if getattr(self, name) < 1:
                raise EvaluatorError(f"{name} is {getattr(self, name)}; expected 1 or more")
        if self.learning_rate <= 0 or self.weight_decay < 0 or self.seed < 0:
            raise EvaluatorError("learning_rate must be above 0, weight_decay and seed must not be negative")

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> BilinearConfig:
        """From a mapping; EvaluatorError for a setting that does not exist."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise EvaluatorError(f"no setting {', '.join(unknown)}; there are {', '.join(known)}")
        return cls(**settings)


def _check_type(name: str, value: object, kind: type) -> None:
    # An int will do for a float; a bool is an int to Python alone.
    fits = isinstance(value, int | float if kind is float else kind) and not isinstance(value, bool)
    if not fits or (isinstance(value, float) and not math.isfinite(value)):
        wanted = {int: "a whole number", float: "a number", str: "text"}[kind]
        raise EvaluatorError(f"{name} is {value!r}; expected {wanted}")
