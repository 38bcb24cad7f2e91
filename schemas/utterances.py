"""`utterances`: the messages of a corpus."""

from schemas.contract import Between, Column, NotEmpty, References, Table

TABLE = Table(
    name="utterances",
    grain="One row is one landed message.",
    part="corpus",
    key=("corpus", "utterance_id"),
    columns=(
        Column("corpus", "VARCHAR", "corpus it belongs to"),
        Column(
            "utterance_id",
            "VARCHAR",
            "id in the dump, CONVERSATION/ID where ids repeat across conversations; CONVERSATION#POSITION without one",
        ),
        Column("conversation_id", "VARCHAR", "conversation it is part of"),
        Column("conversation_no", "BIGINT", "that conversation's rank in the dump, from 0"),
        Column("position", "BIGINT", "rank in the conversation, in the dump's order, from 0"),
        Column("turn", "BIGINT", "rank of its turn in the conversation, from 0"),
        Column("speaker", "VARCHAR", "who wrote it"),
        Column(
            "addressee",
            "VARCHAR",
            "who is addressed: by the dump, else the author of the message replied to",
            nullable=True,
        ),
        Column(
            "reply_to",
            "VARCHAR",
            "utterance_id of the message that it replies to, if the dump says so",
            nullable=True,
        ),
        Column("text", "VARCHAR", "the text as in the dump"),
        Column("time", "TIMESTAMP", "time of the message, UTC", nullable=True),
        Column(
            "time_backwards", "BOOLEAN", "whether it is older than an earlier message of the conversation"
        ),
        Column("metadata", "VARCHAR", "JSON object: the dump's other fields", nullable=True),
    ),
    expectations=(
        NotEmpty(),
        References(("corpus", "conversation_id"), "conversations"),
        Between("position", 0),
        Between("turn", 0),
    ),
)
