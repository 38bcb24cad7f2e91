"""Flow `tables`: speaker tables of landed corpora."""

from __future__ import annotations

from prefect import flow

from flows.artifacts import shown
from flows.notify import tell
from flows.runners import Runner, on_workers
from ssrem.encoders import DEFAULT_ENCODER
from tasks.home import landed_corpora
from tasks.repair import mended
from tasks.stage import Resources
from tasks.tables import TableSettings, build


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

    runner, runner_address, workers: who works on shards (flows/runners.py).
    """
    settings = TableSettings(seed, context_turns, encoder)
    resources = Resources(memory_limit, threads)
    mended(home)
    with shown(home, "tables", ["speaker_sets"]):
        return {
            corpus: build(corpus, home, settings=settings, resources=resources)
            for corpus in corpora or landed_corpora(home)
        }
