"""`learning_curves`: the loss of a training, epoch by epoch."""

from schemas.contract import Between, Column, Finite, OneOf, References, Table

TABLE = Table(
    name="learning_curves",
    grain="One row is the mean loss of an epoch of a training on one split.",
    part="evaluator and version",
    key=("evaluator", "version", "epoch", "split"),
    columns=(
        Column("evaluator", "VARCHAR", "name of the evaluator"),
        Column("version", "BIGINT", "its version"),
        Column("epoch", "BIGINT", "epoch, from 1; 0 is before training"),
        Column("split", "VARCHAR", "train or valid"),
        Column("loss", "DOUBLE", "mean loss a response, as the evaluator defines it"),
    ),
    expectations=(
        References(("evaluator", "version"), "evaluators"),
        OneOf("split", ("train", "valid")),
        Between("epoch", 0),
        Finite(("loss",)),
    ),
)
