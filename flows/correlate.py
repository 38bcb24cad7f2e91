"""Flow `agree`: annotated sets are scored and correlated with human scores."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.orchestration.artifacts import shown
from flows.orchestration.failure_hook import tell
from flows.orchestration.task_runners import Runner, on_workers
from tasks.agreement.land import agree as agree_with
from tasks.agreement.measure import measure
from tasks.maintenance.repair import repair
from tasks.stage.stage import Resources
from tasks.training.register import register
from tasks.training.versions import promoted, unregistered
from tasks.warehouse.home import Warehouse


@flow(name="agree", on_failure=[tell], on_crashed=[tell])
@on_workers
def agree(
    files: list[str],
    home: str = "warehouse",
    evaluators: list[str] | None = None,
    keep_ground_truth: bool = False,
    force_systems: bool | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    runner: Runner | None = None,
    runner_address: str | None = None,
    workers: int = 2,
    layout: str | None = None,
    mapping: dict[str, str] | None = None,
) -> dict[str, bool]:
    """Score each annotated file, folder or pulled set with the promoted evaluators and correlate; dataset to whether
    anything was new.

    layout, mapping: how the files are to be read, where their content does not tell. An evaluator that learns nothing
    is registered first where it is asked for by name and was not. force_systems: figures at system level of too few
    systems too; None: as it was for the set.
    """
    resources = Resources(memory_limit, threads)
    reading: dict[str, Any] = {"layout": layout, "mapping": mapping}
    repair(home)
    place = Warehouse.at(home)
    for name in unregistered(place, evaluators or ()):
        register(name, home, resources=resources)
    versions = promoted(place, evaluators or ())
    with shown(home, "agree", ["agreement", "best"]):
        done = dict(
            agree_with(
                file, versions, home, keep_ground_truth=keep_ground_truth, **reading, resources=resources
            )
            for file in files
        )
        for dataset in done:
            done[dataset] |= measure(dataset, home, force_systems=force_systems, resources=resources)
        return done
