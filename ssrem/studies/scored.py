"""Studies of scores beside human scores: length bias, buckets, distribution, and one system left out at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.correlation import spearman
from ssrem.samples import Floats
from ssrem.studies.study import Finding, Study, best, of_correlation, printed

UNSCALED = "sd_unscaled"
"""The measure whose values are in the units of the scores, and not within [-1, 1]."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BUCKETS = 4


@dataclass(frozen=True)
class Scored:
    """Responses (n) with a score and a human score each, none missing. system: None where it is not known.

    features: name to numbers (n,) by which responses are put into buckets, such as the number of turns before them.
    """

    scores: Floats
    human: Floats
    words: Floats
    systems: Sequence[str | None]
    features: Mapping[str, Floats]


@dataclass(frozen=True)
class Identified:
    """True responses (n): the share of its negatives that each scores above, and features as in `Scored`."""

    shares: Floats
    features: Mapping[str, Floats]


def length(data: Scored, _: int = 0) -> list[Finding]:
    """Spearman's ρ with the response's number of words, of scores and of human scores; and agreement before and after
    control for length: the partial rank correlation (Kendall and Stuart 1973, 27.5)."""
    own, people = spearman(data.scores, data.words), spearman(data.human, data.words)
    agreement = spearman(data.scores, data.human)
    r, a, b, n = agreement.statistic, own.statistic, people.statistic, agreement.n
    fixed = "agreement, length held fixed"
    if r is None:
        partial = Finding(fixed, "spearman", None, n, agreement.outcome)
    elif a is None or b is None:  # all responses are equally long: nothing to control for
        partial = Finding(fixed, "spearman", r, n)
    elif max(abs(a), abs(b)) >= 1:  # length alone gives one of the two: nothing is left to compare
        partial = Finding(fixed, "spearman", None, n, "constant")
    else:
        value = (r - a * b) / sqrt((1 - a * a) * (1 - b * b))
        partial = Finding(fixed, "spearman", max(-1.0, min(1.0, value)), n)
    return [
        of_correlation("scores and length", "spearman", own),
        of_correlation("human scores and length", "spearman", people),
        of_correlation("agreement", "spearman", agreement),
        partial,
    ]


def buckets(data: Scored, _: int = 0) -> list[Finding]:
    """Spearman's ρ of scores and human scores within buckets of each feature: at most `BUCKETS`, of about equal size.

    A feature whose values are all in one bucket is left out."""
    return [
        of_correlation(condition, "spearman", spearman(data.scores[rows], data.human[rows]))
        for condition, rows in _buckets(data.features)
    ]


def corpus_buckets(data: Identified, _: int = 0) -> list[Finding]:
    """Mean share of negatives that true responses score above, over all and within buckets of each feature as in
    `buckets`. Chance is one half."""
    shares = data.shares
    in_all = [Finding("all", "identified", float(shares.mean()), len(shares))] if len(shares) else []
    return in_all + [
        Finding(condition, "identified", float(shares[rows].mean()), int(rows.sum()))
        for condition, rows in _buckets(data.features)
    ]


def distribution(data: Scored, _: int = 0) -> list[Finding]:
    """Standard deviation and quantiles of scores and of human scores, each scaled to [0, 1] by its range; and their
    standard deviation in their own units, as Zhao et al. 2020 print it (Tables 1 and 3)."""
    findings = []
    for whose, values in (("scores", data.scores), ("human scores", data.human)):
        n = len(values)
        if n < 2:
            findings.append(Finding(whose, "sd", None, n, "too_few"))
        elif np.ptp(values) == 0:
            findings.append(Finding(whose, "sd", None, n, "constant"))
        else:
            unit = (values - values.min()) / np.ptp(values)
            findings.append(Finding(whose, "sd", float(unit.std(ddof=1)), n))
            findings.append(Finding(whose, UNSCALED, float(values.std(ddof=1)), n))
            findings += [Finding(whose, f"q{q:g}", float(np.quantile(unit, q)), n) for q in QUANTILES]
    return findings


def without_system(data: Scored, _: int = 0) -> list[Finding]:
    """Agreement, Spearman's ρ, with all systems and without each one in turn: how much depends on a single system.

    The evaluator stays the same; in ADEM's Table 3 (Lowe et al. 2017) it is retrained without the system.
    """
    named = np.array([system or "" for system in data.systems], dtype=object)
    rows = {"all systems": np.ones(len(named), dtype=bool)}
    rows |= {f"without {system}": named != system for system in sorted(set(named) - {""})}
    return [
        of_correlation(condition, "spearman", spearman(data.scores[at], data.human[at]))
        for condition, at in rows.items()
    ]


def _buckets(features: Mapping[str, Floats]) -> list[tuple[str, NDArray[np.bool_]]]:
    """Condition and rows of each bucket of each feature that falls into several; equal values share a bucket."""
    conditions = []
    for name, values in features.items():
        edges = np.unique(np.quantile(values, np.linspace(0, 1, BUCKETS + 1)[1:-1], method="lower"))
        bucket = np.searchsorted(edges, values, side="left")
        numbers = np.unique(bucket)
        for number in numbers if len(numbers) > 1 else ():
            rows = bucket == number
            low, high = values[rows].min(), values[rows].max()
            span = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            conditions.append((f"{name}: {span}", rows))
    return conditions


def _most_and_least(findings: Sequence[Finding]) -> tuple[str, str]:
    ranked = best([f for f in findings if f.condition != "all systems"], "spearman")
    if not ranked:
        return "Too few responses to compare.", "Take a larger annotated set."
    high, low = ranked[0], ranked[-1]
    return (
        f"Agreement with people is highest in '{high.condition}': rho {high.value:.2f} over {high.n}.",
        f"It is lowest in '{low.condition}': rho {low.value:.2f} over {low.n}.",
    )


def _of_corpus_buckets(findings: Sequence[Finding]) -> tuple[str, str]:
    ranked = best([f for f in findings if f.condition != "all"], "identified")
    first = f"True responses are above {printed(findings, 'all', 'identified')} of their negatives."
    if not ranked:
        return first, "There are too few to tell where more and where fewer."
    high, low = ranked[0], ranked[-1]
    return (
        first,
        f"They are above most in '{high.condition}', {high.value:.2f} over {high.n}, and above fewest in "
        f"'{low.condition}', {low.value:.2f} over {low.n}.",
    )


def _of_length(findings: Sequence[Finding]) -> tuple[str, str]:
    own, people = printed(findings, "scores and length"), printed(findings, "human scores and length")
    before, after = printed(findings, "agreement"), printed(findings, "agreement, length held fixed")
    return (
        f"Its scores go with length at rho {own}, people's at {people}.",
        f"It agrees with people at rho {before}, and at {after} where length is held fixed.",
    )


def _of_distribution(findings: Sequence[Finding]) -> tuple[str, str]:
    own, people = (printed(findings, whose, "sd") for whose in ("scores", "human scores"))
    unscaled = " and ".join(printed(findings, whose, UNSCALED) for whose in ("scores", "human scores"))
    return (
        f"Its scores have a standard deviation of {own} of their range, people's of {people} (unscaled {unscaled}).",
        f"Half of its scores lie below {printed(findings, 'scores', 'q0.5')} of its range.",
    )


LENGTH = Study(
    "length",
    "Length of the response",
    "Spearman’s ρ with the number of words, and agreement with people before and after length is held fixed.",
    Scored,
    length,
    _of_length,
)
SCORE_BUCKETS = Study(
    "buckets",
    "Short and long, early and late",
    "Agreement with people, Spearman’s ρ, within parts of the set.",
    Scored,
    buckets,
    _most_and_least,
)
DISTRIBUTION = Study(
    "distribution",
    "Distribution of scores",
    "Standard deviation (sd) and quantiles (q) of scores and of human scores, each brought to [0, 1]; sd_unscaled is "
    "the standard deviation in their own units.",
    Scored,
    distribution,
    _of_distribution,
    "score, brought to [0, 1]",
)
WITHOUT_SYSTEM = Study(
    "without-system",
    "Without each system",
    "Agreement with people, Spearman’s ρ, when the responses of one system are left out.",
    Scored,
    without_system,
    _most_and_least,
)
CORPUS_BUCKETS = Study(
    "corpus-buckets",
    "Identification in parts of the corpus",
    "The share of negatives that true responses are above, within parts of the test split; half are by chance.",
    Identified,
    corpus_buckets,
    _of_corpus_buckets,
    "share of negatives below the true response",
)
