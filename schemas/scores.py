"""`scores`: scores of responses and candidates by an evaluator."""

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
            "kind",
            "VARCHAR",
            "response: of an annotated set; GT, SC, SP, SS, Rand: candidate; Context: the last turn, copied",
        ),
        Column("k", "BIGINT", "number of the candidate of that kind, from 0"),
        Column(
            "f",
            "DOUBLE",
            "score of the response given the context; null if the evaluator has no such part",
            nullable=True,
        ),
        Column(
            "g",
            "DOUBLE",
            "score of the response given the reference; null without a reference",
            nullable=True,
        ),
        Column("f_unit", "DOUBLE", "f scaled to [0, 1]; null if it is not scaled", nullable=True),
        Column("g_unit", "DOUBLE", "g scaled to [0, 1]", nullable=True),
        Column("h", "DOUBLE", "f_unit and g_unit combined; null if either is missing", nullable=True),
        Column("truncated", "BOOLEAN", "whether the evaluator cut off some of the text"),
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
