"""The names of `ssrem.evaluators.learning` for families that are not on `ssrem.evaluators.base` yet."""

from ssrem.evaluators.learning import (
    CandidateColumns,
    contents,
    draw,
    learned_and_valid,
    negatives_by_response,
    usable_rows,
)

__all__ = [
    "CandidateColumns",
    "contents",
    "draw",
    "learned_and_valid",
    "negatives_by_response",
    "usable_rows",
]
