"""Flow `correlate`: score annotated sets and correlate the scores with human scores."""

from __future__ import annotations

from typing import Any

from ssrem.errors import say
from ssrem.evaluators.judge.request_options import request_options
from ssrem.flows.orchestration.artifacts import stage_artifacts
from ssrem.flows.orchestration.options import AgreementOptions, AnnotatedSetOptions, RunnerOptions
from ssrem.flows.orchestration.workers import on_workers
from ssrem.tasks.agreement.correlate import SET_ERRORS
from ssrem.tasks.agreement.correlate import correlate as correlate_set
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.scoring.endpoint_requests import split_settings
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.training.transfer import registered
from ssrem.tasks.training.versions import to_correlate
from ssrem.tasks.warehouse.home import Warehouse


@on_workers
def correlate(
    annotated_sets: AnnotatedSetOptions,
    home: str = "warehouse",
    evaluators: list[str] | None = None,
    agreement: AgreementOptions = AgreementOptions(),
    settings: dict[str, Any] | None = None,
    resources: Resources = Resources(),
    runner: RunnerOptions = RunnerOptions(),
) -> dict[str, bool]:
    """Score annotated sets with evaluators and correlate; returns for each dataset whether it is new.

    An evaluator that learns nothing or comes with ssrem is registered first. The untrained baselines are compared too.
    If several sets fail, each is reported in a line; the last one is raised.

    Args:
        evaluators: Names of evaluators; by default all in use, or the best that is packaged and installed
        settings: Settings of evaluators that learn nothing, which make a new version, and options for asking endpoints
            in this run; never a key itself, but the name of its environment variable
    """
    repair(home)
    names = to_correlate(Warehouse.at(home), evaluators or ())
    own, options = split_settings(names, settings or {})
    versions = registered(home, names, own, resources=resources)
    with stage_artifacts(home, "correlate", ["agreement", "best"]), request_options(**options):
        new, failed = {}, []
        for file in annotated_sets.files:
            try:
                dataset, is_new = correlate_set(
                    file,
                    versions,
                    home,
                    ground_truth_kept=agreement.keep_ground_truth,
                    systems_forced=agreement.force_systems,
                    test=agreement.test,
                    permutations=agreement.permutations,
                    layout=annotated_sets.layout,
                    mapping=annotated_sets.mapping,
                    replace=annotated_sets.replace,
                    resources=resources,
                )
                new[dataset] = is_new
            except SET_ERRORS as error:
                failed.append(error)
        for failure in failed[:-1]:
            say(str(failure))
        if failed:
            raise failed[-1]
        return new
