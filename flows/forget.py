"""Flow `forget`: delete people from the home folder, and rebuild without them what was built from their words."""

from __future__ import annotations

from typing import Any

from flows.orchestration.options import TableOptions
from flows.tables import tables
from tasks.maintenance.repair import repair
from tasks.privacy.forget import forget as forget_people
from tasks.stage.stage import Resources


def forget(
    people: list[str],
    home: str = "warehouse",
    corpora: list[str] | None = None,
    resources: Resources = Resources(),
) -> dict[str, Any]:
    """Forget people; returns what was deleted, from where, and the evaluators that learned from it.

    Speaker tables are rebuilt with their previous settings.

    Args:
        people: Digests of speaker ids (tasks.privacy.people.who_is), not the ids: Prefect stores parameters
        corpora: Names of corpora; by default all that have landed
    """
    repair(home)
    deleted = forget_people(people, home, corpora=corpora, resources=resources)
    for corpus, of in deleted["corpora"].items():
        if of["tables"] is not None and of["utterances_left"]:
            tables(home, [corpus], TableOptions(**of["tables"]), resources)
    return deleted
