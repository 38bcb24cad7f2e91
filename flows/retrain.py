"""Flow `retrain`: evaluators in use learn from the corpora that they have not seen."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.orchestration.failure_hook import tell
from flows.orchestration.task_runners import Runner, on_workers
from flows.train import train
from ssrem.evaluators import DEFAULT_EVALUATORS
from tasks.maintenance.repair import repair
from tasks.training.stale import outdated
from tasks.training.versions import any_promoted, standing
from tasks.warehouse.home import Warehouse


@flow(name="retrain", on_failure=[tell], on_crashed=[tell])
@on_workers
def retrain(
    home: str = "warehouse",
    evaluators: list[str] | None = None,
    margins: dict[str, float] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    runner: Runner | None = None,
    runner_address: str | None = None,
    workers: int = 2,
) -> dict[str, str]:
    """Retrain what has not seen all landed corpora, on all of them; evaluator to what came of it.

    The ledger says what is to do, not who calls: called twice, or too late, it does the same once. Where nothing was
    trained yet, the default evaluators are.
    """
    room: dict[str, Any] = {"memory_limit": memory_limit, "threads": threads}
    repair(home)
    place = Warehouse.at(home)
    if not any_promoted(place):
        names = evaluators or list(DEFAULT_EVALUATORS)
        first = train(home, names, margins=margins, **room)
        return {name: standing(place, name, version) for name, (version, _) in first.items()}
    done = {}
    for old in outdated(place, evaluators or ()):
        if old.labels:
            done[old.evaluator] = (
                "not retrained: it learned from human scores; give them again with ssrem train --labels"
            )
            continue
        trained = train(
            home, [old.evaluator], encoder=old.encoder, config=old.config, margins=margins, **room
        )
        done[old.evaluator] = standing(place, old.evaluator, trained[old.evaluator][0])
    return done
