"""Turns, responses, the four sets of each speaker, and the candidates drawn from them, from `utterances`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sql import statement
from ssrem.config import SIMILARITY_SPEAKERS
from ssrem.encoders import DEFAULT_ENCODER
from ssrem.errors import SsremError
from ssrem.tables.builder import TableBuilder

if TYPE_CHECKING:
    import duckdb

DRAWS = {"SC": 1, "SP": 1, "SS": 1, "Rand": 4}
"""Negatives per response: one of each kind trains SSREM, four random ones train RSREM (Bak and Oh 2020, 5.1)."""

KIND_CODES = {"SC": 1, "SP": 2, "SS": 3, "Rand": 4}
"""Code of a kind in the hash of a draw. Do not change them: the draws would change."""

ADDRESSEES = ("all", "stated")
"""Which turns SP holds: all, or those alone whose addressee is stated or replied to."""

MACROS = ("mul64", "mix64_first", "mix64_middle", "mix64_last", "mix64", "drawer_hash", "draw_hash")


@dataclass(frozen=True)
class TableSettings:
    """Settings of the speaker tables: seed of every draw, most turns of a context, encoder of the set similarity, and
    by which addressees turns are in SP, one of ADDRESSEES. similarity: of how many speakers, drawn by the seed, the
    similarity within their sets is measured; `all`, or `none`."""

    seed: int = 0
    context_turns: int = 5
    encoder: str = DEFAULT_ENCODER
    addressees: str = "all"
    similarity: int | str = SIMILARITY_SPEAKERS

    def __post_init__(self) -> None:
        if self.context_turns < 1 or self.seed < 0:
            raise SsremError(
                f"context turns {self.context_turns}, seed {self.seed}: a context needs at least one turn, and a seed "
                "must not be negative"
            )
        if self.addressees not in ADDRESSEES:
            raise SsremError(f"addressees {self.addressees!r}: expected one of {', '.join(ADDRESSEES)}")
        if self.similarity not in ("all", "none") and not (
            isinstance(self.similarity, int) and self.similarity > 0
        ):
            raise SsremError(f"similarity {self.similarity!r}: expected a number of speakers, all or none")


def create_tables(tables: TableBuilder, corpus: str, speaker_scope: str, settings: TableSettings) -> None:
    """Create the tables from `turns` to `candidates`; time and memory grow linearly with the turns."""
    values: dict[str, Any] = {"corpus": corpus, "speaker_scope": speaker_scope}
    values |= {name: getattr(settings, name) for name in ("context_turns", "addressees")}
    define_macros(tables.connection)
    values["seed_hash"] = seed_hash(tables.connection, settings.seed)
    tables.create("turns", "2_speaker_tables/turns", **values)
    tables.create("turns_continued", "2_speaker_tables/turns_continued")
    tables.connection.execute(statement("2_speaker_tables/update_turns"))
    for table in ("chains", "responses", "turn_sets", "sc", "sp", "ss", "rand"):
        tables.create(table, f"2_speaker_tables/{table}", **values)
    tables.create("candidates", "2_speaker_tables/candidates_true", **values)
    for kind, draws in DRAWS.items():
        values |= {"kind": kind, "kind_code": KIND_CODES[kind], "draws": draws}
        draw(tables, values)


def draw(tables: TableBuilder, values: Mapping[str, Any]) -> None:
    """Append the draws of one kind to the `candidates`; then redraw those with the response's text, and those
    from its context."""
    tables.append("candidates", "2_speaker_tables/candidates_drawn", **values)
    tables.create("candidates_redrawn", "2_speaker_tables/candidates_redrawn", **values)
    tables.connection.execute(statement("2_speaker_tables/update_candidates"), {"kind": values["kind"]})


def define_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """Define the SQL macros that the draws use."""
    for macro in MACROS:
        connection.execute(statement(f"macros/{macro}"))


def seed_hash(connection: duckdb.DuckDBPyConnection, seed: int) -> int:
    """The seed as the statements that draw take it; needs the macros."""
    ((mixed,),) = connection.execute("SELECT mix64(?::UBIGINT)", [seed]).fetchall()
    return int(mixed)
