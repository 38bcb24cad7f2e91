"""`turns`: consecutive messages of one speaker, joined."""

from schemas.contract import Between, Column, NotEmpty, OneOf, References, Table

SPLITS = ("train", "valid", "test")

TABLE = Table(
    name="turns",
    grain="One row is a turn: consecutive messages of one speaker in a conversation, joined by a space.",
    part="corpus",
    key=("corpus", "turn_id"),
    columns=(
        Column("corpus", "VARCHAR", "corpus it belongs to"),
        Column(
            "turn_id", "BIGINT", "rank in the corpus, from 0; the turns of a conversation are consecutive"
        ),
        Column("conversation_id", "VARCHAR", "conversation it is part of"),
        Column("turn", "BIGINT", "rank in the conversation, from 0"),
        Column("speaker", "VARCHAR", "who speaks"),
        Column(
            "addressee",
            "VARCHAR",
            "who is addressed: the author of the message replied to, else the latest other speaker",
            nullable=True,
        ),
        Column("text", "VARCHAR", "the messages' texts"),
        Column(
            "text_hash", "UBIGINT", "hash of the lower-cased, trimmed text: equal hashes are the same text"
        ),
        Column("messages", "BIGINT", "number of messages"),
        Column("started", "TIMESTAMP", "time of the first message, UTC", nullable=True),
        Column("split", "VARCHAR", "train, valid or test: a hash of the conversation's id, 80/10/10"),
    ),
    expectations=(
        NotEmpty(),
        References(("corpus", "conversation_id"), "conversations"),
        OneOf("split", SPLITS),
        Between("turn_id", 0),
        Between("turn", 0),
        Between("messages", 1),
    ),
)
