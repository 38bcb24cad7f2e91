"""Studies as published tables: gated, done once, of what is there."""

from __future__ import annotations

import pytest
from small_home import Made

from ssrem.errors import AnnotationError, EvaluatorError, HomeError
from tasks.home import Home
from tasks.study import STUDIES, StudySettings, datasets_of, read_study, study, write_study

SSREM = [("ssrem", 1)]


@pytest.mark.usefixtures("sql_gate")
def test_every_study_lands_once_and_is_written(copy: Home) -> None:
    root = str(copy.root)
    for name in STUDIES:
        settings = StudySettings(name, responses=25)
        (dataset,) = datasets_of(root, name)
        assert study.fn(dataset, [*SSREM, ("rsrem", 1)], root, settings)
        assert not study.fn(dataset, [*SSREM, ("rsrem", 1)], root, settings)
        rows, said = read_study(copy, name, dataset)
        assert set(said) == {"ssrem", "rsrem"}
        assert {row["n"] for row in rows} <= set(range(26))
        page = write_study(root, name, dataset)
        assert page.name == f"study-{name}-{dataset}.md"
        assert f"(<{page.stem}.svg>)" in page.read_text() and page.with_suffix(".svg").exists()
    with copy.reader() as reader:
        found = reader.execute("SELECT DISTINCT study FROM studies ORDER BY ALL").fetchall()
    assert [name for (name,) in found] == sorted(STUDIES)


@pytest.mark.usefixtures("sql_gate")
def test_the_human_scores_are_those_that_were_correlated(copy: Home) -> None:
    study.fn("people", SSREM, str(copy.root), StudySettings("length"))
    rows, _ = read_study(copy, "length", "people")
    with copy.reader() as reader:
        published = reader.execute(
            "SELECT spearman, n FROM correlations WHERE evaluator = 'ssrem' AND criterion = 'overall' "
            "AND aggregation = 'mean' AND level = 'segment' AND score = 'h'"
        ).fetchone()
    (row,) = [row for row in rows if row["condition"] == "agreement"]
    assert published is not None
    assert (row["value"], row["n"]) == (pytest.approx(published[0]), published[1])


def test_what_cannot_be_studied(made: Made, copy: Home) -> None:
    root = str(made.home.root)
    with pytest.raises(EvaluatorError, match="no study 'atacks'; one of attacks, length"):
        StudySettings("atacks")
    with pytest.raises(AnnotationError, match=r"no annotated set 'nobody' in .* \(there are: people\)"):
        study.fn("nobody", SSREM, root, StudySettings("length"))
    with pytest.raises(HomeError, match="no corpus 'people' has landed"):
        study.fn("people", SSREM, root, StudySettings("attacks"))
    with pytest.raises(EvaluatorError, match="bleu-2: scores by the true response"):
        study.fn("tiny", [("bleu-2", 1)], root, StudySettings("attacks"))
    with pytest.raises(
        AnnotationError, match="people has no scores of ssrem version 7; run ssrem agree FILE"
    ):
        study.fn("people", [("ssrem", 7)], str(copy.root), StudySettings("length"))
    assert not copy.parts() or all(part.table != "studies" for part in copy.parts())


def test_without_an_annotated_set(home: Home) -> None:
    with pytest.raises(AnnotationError, match="has no annotated set; run ssrem agree FILE first"):
        datasets_of(str(home.root), "length")
