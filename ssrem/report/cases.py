"""Cases to read: the responses on which an evaluator and the human ratings agree and disagree most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.report.data import grouped
from ssrem.report.text import Rows, is_figure

KINDS = {
    "liked": "liked by both",
    "disliked": "disliked by both",
    "high": "evaluator too high",
    "low": "evaluator too low",
}
EACH = 5
"""Most cases of a kind, evaluator and annotated set."""

CASES_A_PAGE = 300
BYTES_A_PAGE = 600_000
"""Approximate size limit of all cases, which keeps a page under 3 MB."""

APART = 25.0
"""Percentile points between evaluator and human ratings from which a score counts as too high or too low."""

FEWEST = 5
"""Smallest number of responses of a set for which percentiles are computed."""

TURNS = 12
LETTERS = 700
"""The last TURNS of a context are shown, and the first LETTERS of a turn."""

_CASE, _LINE = 900, 420  # estimated bytes of markup per case, and per evaluator's line in it


@dataclass(frozen=True)
class Score:
    """An evaluator's score of a response. part: f, g or h; percentile: rank in the set, 0 to 100."""

    evaluator: Any
    version: Any
    part: str
    value: float
    percentile: float


@dataclass(frozen=True)
class ExampleResponse:
    """A response with its context, its human rating, the score of every evaluator, and why it was chosen.

    human: mean of the raters; percentile: its rank in the set, 0 to 100; picks: (evaluator, version, kind).
    earlier: turns of the context that are not shown.
    """

    dataset: str
    criterion: str
    response_id: str
    human: float
    raters: int
    percentile: float
    scores: list[Score] = field(default_factory=list)
    picks: list[tuple[Any, Any, str]] = field(default_factory=list)
    turns: Sequence[str] = ()
    earlier: int = 0
    response: str = ""
    reference: str | None = None
    system: str | None = None

    @property
    def reasons(self) -> dict[str, list[Score]]:
        """Kind → the scores of the evaluators for which the case was chosen as one of that kind."""
        scores = {(score.evaluator, score.version): score for score in self.scores}
        by_kind: dict[str, list[Score]] = {}
        for evaluator, version, kind in self.picks:
            by_kind.setdefault(kind, []).append(scores[evaluator, version])
        return by_kind


def chosen(points: Rows) -> list[ExampleResponse]:
    """The cases to show, without texts: the clearest of each dataset, evaluator and kind, then the second clearest, ….

    points: one row per evaluator and response.
    """
    cases: dict[tuple[Any, str], ExampleResponse] = {}  # by dataset and response
    clearest: list[tuple[tuple[Any, Any, str], list[ExampleResponse]]] = []  # evaluator, version and kind
    figures = [row for row in points if is_figure(row["human"]) and is_figure(row["score"])]
    for (dataset, evaluator, version), rows in grouped(figures, "dataset", "evaluator", "version").items():
        if len(rows) < FEWEST:
            continue
        human = percentiles([row["human"] for row in rows])
        own = percentiles([row["score"] for row in rows])
        judged = []
        for row, human_rank, own_rank in zip(rows, human.tolist(), own.tolist(), strict=True):
            response = str(row["response_id"])
            rating = (float(row["human"]), int(row["raters"]), human_rank)
            case = cases.setdefault(
                (dataset, response), ExampleResponse(dataset, row["criterion"], response, *rating)
            )
            case.scores.append(Score(evaluator, version, row["part"], float(row["score"]), own_rank))
            judged.append(case)
        for kind, clearness in _clearness(human, own).items():
            best = np.argsort(-clearness, kind="stable")[:EACH]
            clearest.append(((evaluator, version, kind), [judged[at] for at in best if clearness[at] > 0]))

    picked: list[ExampleResponse] = []
    for place in range(EACH):
        for reason, of_kind in clearest:
            for case in of_kind[place : place + 1]:
                if not case.picks and len(picked) < CASES_A_PAGE:
                    picked.append(case)
                elif not case.picks:
                    continue
                case.picks.append(reason)
    return picked


def with_texts(cases: Sequence[ExampleResponse], responses: Rows) -> list[ExampleResponse]:
    """Those cases that have texts, filled in, dataset by dataset; the least clear are dropped above BYTES_A_PAGE."""
    texts = {(row["dataset"], str(row["response_id"])): row for row in responses}
    by_dataset: dict[str, list[ExampleResponse]] = {case.dataset: [] for case in cases}
    size = 0
    for case in cases:
        row = texts.get((case.dataset, case.response_id))
        if row is None:
            continue
        turns = [_cut(turn) for turn in row["context"][-TURNS:]]
        filled = replace(
            case,
            turns=turns,
            earlier=len(row["context"]) - len(turns),
            response=_cut(row["response"]),
            reference=None if row["reference"] is None else _cut(row["reference"]),
            system=row["system"],
        )
        shown = (*turns, filled.response, filled.response, filled.reference or "")
        size += _CASE + _LINE * len(case.scores) + sum(len(text.encode()) + 20 for text in shown)
        if size > BYTES_A_PAGE:
            break
        by_dataset[case.dataset].append(filled)
    return [case for own in by_dataset.values() for case in own]


def percentiles(values: Sequence[float]) -> NDArray[np.float64]:
    """Rank of each value among all, in per cent; tied values share the middle of their ranks."""
    from scipy.stats import rankdata

    middle: NDArray[np.float64] = 100 * (rankdata(values) - 0.5) / len(values)
    return middle


def _clearness(human: NDArray[np.float64], own: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Kind → how clearly each response is of that kind, (n,); it is not of that kind where this is 0 or less."""
    return {
        "liked": np.minimum(human, own) - 50,
        "disliked": 50 - np.maximum(human, own),
        "high": own - human - APART,
        "low": human - own - APART,
    }


def _cut(text: str) -> str:
    left = len(text) - LETTERS
    return text if left <= 20 else f"{text[:LETTERS].rstrip()} … ({left:,} letters more)"
