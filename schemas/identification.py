"""`identification`: how well an evaluator tells the true response from each kind of negative (Bak and Oh 2020,
section 6)."""

from schemas.contract import Between, Column, Finite, OneOf, References, Table, WithinBounds

TABLE = Table(
    name="identification",
    grain="One row is a kind of candidate of a corpus's test split under one version of an evaluator.",
    part="evaluator, version and corpus",
    key=("evaluator", "version", "corpus", "kind"),
    columns=(
        Column("evaluator", "VARCHAR", "name of the evaluator"),
        Column("version", "BIGINT", "its version"),
        Column("corpus", "VARCHAR", "corpus whose test split was scored"),
        Column("kind", "VARCHAR", "GT, SC, SP, SS, Rand, or Context: the last turn copied as the response"),
        Column("mean", "DOUBLE", "mean f", nullable=True),
        Column("low", "DOUBLE", "lower end of its 95% confidence interval", nullable=True),
        Column("high", "DOUBLE", "upper end of its 95% confidence interval", nullable=True),
        Column("gt_above", "DOUBLE", "share of responses whose GT scores higher, ties a half", nullable=True),
        Column("n", "BIGINT", "responses that have a candidate of this kind"),
    ),
    expectations=(
        References(("evaluator", "version"), "evaluators"),
        OneOf("kind", ("GT", "SC", "SP", "SS", "Rand", "Context")),
        Finite(("mean", "low", "high", "gt_above")),
        WithinBounds(("mean",), "evaluators", ("evaluator", "version")),
        Between("gt_above", 0, 1),
        Between("n", 0),
    ),
)
