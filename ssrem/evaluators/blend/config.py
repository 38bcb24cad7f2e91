"""Settings of a blend, and its parts by name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ssrem import trusted_sources
from ssrem.config import Config
from ssrem.errors import EvaluatorError
from ssrem.evaluators import evaluator_class, load_evaluator, packaged
from ssrem.evaluators.base import Evaluator
from ssrem.files import expanded
from ssrem.samples import Floats

VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "cosine-last": ("cosine", {"context_turns": 1, "join": "text"}),
    "cosine-last-two": ("cosine", {"context_turns": 2, "join": "text"}),
    "lm-pmi-sum": ("lm-pmi", {"aggregate": "sum"}),
    "lm-coherence-sum": ("lm-coherence", {"aggregate": "sum"}),
}
"""Parts that are an evaluator under other settings: name → evaluator and settings."""

_LENGTH, _CONTROL = "length", ":control"

FAULTS = "novelty,own-turn,fluency"
"""The parts that recognise faults of a response, each of another kind."""
_PART = re.compile(rf"(?:([a-z0-9][a-z0-9-]*)=)?([a-z0-9][a-z0-9-]*)({_CONTROL})?")


@dataclass(frozen=True)
class Part:
    """One part of a blend: its own name, the evaluator's name, the evaluator's settings and its group's number.

    is_control: whether only human scores may give it a weight.
    """

    name: str
    evaluator: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    group: int = 0
    is_control: bool = False

    @property
    def must_be_trained(self) -> bool:
        """Whether its evaluator learns, no folder with a trained one is named, and none comes with ssrem."""
        return self.learns and self.evaluator not in packaged()

    @property
    def learns(self) -> bool:
        """Whether its evaluator learns, and no folder with a trained one is named."""
        return bool(evaluator_class(self.evaluator).learns_from) and "folder" not in self.settings

    def build(self) -> Evaluator:
        """Its evaluator, made by the settings or loaded; EvaluatorError where that is impossible."""
        if self.learns:
            return load_evaluator(self.evaluator)
        if "folder" not in self.settings:
            kind: Any = evaluator_class(self.evaluator)
            evaluator: Evaluator = kind(**self.settings)
            return evaluator
        folder = self.settings["folder"]
        if set(self.settings) != {"folder"} or not isinstance(folder, str):
            raise EvaluatorError(
                f"part {self.name}: a saved evaluator has its settings already; give the path of its folder alone"
            )
        trusted_sources.check(folder)
        loaded = load_evaluator(expanded(folder))
        if loaded.name != self.evaluator:
            raise EvaluatorError(f"part {self.name}: {folder} holds {loaded.name}, not {self.evaluator}")
        return loaded


@dataclass(frozen=True)
class BlendConfig(Config):
    """Settings of a fit; all of them are saved with the model.

    parts: names of evaluators or of VARIANTS, joined by "+", or by "," to those that are one kind of evidence;
    OWN=NAME gives a part a name of its own. NAME:control is a control, as `length` always is: its weight is 0 unless
    human scores give it one. The default controls follow length and wording, of which only human scores tell
    whether much is good.
    settings: a JSON object, part → settings of its evaluator; {"folder": PATH} takes a saved evaluator.

    negatives: what the true responses are told from: a spec of `ssrem.negatives.load_generator`, in which 'drawn'
    stands for all negatives of the candidates. generator_settings: its settings, a JSON object, such as
    mask-and-fill's model. nearest_length: of a generator's negatives of a response, only the one nearest to it
    in number of words.
    contexts, valid_contexts: how many responses of the train and the valid split are drawn and scored.

    l2: strengths of regularisation to choose from, joined by "+". It draws the weights towards `prior`, so the
    strongest gives nearly those. The default leaves no choice: which kinds of negatives there are, and
    how many of each, is arbitrary, and weaker regularisation follows the kind that is easiest to tell.
    non_negative: whether weights below 0 are excluded. length_control: whether the number of words takes part
    in the fit; it is left out of f. clip, cap: the most standard deviations of true responses below and above
    their mean by which a part's score counts. The cap is low, since a response that is closer to its context, or
    likelier after it, than nearly all true ones is no better for that: it may be a copy. folds: of the inner
    cross-validation where human scores are learned.
    """

    parts: str = f"cosine-last,ssrem-minilm+{FAULTS}+lm-pmi,lm-pmi-sum+lm-coherence:control+length"
    settings: str = "{}"
    negatives: str = "drawn+copied+own+generic+shuffle-golden+other-question"
    generator_settings: str = "{}"
    nearest_length: bool = True
    contexts: int = 160
    valid_contexts: int = 60
    l2: str = "1"
    non_negative: bool = True
    length_control: bool = True
    clip: float = 8.0
    cap: float = 2.0
    folds: int = 5
    seed: int = 0

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """As `Config.of`; what is a JSON object may be one, as --set reads it, or its text."""
        objects = {name: json.dumps(value) for name, value in settings.items() if isinstance(value, dict)}
        return super().of({**settings, **objects})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "contexts", "valid_contexts")
        self.at_least(2, "folds")
        self.at_least(0, "seed")
        self.above_zero("clip", "cap")
        _ = self.members, self.strengths, self.generator

    @property
    def members(self) -> tuple[Part, ...]:
        """The parts in order, with the settings of each."""
        settings_of = _object("settings", self.settings)
        for part, of_part in settings_of.items():
            if not isinstance(of_part, dict):
                raise EvaluatorError(f"settings: {part} has {of_part!r}; expected an object of settings")
        parts: dict[str, Part] = {}
        groups = [group.split(",") for group in self.parts.split("+")]
        for number, text in ((number, text) for number, group in enumerate(groups) for text in group):
            matched = _PART.fullmatch(text.strip())
            if matched is None:
                raise EvaluatorError(
                    f"parts {self.parts!r}: {text.strip()!r} is no name; expected NAME, OWN=NAME or NAME:control, "
                    "joined by +"
                )
            own, name = matched[1] or matched[2], matched[2]
            if own in parts:
                raise EvaluatorError(f"parts {self.parts!r}: {own} stands there twice; write OWN={name}")
            if name.split("-")[0] == "blend":
                raise EvaluatorError("parts: a blend is no part of a blend; name its parts")
            evaluator, settings = VARIANTS.get(name, (name, {}))
            settings = {**settings, **settings_of.get(own, {})}
            control = matched[3] is not None or evaluator == _LENGTH
            parts[own] = Part(own, evaluator, settings, number, control)
            if parts[own].learns and parts[own].settings:
                raise EvaluatorError(
                    f"settings: part {own} has learned already; give it none, or the folder of another one, "
                    '{"folder": "PATH"}'
                )
        if all(part.is_control for part in parts.values()):
            raise EvaluatorError(f"parts {self.parts!r}: a control alone judges nothing; add an evaluator")
        if unknown := [name for name in settings_of if name not in parts]:
            raise EvaluatorError(f"settings: no part {', '.join(unknown)}; there are {', '.join(parts)}")
        return tuple(parts.values())

    @property
    def prior(self) -> Floats:
        """The weights that learning starts from, float64 (m,), of sum 1: equal ones of the groups of parts, and of the
        parts of a group. A control has none."""
        group = np.array([-1 if part.is_control else part.group for part in self.members])
        _, number, sizes = np.unique(group, return_inverse=True, return_counts=True)
        shares = np.where(group < 0, 0.0, 1 / sizes[number])
        return np.asarray(shares / shares.sum())

    @property
    def limits(self) -> tuple[float, float]:
        """Between which standard deviations from the mean of true responses a part's score counts."""
        return -self.clip, self.cap

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
    def generator(self) -> dict[str, Any]:
        """Settings of the generator of negatives."""
        return _object("generator_settings", self.generator_settings)


@dataclass(frozen=True)
class BlendFastConfig(BlendConfig):
    """Settings of a fit of blend-fast: without a language model, it can learn from more responses."""

    parts: str = f"cosine-last+ssrem-minilm+{FAULTS}+length"
    contexts: int = 1500
    valid_contexts: int = 500


@dataclass(frozen=True)
class BlendRefConfig(BlendConfig):
    """Settings of a fit of blend-ref, which reads the reference; those that concern negatives have no effect. No true
    responses say how close to the reference is close enough, so the cap is high."""

    parts: str = "cosine+lm-pmi+lm-pmi-sum+lm-coherence+length+bertscore+rouge-l"
    cap: float = 8.0


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise EvaluatorError(f"{name} is {text!r}; expected a JSON object")
    return value
