"""What a study is: a function from the data of an evaluator on a dataset to findings, with a title from `@study`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, get_type_hints

from ssrem.agreement.correlate import Figure, Outcome

Data = TypeVar("Data")


@dataclass(frozen=True)
class Finding:
    """One figure of a study. condition: what was tested, such as an attack; measure: its name; n: responses used.

    value is None unless outcome is 'ok'. low, high: its 95% interval, where the study gives one.
    """

    condition: str
    measure: str
    value: float | None
    n: int
    outcome: Outcome = "ok"
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Study(Generic[Data]):
    """A function from data and a seed to findings. title, note and axis (the meaning of the values): for the report."""

    findings: Callable[[Data, int], list[Finding]]
    title: str
    note: str
    axis: str

    @property
    def name(self) -> str:
        """The function's name, with dashes."""
        return self.findings.__name__.replace("_", "-")

    @property
    def data(self) -> type[Data]:
        """The class of data that the function takes, which tells callers what to load."""
        kind: type[Data] = get_type_hints(self.findings)["data"]
        return kind

    def __call__(self, data: Data, seed: int = 0) -> list[Finding]:
        """Compute the findings."""
        return self.findings(data, seed)


def study(
    title: str, note: str, axis: str = "Spearman’s ρ"
) -> Callable[[Callable[[Data, int], list[Finding]]], Study[Data]]:
    """Decorator that makes a `Study` of a function of `data` and `seed`; its arguments are attributes of the study."""
    return lambda findings: Study(findings, title, note, axis)


def of_correlation(condition: str, correlation: Figure) -> Finding:
    """Spearman's ρ as a finding."""
    return Finding(condition, "spearman", correlation.statistic, correlation.n, correlation.outcome)
