"""Stage `tables`: turns, responses, the four sets of each speaker, and the candidates drawn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import duckdb

from sql import statement
from ssrem.encoders import DEFAULT_ENCODER
from ssrem.errors import HomeError, SsremError
from tasks.speaker_tables.similarity import add_set_similarity
from tasks.speaker_tables.vectors import cached_encode, encoder_for, training_texts
from tasks.stage.ledger import Recipe, sources
from tasks.stage.progress import progress
from tasks.stage.protocol import Built, run_stage
from tasks.stage.stage import Output, Resources, Stage
from tasks.stage.steps import step
from tasks.warehouse.home import Warehouse
from tasks.warehouse.partition import PartitionKey

DRAWS = {"SC": 1, "SP": 1, "SS": 1, "Rand": 4}
"""Negatives per response: one of each kind trains SSREM, four random ones train RSREM (Bak and Oh 2020, 5.1)."""

KIND_CODES = {"SC": 1, "SP": 2, "SS": 3, "Rand": 4}
"""Code of a kind in the hash of a draw. Do not change them: the draws would change."""

MACROS = ("mul64", "mix64_first", "mix64_middle", "mix64_last", "mix64", "draw_hash")


@dataclass(frozen=True)
class TableSettings:
    """Settings of the speaker tables: seed of every draw, most turns of a context, encoder of the set similarity."""

    seed: int = 0
    context_turns: int = 5
    encoder: str = DEFAULT_ENCODER

    def __post_init__(self) -> None:
        if self.context_turns < 1 or self.seed < 0:
            raise SsremError(
                f"--context-turns {self.context_turns} --seed {self.seed}: a context needs at least one turn, and a "
                "seed must not be negative"
            )


@step("build speaker tables")
def build(
    corpus: str, home: str, *, settings: TableSettings | None = None, resources: Resources | None = None
) -> bool:
    """Build and publish the speaker tables of a landed corpus; False if they are published already.

    Raises HomeError if the corpus has not landed.
    """
    place = Warehouse.at(home)
    settings = settings or TableSettings()

    def recipe() -> Recipe:
        return Recipe({"corpus": corpus, **asdict(settings)}, {corpus: landed_corpus(place, corpus)[0]})

    def build_tables(stage: Stage) -> Built[bool]:
        digest, scope = landed_corpus(place, corpus)
        with progress(f"building the speaker tables of {corpus}"):
            create_tables(stage, corpus, scope, settings)
        encoder = encoder_for(
            place,
            settings.encoder,
            settings.seed,
            {corpus: digest},
            lambda: training_texts(stage.connection, [corpus]),
        )
        add_set_similarity(stage, corpus, encoder, cached_encode(place, encoder, stage.scratch))
        return Built(True, [Output(table, PartitionKey(corpus=corpus)) for table in stage.staged])

    return run_stage(place, "tables", recipe, build_tables, done=False, resources=resources)


def create_tables(stage: Stage, corpus: str, speaker_scope: str, settings: TableSettings) -> None:
    """Create the staged tables from `turns` to `candidates`; time and memory grow linearly with the turns."""
    values: dict[str, Any] = {"corpus": corpus, "speaker_scope": speaker_scope}
    values |= {"seed": settings.seed, "context_turns": settings.context_turns}
    define_macros(stage.connection)
    stage.create("turns", "2_speaker_tables/turns", **values)
    stage.create("turns_continued", "2_speaker_tables/turns_continued")
    stage.connection.execute(statement("2_speaker_tables/update_turns"))
    for table in ("chains", "responses", "turn_sets", "sc", "sp", "ss", "rand"):
        stage.create(table, f"2_speaker_tables/{table}", **values)
    stage.create("candidates", "2_speaker_tables/candidates_true", **values)
    for kind, draws in DRAWS.items():
        values |= {"kind": kind, "kind_code": KIND_CODES[kind], "draws": draws}
        draw(stage, values)


def draw(stage: Stage, values: Mapping[str, Any]) -> None:
    """Append the draws of one kind to the staged `candidates`; then redraw those with the response's text, and those
    from its context."""
    stage.append("candidates", "2_speaker_tables/candidates_drawn", **values)
    stage.create("candidates_redrawn", "2_speaker_tables/candidates_redrawn", **values)
    stage.connection.execute(statement("2_speaker_tables/update_candidates"), {"kind": values["kind"]})


def define_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """Define the SQL macros that the draws use."""
    for macro in MACROS:
        connection.execute(statement(f"macros/{macro}"))


def landed_corpus(home: Warehouse, corpus: str) -> tuple[str, str]:
    """Content hash and speaker scope of a landed corpus; HomeError, which lists the landed ones, if there is none."""
    rows = home.query("SELECT corpus, sha256, speaker_scope FROM corpora ORDER BY landed_at")
    for name, digest, scope in rows:
        if name == corpus:
            return digest, scope
    known = ", ".join(name for name, *_ in rows) or "none yet"
    raise HomeError(
        f"no corpus {corpus!r} has landed in {home.root} (landed: {known}); run ssrem ingest first"
    )


def candidate_sources(home: Warehouse, corpora: Sequence[str]) -> list[dict[str, Any]]:
    """The runs that landed the corpora and drew their candidates: an input of every stage that reads candidates."""
    return sources(home, ("corpora", "candidates"), [PartitionKey(corpus=corpus) for corpus in corpora])
