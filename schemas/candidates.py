"""`candidates`: a response's true turn and its drawn negatives."""

from schemas.contract import Between, Column, OneOf, References, Table

KINDS = ("GT", "SC", "SP", "SS", "Rand")

TABLE = Table(
    name="candidates",
    grain="One row is a candidate for a response: the true turn or a negative drawn from one of the four sets.",
    part="corpus",
    key=("corpus", "response_id", "kind", "k"),
    columns=(
        Column("corpus", "VARCHAR", "corpus it belongs to"),
        Column("response_id", "BIGINT", "the response"),
        Column("kind", "VARCHAR", "GT: the true turn; SC, SP, SS, Rand: drawn from that set"),
        Column("k", "BIGINT", "number of the draw of that kind, from 0"),
        Column("turn_id", "BIGINT", "the candidate; null if the set had nothing left to draw", nullable=True),
    ),
    expectations=(
        OneOf("kind", KINDS),
        References(("corpus", "turn_id"), "turns"),
        Between("k", 0),
    ),
)
