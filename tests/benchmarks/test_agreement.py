"""Rows of the page that compares with the papers: kept with what made them, replaced when that changes, or silent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.agreement import page as pages
from benchmarks.agreement.plan import Entry, entries
from benchmarks.agreement.responses import responses_of
from benchmarks.agreement.rows import TOO_SMALL, ComputedRows, gain_of_share, paired_gain, too_small
from benchmarks.agreement.seeds import difference_over_seeds
from ssrem.samples import TRAIN, VALID, Labels, Sample

LENGTH = Entry("untrained", "length", "`length`", "length", paper=(".1 / .2", "–"))
TRAINED = Entry("corpus", "rsrem", "`rsrem`", "rsrem", {"epochs": 1}, "glove-6b-50d", "corpus")
DATA = {"annotated": {"small": [40, "overall", 100.0]}, "chitchat": "one", "responses": None}


def labels() -> Labels:
    words, scores = np.random.default_rng(0).integers(1, (9, 6), size=(40, 2)).T.tolist()
    samples = [Sample((f"turn {at // 4}",), "word " * count) for at, count in enumerate(words)]
    return Labels(tuple(zip(samples, map(float, scores), strict=True)), (1.0, 5.0), "overall", 0)


def run(**more: Any) -> dict[str, Any]:
    interval = [0.4, 0.3, 0.5, 0.0]
    run = {"seed": 0, "fit_seconds": 1.0, "cpu_seconds": 2, "gains": [], "signature": "s|1"}
    run |= {"results": {"small": {"spearman": interval, "pearson": interval, "n": 40, "length": 0.1}}}
    return {**run, "seconds_per_1000": 1.0, **more}


def test_a_gain_within_noise_is_too_small_to_tell() -> None:
    within, beyond = gain_of_share("", 0.5, 0.55, 200), gain_of_share("", 0.5, 0.65, 200)
    assert within["low"] < 0 < beyond["low"] < 0.15
    assert gain_of_share("", 0.5, 0.55, 2000)["low"] > 0  # the same gain of more cases
    assert too_small([run(gains=[within])]) and not too_small([run(gains=[within, beyond])])
    assert too_small([run(gains=[gain_of_share("", 0.8, 0.7, 5000)])])  # a loss
    assert not too_small([run()])  # nothing was learned here
    of_scores = within | {"what": "Spearman, overall, out of fold"}
    assert too_small([run(gains=[beyond, of_scores])]), (
        "what it learned from human scores is what the row shows"
    )
    # A gain on the same cases is more certain than on others.
    start, end = (np.array([1.0] * right + [0.0] * (100 - right)) for right in (80, 88))
    paired = paired_gain("", start, end)
    assert (paired["start"], paired["end"], paired["n"]) == (0.8, 0.88, 100)
    assert 0 < paired["low"] < 0.08 and gain_of_share("", 0.8, 0.88, 100)["low"] < 0
    assert paired_gain("", end, start)["low"] < -0.08


def test_a_row_that_learned_nothing_prints_no_figures(tmp_path: Path) -> None:
    computed = ComputedRows(tmp_path, DATA)
    computed.add(TRAINED, run(gains=[gain_of_share("", 0.5, 0.51, 100)]), "command")
    computed.add(LENGTH, run(), "command")
    written = pages.page([LENGTH, TRAINED], computed, {"small": labels()})
    assert f"| `rsrem` | {TOO_SMALL} |" in written
    assert "| `length` | **.40** [.30, .50] (.40) |" in written
    assert "| `rsrem` | 40 | 1 | – | .50 → .51 (at least −.13) |" in written


def test_a_row_is_kept_with_what_made_it_and_outdated_by_another_budget_or_corpus(tmp_path: Path) -> None:
    computed = ComputedRows(tmp_path, DATA)
    assert computed.state(TRAINED) == "missing"
    computed.add(TRAINED, run(), "python -m benchmarks.agreement --row rsrem")
    row = json.loads((tmp_path / "rsrem.json").read_text())
    assert row["made_by"]["settings"]["epochs"] == 1 and row["made_by"]["settings"]["batch_size"] > 0
    assert row["command"].endswith("--row rsrem") and row["date"] and row["runs"][0]["signature"] == "s|1"
    assert computed.state(TRAINED) == "done" and computed.state(replace(TRAINED, seeds=2)) == "1 of 2 seeds"
    assert computed.state(replace(TRAINED, settings={"epochs": 2})) == "out of date: settings epochs 1, now 2"
    other = ComputedRows(tmp_path, {**DATA, "chitchat": "two"})
    assert other.state(TRAINED) == "out of date: chitchat one, now two" and other.runs(TRAINED) == []
    other.add(LENGTH, run(), "")
    assert computed.state(LENGTH) == "done"  # nothing was learned from the corpus
    written = pages.page([TRAINED], other, {"small": labels()})
    assert "- `rsrem` (`rsrem`): out of date: chitchat one, now two" in written and ".40" not in written


def test_every_row_has_a_name_and_settings_of_its_own() -> None:
    plan = entries()
    made = [json.dumps(entry.made_by, sort_keys=True) for entry in plan]
    assert len(set(made)) == len(plan) > 60
    assert all(entry.minutes <= 120 for entry in plan)


def test_responses_of_dailydialog_keep_their_contexts_and_draw_others(tmp_path: Path) -> None:
    for name in ("train", "dev"):
        said = [f"{name} {at}" for at in range(5)]
        rows = [{"context": [one, "b"], "positives": [f"{one} 0", f"{one} 1"]} for one in said]
        path = tmp_path / f"dailydialog-plusplus_{name}.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows))
    candidates = responses_of(tmp_path)
    assert len(candidates.rows(TRAIN)) == len(candidates.rows(VALID)) == 10
    for row in range(20):
        name, number, _ = candidates.texts[candidates.response[row]].split()
        context = candidates.texts[candidates.context_start[row] : candidates.context_stop[row]]
        assert context == [f"{name} {number}", "b"]
        drawn = [candidates.texts[at].split() for at in candidates.negatives["Rand"][row] if at >= 0]
        assert all(other[0] == name and other[1] != number for other in drawn)


def test_a_difference_over_seeds_is_their_mean_and_less_certain_than_that_of_one_seed() -> None:
    scored, draw = labels(), np.random.default_rng(1)
    seeds = [scored.human + noise * draw.normal(size=40) for noise in (0.1, 5.0)]
    other = [draw.normal(size=40)]
    both = difference_over_seeds(seeds, other, scored)
    alone = [difference_over_seeds([scores], other, scored) for scores in seeds]
    assert both.difference == pytest.approx(np.mean([one.difference for one in alone]), abs=1e-12)
    assert both.low < alone[0].low and both.high - both.low > alone[0].high - alone[0].low
    assert alone[0].p < 0.05 and difference_over_seeds(seeds, seeds, scored).difference == 0
