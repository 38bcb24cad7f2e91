"""The definition of a study: its data, its findings, and the sentences about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ssrem.agreement.correlation import Correlation
from ssrem.agreement.inputs import Outcome

Data = TypeVar("Data")

FEWEST = 20
"""Smallest n of a condition that a sentence names: a share or correlation over fewer says little."""


@dataclass(frozen=True)
class Finding:
    """One figure. condition: such as an attack or a bucket; measure: its name; n: number of responses it is over.

    value is None unless outcome is 'ok'. low, high: its 95% interval, where the study gives one.
    """

    condition: str
    measure: str
    value: float | None
    n: int
    outcome: Outcome = "ok"
    low: float | None = None
    high: float | None = None


Sentences = Callable[[Sequence[Finding]], tuple[str, str]]


@dataclass(frozen=True)
class Study(Generic[Data]):
    """A study of one evaluator on one dataset.

    data: the class of data that `findings` takes, with a seed; tasks/study.py loads each class. sentences: the findings
    about the evaluator in two sentences. title, note and axis (the meaning of the values): for the report.
    """

    name: str
    title: str
    note: str
    data: type[Data]
    findings: Callable[[Data, int], list[Finding]]
    sentences: Sentences
    axis: str = "Spearman’s ρ"


def of_correlation(condition: str, measure: str, correlation: Correlation) -> Finding:
    """The correlation as a finding."""
    return Finding(condition, measure, correlation.statistic, correlation.n, correlation.outcome)


def best(findings: Sequence[Finding], measure: str) -> list[Finding]:
    """Findings of a measure that have a value over `FEWEST` or more, the highest first."""
    usable = [f for f in findings if f.measure == measure and f.value is not None and f.n >= FEWEST]
    return sorted(usable, key=lambda f: -(f.value or 0.0))


def two_digits(value: float | None) -> str:
    """A value in the form used in sentences."""
    return "no figure" if value is None else f"{value:.2f}"


def printed(findings: Sequence[Finding], condition: str, measure: str = "spearman") -> str:
    """The value under a condition in the form used in sentences, also where there is none."""
    values = (f.value for f in findings if (f.condition, f.measure) == (condition, measure))
    return two_digits(next(values, None))
