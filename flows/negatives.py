"""Flow `negatives`: make negative responses of landed corpora, as a table."""

from __future__ import annotations

from ssrem.flows.tables import tables
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.speaker_tables.build import without_tables
from ssrem.tasks.speaker_tables.negatives import NegativeSettings, make_negatives
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.warehouse.corpora import landed_corpora


def negatives(
    generator: str,
    home: str = "warehouse",
    corpora: list[str] | None = None,
    split: str = "train",
    responses: int = 1000,
    model: str | None = None,
    seed: int = 0,
    resources: Resources = Resources(),
) -> dict[str, bool]:
    """Make negative responses; returns for each corpus whether they are new.

    Speaker tables that are missing are built first, with default settings.

    Args:
        generator: Generators joined by +, such as random-2+mask-and-fill
        corpora: Names of corpora; by default all that have landed
        split: train, valid or test
        responses: Number of true responses to make negatives for; 0 for all
        model: Masked language model of mask-and-fill, a name or folder; by default one that is fine-tuned once
        seed: Seed of every draw
    """
    settings = NegativeSettings(generator, split, responses, model, seed)
    repair(home)
    chosen = corpora or landed_corpora(home)
    if missing := without_tables(home, chosen):
        tables(home, missing, resources=resources)
    return {corpus: make_negatives(corpus, home, settings, resources=resources) for corpus in chosen}
