"""Studies as published tables: gated, done once, of what is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ssrem.errors import AnnotationError, EvaluatorError, HomeError
from ssrem.studies import STUDIES, study_called
from ssrem.studies.learned import Learning
from ssrem.tasks.correlate import correlate
from ssrem.tasks.query import no_better
from ssrem.tasks.settings import NegativeSettings, StudySettings, TrainSettings
from ssrem.tasks.study import datasets_of, study
from ssrem.tasks.tables import make_negatives
from ssrem.tasks.train import train
from ssrem.tasks.versions import registered
from ssrem.tasks.warehouse.home import Warehouse, records
from support.small_home import Made, annotated_rows

SSREM = [("ssrem", 1)]
LEARNING = [name for name in STUDIES if issubclass(study_called(name).data, Learning)]


def read_study(home: Warehouse, name: str, dataset: str) -> list[dict[str, Any]]:
    query = "FROM studies WHERE study = ? AND dataset = ? ORDER BY evaluator DESC, position"
    with home.reader() as connection:
        return records(connection, query, [name, dataset])


def test_every_study_lands_once_and_is_written(copy: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssrem.studies.estimates.RESAMPLES", 100)
    root, settings, both = str(copy.root), StudySettings(responses=10), [*SSREM, ("rsrem", 1)]
    for name in sorted(set(STUDIES) - set(LEARNING)):
        (dataset,) = datasets_of(root, name)
        for new in (True, False):
            assert study(dataset, name, both, root, settings) == new
        rows = read_study(copy, name, dataset)
        # Every run studies behaviour.
        assert (
            {"ssrem", "rsrem"} <= {row["evaluator"] for row in rows} <= {"ssrem", "rsrem", "cosine", "length"}
        )
        of_responses = {row["n"] for row in rows}
        assert name == "behaviour" or of_responses <= set(range(26))
    published = copy.query("SELECT DISTINCT study FROM studies ORDER BY ALL")
    assert [name for (name,) in published] == sorted(set(STUDIES) - set(LEARNING))

    # The human scores are those that were correlated.
    rows = read_study(copy, "length", "people")
    ((spearman, n),) = copy.query(
        "SELECT spearman, n FROM correlations WHERE evaluator = 'ssrem' AND criterion = 'overall' "
        "AND aggregation = 'mean' AND level = 'segment' AND score = 'h'"
    )
    (row,) = [row for row in rows if (row["condition"], row["evaluator"]) == ("agreement", "ssrem")]
    assert (row["value"], row["n"]) == (pytest.approx(spearman), n)

    # Negatives that landed are tried, anew.
    make_negatives("tiny", root, "shuffle-golden", NegativeSettings(split="test", responses=20))
    for new in (True, False):
        assert study("tiny", "attacks", both, root, settings) == new
    findings = {row["condition"]: row for row in read_study(copy, "attacks", "tiny")}
    assert findings["negative of shuffle-golden"]["n"] > 0


def test_what_cannot_be_studied(made: Made, copy: Warehouse, home: Warehouse) -> None:
    root = str(made.home.root)
    with pytest.raises(AnnotationError, match="has no annotated set; run ssrem correlate FILE first"):
        datasets_of(str(home.root), "length")
    with pytest.raises(EvaluatorError, match="no study 'atacks'; did you mean attacks"):
        study("tiny", "atacks", SSREM, root)
    with pytest.raises(AnnotationError, match=r"no annotated set 'nobody' in .* \(there are: people\)"):
        study("nobody", "length", SSREM, root)
    with pytest.raises(HomeError, match="no corpus 'people' has landed"):
        study("people", "attacks", SSREM, root)
    with pytest.raises(
        EvaluatorError, match="bleu-2: attacks gives no reference, and these score by that alone"
    ):
        study("tiny", "attacks", [("bleu-2", 1)], root)
    with pytest.raises(AnnotationError, match="people has no scores of ssrem version 7; run ssrem correlate"):
        study("people", "length", [("ssrem", 7)], str(copy.root))
    assert {part.key.study for part in copy.partitions() if part.table == "studies"} == {"behaviour"}


def test_an_evaluator_without_a_score_is_left_out_and_named(
    copy: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ssrem.agreement.figures.MEASURES", ("spearman",))
    rows = [{**row, "reference": None} for row in annotated_rows()]
    (tmp_path / "bare_eval.json").write_text(json.dumps(rows))
    root, both = str(copy.root), registered(str(copy.root), ["ssrem", "bleu-2"], {})
    correlate(str(tmp_path / "bare_eval.json"), both, root)
    why = "bleu-2: no Spearman with human scores (bare, overall): no response has a score, and none has a reference."
    assert why in no_better(copy, ["bare"])
    assert study("bare", "length", both, root)
    assert {row["evaluator"] for row in read_study(copy, "length", "bare")} == {"ssrem"}
    assert "bleu-2 is left out: no response of bare has a score by it" in capsys.readouterr().err
    with pytest.raises(AnnotationError, match="no evaluator has a score on bare"):
        study("bare", "distribution", [("bleu-2", 1)], root)


TINY = {"epochs": 1, "max_train": 50, "hidden": 4, "mlp": 4, "tune_epochs": 1}


def test_what_is_learned_from_human_scores_but_not_tested_on_them(
    copy: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An annotated set of 20 contexts and two systems, and an evaluator that learns from it."""
    monkeypatch.setattr("ssrem.agreement.figures.MEASURES", ("spearman",))
    root, file, learner = str(copy.root), tmp_path / "likes_eval.json", ("ruber-unref", 1)
    settings = TrainSettings(encoder="glove-6b-50d", set=TINY)
    rated = [
        {
            "context": [f"do you like {word} number {number}"],
            "response": f"i like {word} too" if score > 2 else "no thanks",
            "model": system,
            "annotations": {"overall": [score, score]},
        }
        for number in range(20)
        for word in [("pizza", "guitar", "football", "plane")[number % 4]]
        for system, score in (("good", 4 + number % 2), ("bad", 1 + number % 2))
    ]
    file.write_text(json.dumps(rated))
    train("ruber-unref", ["tiny"], root, settings)
    correlate(str(file), [learner], root)
    for name in LEARNING:
        for new in (True, False):
            assert study("likes", name, [*SSREM, learner], root) == new
        rows = read_study(copy, name, "likes")
        assert {row["evaluator"] for row in rows} == {"ruber-unref"}
        assert all(row["value"] is not None for row in rows if row["outcome"] == "ok")
    rows = read_study(copy, "transfer", "likes")
    assert [(row["condition"], row["n"]) for row in rows] == [("on likes, 3 folds", 40), ("on people", 25)]
    rows = read_study(copy, "leave-one-system-out", "likes")
    assert {"without good", "without bad: its own responses"} <= {row["condition"] for row in rows}
    with pytest.raises(AnnotationError, match="no annotated set 'nobody'"):
        study("nobody", "transfer", [learner], root)

    train("ruber-unref", ["tiny"], root, settings.model_copy(update={"labels": (str(file),)}))
    learned = "version 2 learned human scores of the contexts of likes already"
    with pytest.raises(EvaluatorError, match=learned):
        study("likes", "low-resource", [("ruber-unref", 2)], root)
    needs = r"ssrem: \S+ needs evaluators that learn from human scores.* train roberta-eval"
    with pytest.raises(EvaluatorError, match=needs):
        study("likes", "transfer", SSREM, root)
