"""Human scores to learn from, checked before a training starts."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from ssrem.errors import EvaluatorError
from ssrem.evaluators import evaluator_class


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class HumanScores:
    """Human scores to learn from."""

    file: str = Field(description="Annotated set, a file or the name of a pulled set")
    criterion: str | None = Field(None, description="Criterion to learn; by default overall")
    alone: bool = Field(False, description="Learn from the human scores alone, not from the corpora")


def check_labels(name: str, labels: HumanScores | None) -> None:
    """Raise EvaluatorError if the evaluator cannot learn from `labels`, with or without the corpora."""
    kind: Any = evaluator_class(name)
    if labels is None and "candidates" not in kind.learns_from:
        raise EvaluatorError(
            f"{name} learns from human scores alone; give an annotated set, --labels FILE --labels-only"
        )
    if labels is not None and "labels" not in kind.learns_from:
        raise EvaluatorError(f"{name} does not learn from human scores; leave --labels out")
    if labels is not None and not labels.alone and "candidates" not in kind.learns_from:
        raise EvaluatorError(f"{name} learns from human scores alone; add --labels-only")
