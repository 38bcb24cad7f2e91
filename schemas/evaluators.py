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
        Column("trained_at", "TIMESTAMP", "when, UTC"),
    ),
    expectations=(
        Between("version", 1),
        Between("train_responses", 0),
        Between("valid_loss", 0),
        Between("best_epoch", 0),
        Between("seconds", 0),
    ),
)
