"""Flow `train`: train evaluators, score their test splits, and promote those that are not worse."""

from prefect import flow
from prefect.events import emit_event

from ssrem.evaluators import DEFAULT_EVALUATORS
from ssrem.flows.artifacts import shown
from ssrem.flows.hooks import flow_options
from ssrem.flows.steps import build_tables, decide, score_test_splits, train_evaluator
from ssrem.tasks.promote import refused_in_a_row
from ssrem.tasks.settings import Margins, Resources, TrainSettings
from ssrem.tasks.train import train_all
from ssrem.tasks.warehouse.home import Warehouse


@flow(**flow_options("evaluators", "+".join(DEFAULT_EVALUATORS)))
def train(
    evaluators: list[str] | None = None,
    corpora: list[str] | None = None,
    home: str = "warehouse",
    training: TrainSettings = TrainSettings(),
    margins: Margins = Margins(),
    resources: Resources = Resources(),
) -> dict[str, tuple[int, bool]]:
    """Train evaluators and score their test splits; returns each evaluator's version and whether it is new.

    Missing speaker tables are built first. A version that is not an evaluator's first is compared with the one in use,
    and promoted if it is not worse.

    Args:
        evaluators: Names of evaluators; by default ssrem and rsrem
        corpora: Names of corpora to learn from; by default all that have landed
    """
    with shown(home, "train", ["evaluators", "identification"]):
        trained = train_all(
            evaluators,
            corpora,
            home,
            training,
            margins,
            resources=resources,
            build=build_tables,
            train=train_evaluator,
            score=score_test_splits,
            decide_all=decide,
        )
    new = [name for name, (_, is_new) in trained.items() if is_new]
    for name, refused, why in refused_in_a_row(Warehouse.at(home), new) if new else ():
        emit_event(
            event="challengers.refused",
            resource={"prefect.resource.id": f"evaluator.{name}"},
            payload={"evaluator": name, "refused": refused, "why": why, "home": str(Warehouse.at(home).root)},
        )
    return trained
