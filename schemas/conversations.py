"""`conversations`: the conversations of a corpus."""

from schemas.contract import Between, Column, NotEmpty, References, Table

TABLE = Table(
    name="conversations",
    grain="One row is a conversation with at least one landed message.",
    part="corpus",
    key=("corpus", "conversation_id"),
    columns=(
        Column("corpus", "VARCHAR", "corpus it belongs to"),
        Column("conversation_id", "VARCHAR", "id in the dump"),
        Column("conversation_no", "BIGINT", "rank by first message in the dump, from 0"),
        Column("started", "TIMESTAMP", "time of its earliest message, UTC", nullable=True),
        Column("messages", "BIGINT", "landed messages"),
        Column("participants", "BIGINT", "distinct speakers"),
        Column(
            "ratings", "VARCHAR", "JSON object: criterion to the score that participants gave", nullable=True
        ),
        Column("metadata", "VARCHAR", "JSON object: the dump's other fields", nullable=True),
    ),
    expectations=(
        NotEmpty(),
        References(("corpus",), "corpora"),
        Between("conversation_no", 0),
        Between("messages", 1),
        Between("participants", 1),
    ),
)
