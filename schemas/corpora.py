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
        Column("source", "VARCHAR", "where it was read from, an absolute path if it is one"),
        Column(
            "sha256", "VARCHAR", "digest of the content, whatever the file names; the same content lands once"
        ),
        Column("bytes", "BIGINT", "size of the dump as read, compressed where it was compressed"),
        Column("messages_read", "BIGINT", "messages that the reader found"),
        Column("utterances", "BIGINT", "messages that landed"),
        Column(
            "quarantined", "BIGINT", "messages that did not land; messages_read = utterances + quarantined"
        ),
        Column("conversations", "BIGINT", "conversations with at least one landed message"),
        Column("speakers", "BIGINT", "people who speak in them"),
        Column("time_backwards", "BIGINT", "landed messages that are older than one before them"),
        Column(
            "speaker_scope", "VARCHAR", "person: an id is one person throughout; conversation: a seat in one"
        ),
        Column("landed_at", "TIMESTAMP", "when its landing began, UTC; rises from one to the next"),
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
