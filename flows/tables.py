"""Flow `tables`: build the speaker tables of landed corpora."""

from prefect import flow

from ssrem.flows.artifacts import shown
from ssrem.flows.hooks import flow_options
from ssrem.flows.steps import build_tables
from ssrem.settings import TableSettings
from ssrem.tasks.settings import Resources
from ssrem.tasks.warehouse.home import landed_corpora


@flow(**flow_options("corpora"))
def tables(
    home: str = "warehouse",
    corpora: list[str] | None = None,
    table: TableSettings = TableSettings(),
    resources: Resources = Resources(),
) -> dict[str, bool]:
    """Build the speaker tables of corpora; returns for each corpus whether they are new.

    Args:
        corpora: Names of corpora; by default all that have landed
    """
    with shown(home, "tables", ["speaker_sets"]):
        return {
            corpus: build_tables(corpus, home, table, resources=resources)
            for corpus in corpora or landed_corpora(home)
        }
