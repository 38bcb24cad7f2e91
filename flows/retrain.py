"""Flow `retrain`: evaluators in use learn from the corpora that landed since their training."""

from prefect import flow

from ssrem.flows.artifacts import table
from ssrem.flows.hooks import flow_options
from ssrem.flows.train import train
from ssrem.tasks.settings import Margins, Resources
from ssrem.tasks.train import retrain as retrain_outdated


@flow(**flow_options("evaluators"))
def retrain(
    evaluators: list[str] | None = None,
    home: str = "warehouse",
    margins: Margins = Margins(),
    resources: Resources = Resources(),
) -> dict[str, str]:
    """Retrain on all landed corpora the evaluators that have not seen them all; returns each evaluator's outcome.

    The ledger says which these are, so that a second or late run retrains nothing again.

    Args:
        evaluators: Names of evaluators; by default all in use, or, where none was trained, ssrem and rsrem
    """
    outcomes = retrain_outdated(home, evaluators, margins, resources=resources, train=train)
    if rows := [{"evaluator": name, "outcome": outcome} for name, outcome in outcomes.items()]:
        table(rows, "retrained", "what became of each evaluator")
    return outcomes
