"""Generators of negatives, which are responses that are wrong on purpose, for a true response and its context."""

from __future__ import annotations

import re
from typing import Any

from ssrem.errors import EvaluatorError
from ssrem.negatives.base import Generator, Mixture
from ssrem.registry import did_you_mean, object_at

GENERATORS: dict[str, str] = {
    "random": "ssrem.negatives.turns:Random",
    "sc": "ssrem.negatives.turns:SameConversation",
    "sp": "ssrem.negatives.turns:SamePartner",
    "ss": "ssrem.negatives.turns:SameSpeaker",
    "copied": "ssrem.negatives.turns:Copied",
    "own": "ssrem.negatives.turns:Own",
    "generic": "ssrem.negatives.turns:Generic",
    "other-question": "ssrem.negatives.turns:OtherQuestion",
    "mask-and-fill": "ssrem.negatives.mask_and_fill:MaskAndFill",
    "drop-golden": "ssrem.negatives.turns:DropGolden",
    "shuffle-golden": "ssrem.negatives.turns:ShuffleGolden",
    "score-without-history": "ssrem.negatives.mask_and_fill:ScoreWithoutHistory",
    "select-random": "ssrem.negatives.mask_and_fill:SelectRandom",
    "replace-with-history": "ssrem.negatives.mask_and_fill:ReplaceWithHistory",
}
"""Maps each name to module:class. In a spec, "NAME-N" asks for N negatives per response, "+" joins generators."""

_COUNTED = re.compile(r"(.+)-([0-9]+)")


def load_generator(spec: str, **settings: Any) -> Generator:
    """The generator that `spec` names: a name in GENERATORS, "NAME-N" for N negatives per response, "A+B" for both.

    settings: settings of these generators; in a mixture each goes to the generators that have it. The setting
    `model` of mask-and-fill and its variants names a masked language model: a name or folder, as for
    ssrem.encoders.hub. Raises EvaluatorError with the nearest names for an unknown name or setting.
    """
    parts = [(kind, kind.settings_class.model_fields, count) for kind, count in _parse(spec)]
    known = sorted({name for _, names, _ in parts for name in names})
    for name in settings:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise EvaluatorError(f"negatives {spec}: no setting {name!r}{hint}")
    generators = [
        kind.of({name: value for name, value in settings.items() if name in names} | count)
        for kind, names, count in parts
    ]
    return generators[0] if len(generators) == 1 else Mixture(generators)


def needs_model(spec: str) -> bool:
    """Whether a generator that `spec` names needs a masked language model; EvaluatorError for an unknown name."""
    return any("model" in kind.settings_class.model_fields for kind, _ in _parse(spec))


def _parse(spec: str) -> list[tuple[type[Generator], dict[str, int]]]:
    """The classes that `spec` names, each with its setting `count` if one is asked for."""
    parts: list[tuple[type[Generator], dict[str, int]]] = []
    for part in map(str.strip, spec.split("+")):
        counted = _COUNTED.fullmatch(part)
        name = counted[1] if counted else part
        if name not in GENERATORS:
            hint = did_you_mean(name, GENERATORS) or f"; there are {', '.join(GENERATORS)}"
            raise EvaluatorError(f"no negatives {part or spec!r}{hint}")
        parts.append((object_at(GENERATORS[name]), {"count": int(counted[2])} if counted else {}))
    return parts
