"""`agreement`: how an evaluator agrees with people, one figure a row, each with the line that reproduces it."""

from schemas.contract import Between, Column, Finite, OneOf, References, Table
from schemas.human_ratings import AGGREGATIONS

OUTCOMES = ("ok", "constant", "too_few", "too_many", "too_few_systems", "uneven", "degenerate")

TABLE = Table(
    name="agreement",
    grain="One row is one figure of how one score of an evaluator's version agrees with one human score.",
    part="evaluator, version and dataset",
    key=(
        *("evaluator", "version", "dataset", "criterion", "aggregation"),
        *("level", "grouping", "score", "measure"),
    ),
    columns=(
        Column("evaluator", "VARCHAR", "name of the evaluator"),
        Column("version", "BIGINT", "its version"),
        Column("dataset", "VARCHAR", "annotated set, or corpus whose conversations carry ratings"),
        Column("criterion", "VARCHAR", "what people were asked"),
        Column(
            "aggregation", "VARCHAR", "how the raters' scores were made one; rating: one rating, unchanged"
        ),
        Column(
            "level",
            "VARCHAR",
            "segment: of responses; system: of the systems' means; conversation: of the conversations' means",
        ),
        Column(
            "grouping",
            "VARCHAR",
            "pooled: all at once; system, context: mean of the coefficients of each system or context",
        ),
        Column("score", "VARCHAR", "f, g or h"),
        Column(
            "measure",
            "VARCHAR",
            "pearson, spearman, kendall (tau-b), accuracy (pairs ordered as people do, ties calibrated), soft_accuracy",
        ),
        Column("statistic", "DOUBLE", "the figure: -1 to 1, accuracies 0 to 1", nullable=True),
        Column(
            "p",
            "DOUBLE",
            "that there is no correlation; pooled and system level alone; takes responses as independent",
            nullable=True,
        ),
        Column("sides", "VARCHAR", "of the test behind p: two-sided or greater"),
        Column(
            "low",
            "DOUBLE",
            "lower end of its interval: BCa bootstrap over contexts; conversation: analytic",
            nullable=True,
        ),
        Column("high", "DOUBLE", "upper end of its interval", nullable=True),
        Column("confidence", "DOUBLE", "share of such intervals that hold the true value", nullable=True),
        Column("n", "BIGINT", "responses, or conversations, that it rests on"),
        Column("missing", "BIGINT", "responses with a human score but without this score, left out"),
        Column("excluded", "BIGINT", "responses left out as ground truth, or ratings left at their default"),
        Column("ground_truth_kept", "BOOLEAN", "option: whether ground-truth rows are compared too"),
        Column("groups", "BIGINT", "groups that were averaged (pooled: 1); at system level the systems"),
        Column(
            "epsilon", "DOUBLE", "accuracy: scores that differ by it or less count as tied", nullable=True
        ),
        Column("systems_forced", "BOOLEAN", "option: whether too few systems are compared too"),
        Column("forced", "BOOLEAN", "whether there were fewer systems than should be compared"),
        Column(
            "resamples",
            "BIGINT",
            "bootstrap draws of the interval; soft_accuracy: its permutations; null: nothing was drawn",
            nullable=True,
        ),
        Column("seed", "BIGINT", "of these draws", nullable=True),
        Column("outcome", "VARCHAR", "ok: there is a figure; otherwise the kind of reason why there is none"),
        Column(
            "reason", "VARCHAR", "why there is no figure or, where there is one, no interval", nullable=True
        ),
        Column("signature", "VARCHAR", "ssrem reproduce SIGNATURE computes the figure again"),
    ),
    expectations=(
        References(("evaluator", "version"), "evaluators"),
        OneOf("aggregation", (*AGGREGATIONS, "rating")),
        OneOf("level", ("segment", "system", "conversation")),
        OneOf("grouping", ("pooled", "system", "context")),
        OneOf("score", ("f", "g", "h")),
        OneOf("measure", ("pearson", "spearman", "kendall", "accuracy", "soft_accuracy")),
        OneOf("sides", ("two-sided", "greater")),
        OneOf("outcome", OUTCOMES),
        Between("statistic", -1, 1),
        Between("p", 0, 1),
        Between("low", -1, 1),
        Between("high", -1, 1),
        Between("confidence", 0, 1),
        Between("n", 0),
        Between("missing", 0),
        Between("excluded", 0),
        Between("groups", 0),
        Between("epsilon", 0),
        Between("resamples", 1),
        Finite(("statistic", "p", "low", "high", "epsilon")),
    ),
)
