"""Stage `tables`: turns, responses, the four sets of each speaker, and the candidates drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ssrem.tables.speaker_sets import TableSettings, create_tables
from ssrem.tasks.speaker_tables.similarity import add_set_similarity
from ssrem.tasks.speaker_tables.vectors import cached_encode, encoder_for, training_texts
from ssrem.tasks.stage.ledger import Recipe, sources
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.protocol import Built, run_stage
from ssrem.tasks.stage.stage import Output, Resources, Stage
from ssrem.tasks.stage.steps import step
from ssrem.tasks.warehouse.corpora import landed_corpus
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import PartitionKey

if TYPE_CHECKING:
    from ssrem.encoders import Encoder


@step("build speaker tables")
def build(
    corpus: str, home: str, *, settings: TableSettings | None = None, resources: Resources | None = None
) -> bool:
    """Build and publish the speaker tables of a landed corpus; False if they are published already.

    Raises HomeError if the corpus has not landed.
    """
    warehouse = Warehouse.at(home)
    settings = settings or TableSettings()

    def recipe() -> Recipe:
        return Recipe(
            {"corpus": corpus, **settings.model_dump()}, {corpus: landed_corpus(warehouse, corpus)[0]}
        )

    def build_tables(stage: Stage) -> Built[bool]:
        digest, scope = landed_corpus(warehouse, corpus)
        with progress(f"building the speaker tables of {corpus}"):
            create_tables(stage, corpus, scope, settings)

        def encoder() -> Encoder:
            texts = partial(training_texts, stage.connection, [corpus])
            return encoder_for(warehouse, settings.encoder, settings.seed, {corpus: digest}, texts)

        add_set_similarity(stage, corpus, scope, settings, encoder, partial(cached_encode, warehouse))
        return Built(True, [Output(table, PartitionKey(corpus=corpus)) for table in stage.staged])

    return run_stage(warehouse, "tables", recipe, build_tables, done=False, resources=resources)


def without_tables(home: str, corpora: Sequence[str]) -> list[str]:
    """The corpora without speaker tables."""
    built = {p.key.corpus for p in Warehouse.at(home).partitions() if p.table == "candidates"}
    return [corpus for corpus in corpora if corpus not in built]


def candidate_sources(home: Warehouse, corpora: Sequence[str]) -> list[dict[str, Any]]:
    """The runs that landed the corpora and drew their candidates: an input of every stage that reads candidates."""
    return sources(home, ("corpora", "candidates"), [PartitionKey(corpus=corpus) for corpus in corpora])
