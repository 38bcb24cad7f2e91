"""Flow `study`: what the scores of evaluators depend on besides quality."""

from __future__ import annotations

from typing import Any

from ssrem.evaluators.judge.request_options import request_options
from ssrem.flows.orchestration.artifacts import stage_artifacts
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.scoring.endpoint_requests import split_settings
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.studies.source import StudySettings
from ssrem.tasks.studies.study import datasets_of, write_study
from ssrem.tasks.studies.study import study as study_dataset
from ssrem.tasks.training.transfer import registered
from ssrem.tasks.training.versions import to_study
from ssrem.tasks.warehouse.home import Warehouse


def study(
    name: str,
    home: str = "warehouse",
    datasets: list[str] | None = None,
    evaluators: list[str] | None = None,
    responses: int = 200,
    seed: int = 0,
    settings: dict[str, Any] | None = None,
    resources: Resources = Resources(),
) -> dict[str, str]:
    """Study the evaluators in use; returns for each dataset the path of its page.

    Evaluators that do not provide what the study needs are left out; it is an error if none does. A named evaluator
    that learns nothing or comes with ssrem is registered first.

    Args:
        name: Name of the study, such as attacks or length
        datasets: Names of corpora or annotated sets; by default all that the study applies to
        evaluators: Names of evaluators; by default all that are promoted but the baselines of ssrem correlate
        responses: Number of true responses to attack; 0 for all of the test split
        seed: Seed of every draw
        settings: Settings of evaluators that learn nothing, which make a new version, and options for asking endpoints
            in this run; never a key itself, but the name of its environment variable
    """
    of_study = StudySettings(name, responses, seed)
    repair(home)
    names = to_study(Warehouse.at(home), evaluators or ())
    own, options = split_settings(names, settings or {})
    versions = registered(home, names, own, resources=resources)
    with stage_artifacts(home, "study", ["studies"]), request_options(**options):
        pages = {}
        for dataset in datasets or datasets_of(home, name):
            study_dataset(dataset, versions, home, of_study, resources=resources)
            pages[dataset] = str(write_study(home, name, dataset))
        return pages
