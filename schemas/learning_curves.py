"""`learning_curves`: the loss of each epoch of a training."""

from schemas.contract import Between, Column, Finite, OneOf, References, Table

TABLE = Table(
    name="learning_curves",
    grain="One row is the mean loss of an epoch of a training on one split.",
    part="evaluator and version",
    key=("evaluator", "version", "epoch", "split"),
    columns=(
        Column("evaluator", "VARCHAR", "name of the evaluator"),
        Column("version", "BIGINT", "its version"),
        Column("epoch", "BIGINT", "number of the epoch, from 1; 0: before training"),
        Column("split", "VARCHAR", "train or valid"),
        Column("loss", "DOUBLE", "mean loss per response, by the evaluator's own loss function"),
    ),
    expectations=(
        References(("evaluator", "version"), "evaluators"),
        OneOf("split", ("train", "valid")),
        Between("epoch", 0),
        Finite(("loss",)),
    ),
)
