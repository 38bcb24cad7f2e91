"""Studies of learning: what is learned from, what is tested on, and figures of learners whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from ssrem.errors import AnnotationError
from ssrem.samples import Labelled, Sample
from ssrem.studies.learned import Human, Learning, Transfer, leave_one_system_out, low_resource, transfer
from ssrem.studies.study import Finding

SCALE = (1.0, 5.0)


def human(contexts: int = 60, systems: Sequence[str | None] = ("a", "b", "c"), start: int = 0) -> Human:
    """A response of each system to each context; its score is written in it."""
    who = [*systems] * contexts
    scores = np.random.default_rng(start).integers(1, 6, len(who)).astype(float)
    samples = [
        Sample((f"context {start + at // len(systems)}",), f"{system} says {score}")
        for at, (system, score) in enumerate(zip(who, scores, strict=True))
    ]
    return Human(samples, scores, SCALE, who)


@dataclass
class Learner:
    """Knows the score that is written in a response of a system it has learned from; keeps what it was given."""

    lessons: list[Labelled] = field(default_factory=list)
    tests: list[Sequence[Sample]] = field(default_factory=list)

    def __call__(self, pairs: Labelled, scale: tuple[float, float]) -> Student:
        assert scale == SCALE
        self.lessons.append(pairs)
        return Student(self, {sample.response.split()[0] for sample, _ in pairs})


@dataclass
class Student:
    learner: Learner
    systems: set[str]

    def score(self, samples: Sequence[Sample]) -> NDArray[np.float64]:
        self.learner.tests.append(samples)
        texts = [sample.response.split() for sample in samples]
        return np.array([float(text[-1]) / 10 if text[0] in self.systems else 0.0 for text in texts])


def by_condition(findings: Sequence[Finding]) -> dict[str, Finding]:
    return {finding.condition: finding for finding in findings}


def test_fewer_and_fewer_labels_of_other_contexts() -> None:
    learner = Learner()
    findings = low_resource(Learning(human(), learner), seed=3)
    counts = ["25 responses", "50 responses", "100 responses", "all 120 responses"]
    assert [(f.condition, f.value, f.n) for f in findings] == [(one, pytest.approx(1), 60) for one in counts]
    assert [len(lesson) for lesson in learner.lessons] == [25, 50, 100, 120]
    for smaller, larger in zip(learner.lessons, learner.lessons[1:], strict=False):
        assert larger[: len(smaller)] == smaller
    for lesson, tested in zip(learner.lessons, learner.tests, strict=True):
        learned = {sample.context for sample, _ in lesson}
        assert not learned & {sample.context for sample in tested} and len(tested) == 60
    assert low_resource(Learning(human(), Learner()), seed=3) == findings


def test_a_system_that_is_left_out_is_not_learned_from() -> None:
    learner = Learner()
    findings = by_condition(leave_one_system_out(Learning(human(), learner), seed=1))
    assert findings["all systems"].value == pytest.approx(1)
    for system, lesson in zip("abc", learner.lessons[2:], strict=True):
        assert {sample.response.split()[0] for sample, _ in lesson} == set("abc") - {system}
        assert 0 < (findings[f"without {system}"].value or 0) < 1
        own = findings[f"without {system}: its own responses"]
        assert (own.value, own.outcome, own.n) == (None, "constant", 20)
    assert len(learner.lessons[1]) == 90  # the control learns from 75%
    for systems in (("a",), (None, None)):
        with pytest.raises(AnnotationError, match="known systems cannot be left out by system"):
            leave_one_system_out(Learning(human(systems=systems), Learner()), seed=0)


def test_transfer_is_a_row_of_the_matrix_and_too_few_to_learn_from_an_outcome() -> None:
    learner, here, other = Learner(), human(), human(40, ("a", "z"), start=100)
    findings = by_condition(transfer(Transfer(here, learner, "here", {"other": other}), seed=0))
    assert findings["on here, 3 folds"].value == pytest.approx(1)
    assert findings["on other"].n == 80
    assert 0 < (findings["on other"].value or 0) < 1  # it knows nothing of z
    assert [len(lesson) for lesson in learner.lessons] == [120, 120, 120, 180]
    assert len(transfer(Transfer(here, Learner(), "here", {}), seed=0)) == 1
    learner = Learner()
    findings = by_condition(leave_one_system_out(Learning(human(6), learner), seed=0))
    assert findings["a random quarter left out"].outcome == findings["without a"].outcome == "too_few"
    assert all(len(lesson) >= 10 for lesson in learner.lessons)
    assert [f.outcome for f in low_resource(Learning(human(3), Learner()), seed=0)] == ["too_few"]
