"""Studies of scores beside human scores: length bias, buckets, distribution, and one system left out at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.correlation import spearman
from ssrem.studies.finding import Finding, best, of_correlation, value_of

Floats = NDArray[np.float64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
BUCKETS = 4
IDENTIFIED = "corpus-buckets"


@dataclass(frozen=True)
class Scored:
    """Responses (n) with a score and a human score each, none missing. system: None where it is not known.

    features: what they can be put into buckets by, such as the number of turns before them: name to numbers (n,).
    """

    scores: Floats
    human: Floats
    words: Floats
    systems: Sequence[str | None]
    features: Mapping[str, Floats]


def length(data: Scored) -> list[Finding]:
    """Spearman's ρ with the response's number of words, of scores and of human scores; and agreement before and after
    control for length: the partial rank correlation (Kendall and Stuart 1973, 27.5)."""
    own, people = spearman(data.scores, data.words), spearman(data.human, data.words)
    agreement = spearman(data.scores, data.human)
    found = [
        of_correlation("scores and length", "spearman", own),
        of_correlation("human scores and length", "spearman", people),
        of_correlation("agreement", "spearman", agreement),
    ]
    r, a, b = agreement.statistic, own.statistic, people.statistic
    if r is None:
        partial = Finding("agreement, length held fixed", "spearman", None, agreement.n, agreement.outcome)
    elif a is None or b is None:  # every response is as long as the next: nothing to control for
        partial = Finding("agreement, length held fixed", "spearman", r, agreement.n)
    elif max(abs(a), abs(b)) >= 1:  # what length says alone leaves nothing to compare
        partial = Finding("agreement, length held fixed", "spearman", None, agreement.n, "constant")
    else:
        value = (r - a * b) / sqrt((1 - a * a) * (1 - b * b))
        partial = Finding("agreement, length held fixed", "spearman", max(-1.0, min(1.0, value)), agreement.n)
    return [*found, partial]


def buckets(data: Scored) -> list[Finding]:
    """Spearman's ρ of scores and human scores within buckets of each feature, at most `BUCKETS`, about as large.

    A feature that falls into one bucket says nothing and is left out."""
    return [
        of_correlation(_span(name, low, high), "spearman", spearman(data.scores[rows], data.human[rows]))
        for name, low, high, rows in _cuts(data.features)
    ]


def identified(shares: Floats, features: Mapping[str, Floats]) -> list[Finding]:
    """Share of negatives that true responses (n,) are above, on average, in all and within buckets of each feature,
    as `buckets` cuts them. Half of them are above by chance."""
    found = [Finding("all", "identified", float(shares.mean()), len(shares))] if len(shares) else []
    for name, low, high, rows in _cuts(features):
        found.append(
            Finding(_span(name, low, high), "identified", float(shares[rows].mean()), int(rows.sum()))
        )
    return found


def distribution(data: Scored) -> list[Finding]:
    """Standard deviation and quantiles of scores and of human scores, each brought to [0, 1] by its range."""
    found = []
    for whose, values in (("scores", data.scores), ("human scores", data.human)):
        n = len(values)
        if n < 2 or np.ptp(values) == 0:
            outcome = "too_few" if n < 2 else "constant"
            found.append(Finding(whose, "sd", None, n, outcome))  # type: ignore[arg-type]
            continue
        unit = (values - values.min()) / np.ptp(values)
        found.append(Finding(whose, "sd", float(unit.std(ddof=1)), n))
        found += [Finding(whose, f"q{q:g}", float(np.quantile(unit, q)), n) for q in QUANTILES]
    return found


def without_system(data: Scored) -> list[Finding]:
    """Agreement, Spearman's ρ, with all systems and without each one in turn: what hangs on a single system.

    The evaluator stays the same; ADEM's Table 3 (Lowe et al. 2017) trains it anew without the system.
    """
    found = [of_correlation("all systems", "spearman", spearman(data.scores, data.human))]
    named = np.array([system or "" for system in data.systems], dtype=object)
    for system in sorted({system for system in data.systems if system}):
        kept = named != system
        found.append(
            of_correlation(f"without {system}", "spearman", spearman(data.scores[kept], data.human[kept]))
        )
    return found


SCORED: dict[str, Callable[[Scored], list[Finding]]] = {
    "length": length,
    "buckets": buckets,
    "distribution": distribution,
    "without-system": without_system,
}


def _cuts(
    features: Mapping[str, Floats],
) -> Iterator[tuple[str, float, float, NDArray[np.bool_]]]:
    """Feature, lowest value, highest value and rows of each bucket."""
    for name, values in features.items():
        cut = _cut(values)
        if len(cut) > 1:
            yield from ((name, *bucket) for bucket in cut)


def _span(name: str, low: float, high: float) -> str:
    return f"{name}: {low:g}" if low == high else f"{name}: {low:g} to {high:g}"


def _cut(values: Floats) -> list[tuple[float, float, NDArray[np.bool_]]]:
    """Lowest value, highest value and rows of each bucket; equal values are in one."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BUCKETS + 1)[1:-1], method="lower"))
    at = np.searchsorted(edges, values, side="left")
    rows = [at == bucket for bucket in np.unique(at)]
    return [(float(values[own].min()), float(values[own].max()), own) for own in rows]


def sentences(study: str, findings: Sequence[Finding]) -> tuple[str, str]:
    """What the study says of the evaluator, in two sentences."""
    if study == "length":
        return _of_length(findings)
    if study == "distribution":
        return _of_distribution(findings)
    if study == IDENTIFIED:
        return _of_identified(findings)
    ranked = best([f for f in findings if f.condition != "all systems"], "spearman")
    if not ranked:
        return "Too few responses to compare.", "Take a larger annotated set."
    high, low = ranked[0], ranked[-1]
    return (
        f"It agrees with people most at {high.condition}: rho {high.value:.2f} over {high.n}.",
        f"It agrees least at {low.condition}: rho {low.value:.2f} over {low.n}.",
    )


def _of_identified(findings: Sequence[Finding]) -> tuple[str, str]:
    ranked = best([f for f in findings if f.condition != "all"], "identified")
    first = f"True responses are above {_said(value_of(findings, 'all', 'identified'))} of their negatives."
    if not ranked:
        return first, "There are too few to tell where more and where fewer."
    high, low = ranked[0], ranked[-1]
    return (
        first,
        f"They are above most at {high.condition}: {high.value:.2f} over {high.n}, and above fewest at "
        f"{low.condition}: {low.value:.2f} over {low.n}.",
    )


def _of_length(findings: Sequence[Finding]) -> tuple[str, str]:
    own = value_of(findings, "scores and length", "spearman")
    people = value_of(findings, "human scores and length", "spearman")
    before = value_of(findings, "agreement", "spearman")
    after = value_of(findings, "agreement, length held fixed", "spearman")
    return (
        f"Its scores go with length at rho {_said(own)}, people's at {_said(people)}.",
        f"It agrees with people at rho {_said(before)}, and at {_said(after)} where length is held fixed.",
    )


def _of_distribution(findings: Sequence[Finding]) -> tuple[str, str]:
    own, people = (value_of(findings, whose, "sd") for whose in ("scores", "human scores"))
    middle = value_of(findings, "scores", "q0.5")
    return (
        f"Its scores have a standard deviation of {_said(own)} of their range, people's of {_said(people)}.",
        f"Half of its scores lie below {_said(middle)} of its range.",
    )


def _said(value: float | None) -> str:
    return "no figure" if value is None else f"{value:.2f}"
