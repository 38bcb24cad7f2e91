"""Stage `study`: what an evaluator's scores depend on besides quality, as a table and a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ssrem.report.data import Rows
from ssrem.report.study import markdown, save_plot, sentences
from ssrem.samples import Sample
from ssrem.studies import EVERYDAY_PAIRS, study_called
from ssrem.studies.attacks import TrueResponses
from ssrem.studies.behaviour import Pairs
from ssrem.studies.learned import Learning, Transfer
from ssrem.studies.scored import Identified, Scored
from ssrem.tasks.scoring.signatures import Version
from ssrem.tasks.stage.ledger import Recipe
from ssrem.tasks.stage.protocol import Built, run_stage
from ssrem.tasks.stage.stage import Output, Resources, Stage
from ssrem.tasks.stage.steps import step
from ssrem.tasks.studies.annotated_sets import HumanScores, HumanScoresOfAllSets, ScoredSet
from ssrem.tasks.studies.corpora import EverydayPairs, ScoredTestSplit, TestSplit, without_reference
from ssrem.tasks.studies.source import Source, StudySettings
from ssrem.tasks.training.versions import promoted
from ssrem.tasks.warehouse.error_translation import out_of_room
from ssrem.tasks.warehouse.home import Warehouse, records
from ssrem.tasks.warehouse.partition import PartitionKey

SOURCES: dict[type, Source] = {
    Pairs: EverydayPairs(),
    TrueResponses: TestSplit(),
    Identified: ScoredTestSplit(),
    Scored: ScoredSet(),
    Learning: HumanScores(),
    Transfer: HumanScoresOfAllSets(),
}
"""Class of data that studies take → its source."""


def datasets_of(home: str, study: str) -> list[str]:
    """The corpora or annotated sets to which the study applies; an error if there is none."""
    return SOURCES[study_called(study).data].datasets(Warehouse.at(home))


def samples_of(home: Warehouse, dataset: str, settings: StudySettings) -> list[Sample]:
    """The samples that each evaluator is to score for the study; none where it takes published scores."""
    return SOURCES[study_called(settings.study).data].samples(home, dataset, settings)


@step("study")
def study(
    dataset: str,
    evaluators: Sequence[Version],
    home: str,
    settings: StudySettings,
    *,
    resources: Resources | None = None,
) -> bool:
    """Publish the study of the evaluators (name, version) on the dataset; False if it was published before.

    Raises EvaluatorError where no evaluator gives what the study needs, AnnotationError or HomeError where the
    dataset does not exist.
    """
    warehouse = Warehouse.at(home)
    kind = study_called(settings.study)
    source = SOURCES[kind.data]
    versions = source.usable(kind.name, evaluators)
    parameters = {"dataset": dataset, "evaluators": sorted(versions), **asdict(settings)}

    def build(stage: Stage) -> Built[bool]:
        rows = [
            {"evaluator": name, "version": version, "study": kind.name, "dataset": dataset}
            | {"position": position, **asdict(finding)}
            for (name, version), data in source.load(stage, dataset, versions, settings)
            for position, finding in enumerate(kind.findings(data, settings.seed))
        ]
        stage.create_from_rows("studies", rows)
        outputs = [
            Output(
                "studies",
                PartitionKey(study=kind.name, dataset=dataset, evaluator=name, version=version),
                f"evaluator = '{name}' AND version = {version}",
            )
            for name, version in versions
        ]
        return Built(True, outputs)

    return run_stage(
        warehouse,
        "study",
        lambda: Recipe(parameters, source.inputs(warehouse, dataset)),
        build,
        done=False,
        resources=resources,
    )


def study_behaviour(home: str, *, resources: Resources | None = None) -> bool:
    """Publish the study of the packaged pairs for the evaluators in use that need no reference; False if there is no
    such evaluator or nothing is new."""
    versions = without_reference(promoted(Warehouse.at(home), ()))
    settings = StudySettings("behaviour")
    return bool(versions) and study(EVERYDAY_PAIRS, versions, home, settings, resources=resources)


def read_study(home: Warehouse, name: str, dataset: str) -> tuple[Rows, dict[str, tuple[str, str]]]:
    """The published rows of a study for evaluators in use, and evaluator → its findings in two sentences."""
    with home.reader(query=PUBLISHED) as connection:
        rows = records(connection, PUBLISHED, [name, dataset])
    return rows, sentences(rows)


def write_study(home: str, name: str, dataset: str) -> Path:
    """Write the published study into the home folder's reports, as Markdown and SVG; the page's path."""
    warehouse = Warehouse.at(home)
    rows, _ = read_study(warehouse, name, dataset)
    page = warehouse.reports / f"study-{name}-{dataset}.md"
    picture = page.with_suffix(".svg")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        save_plot(rows, picture)
        page.write_text(f"{markdown(rows)}\n![{name} of {dataset}](<{picture.name}>)\n", encoding="utf-8")
    except OSError as error:
        raise out_of_room(warehouse, error) or error from None
    return page


PUBLISHED = """
    SELECT s.* FROM studies AS s INNER JOIN evaluators AS e USING (evaluator, version)
    WHERE s.study = ? AND s.dataset = ? AND e.promoted ORDER BY s.evaluator DESC, s.position
"""
