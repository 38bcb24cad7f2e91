"""`evaluators`: versions of evaluators, trained or, where one learns nothing, registered."""

from schemas.contract import Between, Column, Table

TABLE = Table(
    name="evaluators",
    grain="One row is a version of an evaluator: trained, or registered where it learns nothing.",
    part="evaluator and version",
    key=("evaluator", "version"),
    columns=(
        Column("evaluator", "VARCHAR", "its name, such as ssrem"),
        Column("version", "BIGINT", "1 for the first that was trained in this home folder"),
        Column("signature", "VARCHAR", "settings, encoder and weights' hash: what reproduces its scores"),
        Column("low", "DOUBLE", "lowest value that its scores can take; null: no bound", nullable=True),
        Column("high", "DOUBLE", "highest value that its scores can take; null: no bound", nullable=True),
        Column("encoder", "VARCHAR", "signature of the encoder, where it has one", nullable=True),
        Column("config", "VARCHAR", "JSON object: settings"),
        Column("corpora", "VARCHAR", "JSON object: corpus to the sha256 that it was trained on"),
        Column(
            "labels",
            "VARCHAR",
            "sha256 of the annotated set whose human scores it learned from; null: none",
            nullable=True,
        ),
        Column("train_responses", "BIGINT", "responses of the training split that it learned from"),
        Column("valid_responses", "BIGINT", "responses of the validation split that stopped it"),
        Column("test_responses", "BIGINT", "responses of the test split, kept back"),
        Column(
            "test_sample",
            "BIGINT",
            "how many responses of a corpus's test split are scored; null: all",
            nullable=True,
        ),
        Column(
            "valid_loss",
            "DOUBLE",
            "loss on the validation split; null where nothing is learned",
            nullable=True,
        ),
        Column("best_epoch", "BIGINT", "epoch whose weights are kept; 0: what it was before", nullable=True),
        Column("epochs", "BIGINT", "epochs run"),
        Column("seconds", "DOUBLE", "wall time of the training"),
        Column("promoted", "BOOLEAN", "whether commands use this version by default"),
        Column("why", "VARCHAR", "why it is promoted or not"),
        Column(
            "compared_with",
            "BIGINT",
            "version that was in use when this one was decided on; null: there was none to compare with",
            nullable=True,
        ),
        Column(
            "comparison",
            "VARCHAR",
            "JSON list: an object a held-back split and annotated set: dataset, measure, champion, challenger, "
            "difference, low (5% quantile of its paired bootstrap), margin, n, groups, not_worse",
            nullable=True,
        ),
        Column("trained_at", "TIMESTAMP", "when, UTC"),
        Column(
            "decided_at",
            "TIMESTAMP",
            "when it was promoted or not, UTC; null: not decided yet",
            nullable=True,
            default="trained_at",
        ),
        Column(
            "promoted_at",
            "TIMESTAMP",
            "when it last came into use, UTC; null: never was",
            nullable=True,
            default="CASE WHEN promoted THEN trained_at END",
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
