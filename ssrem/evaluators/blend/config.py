"""Settings of a blend, and how its parts are named."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ssrem.config import Config
from ssrem.errors import EvaluatorError

VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "lm-pmi-sum": ("lm-pmi", {"aggregate": "sum"}),
    "lm-coherence-sum": ("lm-coherence", {"aggregate": "sum"}),
}
"""Parts that are an evaluator under other settings: name → evaluator and settings."""

CONTROL = "length"

_PART = re.compile(r"(?:([a-z0-9][a-z0-9-]*)=)?([a-z0-9][a-z0-9-]*)")


@dataclass(frozen=True)
class Part:
    """One part of a blend: its own name, the evaluator's name, and the evaluator's settings."""

    name: str
    evaluator: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_control(self) -> bool:
        """Whether it is no judgement, and only human scores may give it a weight."""
        return self.evaluator == CONTROL


@dataclass(frozen=True)
class BlendConfig(Config):
    """Settings of a fit; every one is kept with the model.

    parts: names of evaluators or of VARIANTS, joined by "+" or ","; OWN=NAME gives a part a name of its own.
    `length` is a control: weight 0 unless human scores give it one.
    settings: a JSON object, part → settings of its evaluator; {"folder": PATH} takes a saved evaluator.

    negatives: what true responses are told from: 'drawn', all the candidates hold, or a spec of
    `ssrem.negatives.load_generator`. generator_settings: a JSON object for it, as the model of mask-and-fill.
    nearest_length: of a generator's negatives of a response, only the one nearest to it in number of words.
    contexts, valid_contexts: how many responses of the train and of the valid split are scored, drawn once.

    l2: strengths to choose from, joined by "+"; a single one is taken as it is. Weights are held near one
    another, so the strongest gives nearly equal weights. non_negative: no part may count against its meaning.
    length_control: the number of words takes part in the fit, and is left out of f.
    clip: how many deviations from its mean a part's score can count. folds: of the inner cross-validation where
    human scores are learned.
    """

    parts: str = "cosine+lm-pmi+lm-pmi-sum+lm-coherence+length"
    settings: str = "{}"
    negatives: str = "drawn"
    generator_settings: str = "{}"
    nearest_length: bool = True
    contexts: int = 160
    valid_contexts: int = 60
    l2: str = "0.01+0.1+1+10+1000"
    non_negative: bool = True
    length_control: bool = True
    clip: float = 4.0
    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "contexts", "valid_contexts")
        self.at_least(2, "folds")
        self.at_least(0, "seed")
        self.above_zero("clip")
        _ = self.members, self.strengths, self.generator

    @property
    def members(self) -> tuple[Part, ...]:
        """The parts in order, with the settings of each."""
        settings_of = _objects("settings", self.settings)
        parts: dict[str, Part] = {}
        for text in re.split(r"[+,]", self.parts):
            matched = _PART.fullmatch(text.strip())
            if matched is None:
                raise EvaluatorError(
                    f"parts {self.parts!r}: {text.strip()!r} is no name; expected NAME or OWN=NAME, joined by +"
                )
            own, name = matched[1] or matched[2], matched[2]
            if own in parts:
                raise EvaluatorError(f"parts {self.parts!r}: {own} stands there twice; write OWN={name}")
            if name in ("blend", "blend-ref"):
                raise EvaluatorError("parts: a blend is no part of a blend; name its parts")
            evaluator, settings = VARIANTS.get(name, (name, {}))
            parts[own] = Part(own, evaluator, {**settings, **settings_of.get(own, {})})
        if all(part.is_control for part in parts.values()):
            raise EvaluatorError(f"parts {self.parts!r}: {CONTROL} alone judges nothing; add an evaluator")
        if unknown := [name for name in settings_of if name not in parts]:
            raise EvaluatorError(f"settings: no part {', '.join(unknown)}; there are {', '.join(parts)}")
        return tuple(parts.values())

    @property
    def strengths(self) -> tuple[float, ...]:
        """The strengths of `l2`, the weakest first."""
        try:
            values = sorted({float(text) for text in self.l2.split("+")})
        except ValueError:
            values = []
        if not values or not all(0 <= value < math.inf for value in values):
            raise EvaluatorError(f"l2 is {self.l2!r}; expected numbers from 0 joined by +, as 0.1+1+10")
        return tuple(values)

    @property
    def generator(self) -> Mapping[str, Any]:
        """Settings of the generator of negatives."""
        return _object("generator_settings", self.generator_settings)


@dataclass(frozen=True)
class BlendRefConfig(BlendConfig):
    """The same for a blend that reads the reference; what concerns negatives has no effect there."""

    parts: str = "cosine+lm-pmi+lm-pmi-sum+lm-coherence+length+bertscore+rouge-l"


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise EvaluatorError(f"{name} is {text!r}; expected a JSON object")
    return value


def _objects(name: str, text: str) -> dict[str, dict[str, Any]]:
    value = _object(name, text)
    for part, settings in value.items():
        if not isinstance(settings, dict):
            raise EvaluatorError(f"{name}: {part} has {settings!r}; expected an object of settings")
    return value
