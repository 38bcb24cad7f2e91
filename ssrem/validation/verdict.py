"""What a validation comes to: a sentence, and whether it meets what is required."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ssrem.report.numbers import fixed, percent
from ssrem.validation import REQUIRABLE
from ssrem.validation.rates import Estimate
from ssrem.validation.validation import Validation

FOOLED = 0.2
"""Share of good responses that a copied turn may reach before the sentence warns of it."""


def verdict(validation: Validation) -> str:
    """Whether the evaluator can stand in for people, in one sentence."""
    name, rho = validation.evaluator, validation.spearman
    if rho.value is None:
        return f"These labels cannot tell how well {name} agrees with people: {rho.reason}."
    figure = f"ρ {_with_interval(rho)}"
    if rho.low is None:
        return (
            f"These labels are too few to judge {name} by its agreement with people, {figure}: {rho.reason}."
        )
    if rho.high is not None and rho.high < 0:
        return f"{name} cannot be relied on: it ranks responses against people’s judgement, {figure}."
    if rho.low <= 0:
        return f"{name} cannot be relied on: its agreement with people, {figure}, may be chance."
    warnings = "".join(f"; {warning}" for warning in _warnings(validation))
    if weak := _beside_baselines(validation):
        return f"{name} agrees with people at {figure}, but {weak}{warnings}."
    one = validation.rater.statistic
    if one is None:
        beside = "; how well people agree with each other is not known, as no two labelled the same responses"
    elif rho.low >= one:
        beside = f", better than one rater does with the others, {fixed(one)}"
    elif (rho.high or 0.0) >= one:
        beside = f", about as well as one rater does with the others, {fixed(one)}"
    else:
        beside = f", which is less than one rater does with the others, {fixed(one)}"
    return f"{name} agrees with people at {figure}{beside}{warnings}."


def unmet(validation: Validation, required: Mapping[str, float]) -> list[str]:
    """What is not as required, in words; required: measures of REQUIRABLE to the value that they are to have."""
    measures, words = validation.measures(), []
    for name, wanted in required.items():
        value, least = measures[name].value, REQUIRABLE[name] == "at least"
        if value is None:
            words.append(f"{name} has no value ({measures[name].reason})")
        elif value < wanted if least else value > wanted:
            words.append(f"{name} is {value:.3f}, not {REQUIRABLE[name]} {wanted:g}")
    return words


def _beside_baselines(validation: Validation) -> str:
    """That baselines are better, or else that the evaluator is not significantly above some; empty if above all."""
    known = {n: d for n, d in validation.against.items() if d.second is not None}
    better = {n: d.second for n, d in known.items() if d.high is not None and d.high < 0}
    if better:
        return f"less than the untrained {_listed(better)}"
    unclear = {n: d.second for n, d in known.items() if d.low is None or d.low <= 0}
    return f"is not shown to be better than the untrained {_listed(unclear)}" if unclear else ""


def _listed(figures: Mapping[str, float | None]) -> str:
    return " and ".join(f"{name} ({fixed(value or 0.0)})" for name, value in figures.items())


def _warnings(validation: Validation) -> Iterator[str]:
    copied = validation.measures()["copied"].value
    if copied is not None and copied > FOOLED:
        yield f"a copied turn scores as high as {percent(copied)} of the good responses"


def _with_interval(estimate: Estimate) -> str:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return fixed(estimate.value or 0.0)
    return f"{fixed(estimate.value)} (95% interval {fixed(estimate.low)} to {fixed(estimate.high)})"
