"""Negatives: what a generator makes of a corpus's responses, streamed into a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from prefect import task

from ssrem.errors import EvaluatorError
from ssrem.negatives import load_generator, needs_model
from tasks.speaker_tables.build import candidate_sources, landed_corpus
from tasks.speaker_tables.load import SPLIT_CODES, load_candidates
from tasks.speaker_tables.masked_lm import masked_lm_for
from tasks.stage.ledger import Recipe
from tasks.stage.progress import progress
from tasks.stage.protocol import Built, run_stage
from tasks.stage.stage import Output, Resources, Stage
from tasks.warehouse.home import Warehouse
from tasks.warehouse.partition import PartitionKey

if TYPE_CHECKING:
    from ssrem.negatives.base import Negative


@dataclass(frozen=True)
class NegativeSettings:
    """What determines a corpus's negatives. generator: a spec of `ssrem.negatives.load_generator`.

    split: the responses' split. responses: how many, the first ones drawn by the seed; 0 for all. model: the masked
    language model of mask-and-fill and its kin; None for one fine-tuned here from the packaged encoder.
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
        if not needs_model(self.generator):  # an unknown name is told at once
            load_generator(self.generator)


@task(name="make negatives")
def make_negatives(
    corpus: str, home: str, settings: NegativeSettings, *, resources: Resources | None = None
) -> bool:
    """Publish the generator's negatives of the corpus; False where they are there already.

    Raises EvaluatorError where the generator gives none, HomeError where the corpus has not landed.
    """
    place = Warehouse.at(home)

    def recipe() -> Recipe:
        digest, _ = landed_corpus(place, corpus)
        inputs = {corpus: digest, "tables": candidate_sources(place, [corpus])}
        return Recipe({"corpus": corpus, **asdict(settings)}, inputs)

    def build(stage: Stage) -> Built[bool]:
        digest, _ = landed_corpus(place, corpus)
        candidates = load_candidates(stage.connection, [corpus])
        options: dict[str, Any] = {}
        if needs_model(settings.generator):
            options["model"] = settings.model or str(masked_lm_for(place, candidates, {corpus: digest}))
        generator = load_generator(settings.generator, **options)
        rows = candidates.rows(SPLIT_CODES[settings.split])
        if settings.responses:
            rows = np.sort(np.random.default_rng(settings.seed).permutation(rows)[: settings.responses])
        stage.create("negatives")
        with progress(f"making {settings.generator} negatives of {corpus}") as advance:
            done = 0
            for batch in generator.generate(candidates, rows, seed=settings.seed):
                insert(stage, corpus, candidates.response, batch)
                done += len(batch)
                advance(done)
        key = PartitionKey(corpus=corpus, generator=settings.generator, split=settings.split)
        return Built(True, [Output("negatives", key)])

    return run_stage(place, "negatives", recipe, build, done=False, resources=resources)


def insert(stage: Stage, corpus: str, response_ids: np.ndarray[Any, Any], batch: Sequence[Negative]) -> None:
    """Append a batch to the staged table. response_ids: of the candidates, by position."""
    import pyarrow as pa

    if not batch:
        return
    columns = {
        "corpus": [corpus] * len(batch),
        "response_id": [int(response_ids[negative.response]) for negative in batch],
        **{name: [getattr(negative, name) for negative in batch] for name in _COPIED},
    }
    stage.connection.register("made", pa.table(columns))
    stage.connection.execute("INSERT INTO negatives BY NAME SELECT * FROM made")
    stage.connection.unregister("made")


_COPIED = ("generator", "k", "text", "replaced", "tokens", "truncated")
