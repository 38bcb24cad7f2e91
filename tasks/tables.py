"""Stage `tables`: turns, responses, the four sets of each speaker with their similarity (Bak and Oh 2020, Table 2), and
the candidates drawn from them. Stage `negatives`: further negatives for a corpus's responses, made by one generator."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssrem.agreement.identify import set_similarity, summarise
from ssrem.errors import EvaluatorError, say
from ssrem.negatives import load_generator, needs_model
from ssrem.negatives.base import BATCH
from ssrem.samples import SPLIT_CODES
from ssrem.settings import TableSettings
from ssrem.tables.candidates import load_candidates
from ssrem.tables.speaker_sets import DRAWS, create_tables, seed_hash
from ssrem.tasks.caches import cached_encode, encoder_for, masked_lm_for, training_texts
from ssrem.tasks.settings import NegativeSettings, Resources
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.stage import (
    Built,
    Output,
    Recipe,
    Stage,
    candidate_sources,
    last_parameters,
    run_stage,
    sources,
)
from ssrem.tasks.warehouse.catalog import PartitionKey, of_turns
from ssrem.tasks.warehouse.home import Warehouse, landed_corpus

if TYPE_CHECKING:
    from ssrem.encoders import Encoder

CHUNK = 50_000
"""Turns whose vectors are in memory at once."""


_MEMBERS = """
SELECT DISTINCT set_id, turn_id FROM main.{} WHERE set_id IN (SELECT turn_id FROM main.similarity_owners)
ORDER BY set_id, turn_id
"""
"""DISTINCT: Rand is drawn with replacement, and a turn must not be compared with itself."""


_COPIED = ("generator", "k", "text", "replaced", "tokens", "truncated")
"""Columns of the table `negatives` that are copied from the attributes of a Negative."""


def build(
    corpus: str, home: str, settings: TableSettings = TableSettings(), *, resources: Resources = Resources()
) -> bool:
    """Build and publish the speaker tables of a landed corpus; False if they are published already.

    If they replace tables with other settings, the scores, negatives and studies of those leave the snapshot, since
    their responses or candidates are others. Raises HomeError if the corpus has not landed.
    """
    warehouse, parameters = Warehouse.at(home), {"corpus": corpus, **settings.model_dump()}
    key = PartitionKey(corpus=corpus)

    def build_tables(stage: Stage) -> Built[bool]:
        with progress(f"building the speaker tables of {corpus}"):
            create_tables(stage, corpus, landed_corpus(warehouse, corpus)[1], settings)
        if not stage.connection.execute("SELECT count(*) FROM responses").fetchall()[0][0]:
            say(
                f"{corpus} has no response, as no conversation has two speakers: nothing can be learned from it"
            )
        _add_similarity(stage, corpus, settings)
        before = sources(warehouse, ("candidates",), [key])
        same = [one["run"] for one in before] == [stage.recipe.key("tables")]  # a damaged file is made anew
        outputs = [Output(table, key) for table in stage.staged]
        retired = [] if same else of_turns(stage.partitions, corpus)
        if gone := sorted({table for table, _ in retired} - {output.table for output in outputs}):
            say(
                f"{corpus}: {', '.join(gone)} of the tables before are gone; ssrem score-corpus makes scores anew"
            )
        return Built(True, outputs, retired=retired)

    def recipe() -> Recipe:
        return Recipe(parameters, {corpus: landed_corpus(warehouse, corpus)[0]})

    return run_stage(warehouse, "tables", recipe, build_tables, done=False, resources=resources)


def build_missing(
    home: str,
    corpora: Sequence[str],
    *,
    resources: Resources = Resources(),
    build: Callable[..., bool] = build,
) -> None:
    """Build the tables of the corpora that have none, with the settings that their last tables had.

    build: the function `build`, or a Prefect task that does the same.
    """
    for corpus in without_tables(home, corpora):
        last = last_parameters(Warehouse.at(home), corpus, "tables")
        known = {name: last[name] for name in TableSettings.model_fields if name in last}
        build(corpus, home, settings=TableSettings(**known), resources=resources)


def without_tables(home: str, corpora: Sequence[str]) -> list[str]:
    """The corpora without speaker tables."""
    built = {p.key.corpus for p in Warehouse.at(home).partitions() if p.table == "candidates"}
    return [corpus for corpus in corpora if corpus not in built]


def _add_similarity(stage: Stage, corpus: str, settings: TableSettings) -> None:
    """Stage `set_similarity` for the speakers that `settings.similarity` chooses, whose sets' turns alone are encoded,
    and create the scratch table `vector_norms`, by which the gate checks the vectors."""
    connection = stage.connection
    connection.execute("CREATE TABLE vector_norms (turn_id BIGINT, norm DOUBLE)")
    if settings.similarity == "none":
        stage.create("set_similarity")
        return
    digest, scope = landed_corpus(stage.home, corpus)
    stage.create(
        "similarity_owners",
        "2_speaker_tables/similarity_owners",
        seed_hash=seed_hash(connection, settings.seed),
        speaker_scope=scope,
        speakers=None if settings.similarity == "all" else settings.similarity,
    )
    people = connection.execute("SELECT * FROM similarity_owners ORDER BY turn_id").fetchnumpy()
    stage.create("similarity_turns", "2_speaker_tables/similarity_turns")
    turns = connection.execute("SELECT turn_id FROM similarity_turns ORDER BY ALL").fetchnumpy()["turn_id"]
    texts = partial(training_texts, connection, [corpus])
    encoder = encoder_for(stage.home, settings.encoder, settings.seed, {corpus: digest}, texts)
    vectors = np.load(_encoded(stage, corpus, len(turns), encoder), mmap_mode="r")
    kinds, owners = {}, {}
    for kind in DRAWS:
        members = connection.execute(_MEMBERS.format(kind.lower())).fetchnumpy()
        rows = np.searchsorted(turns, members["turn_id"])
        kinds[kind] = set_similarity(vectors, members["set_id"], rows)
        owners[kind] = people["speaker_no"][np.searchsorted(people["turn_id"], kinds[kind].set_id)]
    of_speakers = int(people["of_speakers"][0]) if len(people["turn_id"]) else 0
    about = {"corpus": corpus, "encoder": encoder.signature, "of_speakers": of_speakers}
    summaries = summarise(kinds, owners).items()
    stage.create_from_rows("set_similarity", [about | {"kind": kind} | vars(one) for kind, one in summaries])


def _encoded(stage: Stage, corpus: str, turns: int, encoder: Encoder) -> Path:
    """File of the vectors of `similarity_turns` in order of turn_id, float16 (turns, d); norms go to `vector_norms`."""
    import pyarrow as pa

    # Written as a stream, not through a memory map: a full disk is then an error, but would kill the process there.
    path, done = stage.scratch / "vectors.npy", 0
    query = "SELECT turn_id, text FROM main.turns SEMI JOIN main.similarity_turns USING (turn_id) ORDER BY 1"
    encode = cached_encode(stage.home, encoder)
    with (
        path.open("wb") as file,
        progress(f"encoding {corpus}", turns) as advance,
        stage.connection.cursor() as texts,  # read while the connection writes
    ):
        header = {"descr": "<f2", "fortran_order": False, "shape": (turns, encoder.dimensions)}
        np.lib.format.write_array_header_1_0(file, header)
        for batch in texts.sql(query).to_arrow_reader(CHUNK):
            part = encode(batch.column("text").to_pylist())
            file.write(part.astype("<f2").tobytes())
            norms = {"turn_id": batch.column("turn_id"), "norm": np.linalg.norm(part, axis=1)}
            stage.insert("vector_norms", pa.table(norms))
            done += len(part)
            advance(done)
    return path


def make_negatives(
    corpus: str,
    home: str,
    generator: str,
    settings: NegativeSettings = NegativeSettings(),
    *,
    resources: Resources = Resources(),
) -> bool:
    """Publish the negatives that `generator`, a spec of `load_generator`, makes for the corpus; False if they are
    published already.

    Raises EvaluatorError for an unknown generator, GateError if it makes no negative, HomeError if the corpus has not
    landed.
    """
    import pyarrow as pa

    warehouse, learns = Warehouse.at(home), needs_model(generator)
    if not learns:  # raises an error for an unknown name before the stage opens
        load_generator(generator)
        if settings.model:
            raise EvaluatorError(f"{generator} uses no model; leave out --model")
    parameters = {"corpus": corpus, "generator": generator, **settings.model_dump()}

    def recipe() -> Recipe:
        digest, _ = landed_corpus(warehouse, corpus)
        return Recipe(parameters, {corpus: digest, "tables": candidate_sources(warehouse, [corpus])})

    def build(stage: Stage) -> Built[bool]:
        candidates = load_candidates(stage.connection, [corpus])
        options: dict[str, Any] = {}
        if learns:
            content = {corpus: stage.recipe.inputs[corpus]}
            options["model"] = settings.model or str(masked_lm_for(warehouse, candidates, content))
        loaded = load_generator(generator, **options)
        rows = candidates.drawn(SPLIT_CODES[settings.split], settings.responses or None, settings.seed)
        # A model takes seconds for a response: what a killed run has made is not made again.
        unfinished = warehouse.root / "checkpoints" / stage.recipe.key("negatives")[:16]
        batches = loaded.generate(candidates, rows, seed=settings.seed, folder=unfinished if learns else None)
        stage.create("negatives")
        with progress(f"making {generator} negatives of {corpus}", len(rows)) as advance:
            for done, batch in enumerate(batches, 1):
                columns = {name: [getattr(negative, name) for negative in batch] for name in _COPIED}
                ids = candidates.response[[negative.response for negative in batch]]
                columns |= {"corpus": [corpus] * len(batch), "response_id": ids.tolist()}
                if batch:
                    stage.insert("negatives", pa.table(columns))
                advance(min(done * BATCH, len(rows)))
        key = PartitionKey(corpus=corpus, generator=generator, split=settings.split)
        output = Output("negatives", key)
        return Built(True, [output], after=lambda: shutil.rmtree(unfinished, ignore_errors=True))

    return run_stage(warehouse, "negatives", recipe, build, done=False, resources=resources)
