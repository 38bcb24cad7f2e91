"""Flow `tables`: speaker tables of landed corpora."""

from __future__ import annotations

from prefect import flow

from flows.orchestration.artifacts import shown
from flows.orchestration.failure_hook import tell
from flows.orchestration.task_runners import Runner, on_workers
from ssrem.encoders import DEFAULT_ENCODER
from tasks.maintenance.repair import repair
from tasks.speaker_tables.build import TableSettings, build
from tasks.stage.stage import Resources
from tasks.warehouse.home import landed_corpora


@flow(name="tables", on_failure=[tell], on_crashed=[tell])
@on_workers
def tables(
    home: str = "warehouse",
    corpora: list[str] | None = None,
    seed: int = 0,
    context_turns: int = 5,
    encoder: str = DEFAULT_ENCODER,
    memory_limit: str | None = None,
    threads: int | None = None,
    runner: Runner | None = None,
    runner_address: str | None = None,
    workers: int = 2,
) -> dict[str, bool]:
    """Build the speaker tables of the corpora, by default of all that have landed; corpus to whether it was new.

    runner, runner_address, workers: who works on shards (flows/orchestration/task_runners.py).
    """
    settings = TableSettings(seed, context_turns, encoder)
    resources = Resources(memory_limit, threads)
    repair(home)
    with shown(home, "tables", ["speaker_sets"]):
        return {
            corpus: build(corpus, home, settings=settings, resources=resources)
            for corpus in corpora or landed_corpora(home)
        }
