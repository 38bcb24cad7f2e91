"""Flow `score_corpus`: score corpora's test splits with evaluators that learned from other corpora."""

from __future__ import annotations

from ssrem.errors import EvaluatorError
from ssrem.evaluators import check_name, evaluator_class
from ssrem.flows.orchestration.artifacts import stage_artifacts
from ssrem.flows.orchestration.options import RunnerOptions, TableOptions
from ssrem.flows.orchestration.workers import on_workers
from ssrem.flows.tables import tables
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.scoring.endpoint_requests import asks
from ssrem.tasks.scoring.test_split import score_corpus as score_test_split
from ssrem.tasks.speaker_tables.build import without_tables
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.training.transfer import registered
from ssrem.tasks.warehouse.corpora import landed_corpora
from ssrem.tasks.warehouse.home import Warehouse


@on_workers
def score_corpus(
    home: str = "warehouse",
    corpora: list[str] | None = None,
    evaluators: list[str] | None = None,
    resources: Resources = Resources(),
    runner: RunnerOptions = RunnerOptions(),
) -> dict[str, list[str]]:
    """Score the test splits of corpora with evaluators, whatever these learned from (Bak and Oh 2020, section 7);
    returns for each corpus the evaluators whose scores of it are new.

    An evaluator that learns nothing or comes with ssrem is registered first. Speaker tables that are missing are built
    first, with default settings.

    Args:
        corpora: Names of corpora; by default all that have landed
        evaluators: Names of evaluators; by default all in use
    """
    repair(home)
    warehouse = Warehouse.at(home)
    for name in evaluators or ():
        check_name(name)
        if "f" not in evaluator_class(name).parts:
            raise EvaluatorError(
                f"{name} compares responses with a reference alone, which a corpus does not have; leave it out"
            )
    landed = landed_corpora(home, corpora)
    names = corpora or landed
    used = registered(home, evaluators or (), {}, resources=resources)
    versions = [(name, version) for name, version in used if "f" in evaluator_class(name).parts]
    if asks_endpoint := [name for name, version in versions if asks(warehouse, name, version) and evaluators]:
        raise EvaluatorError(
            f"{asks_endpoint[0]} would ask an endpoint about every candidate of a test split; leave it out"
        )
    if missing := without_tables(home, names):
        tables(home, missing, TableOptions(), resources)
    with stage_artifacts(home, "score", ["identification"]):
        return {
            corpus: [
                name
                for name, version in versions
                if score_test_split(name, version, corpus, home, resources=resources)
            ]
            for corpus in names
        }
