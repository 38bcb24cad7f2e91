"""What the figures of the report show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ssrem.report.figures import chance, forest, identification, learning, regressions, scatter, sources
from ssrem.report.text import real
from support.report_data import correlation


def points(pairs: list[tuple[float, float]]) -> list[dict[str, Any]]:
    about = {"evaluator": "e", "dataset": "d", "criterion": "c"}
    return [{**about, "human": human, "score": score} for human, score in pairs]


def called(evaluator: str, _: Any) -> str:
    return f"the {evaluator}"


def test_regression_is_fitted_on_the_scores_as_they_are_and_jitter_moves_dots_sideways_only() -> None:
    rng = np.random.default_rng(3)
    human, score = rng.integers(1, 6, 50).astype(float), rng.random(50)
    pairs = points(list(zip(human.tolist(), score.tolist(), strict=True)))
    (line,), (panel,) = regressions(pairs), scatter(pairs)
    slope, intercept = np.polyfit(human, score, 1)
    assert (line["slope"], line["intercept"]) == (pytest.approx(slope), pytest.approx(intercept))
    assert f"coef {real(slope)}" in panel.svg()
    x, y = panel.figure.axes[0].lines[0].get_data()
    assert np.std(np.asarray(x) - human) == pytest.approx(0.3, abs=0.1) and list(y) == score.tolist()


def test_no_line_where_human_scores_do_not_vary_and_no_point_without_a_score() -> None:
    pairs = points([(3.0, 0.1), (3.0, 0.9), (4.0, float("nan"))])
    (line,), (panel,) = regressions(pairs), scatter(pairs)
    assert (line["slope"], line["n"], len(panel.rows)) == (None, 2, 2)
    assert "no line: the human scores do not vary" in panel.svg()
    assert scatter(pairs[2:]) == []


def test_the_share_stands_beside_its_kind() -> None:
    row = {
        "evaluator": "e",
        "version": "v",
        "corpus": "c",
        "learned_from": "d",
        "low": 0.1,
        "high": 0.3,
        "n": 9,
    }
    first = row | {"kind": "GT", "mean": 0.2, "gt_above": None}
    (panel,) = identification([row | {"kind": "Context", "mean": 0.25, "gt_above": 0.125}, first], called)
    labels = [tick.get_text() for tick in panel.figure.axes[0].get_yticklabels()]
    assert labels == ["GT", "Context 12%"]
    assert (panel.title, panel.note) == ("the e", "test split of c; learned from d")


def test_chance_is_marked_beside_how_often_the_true_response_is_above() -> None:
    row = {"version": "v", "corpus": "c", "learned_from": "c", "mean": 0.2, "low": 0.1, "high": 0.3, "n": 99}
    rows = [
        row | {"evaluator": "weak", "kind": "Rand", "gt_above": 0.52},
        row | {"evaluator": "strong", "kind": "Rand", "gt_above": 0.9, "learned_from": "d, e"},
        row | {"evaluator": "weak", "kind": "GT", "gt_above": None},
        row | {"evaluator": "weak", "kind": "SC", "gt_above": 0.5},
    ]
    same, random = chance(rows, called)
    assert [panel.title for panel in (same, random)] == ["SC, same conversation", "Rand, anyone else"]
    assert "chance 50%" in random.svg()
    assert random.label.endswith("chance 50%: the strong 90%, the weak 52%")  # the best first
    assert random.note == f"{same.note}; learned from d, e" == "test split of c, n = 99; learned from d, e"


def test_sources_stand_in_the_order_of_their_human_medians() -> None:
    def source(evaluator: str, name: str, median: float, dataset: str = "d") -> dict[str, Any]:
        about = {"evaluator": evaluator, "version": 1, "dataset": dataset, "criterion": "overall"}
        spread = {q: median + off for q, off in (("q05", -2), ("q25", -1), ("q75", 1), ("q95", 2))}
        return {**about, **spread, "source": name, "median": median, "mean": median, "sd": 1.0, "n": 9}

    rows = [source("people", "a", 1), source("people", "b", 4), source("e", "a", 3), source("e", "b", 2)]
    rows += [source("e", kind, 0, "corpus") for kind in ("Rand", "SC", "GT")]
    people, scores, kinds = sources(rows, called)
    assert people.label == "Median score by source: b 4.000, a 1.000"
    assert scores.label == "Median score by source: b 2.000, a 3.000"
    assert (people.title, people.note, scores.title) == ("people", "overall", "the e")
    assert [row["source"] for row in kinds.rows] == ["GT", "SC", "Rand"]


def test_the_epoch_kept_is_the_first_with_the_lowest_validation_loss() -> None:
    losses = {"train": [3.0, 2.0, 1.0, 0.5], "valid": [3.0, 1.25, 1.25, 2.0]}
    rows = [
        {"evaluator": "e", "version": "v", "epoch": epoch, "split": split, "loss": loss}
        for split, values in losses.items()
        for epoch, loss in enumerate(values, 1)
    ]
    (panel,) = learning(rows, called)
    assert panel.note == "lowest validation loss 1.250 after epoch 2"


def test_the_forest_has_a_row_an_evaluator_and_lines_for_baselines_and_one_rater() -> None:
    rows = [
        correlation(spearman=0.2, spearman_low=0.1, spearman_high=0.3, ceiling=0.6),
        correlation(evaluator="name that is much too long for an axis", spearman=0.3, ceiling=0.6),
        correlation(evaluator="cosine", score="f", spearman=0.41, ceiling=0.6),
        correlation(evaluator="length", score="f", spearman=None, outcome="constant", ceiling=0.6),
        correlation(criterion="style", spearman=0.1, spearman_low=None, spearman_high=None, ceiling=None),
        correlation(criterion="style", evaluator="cosine", score="f", spearman=-0.1, ceiling=None),
        correlation(aggregation="median", spearman=0.9),
        correlation(level="conversation", spearman=0.9),
    ]
    overall, style = forest(rows, called)
    assert (overall.title, overall.note) == ("persona", "overall, n = 812")
    axes, labels = overall.figure.axes[0], overall.label
    assert labels.endswith("much too long for an axis 0.300, the ssrem 0.200, one rater 0.600, cosine 0.410")
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["the name th… for an axis", "the ssrem"]
    assert [line.get_xdata()[0] for line in axes.lines if line.get_label()[0] != "_"] == [0.6, 0.41]
    assert style.label == "Spearman correlation with 95% intervals: the ssrem 0.100, cosine −0.100"
    (alone,) = forest(rows[2:3], called)  # a baseline alone has a row
    assert [tick.get_text() for tick in alone.figure.axes[0].get_yticklabels()] == ["the cosine"]


def test_matplotlib_is_loaded_to_draw_alone_and_says_nothing_where_home_cannot_be_written_to(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    code = "import sys, ssrem.report; assert not {'matplotlib', 'jinja2'} & sys.modules.keys()\n"
    code += "from ssrem.report.figures import styled\nwith styled(): import matplotlib.font_manager"
    unset = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "MPL"))}
    home = {**unset, "HOME": str(tmp_path / "file")}
    drawn = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=home)
    assert drawn.stderr == b""
