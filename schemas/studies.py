"""`studies`: what else an evaluator's scores depend on besides quality."""

from schemas.contract import Between, Column, Finite, NotEmpty, OneOf, References, Table

TABLE = Table(
    name="studies",
    grain="One row is one figure of a study of an evaluator's version on a corpus or an annotated set.",
    part="study, dataset, evaluator and version",
    key=("study", "dataset", "evaluator", "version", "condition", "measure"),
    columns=(
        Column("study", "VARCHAR", "name of the study, such as attacks or length"),
        Column("dataset", "VARCHAR", "corpus whose test split, or annotated set whose scores, are studied"),
        Column("evaluator", "VARCHAR", "name of the evaluator"),
        Column("version", "BIGINT", "its version"),
        Column("position", "BIGINT", "place among the study's figures, from 0"),
        Column("condition", "VARCHAR", "of what, such as an attack or a bucket"),
        Column(
            "measure",
            "VARCHAR",
            "fooled: share in which the attack does not score below the true response; identified: share of "
            "negatives that the true response is above; spearman; sd, qX: standard deviation and quantiles of scores "
            "brought to [0, 1]",
        ),
        Column("value", "DOUBLE", "the figure", nullable=True),
        Column("n", "BIGINT", "responses that it is over"),
        Column("outcome", "VARCHAR", "ok; constant: a side does not vary; too_few: not enough responses"),
    ),
    expectations=(
        NotEmpty(),
        References(("evaluator", "version"), "evaluators"),
        OneOf("outcome", ("ok", "constant", "too_few")),
        Between("value", -1, 1),
        Finite(("value",)),
        Between("n", 0),
        Between("position", 0),
    ),
)
