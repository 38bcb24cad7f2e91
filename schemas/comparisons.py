"""`comparisons`, `rankings`: which evaluator agrees better with people, tested, and who is tied for best."""

from schemas.agreement import OUTCOMES
from schemas.contract import Between, Column, Finite, OneOf, References, Table
from schemas.human_ratings import AGGREGATIONS

_WHERE = (
    Column("dataset", "VARCHAR", "annotated set"),
    Column("criterion", "VARCHAR", "what people were asked"),
    Column("aggregation", "VARCHAR", "how the raters' scores were made one"),
    Column("level", "VARCHAR", "segment: of responses, pooled; system: of the systems' means"),
    Column("test", "VARCHAR", "paired-bootstrap: both evaluators on the same resamples of contexts"),
    Column("measure", "VARCHAR", "spearman"),
)
_KINDS = (
    OneOf("aggregation", AGGREGATIONS),
    OneOf("level", ("segment", "system")),
    OneOf("test", ("paired-bootstrap",)),
    OneOf("measure", ("spearman",)),
)

COMPARISONS = Table(
    name="comparisons",
    grain="One row is a pair of evaluators in use, compared on the responses of a set that all of them scored.",
    part="annotated set",
    key=(
        *("dataset", "criterion", "aggregation", "level", "test", "measure"),
        *("first", "first_version", "second", "second_version"),
    ),
    columns=(
        *_WHERE,
        Column("first", "VARCHAR", "the evaluator that agrees better"),
        Column("first_version", "BIGINT", "its version"),
        Column("first_score", "VARCHAR", "its score: h where every response has one, else f, else g"),
        Column("second", "VARCHAR", "the other evaluator"),
        Column("second_version", "BIGINT", "its version"),
        Column("second_score", "VARCHAR", "its score"),
        Column("first_statistic", "DOUBLE", "agreement of the first, -1 to 1", nullable=True),
        Column("second_statistic", "DOUBLE", "agreement of the second", nullable=True),
        Column("difference", "DOUBLE", "first minus second", nullable=True),
        Column("low", "DOUBLE", "lower end of the difference's 95% interval (BCa)", nullable=True),
        Column("high", "DOUBLE", "upper end", nullable=True),
        Column("p", "DOUBLE", "two-sided, that they agree alike", nullable=True),
        Column("p_holm", "DOUBLE", "p corrected for all pairs of the table (Holm)", nullable=True),
        Column("n", "BIGINT", "responses compared"),
        Column("resamples", "BIGINT", "bootstrap draws", nullable=True),
        Column("seed", "BIGINT", "of these draws", nullable=True),
        Column("outcome", "VARCHAR", "ok: they were tested; otherwise the kind of reason why not"),
        Column("reason", "VARCHAR", "why they were not tested", nullable=True),
    ),
    expectations=(
        *_KINDS,
        References(("first", "first_version"), "evaluators", ("evaluator", "version")),
        References(("second", "second_version"), "evaluators", ("evaluator", "version")),
        OneOf("first_score", ("f", "g", "h")),
        OneOf("second_score", ("f", "g", "h")),
        OneOf("outcome", OUTCOMES),
        Between("difference", 0, 2),
        Between("low", -2, 2),
        Between("high", -2, 2),
        Between("p", 0, 1),
        Between("p_holm", 0, 1),
        Between("n", 0),
        Finite(("first_statistic", "second_statistic", "difference", "low", "high", "p", "p_holm")),
    ),
)

RANKINGS = Table(
    name="rankings",
    grain="One row is an evaluator in use, in its place among all that scored a set.",
    part="annotated set",
    key=("dataset", "criterion", "aggregation", "level", "test", "measure", "evaluator", "version"),
    columns=(
        *_WHERE,
        Column("evaluator", "VARCHAR", "name of the evaluator"),
        Column("version", "BIGINT", "its version"),
        Column("score", "VARCHAR", "h where every response has one, else f, else g"),
        Column("statistic", "DOUBLE", "its agreement, -1 to 1", nullable=True),
        Column("place", "BIGINT", "from 1, best first", nullable=True),
        Column(
            "cluster",
            "BIGINT",
            "from 1: all of a cluster are significantly better than all below (p_holm < .05)",
            nullable=True,
        ),
        Column("n", "BIGINT", "responses that every evaluator scored"),
        Column("reason", "VARCHAR", "why it has no place", nullable=True),
    ),
    expectations=(
        *_KINDS,
        References(("evaluator", "version"), "evaluators"),
        OneOf("score", ("f", "g", "h")),
        Between("statistic", -1, 1),
        Between("place", 1),
        Between("cluster", 1),
        Between("n", 0),
        Finite(("statistic",)),
    ),
)
