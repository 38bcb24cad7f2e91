"""Flow `negatives`: a generator's negatives of landed corpora, as a table."""

from __future__ import annotations

from prefect import flow

from flows.orchestration.failure_hook import tell
from flows.tables import tables
from tasks.maintenance.repair import repair
from tasks.speaker_tables.negatives import NegativeSettings, make_negatives
from tasks.stage.stage import Resources
from tasks.training.train import without_tables
from tasks.warehouse.home import landed_corpora


@flow(name="negatives", on_failure=[tell], on_crashed=[tell])
def negatives(
    generator: str,
    home: str = "warehouse",
    corpora: list[str] | None = None,
    split: str = "train",
    responses: int = 1000,
    model: str | None = None,
    seed: int = 0,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> dict[str, bool]:
    """Make the generator's negatives of each corpus; corpus to whether they are new.

    Speaker tables that were never built are built first, with default settings.
    """
    settings = NegativeSettings(generator, split, responses, model, seed)
    repair(home)
    chosen = corpora or landed_corpora(home)
    if missing := without_tables(home, chosen):
        tables(home, missing, memory_limit=memory_limit, threads=threads)
    resources = Resources(memory_limit, threads)
    return {corpus: make_negatives(corpus, home, settings, resources=resources) for corpus in chosen}
