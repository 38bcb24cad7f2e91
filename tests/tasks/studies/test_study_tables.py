"""Studies as published tables: gated, done once, of what is there."""

from __future__ import annotations

import json
from statistics import mean

import pytest

from ssrem.errors import AnnotationError, EvaluatorError, HomeError
from ssrem.studies import STUDIES, study_called
from ssrem.studies.learned import Learning
from ssrem.tasks.agreement.correlate import correlate
from ssrem.tasks.speaker_tables.negatives import NegativeSettings, make_negatives
from ssrem.tasks.studies.source import StudySettings
from ssrem.tasks.studies.study import datasets_of, read_study, study, write_study
from ssrem.tasks.training.settings import LabelOptions
from ssrem.tasks.training.train import train
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import Made, copied

SSREM = [("ssrem", 1)]
LEARNING = [name for name in STUDIES if issubclass(study_called(name).data, Learning)]


def test_every_study_lands_once_and_is_written(copy: Warehouse) -> None:
    root = str(copy.root)
    for name in sorted(set(STUDIES) - set(LEARNING)):
        settings = StudySettings(name, responses=25)
        (dataset,) = datasets_of(root, name)
        assert study(dataset, [*SSREM, ("rsrem", 1)], root, settings)
        assert not study(dataset, [*SSREM, ("rsrem", 1)], root, settings)
        rows, said = read_study(copy, name, dataset)
        # Every run studies behaviour.
        assert {"ssrem", "rsrem"} <= set(said) <= {"ssrem", "rsrem", "cosine", "length"}
        of_responses = {row["n"] for row in rows if row["measure"] != "words"}
        assert name in ("behaviour", "corpus-buckets") or of_responses <= set(range(26))
        page = write_study(root, name, dataset)
        assert page.name == f"study-{name}-{dataset}.md"
        assert f"(<{page.stem}.svg>)" in page.read_text() and page.with_suffix(".svg").exists()
    with copy.reader() as reader:
        published = reader.execute("SELECT DISTINCT study FROM studies ORDER BY ALL").fetchall()
    assert [name for (name,) in published] == sorted(set(STUDIES) - set(LEARNING))


def test_shares_of_negatives_are_those_of_the_scores(copy: Warehouse) -> None:
    study("tiny", SSREM, str(copy.root), StudySettings("corpus-buckets"))
    rows, _ = read_study(copy, "corpus-buckets", "tiny")
    with copy.reader() as reader:
        scores = reader.execute(
            "SELECT response_id, kind, f FROM scores WHERE evaluator = 'ssrem' AND dataset = 'tiny'"
        ).fetchall()
    true = {response: f for response, kind, f in scores if kind == "GT"}
    shares: dict[str, list[float]] = {}
    for response, kind, f in scores:
        if kind not in ("GT", "Context"):
            shares.setdefault(response, []).append((true[response] > f) + (true[response] == f) / 2)
    assert (rows[0]["value"], rows[0]["n"]) == (
        pytest.approx(mean(mean(of_one) for of_one in shares.values())),
        len(shares),
    )


def test_negatives_that_landed_are_tried(copy: Warehouse) -> None:
    root, settings = str(copy.root), StudySettings("attacks", responses=20)
    assert study("tiny", SSREM, root, settings)
    make_negatives("tiny", root, NegativeSettings("shuffle-golden", split="test", responses=20))
    assert study("tiny", SSREM, root, settings)  # anew, as there is more to try
    rows, _ = read_study(copy, "attacks", "tiny")
    findings = {row["condition"]: row for row in rows}
    assert findings["negative of shuffle-golden"]["n"] > 0
    assert not study("tiny", SSREM, root, settings)


def test_the_human_scores_are_those_that_were_correlated(copy: Warehouse) -> None:
    study("people", SSREM, str(copy.root), StudySettings("length"))
    rows, _ = read_study(copy, "length", "people")
    with copy.reader() as reader:
        published = reader.execute(
            "SELECT spearman, n FROM correlations WHERE evaluator = 'ssrem' AND criterion = 'overall' "
            "AND aggregation = 'mean' AND level = 'segment' AND score = 'h'"
        ).fetchone()
    (row,) = [row for row in rows if row["condition"] == "agreement"]
    assert published is not None
    assert (row["value"], row["n"]) == (pytest.approx(published[0]), published[1])


def test_what_cannot_be_studied(made: Made, copy: Warehouse) -> None:
    root = str(made.home.root)
    with pytest.raises(EvaluatorError, match="no study 'atacks'; did you mean attacks"):
        StudySettings("atacks")
    with pytest.raises(AnnotationError, match=r"no annotated set 'nobody' in .* \(there are: people\)"):
        study("nobody", SSREM, root, StudySettings("length"))
    with pytest.raises(HomeError, match="no corpus 'people' has landed"):
        study("people", SSREM, root, StudySettings("attacks"))
    with pytest.raises(EvaluatorError, match="bleu-2: scores by the true response"):
        study("tiny", [("bleu-2", 1)], root, StudySettings("attacks"))
    with pytest.raises(
        AnnotationError, match="people has no scores of ssrem version 7; run ssrem correlate FILE"
    ):
        study("people", [("ssrem", 7)], str(copy.root), StudySettings("length"))
    assert {part.key.study for part in copy.partitions() if part.table == "studies"} == {"behaviour"}


TINY = {"epochs": 1, "max_train": 50, "hidden": 4, "mlp": 4, "tune_epochs": 1}


@pytest.fixture(scope="module")
def labelled(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A home with an annotated set of 20 contexts, two systems, and with an evaluator that learns from it."""
    folder = tmp_path_factory.mktemp("labelled")
    home = copied(made.home, folder / "home")
    rows = [
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
    path = folder / "likes_eval.json"
    path.write_text(json.dumps(rows))
    train("ruber-unref", ["tiny"], str(home.root), encoder="glove-6b-50d", config=TINY)
    correlate(str(path), [("ruber-unref", 1)], str(home.root))
    return home


@pytest.mark.xdist_group("small-home")
def test_what_is_learned_from_human_scores(labelled: Warehouse) -> None:
    root, known = str(labelled.root), {"ruber-unref"}
    for name in LEARNING:
        settings = StudySettings(name)
        assert study("likes", [*SSREM, ("ruber-unref", 1)], root, settings)
        assert not study("likes", [*SSREM, ("ruber-unref", 1)], root, settings)
        rows, said = read_study(labelled, name, "likes")
        assert set(said) == known
        assert all(row["value"] is not None for row in rows if row["outcome"] == "ok")
    rows, _ = read_study(labelled, "transfer", "likes")
    assert [(row["condition"], row["n"]) for row in rows] == [
        ("on likes, 3 folds", 40),
        ("on people", 25),
    ]
    rows, _ = read_study(labelled, "leave-one-system-out", "likes")
    assert {"without good", "without bad: its own responses"} <= {row["condition"] for row in rows}
    with pytest.raises(AnnotationError, match="no annotated set 'nobody'"):
        study("nobody", [("ruber-unref", 1)], root, StudySettings("transfer"))


@pytest.mark.xdist_group("small-home")
def test_no_evaluator_is_tested_on_what_it_learned_from(labelled: Warehouse) -> None:
    labels = LabelOptions((str(labelled.root.with_name("likes_eval.json")),))
    train("ruber-unref", ["tiny"], str(labelled.root), encoder="glove-6b-50d", config=TINY, labels=labels)
    with pytest.raises(EvaluatorError, match="version 2 learned from the human scores of likes already"):
        study("likes", [("ruber-unref", 2)], str(labelled.root), StudySettings("low-resource"))
    with pytest.raises(EvaluatorError, match=r"ssrem: learns nothing from human scores.* train roberta-eval"):
        study("likes", SSREM, str(labelled.root), StudySettings("label-noise"))


def test_without_an_annotated_set(home: Warehouse) -> None:
    with pytest.raises(AnnotationError, match="has no annotated set; run ssrem correlate FILE first"):
        datasets_of(str(home.root), "length")
