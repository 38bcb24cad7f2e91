"""`negatives`: responses that are wrong on purpose, made from or drawn for the true ones."""

from schemas.contract import Between, Column, NotEmpty, References, Table

TABLE = Table(
    name="negatives",
    grain="One row is a negative that a generator made for a response.",
    part="corpus and generator",
    key=("corpus", "response_id", "generator", "k"),
    columns=(
        Column("corpus", "VARCHAR", "corpus it belongs to"),
        Column("response_id", "BIGINT", "the true response"),
        Column("generator", "VARCHAR", "what made it, such as mask-and-fill or random-2"),
        Column("k", "BIGINT", "which negative of that generator, from 0"),
        Column("text", "VARCHAR", "the negative"),
        Column("replaced", "BIGINT", "how many of the response's tokens no longer stand"),
        Column("tokens", "BIGINT", "how many tokens the response has, as the generator cuts them"),
        Column("truncated", "BOOLEAN", "whether the generator could not read all of context and response"),
    ),
    expectations=(
        NotEmpty(),
        References(("corpus", "response_id"), "responses"),
        Between("k", 0),
        Between("replaced", 0),
        Between("tokens", 1),
    ),
)
