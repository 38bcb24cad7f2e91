"""Studies of confounders: what an evaluator's scores depend on besides quality. Pure functions of scores and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ssrem.errors import EvaluatorError
from ssrem.registry import did_you_mean, registered

if TYPE_CHECKING:
    from ssrem.studies.study import Study

EVERYDAY_PAIRS = "everyday-pairs"
"""Name of the packaged pairs of responses, used like that of a corpus or annotated set."""

STUDIES: dict[str, str] = {
    "behaviour": "ssrem.studies.behaviour:STUDY",
    "attacks": "ssrem.studies.attacks:STUDY",
    "injection": "ssrem.studies.injection:STUDY",
    "word-classes": "ssrem.studies.word_classes:STUDY",
    "corpus-buckets": "ssrem.studies.scored:CORPUS_BUCKETS",
    "length": "ssrem.studies.scored:LENGTH",
    "buckets": "ssrem.studies.scored:SCORE_BUCKETS",
    "distribution": "ssrem.studies.scored:DISTRIBUTION",
    "without-system": "ssrem.studies.scored:WITHOUT_SYSTEM",
    "low-resource": "ssrem.studies.learned:LOW_RESOURCE",
    "label-noise": "ssrem.studies.learned:LABEL_NOISE",
    "leave-one-system-out": "ssrem.studies.learned:LEAVE_ONE_SYSTEM_OUT",
    "transfer": "ssrem.studies.learned:TRANSFER",
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
    study: Study[Any] = registered(STUDIES[name])
    return study
