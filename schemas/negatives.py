"""`negatives`: inappropriate responses, generated from the true ones or drawn for them."""

from schemas.contract import Between, Column, NotEmpty, References, Table

TABLE = Table(
    name="negatives",
    grain="One row is a negative that a generator made for a response.",
    part="corpus and generator",
    key=("corpus", "response_id", "generator", "k"),
    columns=(
        Column("corpus", "VARCHAR", "corpus it belongs to"),
        Column("response_id", "BIGINT", "the true response"),
        Column("generator", "VARCHAR", "name of the generator, such as mask-and-fill or random-2"),
        Column("k", "BIGINT", "number of the negative of that generator, from 0"),
        Column("text", "VARCHAR", "the negative"),
        Column("replaced", "BIGINT", "number of the response's tokens that were replaced"),
        Column("tokens", "BIGINT", "number of the response's tokens, by the generator's tokenizer"),
        Column("truncated", "BOOLEAN", "whether context or response was too long for the generator, and cut"),
    ),
    expectations=(
        NotEmpty(),
        References(("corpus", "response_id"), "responses"),
        Between("k", 0),
        Between("replaced", 0),
        Between("tokens", 1),
    ),
)
