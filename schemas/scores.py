"""`scores`: what an evaluator says of a response."""

from schemas.contract import Between, Column, Finite, OneOf, References, Table, WithinBounds

KINDS = ("response", "GT", "SC", "SP", "SS", "Rand", "Context")

TABLE = Table(
    name="scores",
    grain="One row is the score that a version of an evaluator gives to one response or candidate.",
    part="evaluator, version and dataset",
    key=("evaluator", "version", "dataset", "response_id", "kind", "k"),
    columns=(
        Column("evaluator", "VARCHAR", "name of the evaluator"),
        Column("version", "BIGINT", "its version"),
        Column("dataset", "VARCHAR", "annotated set, or corpus whose test split was scored"),
        Column("response_id", "VARCHAR", "response in that dataset"),
        Column(
            "kind", "VARCHAR", "response: as annotated; GT, SC, SP, SS, Rand: candidate; Context: copied turn"
        ),
        Column("k", "BIGINT", "which candidate of that kind, from 0"),
        Column("f", "DOUBLE", "context against response; null where it has no such part", nullable=True),
        Column("g", "DOUBLE", "reference against response; null where there is no reference", nullable=True),
        Column("f_unit", "DOUBLE", "f scaled to the unit range; null where it is not scaled", nullable=True),
        Column("g_unit", "DOUBLE", "g scaled to the unit range", nullable=True),
        Column("h", "DOUBLE", "f_unit and g_unit in one; null where either is missing", nullable=True),
        Column("truncated", "BOOLEAN", "whether the evaluator left out some of the text"),
    ),
    expectations=(
        References(("evaluator", "version"), "evaluators"),
        OneOf("kind", KINDS),
        Finite(("f", "g", "f_unit", "g_unit", "h")),
        WithinBounds(("f", "g", "h"), "evaluators", ("evaluator", "version")),
        Between("f_unit", 0, 1),
        Between("g_unit", 0, 1),
    ),
)
