"""Flow `study`: what the scores of evaluators hang on besides quality."""

from __future__ import annotations

from prefect import flow

from flows.orchestration.artifacts import shown
from flows.orchestration.failure_hook import tell
from tasks.maintenance.repair import repair
from tasks.stage.stage import Resources
from tasks.studies.source import StudySettings
from tasks.studies.study import datasets_of, write_study
from tasks.studies.study import study as study_of
from tasks.training.versions import promoted
from tasks.warehouse.home import Warehouse


@flow(name="study", on_failure=[tell], on_crashed=[tell])
def study(
    name: str,
    home: str = "warehouse",
    datasets: list[str] | None = None,
    evaluators: list[str] | None = None,
    responses: int = 200,
    seed: int = 0,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> dict[str, str]:
    """Study the evaluators in use on corpora (attacks, corpus-buckets) or annotated sets; dataset to its page's path.

    Evaluators that cannot give what the study needs are left out, unless none can.
    """
    settings = StudySettings(name, responses, seed)
    repair(home)
    versions = promoted(Warehouse.at(home), evaluators or ())
    resources = Resources(memory_limit, threads)
    with shown(home, "study", ["studies"]):
        pages = {}
        for dataset in datasets or datasets_of(home, name):
            study_of(dataset, versions, home, settings, resources=resources)
            pages[dataset] = str(write_study(home, name, dataset))
        return pages
