"""`utterances`: one row a message."""

from schemas.contract import Between, Column, NotEmpty, References, Table

TABLE = Table(
    name="utterances",
    grain="One row is one landed message.",
    part="corpus",
    key=("corpus", "utterance_id"),
    columns=(
        Column("corpus", "VARCHAR", "corpus it belongs to"),
        Column("utterance_id", "VARCHAR", "id in the dump; CONVERSATION#POSITION where the dump gives none"),
        Column("conversation_id", "VARCHAR", "conversation it is part of"),
        Column("conversation_no", "BIGINT", "that conversation's rank in the dump, from 0"),
        Column("position", "BIGINT", "rank in the conversation, in the dump's order, from 0"),
        Column("turn", "BIGINT", "turn of the conversation that it belongs to, from 0"),
        Column("speaker", "VARCHAR", "who says it"),
        Column("addressee", "VARCHAR", "to whom, where the dump says so or by reply", nullable=True),
        Column("reply_to", "VARCHAR", "message that it answers, where the dump says so", nullable=True),
        Column("text", "VARCHAR", "what is said, as in the dump"),
        Column("time", "TIMESTAMP", "when, UTC", nullable=True),
        Column("time_backwards", "BOOLEAN", "older than a message before it in the conversation"),
        Column("metadata", "VARCHAR", "JSON object: whatever else the dump says of it", nullable=True),
    ),
    expectations=(
        NotEmpty(),
        References(("corpus", "conversation_id"), "conversations"),
        Between("position", 0),
        Between("turn", 0),
    ),
)
