"""`evaluators`: versions of evaluators, trained, or registered if an evaluator has nothing to learn."""

from schemas.contract import Between, Column, Table

TABLE = Table(
    name="evaluators",
    grain="One row is a version of an evaluator: trained, or registered if it has nothing to learn.",
    part="evaluator and version",
    key=("evaluator", "version"),
    columns=(
        Column("evaluator", "VARCHAR", "name of the evaluator, such as ssrem"),
        Column("version", "BIGINT", "number of the version in this home folder, from 1"),
        Column(
            "signature",
            "VARCHAR",
            "settings, encoder and hash of the weights, which together reproduce its scores",
        ),
        Column("low", "DOUBLE", "lower bound of its scores; null: none", nullable=True),
        Column("high", "DOUBLE", "upper bound of its scores; null: none", nullable=True),
        Column("encoder", "VARCHAR", "signature of the encoder; null: it uses none", nullable=True),
        Column("config", "VARCHAR", "JSON object: settings"),
        Column("corpora", "VARCHAR", "JSON object: corpus it was trained on to its sha256"),
        Column(
            "labels",
            "VARCHAR",
            "sha256 of the annotated set whose ratings it learned from; null: none",
            nullable=True,
        ),
        Column("train_responses", "BIGINT", "responses of the training split"),
        Column("valid_responses", "BIGINT", "responses of the validation split, used for early stopping"),
        Column("test_responses", "BIGINT", "responses of the test split, not used in training"),
        Column(
            "test_sample",
            "BIGINT",
            "number of responses of a corpus's test split that are scored; null: all",
            nullable=True,
        ),
        Column(
            "valid_loss",
            "DOUBLE",
            "loss on the validation split; null if it has nothing to learn",
            nullable=True,
        ),
        Column("best_epoch", "BIGINT", "epoch whose weights it has; 0: the initial ones", nullable=True),
        Column("epochs", "BIGINT", "epochs run"),
        Column("seconds", "DOUBLE", "wall time of the training"),
        Column("promoted", "BOOLEAN", "whether this is the default version of the evaluator"),
        Column("why", "VARCHAR", "reason why it is promoted or not"),
        Column(
            "compared_with",
            "BIGINT",
            "version promoted at the time, with which this one was compared; null: there was none",
            nullable=True,
        ),
        Column(
            "comparison",
            "VARCHAR",
            "JSON list: an object for each test split and annotated set: dataset, measure, champion, challenger, "
            "difference, low (5% quantile of its paired bootstrap), margin, n, groups, not_worse",
            nullable=True,
        ),
        Column("trained_at", "TIMESTAMP", "end of the training, UTC"),
        Column(
            "decided_at",
            "TIMESTAMP",
            "time of the decision on its promotion, UTC; null: not decided yet",
            nullable=True,
        ),
        Column(
            "promoted_at",
            "TIMESTAMP",
            "time of its last promotion, UTC; null: never promoted",
            nullable=True,
        ),
    ),
    expectations=(
        Between("version", 1),
        Between("train_responses", 0),
        Between("valid_loss", 0),
        Between("best_epoch", 0),
        Between("seconds", 0),
    ),
)
