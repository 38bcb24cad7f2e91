"""Studies of confounders: what an evaluator's scores depend on besides quality. Pure functions of scores and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ssrem.errors import EvaluatorError
from ssrem.registry import did_you_mean, object_at

if TYPE_CHECKING:
    from ssrem.studies.study import Study

EVERYDAY_PAIRS = "everyday-pairs"
"""Name of the packaged pairs of responses; it is used like the name of a corpus or annotated set."""

STUDIES: dict[str, str] = {
    "behaviour": "ssrem.studies.behaviour:behaviour",
    "attacks": "ssrem.studies.attacks:attacks",
    "injection": "ssrem.studies.attacks:injection",
    "length": "ssrem.studies.scored:length",
    "distribution": "ssrem.studies.scored:distribution",
    "low-resource": "ssrem.studies.learned:low_resource",
    "leave-one-system-out": "ssrem.studies.learned:leave_one_system_out",
    "transfer": "ssrem.studies.learned:transfer",
}
"""Name → module:object of every study."""


def check_name(name: str) -> None:
    """Raise EvaluatorError, which lists all studies, for an unknown name."""
    if name not in STUDIES:
        raise EvaluatorError(
            f"no study {name!r}{did_you_mean(name, STUDIES)}; the studies are {', '.join(STUDIES)}"
        )


def study_called(name: str) -> Study[Any]:
    """The study of that name; raises as `check_name` does."""
    check_name(name)
    study: Study[Any] = object_at(STUDIES[name])
    return study
