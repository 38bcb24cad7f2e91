"""Makes from `utterances` the turns, responses, the four sets of each speaker, and candidates drawn from the sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ssrem.settings import TableSettings
from ssrem.sql import statement
from ssrem.tables.builder import TableBuilder

if TYPE_CHECKING:
    import duckdb

DRAWS = {"SC": 1, "SP": 1, "SS": 1, "Rand": 4}
"""Negatives per response: one of each kind trains SSREM, four random ones train RSREM (Bak and Oh 2020, 5.1)."""

KIND_CODES = {"SC": 1, "SP": 2, "SS": 3, "Rand": 4}
"""Code of a kind in the hash of a draw. Do not change them: the draws would change."""


def create_tables(tables: TableBuilder, corpus: str, speaker_scope: str, settings: TableSettings) -> None:
    """Create the tables from `turns` to `candidates`; time and memory grow linearly with the turns."""
    values: dict[str, Any] = {"corpus": corpus, "speaker_scope": speaker_scope}
    values |= {name: getattr(settings, name) for name in ("context_turns", "addressees")}
    tables.connection.execute(statement("macros"))
    values["seed_hash"] = seed_hash(tables.connection, settings.seed)
    tables.write("turns", "2_speaker_tables/turns", **values)
    tables.create("turns_continued", "2_speaker_tables/turns_continued")
    if tables.connection.execute("FROM turns_continued LIMIT 1").fetchall():
        tables.write("turns", "2_speaker_tables/turns_addressed")
    tables.create("chains", "2_speaker_tables/chains", **values)
    tables.write("responses", "2_speaker_tables/responses", **values)
    tables.create("turn_sets", "2_speaker_tables/turn_sets", **values)
    for table in ("sc", "sp", "ss", "rand"):
        tables.write(table, f"2_speaker_tables/{table}", **values)
    fill: Callable[..., None] = tables.create
    for kind, draws in DRAWS.items():
        draw(fill, values | {"kind": kind, "kind_code": KIND_CODES[kind], "draws": draws})
        fill = tables.append
    tables.write("candidates", "2_speaker_tables/candidates", **values)
    tables.connection.execute("DROP TABLE draws; DROP TABLE redraws")  # their space is used again


def draw(fill: Callable[..., None], values: Mapping[str, Any]) -> None:
    """Fill `draws` with negatives from one kind of set, and `redraws` with a new one for each that has the response's
    text or is from its context. fill: the method `create` or `append` of a TableBuilder."""
    for table in ("draws", "redraws"):
        fill(table, f"2_speaker_tables/{table}", **values)


def seed_hash(connection: duckdb.DuckDBPyConnection, seed: int) -> int:
    """The hash of the seed, as the statements that draw take it. The macros of `sql` must have been created."""
    ((mixed,),) = connection.execute("SELECT mix64(?::UBIGINT)", [seed]).fetchall()
    return int(mixed)
