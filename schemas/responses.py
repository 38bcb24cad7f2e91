"""`responses`: turns with the range of earlier turns that are their context."""

from schemas.contract import Between, Column, OneOf, References, Table
from schemas.turns import SPLITS

TABLE = Table(
    name="responses",
    grain="One row is a response: a turn that has a turn before it in its conversation.",
    part="corpus",
    key=("corpus", "response_id"),
    columns=(
        Column("corpus", "VARCHAR", "corpus it belongs to"),
        Column("response_id", "BIGINT", "turn_id of the response"),
        Column("context_from", "BIGINT", "turn_id of the first turn of its context"),
        Column("context_to", "BIGINT", "turn_id of the last turn of its context, just before the response"),
        Column("conversation_id", "VARCHAR", "conversation it is part of"),
        Column("speaker", "VARCHAR", "who responds"),
        Column("addressee", "VARCHAR", "who is addressed"),
        Column("split", "VARCHAR", "train, valid or test"),
    ),
    expectations=(
        References(("corpus", "response_id"), "turns", ("corpus", "turn_id")),
        References(("corpus", "context_from"), "turns", ("corpus", "turn_id")),
        OneOf("split", SPLITS),
        Between("context_from", 0),
    ),
)
