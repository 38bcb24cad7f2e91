"""Flow `retrain`: evaluators in use learn from the corpora that landed since their training."""

from __future__ import annotations

from ssrem.evaluators import DEFAULT_EVALUATORS
from ssrem.flows.orchestration.options import RunnerOptions, TrainingOptions
from ssrem.flows.orchestration.workers import on_workers
from ssrem.flows.train import train
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.training.outdated import outdated
from ssrem.tasks.training.settings import Margins
from ssrem.tasks.training.versions import any_trained, version_status
from ssrem.tasks.warehouse.home import Warehouse


@on_workers
def retrain(
    home: str = "warehouse",
    evaluators: list[str] | None = None,
    margins: Margins = Margins(),
    resources: Resources = Resources(),
    runner: RunnerOptions = RunnerOptions(),
) -> dict[str, str]:
    """Retrain on all landed corpora the evaluators that have not seen them all; returns each evaluator's outcome.

    The ledger determines what is to do, so that a second or late call retrains nothing again. In a home folder in which
    no evaluator was trained, the default evaluators are trained.

    Args:
        evaluators: Names of evaluators; by default all in use
    """
    repair(home)
    warehouse = Warehouse.at(home)
    if not any_trained(warehouse):
        first = train(home, evaluators or list(DEFAULT_EVALUATORS), margins=margins, resources=resources)
        return {name: version_status(warehouse, name, version) for name, (version, _) in first.items()}
    outcome = {}
    for old in outdated(warehouse, evaluators or ()):
        if old.labels:
            outcome[old.evaluator] = (
                "not retrained: it learned from human scores; give them again with ssrem train --labels"
            )
            continue
        training = TrainingOptions(encoder=old.encoder, config=old.config)
        trained = train(home, [old.evaluator], training=training, margins=margins, resources=resources)
        outcome[old.evaluator] = version_status(warehouse, old.evaluator, trained[old.evaluator][0])
    return outcome
