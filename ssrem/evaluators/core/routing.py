"""Settings settings for several evaluators at once: each gets those that it has."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from ssrem.errors import EvaluatorError
from ssrem.evaluators import evaluator_class


def route(names: Sequence[str], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Evaluator → those of the `settings` that it has, checked.

    EvaluatorError for an evaluator that does not exist, a setting that none of them has (a seed aside: what draws
    nothing needs none), or a value that a setting cannot have.
    """
    has = {name: evaluator_class(name).setting_names() for name in names}
    known = sorted({setting for settings in has.values() for setting in settings})
    for setting in settings:
        if setting not in known and setting != "seed":
            near = difflib.get_close_matches(setting, known, n=3, cutoff=0.5) or known
            raise EvaluatorError(
                f"{', '.join(names)}: no setting {setting}; did you mean {', '.join(near)}?"
                if near
                else f"{', '.join(names)}: no setting {setting}; there are none"
            )
    routed = {name: {key: settings[key] for key in settings if key in has[name]} for name in names}
    for name, own in routed.items():
        evaluator_class(name).check_settings(own)
    return routed
