"""`correlations`: how an evaluator agrees with people."""

from schemas.annotations import AGGREGATIONS
from schemas.contract import Between, Column, Finite, OneOf, References, Table

TABLE = Table(
    name="correlations",
    grain="One row is the agreement of one score of an evaluator's version with one human score at one level.",
    part="evaluator, version and dataset",
    key=("evaluator", "version", "dataset", "criterion", "aggregation", "level", "score"),
    columns=(
        Column("evaluator", "VARCHAR", "name of the evaluator"),
        Column("version", "BIGINT", "its version"),
        Column("dataset", "VARCHAR", "annotated set, or corpus whose conversations carry ratings"),
        Column("criterion", "VARCHAR", "what people were asked"),
        Column("aggregation", "VARCHAR", "how their scores were made one; rating: a single rating as given"),
        Column("level", "VARCHAR", "segment: responses; system: means by system; conversation: means by it"),
        Column("score", "VARCHAR", "f, g or h"),
        Column("pearson", "DOUBLE", "Pearson's r", nullable=True),
        Column("pearson_p", "DOUBLE", "its two-sided p", nullable=True),
        Column("pearson_low", "DOUBLE", "lower end of its 95% interval", nullable=True),
        Column("pearson_high", "DOUBLE", "upper end of its 95% interval", nullable=True),
        Column("spearman", "DOUBLE", "Spearman's rho", nullable=True),
        Column("spearman_p", "DOUBLE", "its two-sided p", nullable=True),
        Column("spearman_low", "DOUBLE", "lower end of its 95% interval", nullable=True),
        Column("spearman_high", "DOUBLE", "upper end of its 95% interval", nullable=True),
        Column("kendall", "DOUBLE", "Kendall's tau-b", nullable=True),
        Column("kendall_p", "DOUBLE", "its two-sided p", nullable=True),
        Column("n", "BIGINT", "pairs compared"),
        Column("excluded", "BIGINT", "responses left out as ground truth, or ratings left at their default"),
        Column("outcome", "VARCHAR", "ok; constant: a side does not vary; too_few: fewer than 3 pairs"),
    ),
    expectations=(
        References(("evaluator", "version"), "evaluators"),
        OneOf("aggregation", (*AGGREGATIONS, "rating")),
        OneOf("level", ("segment", "system", "conversation")),
        OneOf("score", ("f", "g", "h")),
        OneOf("outcome", ("ok", "constant", "too_few")),
        Between("pearson", -1, 1),
        Between("spearman", -1, 1),
        Between("kendall", -1, 1),
        Between("pearson_p", 0, 1),
        Between("spearman_p", 0, 1),
        Between("kendall_p", 0, 1),
        Finite(("pearson", "spearman", "kendall")),
        Between("n", 0),
        Between("excluded", 0),
    ),
)
