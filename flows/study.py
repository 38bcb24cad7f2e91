"""Flow `study`: what else than quality the scores of evaluators depend on."""

from __future__ import annotations

from flows.orchestration.artifacts import shown
from ssrem.evaluators import BASELINES
from tasks.maintenance.repair import repair
from tasks.stage.stage import Resources
from tasks.studies.source import StudySettings
from tasks.studies.study import datasets_of, write_study
from tasks.studies.study import study as study_dataset
from tasks.training.versions import promoted
from tasks.warehouse.home import Warehouse


def study(
    name: str,
    home: str = "warehouse",
    datasets: list[str] | None = None,
    evaluators: list[str] | None = None,
    responses: int = 200,
    seed: int = 0,
    resources: Resources = Resources(),
) -> dict[str, str]:
    """Study the evaluators in use; returns for each dataset the path of its page.

    Evaluators that cannot give what the study needs are left out, unless none can.

    Args:
        name: Name of the study, such as attacks or length
        datasets: Names of corpora or annotated sets; by default all that the study applies to
        evaluators: Names of evaluators; by default all that are promoted but the baselines of ssrem correlate
        responses: Number of true responses to attack; 0 for all of the test split
        seed: Seed of every draw
    """
    settings = StudySettings(name, responses, seed)
    repair(home)
    used = promoted(Warehouse.at(home), evaluators or ())
    versions = used if evaluators else [one for one in used if one[0] not in BASELINES] or used
    with shown(home, "study", ["studies"]):
        pages = {}
        for dataset in datasets or datasets_of(home, name):
            study_dataset(dataset, versions, home, settings, resources=resources)
            pages[dataset] = str(write_study(home, name, dataset))
        return pages
