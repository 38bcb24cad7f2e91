"""Flow `forget`: a person leaves the home folder, and what was built from their words is built without them."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.orchestration.failure_hook import tell
from flows.tables import tables
from tasks.maintenance.repair import repair
from tasks.privacy.forget import forget as forget_people
from tasks.stage.stage import Resources


@flow(name="forget", on_failure=[tell], on_crashed=[tell])
def forget(
    people: list[str],
    home: str = "warehouse",
    corpora: list[str] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> dict[str, Any]:
    """Forget people by their digests (tasks.privacy.people.who_is), since Prefect keeps what flows are called with.

    Speaker tables that were there are built anew, as they were built before. Returns what was removed, from where, and
    the evaluators that learned from it.
    """
    repair(home)
    done = forget_people(people, home, corpora=corpora, resources=Resources(memory_limit, threads))
    for corpus, of in done["corpora"].items():
        if of["tables"] is not None and of["utterances_left"]:
            tables(home, [corpus], memory_limit=memory_limit, threads=threads, **of["tables"])
    return done
