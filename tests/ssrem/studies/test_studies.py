"""Studies: each attack does what it says, and figures are those of cases where the answer is known."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest, rankdata

from ssrem.agreement import Z_95
from ssrem.encoders.words import WordAverage
from ssrem.report.export import study_table
from ssrem.report.figures import studies
from ssrem.report.text import markdown
from ssrem.samples import Sample
from ssrem.studies import STUDIES, study_called
from ssrem.studies.attacks import (
    ATTACKS,
    COPIED,
    FUNCTION_WORDS,
    INJECTIONS,
    UNIVERSAL,
    TrueResponses,
    attacks,
    copying,
    injection,
    neighbours,
)
from ssrem.studies.behaviour import ALL, Pair, Pairs, behaviour, everyday_pairs
from ssrem.studies.scored import ScoredSet, distribution, length
from ssrem.studies.study import Finding

SAMPLES = [
    Sample(("hi there", f"do you like number {n} ?"), f"yes i do like number {n} a lot", "a reference")
    for n in range(40)
]


def attacked(name: str, response: str, context: tuple[str, ...] = ("hello you",)) -> str | None:
    return ATTACKS[name](Sample(context, response), random.Random(1))


def lengths(samples: Sequence[Sample]) -> NDArray[Any]:
    return np.array([len(sample.response) for sample in samples], dtype=np.float64)


def zeros(samples: Sequence[Sample]) -> NDArray[Any]:
    return np.zeros(len(samples))


def by_name(findings: Sequence[Finding]) -> dict[str, Finding]:
    return {finding.condition: finding for finding in findings}


def test_what_attacks_do() -> None:
    for name, response, expected in (
        ("context copied", "x", "hello you"),
        ("response repeated", "so so", "so so so so"),
        ("words reversed", "a b c", "c b a"),
        ("words reversed", "a", None),
        ("empty response", "a", ""),
        ("negated", "i am here", "i am not here"),
        ("negated", "i am not here", "i am here"),
        ("negated", "i don't know", "i do know"),
        ("negated", "I can't go", "I can go"),
        ("negated", "Won’t you?", "Will you?"),
        ("negated", "i do n't know", "i do know"),
        ("negated", "i cannot", "i can"),
        ("negated", "Can you?", "Can not you?"),
        ("negated", "pizza", None),
    ):
        assert attacked(name, response) == expected
    assert attacked("context copied", "x", ()) is None
    assert sorted((attacked("words shuffled", "a b c d") or "").split()) == ["a", "b", "c", "d"]
    ten = "one two three four five six seven eight nine ten"
    left = (attacked("words dropped", ten) or "").split()
    assert len(left) == 7 and [word for word in ten.split() if word in left] == left
    assert (attacked("generic response", ten) or ten) != ten
    # Words in pairs: of near ones, of far ones, of forms of one word; before them those that stay.
    frequent = [f"the{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(FUNCTION_WORDS)]
    pairs = ["cat", "dog", "pizza", "planet", "guitar", "guitars"]
    vectors = np.eye(FUNCTION_WORDS + 6, dtype=np.float32)
    for at, near in ((0, 3.0), (2, 0.1), (4, 3.0)):
        vectors[FUNCTION_WORDS + at, FUNCTION_WORDS + at + 1] = near
    attack = neighbours(WordAverage("table", [*frequent, *pairs], vectors))
    said = f"Cat, {frequent[0]} cat's pizza & GUITAR unknown"
    assert attack(Sample((), said), random.Random()) == f"Dog, {frequent[0]} dog's pizza & GUITAR unknown"


def test_who_cannot_tell_is_always_fooled() -> None:
    findings = by_name(attacks(TrueResponses(SAMPLES, zeros), 0))
    assert set(findings) == {*ATTACKS, UNIVERSAL}
    assert all(finding.value == 1 for finding in findings.values())
    few = by_name(attacks(TrueResponses([Sample((), "hm")], zeros), 0))
    assert few["context copied"] == Finding("context copied", "fooled", None, 0, "too_few")
    assert few[UNIVERSAL].outcome == "too_few" and few["empty response"].n == 1


def test_an_evaluator_that_counts_words() -> None:
    def words(samples: Sequence[Sample]) -> NDArray[Any]:
        assert all(sample.reference is None for sample in samples)  # the true response would equal it
        # As a sum in another order: a difference by rounding is none.
        return np.array([len(s.response.split()) + 1e-9 * len(s.response[:3]) for s in samples])

    findings = by_name(attacks(TrueResponses(SAMPLES, words), 0))
    fooled = {"response repeated": 1, "words shuffled": 1}
    fooled |= {"words dropped": 0, "empty response": 0, "context copied": 0}
    assert {name: findings[name].value for name in fooled} == fooled
    assert findings[UNIVERSAL].n == 20
    assert by_name(attacks(TrueResponses(SAMPLES, words), 0)) == findings


def test_a_response_that_was_refused_once_is_not_the_universal_one() -> None:
    number = {sample.response: at for at, sample in enumerate(SAMPLES)}

    def judged(sample: Sample) -> float:
        """Even responses fool it in the contexts of others, some of which it refuses; odd ones never do."""
        of, said = int(sample.context[1].split()[-2]), number.get(sample.response)
        if said is None or said == of:
            return 0.5
        return 0.1 if said % 2 else float("nan") if of % 5 == 0 else 1.0

    findings = by_name(attacks(TrueResponses(SAMPLES, lambda samples: np.array([*map(judged, samples)])), 0))
    assert findings[UNIVERSAL] == Finding(UNIVERSAL, "fooled", 0.0, 20)


def scored(n: int = 200, seed: int = 0) -> ScoredSet:
    draw = np.random.default_rng(seed)
    words = draw.integers(1, 30, n).astype(float)
    human = draw.normal(size=n) + words / 10
    return ScoredSet(words + draw.normal(size=n), human, words)


def test_agreement_that_is_length_alone_goes_when_length_is_held_fixed() -> None:
    data = scored()
    findings = by_name(length(data))
    before, after = findings["agreement"].value, findings["agreement, length held fixed"].value
    assert before is not None and after is not None
    assert before > 0.4 and abs(after) < 0.15
    # A partial correlation is that of residuals.
    x, y, z = (rankdata(column) for column in (data.scores, data.human, data.words))
    rest = [column - np.polyval(np.polyfit(z, column, 1), z) for column in (x, y)]
    assert after == pytest.approx(np.corrcoef(*rest)[0, 1])
    same = by_name(length(ScoredSet(data.scores, data.human, np.full(200, 3.0))))
    assert same["scores and length"].outcome == "constant"
    assert same["agreement, length held fixed"].value == same["agreement"].value


def test_distribution() -> None:
    data = ScoredSet(np.array([0.0, 10, 10, 0]), np.full(4, 3.0), np.ones(4))
    findings = {(f.condition, f.measure): f for f in distribution(data)}
    values = {"sd": np.std([0, 1, 1, 0], ddof=1), "q0.5": 0.5, "sd_unscaled": np.std([0, 10, 10, 0], ddof=1)}
    assert {measure: findings["scores", measure].value for measure in values} == pytest.approx(values)
    assert findings["human scores", "sd"].outcome == "constant"


def rows(study: str, findings: Sequence[Finding]) -> list[dict[str, Any]]:
    where = {"study": study, "dataset": "a|b", "evaluator": "ssrem", "version": 1}
    return [{**where, **asdict(finding)} for finding in findings]


SHOWN = (Pairs(everyday_pairs(), lengths), TrueResponses(SAMPLES, zeros), scored())
DATA: dict[type, Any] = {type(one): one for one in SHOWN}


@pytest.mark.parametrize("study", [name for name in STUDIES if study_called(name).data in DATA])
def test_every_study_has_a_table_and_a_plot(study: str) -> None:
    kind = study_called(study)
    findings = kind(DATA[kind.data])
    shown = rows(study, findings)
    page = markdown(study_table(shown))
    assert kind.name == study and page.startswith(f"Study {study} of a\\|b.\n")
    assert page.count("\n|") == len(findings) + 2
    svg = studies(shown)[0].svg()
    assert all(f.condition.split(",")[0] in svg for f in findings)


def test_a_study_that_is_not_registered_is_shown_by_its_name() -> None:
    none = Finding("none", "share", None, 0, "too_few")
    own = rows("own-study", [Finding("all responses", "share", 0.25, 40), none])
    lines = markdown(study_table(own)).splitlines()
    assert lines[-2:] == ["| all responses | 0.250 | 40 |", "| none | too few | 0 |"]
    (panel,) = studies(own)
    assert panel.title == "own-study: a|b" and "all responses" in panel.svg()


def test_injection_is_the_mean_shift_in_standard_deviations() -> None:
    """A scorer that obeys one order, gives no score to one response, and adds 1 for what it takes for a forged turn."""
    base = {sample.response: float(number % 4) for number, sample in enumerate(SAMPLES)}

    def judged(response: str) -> float:
        own = next(text for text in base if text in response)
        if own == SAMPLES[5].response:
            return float("nan")
        return 3.0 if "Ignore the above" in response else base[own] + ("Assistant:" in response)

    def score(samples: Sequence[Sample]) -> NDArray[Any]:
        return np.array([judged(sample.response) for sample in samples])

    findings = by_name(injection(TrueResponses(SAMPLES, score)))
    values = np.array([value for text, value in base.items() if text != SAMPLES[5].response])
    assert list(findings) == list(INJECTIONS) and {f.n for f in findings.values()} == {39}
    assert (findings["neutral text"].value, findings["neutral text"].low) == (0, 0)
    assert findings["forged turns"].value == pytest.approx(1 / values.std())
    obeyed, moved = findings["order behind"], (3 - values) / values.std()
    half = Z_95 * moved.std(ddof=1) / 39**0.5
    expected = (moved.mean(), moved.mean() - half, moved.mean() + half)
    assert (obeyed.value, obeyed.low, obeyed.high) == pytest.approx(expected)
    constant = injection(TrueResponses(SAMPLES, lambda samples: np.full(len(samples), 2.0794415416798357)))
    assert {f.outcome for f in constant} == {"constant"}


def test_attacks_leave_out_responses_without_a_score_and_try_what_others_wrote_where_they_wrote() -> None:
    def score(samples: Sequence[Sample]) -> NDArray[Any]:
        return np.array([np.nan if "number 7 " in s.response else len(s.response) for s in samples], float)

    data = TrueResponses(SAMPLES, score)
    findings = by_name(attacks(data))
    assert (findings["response repeated"].n, findings["response repeated"].value) == (39, 1)
    assert copying(data) == [findings[COPIED]]
    copies = {sample.context[-1] for sample in SAMPLES}
    refuses = TrueResponses(
        SAMPLES, lambda s: np.array([np.nan if one.response in copies else 1.0 for one in s])
    )
    (copied,) = copying(refuses)
    assert (copied.value, copied.n, copied.outcome) == (None, 0, "too_few")
    written = {"negative of long": ["x" * 99] * 25 + [None] * 15, "negative of short": ["x"] * 40}
    findings = by_name(attacks(TrueResponses(SAMPLES, lengths, written=written), 0))
    assert (findings["negative of long"].value, findings["negative of long"].n) == (1, 25)
    assert (findings["negative of short"].value, findings["negative of short"].n) == (0, 40)


def test_the_packaged_pairs_are_minimal_and_of_their_category() -> None:
    pairs = everyday_pairs()
    assert set(Counter(pair.category for pair in pairs).values()) == {20}
    assert len({(pair.context, pair.better, pair.worse) for pair in pairs}) == len(pairs) == 240
    for pair in pairs:
        assert pair.better.strip() and pair.worse.strip() and pair.better != pair.worse and pair.context
        assert pair.category != "copied" or pair.worse in pair.context
        assert pair.category != "casing" or pair.better in (pair.better.upper(), pair.better.lower())
        if pair.category == "scrambled":
            better, worse = (re.findall(r"[^ ,.]+", text.lower()) for text in (pair.better, pair.worse))
            assert sorted(better) == sorted(worse)


def test_shares_count_ties_and_missing_scores_as_not_higher() -> None:
    values = {"good": 1.0, "bad": 0.0, "tied": 1.0, "unscored": np.nan}

    def score(samples: Sequence[Sample]) -> Any:
        assert all(sample.reference is None for sample in samples)
        return np.array([values[sample.response] for sample in samples])

    said = [*[("one", "good", "bad")] * 3, ("one", "good", "tied")]
    said += [("two", "good", "unscored"), ("two", "bad", "good")]
    findings = behaviour(Pairs([Pair(kind, ("hi",), *both) for kind, *both in said], score))
    assert [(f.condition, f.value, f.n) for f in findings] == [
        (ALL, 0.5, 6),
        ("one", 0.75, 4),
        ("two", 0.0, 2),
    ]
    low, high = binomtest(3, 4).proportion_ci(method="wilson")
    assert (findings[1].low, findings[1].high) == pytest.approx((low, high))
    (nothing,) = behaviour(Pairs([Pair("one", ("hi",), "unscored", "good")], score))
    assert (nothing.value, nothing.outcome) == (None, "too_few")
