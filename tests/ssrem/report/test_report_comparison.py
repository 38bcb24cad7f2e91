"""Two runs side by side: what is matched with what, and how missing data are reported."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ssrem.report.comparison import OF_EVALUATOR, Comparison, Pair, Side, flat
from ssrem.report.page import render_comparison
from support.report_data import correlation


def run(run_id: str, stage: str = "train", **parameters: Any) -> dict[str, Any]:
    about = {"stage": stage, "started": "then", "ended": "now", "ssrem_version": "0.1.0"}
    return {"run_id": run_id, "parameters": parameters, "inputs": {"talk": "abc"}, **about}


def evaluator(name: str, version: int, **facts: Any) -> dict[str, Any]:
    return {**dict.fromkeys(OF_EVALUATOR), "evaluator": name, "version": version, **facts}


def gate(expectation: str, passed: bool = True) -> dict[str, Any]:
    return {"table": "scores", "expectation": expectation, "passed": passed, "rows_checked": 9}


def wrote(table: str, rows: int | None, key: str = "k", state: str = "published") -> dict[str, Any]:
    return {"table": table, "key": key, "rows": rows, "state": state}


def compared(first: Side, second: Side) -> Comparison:
    return Comparison("now", "0.1.0", "warehouse", first, second)


def sentences(comparison: Comparison) -> list[str]:
    """The paragraphs at the top of the page."""
    head = render_comparison(comparison).split('<div class="answer">')[1].split("</div>")[0]
    return re.findall("<p>(.*?)</p>", head)


def test_versions_of_one_evaluator_are_compared() -> None:
    comparison = compared(
        Side(
            run("r1", seed=0),
            [evaluator("ssrem", 1, valid_loss=1.5)],
            [correlation(version=1, spearman=0.25), correlation(version=1, dataset="gone", spearman=0.1)],
        ),
        Side(
            run("r2", seed=1),
            [evaluator("ssrem", 2, valid_loss=1.25)],
            [correlation(version=2, spearman=0.5), correlation(version=2, dataset="new", spearman=None)],
        ),
    )
    same, gone, new = comparison.correlations
    assert (same.names[:2], same.difference) == (("ssrem", "persona"), 0.25)
    assert (gone.second, gone.difference, new.first, new.difference) == (None, None, None, None)
    assert Pair(("valid_loss",), 1.5, 1.25, -0.25) in comparison.evaluators["ssrem"]
    assert [pair for pair in comparison.settings if pair.differs] == [Pair(("parameters", "seed"), 0, 1, 1)]
    assert sentences(comparison) == [
        "They differ in seed.",
        "Of 1 correlations with human ratings that both have, 1 are higher in the second; the largest change is +0.250 "
        "(ssrem h on persona, overall, segment level).",
    ]


def test_the_only_evaluators_of_two_runs_are_compared_with_one_another() -> None:
    comparison = compared(
        Side(run("r1"), [evaluator("ssrem", 1)], [correlation(spearman=0.25, version=1)]),
        Side(run("r2"), [evaluator("bleu", 1)], [correlation(evaluator="bleu", spearman=0.125, version=1)]),
    )
    (pair,) = comparison.correlations
    assert (pair.names[0], pair.difference) == ("ssrem and bleu", -0.125)
    assert list(comparison.evaluators) == ["ssrem and bleu"]


def test_of_two_versions_in_one_run_the_newest_counts() -> None:
    side = Side(run("r1"), [evaluator("a", 10), evaluator("a", 9)], [correlation(evaluator="a", version=10)])
    assert compared(side, side).evaluators["a"][1] == Pair(("version",), 10, 10, 0)


def test_tables_and_gates_are_matched_by_name() -> None:
    comparison = compared(
        Side(
            run("r1"),
            outputs=[wrote("turns", 5, "a"), wrote("turns", 6, "b"), wrote("sc", None)],
            gates=[gate("x")],
        ),
        Side(
            run("r2", "correlate"),
            outputs=[wrote("turns", 13), wrote("sp", 2)],
            gates=[gate("x"), gate("y", False)],
        ),
    )
    assert [(pair.names[0], pair.first, pair.second, pair.difference) for pair in comparison.tables] == [
        ("turns", 11, 13, 2),
        ("sc", None, None, None),
        ("sp", None, 2, None),
    ]
    assert [pair.names for pair in comparison.gates if pair.differs] == [("scores", "y")]
    assert (
        sentences(comparison)[0]
        == "These are runs of different stages, train and correlate, so little can be compared."
    )


def test_nested_settings_are_a_line_each() -> None:
    values = {"config": {"epochs": 3, "deep": {"x": None}}, "evaluators": [["a", 1]], "none": {}}
    assert flat(values) == {
        **{"config.epochs": 3, "config.deep.x": None},
        **{"evaluators": '[["a", 1]]', "none": "{}"},
    }


@pytest.mark.parametrize("full", [True, False])
def test_the_page_is_complete_and_escaped(full: bool) -> None:
    evil = "<script>alert(1)</script>"
    first = Side(run("r1", name=evil), lost=[f"its correlations of {evil}"])
    if full:
        facts = [evaluator(evil, 1, why=evil)]
        outputs = [wrote("turns", None, evil, f"replaced by {evil}")]
        first = Side(
            first.run,
            facts,
            [correlation(dataset=evil, version=1, spearman=None)],
            outputs,
            [gate(evil)],
            first.lost,
        )
    page = render_comparison(compared(first, Side(run("r2"))))
    assert "Not available for the first run: its correlations of" in page
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= (7 if full else 2)
    assert ("ssrem correlate FILE" in page) is not full
    assert ("replaced by" in page) is full
