"""`corpora`: the ledger of landed dumps."""

from schemas.contract import Between, Column, NotEmpty, OneOf, Table

TABLE = Table(
    name="corpora",
    grain="One row is a landed dump.",
    part="corpus",
    key=("corpus",),
    columns=(
        Column("corpus", "VARCHAR", "name under which the dump landed"),
        Column("format", "VARCHAR", "reader that read it"),
        Column("source", "VARCHAR", "absolute path, or name, of the dump it was read from"),
        Column(
            "sha256", "VARCHAR", "SHA-256 of the content, independent of file names; equal content lands once"
        ),
        Column("bytes", "BIGINT", "size of the dump's files as stored, compressed or not"),
        Column("messages_read", "BIGINT", "messages that the reader found"),
        Column("utterances", "BIGINT", "messages that landed"),
        Column("quarantined", "BIGINT", "messages that did not land: messages_read - utterances"),
        Column("conversations", "BIGINT", "conversations with at least one landed message"),
        Column("speakers", "BIGINT", "distinct speakers of these messages"),
        Column(
            "time_backwards", "BIGINT", "landed messages older than an earlier message of their conversation"
        ),
        Column(
            "speaker_scope",
            "VARCHAR",
            "person: an id names one person in the corpus; conversation: a seat in one conversation",
        ),
        Column("landed_at", "TIMESTAMP", "start of its ingest, UTC; later corpora have later times"),
    ),
    expectations=(
        NotEmpty(),
        OneOf("speaker_scope", ("person", "conversation")),
        Between("messages_read", 1),
        Between("utterances", 1),
        Between("quarantined", 0),
        Between("conversations", 1),
        Between("speakers", 1),
    ),
)
