"""Settings of trainings and promotions, checked before a training starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from ssrem.errors import EvaluatorError


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class LabelOptions:
    """Which human scores a training learns from."""

    files: tuple[str, ...] = Field(
        description="Annotated sets, each a file or the name of a pulled set; blends learn from several"
    )
    criterion: str | None = Field(None, description="Criterion to learn; by default overall")
    alone: bool = Field(False, description="Learn from the human scores alone, not from the corpora")
    mapping: dict[str, str] | None = Field(None, description="Field to column, where a set is a table")


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Margins:
    """By how much a challenger may be worse than the champion and still be promoted.

    identification: in the mean share of negatives below the true response. agreement: in Spearman's ρ with human
    scores.
    """

    identification: float = Field(
        default=0.01, ge=0, le=1, description="Of the mean share of negatives that the true response is above"
    )
    agreement: float = Field(
        default=0.05, ge=0, le=1, description="Of Spearman's correlation with human scores"
    )

    @classmethod
    def of(cls, margins: Mapping[str, float]) -> Margins:
        """From name to value; EvaluatorError for an unknown name or a value outside [0, 1]."""
        names = [f.name for f in fields(cls)]
        for name, value in margins.items():
            if name not in names:
                raise EvaluatorError(f"no margin {name!r}; there are {' and '.join(names)}")
            if not isinstance(value, int | float) or not 0 <= value <= 1:
                raise EvaluatorError(f"margin {name}={value}: expected a number from 0 to 1")
        return cls(**margins)
