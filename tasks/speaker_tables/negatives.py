"""Stage `negatives`: negatives of a corpus by one generator, written to a table batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ssrem.errors import EvaluatorError
from ssrem.negatives import load_generator, needs_model
from ssrem.tables.candidates import SPLIT_CODES, load_candidates
from ssrem.tasks.speaker_tables.build import candidate_sources
from ssrem.tasks.speaker_tables.language_models import masked_lm_for
from ssrem.tasks.stage.ledger import Recipe
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.protocol import Built, run_stage
from ssrem.tasks.stage.stage import Output, Resources, Stage
from ssrem.tasks.stage.steps import step
from ssrem.tasks.warehouse.corpora import landed_corpus
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import PartitionKey

if TYPE_CHECKING:
    from ssrem.negatives.base import Negative

_COPIED = ("generator", "k", "text", "replaced", "tokens", "truncated")
"""Columns of `negatives` that are attributes of a Negative."""


@dataclass(frozen=True)
class NegativeSettings:
    """Settings that determine the negatives of a corpus.

    generator: a spec of `ssrem.negatives.load_generator`. split: of the responses. responses: how many, drawn by
    seed; 0 for all. model: the masked language model of mask-and-fill and its ablations; None for one that is
    fine-tuned here from the packaged encoder.
    """

    generator: str
    split: str = "train"
    responses: int = 1000
    model: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.split not in SPLIT_CODES:
            raise EvaluatorError(f"no split {self.split!r}; one of {', '.join(SPLIT_CODES)}")
        if self.responses < 0 or self.seed < 0:
            raise EvaluatorError("responses and seed must not be negative")
        if not needs_model(self.generator):  # refuses an unknown name before the stage opens
            load_generator(self.generator)


@step("make negatives")
def make_negatives(
    corpus: str, home: str, settings: NegativeSettings, *, resources: Resources | None = None
) -> bool:
    """Publish the generator's negatives of the corpus; False if they are published already.

    Raises GateError if the generator gives none, HomeError if the corpus has not landed.
    """
    warehouse = Warehouse.at(home)

    def recipe() -> Recipe:
        digest, _ = landed_corpus(warehouse, corpus)
        inputs = {corpus: digest, "tables": candidate_sources(warehouse, [corpus])}
        return Recipe({"corpus": corpus, **asdict(settings)}, inputs)

    def build(stage: Stage) -> Built[bool]:
        digest, _ = landed_corpus(warehouse, corpus)
        candidates = load_candidates(stage.connection, [corpus])
        options: dict[str, Any] = {}
        if needs_model(settings.generator):
            options["model"] = settings.model or str(masked_lm_for(warehouse, candidates, {corpus: digest}))
        generator = load_generator(settings.generator, **options)
        rows = candidates.rows(SPLIT_CODES[settings.split])
        if settings.responses:
            rows = np.sort(np.random.default_rng(settings.seed).permutation(rows)[: settings.responses])
        stage.create("negatives")
        with progress(f"making {settings.generator} negatives of {corpus}") as advance:
            generated = 0
            for batch in generator.generate(candidates, rows, seed=settings.seed):
                _insert(stage, corpus, candidates.response, batch)
                generated += len(batch)
                advance(generated)
        key = PartitionKey(corpus=corpus, generator=settings.generator, split=settings.split)
        return Built(True, [Output("negatives", key)])

    return run_stage(warehouse, "negatives", recipe, build, done=False, resources=resources)


def _insert(stage: Stage, corpus: str, response_ids: np.ndarray[Any, Any], batch: Sequence[Negative]) -> None:
    """Append a batch to the staged table. response_ids (n,): of the candidates, by position."""
    import pyarrow as pa

    if not batch:
        return
    columns = {
        "corpus": [corpus] * len(batch),
        "response_id": [int(response_ids[negative.response]) for negative in batch],
        **{name: [getattr(negative, name) for negative in batch] for name in _COPIED},
    }
    stage.insert("negatives", pa.table(columns))
