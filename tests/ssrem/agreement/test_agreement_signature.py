"""The signature of a figure."""

from __future__ import annotations

from dataclasses import fields, replace
from urllib.parse import unquote

from hypothesis import given, settings
from hypothesis import strategies as st

from ssrem.agreement.figures import FORMAT, Signature, digest, versions

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


def test_it_is_one_line_that_people_can_read() -> None:
    assert str(ONE) == (
        f"{FORMAT}|evaluator:cosine@2|weights:{digest('cosine|encoder:minilm')}|score:f|dataset:dailydialog-zhao"
        "|data:0123456789abcdef|criterion:overall|aggregation:mean+kappa0.2|level:segment|grouping:pooled"
        "|measure:spearman|excluded:checks,ground-truth|n:800|resamples:2000|seed:7|ssrem:0.1.0|numpy:2.4.6"
        "|scipy:1.17.1"
    )


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: text != "-"))
@settings(max_examples=50, deadline=None)
def test_every_part_shows_and_no_text_breaks_the_line(criterion: str) -> None:
    line = str(replace(ONE, criterion=criterion, seed=None, excluded=()))
    assert len(line.splitlines()) == 1 and line.isprintable()
    parts = dict(part.split(":", 1) for part in line.split("|")[1:])
    assert list(parts) == [field.name for field in fields(Signature)]
    assert (unquote(parts["criterion"]), parts["seed"], parts["excluded"]) == (criterion, "-", "-")


def test_versions_are_those_installed() -> None:
    import numpy
    import scipy

    import ssrem

    assert versions() == {
        "ssrem": ssrem.__version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
    }
