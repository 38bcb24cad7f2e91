"""Behaviour on everyday pairs: how often an evaluator prefers the better of two responses, by category of fault.

The pairs are minimal, as in the checklists of Ribeiro et al. (2020): both responses are short, and one is worse for one
reason, its category. In the categories casing and typos, the better response has unusual case or misspellings, and the
worse one is off-topic.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ssrem.agreement import share_interval
from ssrem.samples import Sample
from ssrem.studies.attacks import TIE, Score
from ssrem.studies.study import Finding, study

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


@study(
    "Behaviour on everyday pairs",
    "The share of pairs in which the better response scores higher than the worse one: the higher, the better, and .5 "
    "is chance. The pairs come with ssrem; no human scores are needed.",
    "share of pairs in the right order",
)
def behaviour(data: Pairs, seed: int) -> list[Finding]:
    """Share of pairs in which the better response scores higher, in [0, 1], with its 95% interval (Wilson 1927): of
    all, and by category. A tie, or a response without a score, counts as not higher; chance is .5. No figure where
    no pair has both scores. The seed is not used."""
    samples = [Sample(pair.context, text) for pair in data.pairs for text in (pair.better, pair.worse)]
    better, worse = np.asarray(data.score(samples), dtype=np.float64).reshape(-1, 2).T
    if not np.isfinite(better - worse).any():
        return [Finding(ALL, MEASURE, None, len(better), "too_few")]
    higher = better - worse > TIE * np.nanstd(np.append(better, worse))
    category = np.array([pair.category for pair in data.pairs])
    of = {ALL: higher} | {name: higher[category == name] for name in dict.fromkeys(category.tolist())}
    findings = []
    for name, outcomes in of.items():
        n = len(outcomes)
        low, high = share_interval(share := float(outcomes.mean()), n)
        findings.append(Finding(name, MEASURE, share, n, low=low, high=high))
    return findings
