"""`quarantine`: records of a dump that could not land, unabridged, with the reason."""

from schemas.contract import Between, Column, OneOf, References, Table

REASONS = {
    "broken_json": "the line is not a JSON object",
    "undecodable": "the bytes are not text in the dump's encoding",
    "malformed_row": "the row does not have the fields of its format",
    "no_conversation": "the message names no conversation",
    "no_text": "the message has no text",
    "no_speaker": "the message has no speaker",
    "duplicate_id": "an earlier message has the same id",
    "reply_to_self": "the message replies to itself",
    "reply_to_missing": "the message replies to one that the dump lacks",
    "reply_cycle": "the message is part of a cycle of replies",
    "no_messages": "the conversation has no message that landed",
    "forgotten": "its speaker was forgotten on request; the row is empty",
}

TABLE = Table(
    name="quarantine",
    grain="One row is a record of a dump that did not land.",
    part="corpus",
    key=("corpus", "row_no"),
    columns=(
        Column("corpus", "VARCHAR", "corpus it belongs to"),
        Column(
            "row_no", "BIGINT", "rank of the record in the dump, from 0; below 0 if forgotten after it landed"
        ),
        Column("record", "VARCHAR", "message or conversation"),
        Column("file", "VARCHAR", "file of the dump"),
        Column("line", "BIGINT", "line in that file, from 1; null if row_no is below 0", nullable=True),
        Column("reason", "VARCHAR", "code of the reason: " + ", ".join(REASONS)),
        Column(
            "raw",
            "BLOB",
            "the row: its exact bytes if it is unreadable, else its fields as JSON; empty if it is forgotten, or "
            "unreadable in a dump that landed with pseudonyms",
        ),
    ),
    expectations=(
        References(("corpus",), "corpora"),
        OneOf("record", ("message", "conversation")),
        OneOf("reason", tuple(REASONS)),
        Between("line", 1),
    ),
)
