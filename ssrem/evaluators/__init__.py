"""(context, response, reference) → score. Evaluators are found by name and loaded when used."""

from __future__ import annotations

import difflib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ssrem.errors import EvaluatorError

if TYPE_CHECKING:
    from ssrem.evaluators.base import Evaluator

EVALUATORS: dict[str, str] = {
    "ssrem": "ssrem.evaluators.ssrem:SSREM",
    "rsrem": "ssrem.evaluators.rsrem:RSREM",
}
"""Name → where the class is, as module:class."""


def evaluator_class(name: str) -> type[Evaluator]:
    """The class registered under `name`; EvaluatorError with the nearest names where there is none."""
    if name not in EVALUATORS:
        near = difflib.get_close_matches(name, EVALUATORS, n=3, cutoff=0.3) or list(EVALUATORS)
        raise EvaluatorError(f"no evaluator {name!r}; did you mean {', '.join(near)}?")
    module, _, attribute = EVALUATORS[name].partition(":")
    found: type[Evaluator] = getattr(import_module(module), attribute)
    return found


def load_evaluator(folder: Path) -> Evaluator:
    """Whatever evaluator was saved in `folder`; EvaluatorError where none was, or it is damaged."""
    from ssrem.encoders.files import read_json

    return evaluator_class(read_json(folder / "evaluator.json", ("name",))["name"]).load(folder)
