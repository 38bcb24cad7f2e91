"""The signature of a figure: there and back, and what differs in words."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssrem.agreement.signature import (
    FORMAT,
    MOST_RESAMPLES,
    Signature,
    SignatureError,
    differences,
    digest,
    parse,
    versions,
)

ONE = Signature(
    evaluator="cosine@2",
    weights=digest("cosine|encoder:minilm"),
    score="f",
    dataset="dailydialog-zhao",
    data="0123456789abcdef",
    criterion="overall",
    aggregation="mean+kappa0.2",
    level="segment",
    grouping="pooled",
    measure="spearman",
    excluded=("checks", "ground-truth"),
    n=800,
    resamples=2000,
    seed=7,
    ssrem="0.1.0",
    numpy="2.4.6",
    scipy="1.17.1",
)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text != "-")


def test_it_is_one_line_that_people_can_read() -> None:
    assert str(ONE) == (
        f"{FORMAT}|evaluator:cosine@2|weights:{digest('cosine|encoder:minilm')}|score:f|dataset:dailydialog-zhao"
        "|data:0123456789abcdef|criterion:overall|aggregation:mean+kappa0.2|level:segment|grouping:pooled"
        "|measure:spearman|excluded:checks,ground-truth|n:800|resamples:2000|seed:7|ssrem:0.1.0|numpy:2.4.6"
        "|scipy:1.17.1"
    )
    assert parse(f"  {ONE}\n") == ONE


@given(
    texts,
    texts,
    st.none() | st.integers(0),
    st.none() | st.integers(1, MOST_RESAMPLES),
    st.frozensets(texts.filter(lambda text: "," not in text)),
)
@settings(max_examples=50, deadline=None)
def test_there_and_back(
    criterion: str, dataset: str, seed: int | None, resamples: int | None, excluded: frozenset[str]
) -> None:
    drawn = replace(
        ONE,
        criterion=criterion,
        dataset=dataset,
        seed=seed,
        resamples=resamples,
        excluded=tuple(sorted(excluded)),
    )
    line = str(drawn)
    assert len(line.splitlines()) == 1 and line.isprintable()
    assert parse(line) == drawn


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "begins with"),
        ("nrefs:1|case:mixed", "begins with ssrem-agreement/2, not with 'nrefs:1'"),
        (str(ONE).replace("agreement/2", "agreement/1"), "begins with"),
        (str(ONE)[:-14], "look at scipy"),
        (str(ONE).replace("|score:f", ""), "look at score"),
        (str(ONE) + "|more:1", "look at more"),
        (str(ONE) + "|seed:1", "occurs twice"),
        (str(ONE) + "|", "not a part"),
        (str(ONE).replace("n:800", "n:many"), "cannot be read"),
        (str(ONE).replace("n:800", "n:-800"), "cannot be -800"),
        (str(ONE).replace("resamples:2000", "resamples:0"), "resamples is 0, not from 1 to 10,000"),
        (str(ONE).replace("resamples:2000", "resamples:10001"), "resamples is 10001, not from"),
        (str(ONE).replace("resamples:2000", f"resamples:{10**400}"), "not from 1 to 10,000"),
        (str(ONE).replace("data:0123456789abcdef", "data:0123"), "not 12 to 64 hex digits"),
        (str(ONE).replace("checks,ground-truth", "ground-truth,checks"), "not sorted"),
    ],
)
def test_what_is_no_signature_is_refused_in_a_line(line: str, says: str) -> None:
    with pytest.raises(SignatureError) as refused:
        parse(line)
    assert says in str(refused.value) and "\n" not in str(refused.value)


def test_differences_in_words() -> None:
    assert differences(ONE, ONE) == []
    other = replace(ONE, n=790, data="f" * 16, seed=None, excluded=(), scipy="1.18.0")
    assert differences(ONE, other) == [
        f"the annotated set has other content: 0123456789abcdef in the signature, {'f' * 16} here",
        "other responses or raters are left out: checks, ground-truth in the signature, none here",
        "another number of responses: 800 in the signature, 790 here",
        "another seed: 7 in the signature, none here",
        "another version of SciPy: 1.17.1 in the signature, 1.18.0 here",
    ]
    assert differences(ONE, replace(ONE, data=ONE.data[:12])) == []


@pytest.mark.parametrize("name", [field.name for field in fields(Signature)])
def test_every_part_can_differ(name: str) -> None:
    value: Any = {
        "weights": "a" * 12,
        "data": "b" * 12,
        "excluded": (),
        "n": 1,
        "resamples": 1,
        "seed": 1,
    }.get(name, "other")
    assert len(differences(ONE, replace(ONE, **{name: value}))) == 1


def test_what_cannot_be_signed() -> None:
    for wrong in (
        {"criterion": ""},
        {"dataset": "-"},
        {"weights": "xyz"},
        {"excluded": ("a,b",)},
        {"seed": -1},
    ):
        with pytest.raises(ValueError):
            replace(ONE, **wrong)  # type: ignore[arg-type]


def test_versions_are_those_installed() -> None:
    import numpy
    import scipy

    import ssrem

    assert versions() == {
        "ssrem": ssrem.__version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
    }
