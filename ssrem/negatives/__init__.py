"""A response and its context → responses that are wrong on purpose. Generators are found by name."""

from __future__ import annotations

import difflib
import functools
import re
from typing import TYPE_CHECKING, Any

from ssrem.errors import EvaluatorError

if TYPE_CHECKING:
    from ssrem.negatives.base import Generator

GENERATORS: dict[str, str] = {
    "random": "turns of anyone else; random-N for N of them",
    "sc": "the speaker's turns in the same conversation",
    "sp": "the speaker's turns towards the same partner",
    "ss": "all of the speaker's turns",
    "mask-and-fill": "the response, its context-dependent words replaced by what fits without the context",
    "drop-golden": "the response without some words",
    "shuffle-golden": "the response, its words shuffled",
    "score-without-history": "mask-and-fill, words selected that are unlikely within the response",
    "select-random": "mask-and-fill, words selected at random",
    "replace-with-history": "mask-and-fill, words replaced by what fits the context",
}
"""Name → what it gives. "-N" after a name asks for N a response, "+" joins several."""

_COUNTED = re.compile(r"(.+)-([0-9]+)")


def load_generator(spec: str, **settings: Any) -> Generator:
    """The generator that `spec` names: a name of GENERATORS, "NAME-N" for N a response, "A+B" for several.

    settings: of the generators named; in a mixture each goes to those that have it. The masked language model of
    mask-and-fill and its kin is the setting `model`: a name or folder, as ssrem.encoders.hub takes it.
    EvaluatorError with the nearest names for an unknown name or setting.
    """
    from ssrem.negatives.mixture import Mixture

    parts = [_parse(part.strip(), spec) for part in spec.split("+")]
    known = {name for base, _ in parts for name in _settings_type(base).names()}
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5) or sorted(known)
            raise EvaluatorError(f"negatives {spec}: no setting {name!r}; did you mean {', '.join(near)}?")
    made = _make(parts, settings)
    return made[0] if len(made) == 1 else Mixture(made)


def needs_model(spec: str) -> bool:
    """Whether one of the generators that `spec` names needs a masked language model; EvaluatorError as above."""
    from ssrem.negatives.mask_and_fill import VARIANTS

    return any(_parse(part.strip(), spec)[0] in VARIANTS for part in spec.split("+"))


def _parse(part: str, spec: str) -> tuple[str, int | None]:
    """The name in GENERATORS, and the count where one is given."""
    counted = _COUNTED.fullmatch(part)
    base, count = (counted[1], int(counted[2])) if counted else (part, None)
    if base not in GENERATORS:
        names = [f"{name}-1" if name == "random" else name for name in GENERATORS]
        near = difflib.get_close_matches(part, names, n=3, cutoff=0.4) or names
        raise EvaluatorError(f"no negatives {part or spec!r}; did you mean {', '.join(near)}?")
    return base, count


def _settings_type(base: str) -> Any:
    from ssrem.negatives.base import Settings
    from ssrem.negatives.mask_and_fill import MaskAndFillSettings
    from ssrem.negatives.scramble import ScrambleSettings

    if base in ("random", "sc", "sp", "ss"):
        return Settings
    return ScrambleSettings if base in ("drop-golden", "shuffle-golden") else MaskAndFillSettings


def _make(parts: list[tuple[str, int | None]], settings: dict[str, Any]) -> list[Generator]:
    from ssrem.negatives.mask_and_fill import VARIANTS, MaskAndFill, with_variant
    from ssrem.negatives.masked_lm import MaskedLM
    from ssrem.negatives.scramble import Scramble
    from ssrem.negatives.speaker_sets import KIND_OF, SpeakerSet

    load = functools.cache(MaskedLM.load)  # one model for all parts
    made: list[Generator] = []
    for base, count in parts:
        kind = _settings_type(base)
        own = {name: value for name, value in settings.items() if name in kind.names()}
        if count is not None:
            own["count"] = count
        if base in KIND_OF:
            made.append(SpeakerSet(base, kind(**own)))
        elif base in VARIANTS:
            made.append(MaskAndFill(base, with_variant(base, own), load=load))
        else:
            made.append(Scramble(base, kind(**own)))
    return made
