"""Flow `forget`: delete people from the home folder, and rebuild without them the tables built from their words."""

from __future__ import annotations

from typing import Any

from ssrem.flows.orchestration.options import TableOptions
from ssrem.flows.tables import tables
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.privacy.forget import forget as forget_people
from ssrem.tasks.privacy.forget import unbuilt_tables
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.warehouse.home import Warehouse


def forget(
    people: list[str],
    home: str = "warehouse",
    corpora: list[str] | None = None,
    resources: Resources = Resources(),
) -> dict[str, Any]:
    """Forget people; returns what was deleted, from where, and the evaluators that learned from it.

    Speaker tables are rebuilt with their previous settings, also those that a killed run has not rebuilt.

    Args:
        people: Digests of speaker ids (ssrem.tasks.privacy.people.who_is), not the ids: Prefect stores parameters
        corpora: Names of corpora; by default all that have landed
    """
    repair(home)
    deleted = forget_people(people, home, corpora=corpora, resources=resources)
    for corpus, settings in unbuilt_tables(Warehouse.at(home)).items():
        tables(home, [corpus], TableOptions(**settings), resources)
    return deleted
