"""How much worse is still not worse. Light: a command checks margins before Prefect starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from ssrem.errors import EvaluatorError


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Margins:
    """How much worse a challenger may be and still be called not worse.

    identification: in the mean share of negatives that the true response is above. agreement: in Spearman's ρ with
    human scores.
    """

    identification: float = Field(
        default=0.01, ge=0, le=1, description="Of the mean share of negatives that the true response is above"
    )
    agreement: float = Field(
        default=0.05, ge=0, le=1, description="Of Spearman's correlation with human scores"
    )

    @classmethod
    def of(cls, given: Mapping[str, float]) -> Margins:
        """From names to values; EvaluatorError for another name or a value outside [0, 1]."""
        names = [f.name for f in fields(cls)]
        for name, value in given.items():
            if name not in names:
                raise EvaluatorError(f"no margin {name!r}; there are {' and '.join(names)}")
            if not isinstance(value, int | float) or not 0 <= value <= 1:
                raise EvaluatorError(f"margin {name}={value}: expected a number from 0 to 1")
        return cls(**given)
