"""Behaviour on everyday pairs: how often an evaluator prefers the better of two responses, by category of fault.

The pairs are minimal, as in the checklists of Ribeiro et al. (2020): both responses are short, and one is worse for one
reason, its category. In the categories casing and typos, the better response has unusual case or misspellings, and the
worse one is off-topic.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ssrem.samples import Sample
from ssrem.studies.attacks import TIE, Score
from ssrem.studies.study import FEWEST, Finding, Study

FILE = Path(__file__).parent / "everyday_pairs.jsonl"
ALL = "all pairs"
MEASURE = "better"


@dataclass(frozen=True)
class Pair:
    """Two responses to a context (turns, oldest first); category: why the worse one is worse."""

    category: str
    context: tuple[str, ...]
    better: str
    worse: str


@dataclass(frozen=True)
class Pairs:
    """Pairs, and the evaluator's score function, used without references."""

    pairs: Sequence[Pair]
    score: Score


def everyday_pairs() -> list[Pair]:
    """The packaged pairs, 20 of each of twelve categories."""
    rows = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    return [Pair(row["category"], tuple(row["context"]), row["better"], row["worse"]) for row in rows]


def behaviour(data: Pairs, seed: int) -> list[Finding]:
    """Share of pairs in which the better response scores higher, in [0, 1], with its 95% Wilson interval: of all, and
    by category. A tie, or a response without a score, counts as not higher; chance is .5. The seed is not used."""
    samples = [Sample(pair.context, text) for pair in data.pairs for text in (pair.better, pair.worse)]
    better, worse = np.asarray(data.score(samples), dtype=np.float64).reshape(-1, 2).T
    higher = better - worse > TIE * np.nanstd(np.append(better, worse))
    categories = dict.fromkeys(pair.category for pair in data.pairs)
    of_category = {name: [pair.category == name for pair in data.pairs] for name in categories}
    return [_share(ALL, higher), *(_share(name, higher[rows]) for name, rows in of_category.items())]


def _share(condition: str, higher: Iterable[bool]) -> Finding:
    from scipy.stats import binomtest

    outcomes = np.fromiter(higher, dtype=bool)
    test = binomtest(int(outcomes.sum()), len(outcomes))
    low, high = test.proportion_ci(method="wilson")
    return Finding(condition, MEASURE, test.statistic, len(outcomes), low=float(low), high=float(high))


def _sentences(findings: Sequence[Finding]) -> tuple[str, str]:
    """How often it is right, and in which categories it is no better than chance."""
    whole = next(finding for finding in findings if finding.condition == ALL)
    first = (
        f"It puts the better of two everyday responses higher in {whole.value:.0%} of {whole.n} pairs (95% interval "
        f"{whole.low:.0%} to {whole.high:.0%}); chance is 50%."
    )
    unsure = [f for f in findings if f.condition != ALL and f.n >= FEWEST and (f.low or 0.0) <= 0.5]
    if not unsure:
        return first, "It is better than chance in every category."
    shares = ", ".join(f"{f.condition} ({f.value:.0%})" for f in sorted(unsure, key=lambda f: f.value or 0.0))
    return first, f"It is not shown to be better than chance at: {shares}."


STUDY = Study(
    "behaviour",
    "Behaviour on everyday pairs",
    "The share of pairs in which the better response scores higher than the worse one: the higher, the better, and .5 "
    "is chance. The pairs come with ssrem; no human scores are needed.",
    Pairs,
    behaviour,
    _sentences,
    "share of pairs in the right order",
)
