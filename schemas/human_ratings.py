"""`rated_responses`, `ratings`, `human_scores`: responses that people scored, every rating, and its aggregations."""

from schemas.contract import Between, Column, Finite, NotEmpty, OneOf, References, Table

AGGREGATIONS = ("mean", "median", "mode", "mad_mean")

RATED_RESPONSES = Table(
    name="rated_responses",
    grain="One row is a response that people scored.",
    part="dataset",
    key=("dataset", "response_id"),
    columns=(
        Column("dataset", "VARCHAR", "name of the annotated set, from its file"),
        Column("sha256", "VARCHAR", "digest of that file"),
        Column("response_id", "VARCHAR", "rank in the file, from 0"),
        Column("dialogue_id", "VARCHAR", "dialogue that the response belongs to, as in the file"),
        Column("context", "VARCHAR[]", "turns, oldest first"),
        Column("response", "VARCHAR", "the response"),
        Column("reference", "VARCHAR", "the true response, where known", nullable=True),
        Column("system", "VARCHAR", "who made the response, where known", nullable=True),
        Column(
            "ground_truth", "BOOLEAN", "whether the response is the true one: not compared with human scores"
        ),
    ),
    expectations=(NotEmpty(),),
)

RATINGS = Table(
    name="ratings",
    grain="One row is the score of one rater for one response by one criterion, as given.",
    part="dataset",
    key=("dataset", "response_id", "criterion", "rater"),
    columns=(
        Column("dataset", "VARCHAR", "name of the annotated set"),
        Column("response_id", "VARCHAR", "response"),
        Column("criterion", "VARCHAR", "what was asked, such as overall or relevance"),
        Column("rater", "BIGINT", "place in the response's list of scores, from 0"),
        Column("score", "DOUBLE", "the score, raw"),
    ),
    expectations=(
        NotEmpty(),
        References(("dataset", "response_id"), "rated_responses"),
        Finite(("score",)),
        Between("rater", 0),
    ),
)

HUMAN_SCORES = Table(
    name="human_scores",
    grain="One row is the human score of one response by one criterion under one aggregation of its raters.",
    part="dataset",
    key=("dataset", "response_id", "criterion", "aggregation"),
    columns=(
        Column("dataset", "VARCHAR", "name of the annotated set"),
        Column("response_id", "VARCHAR", "response"),
        Column("criterion", "VARCHAR", "what was asked"),
        Column(
            "aggregation",
            "VARCHAR",
            "mean, median, mode (mean of tied modes), mad_mean (see sql/3_agreement)",
        ),
        Column("score", "DOUBLE", "the aggregated score"),
        Column("raters", "BIGINT", "scores that went into it"),
    ),
    expectations=(
        NotEmpty(),
        References(("dataset", "response_id"), "rated_responses"),
        OneOf("aggregation", AGGREGATIONS),
        Finite(("score",)),
        Between("raters", 1),
    ),
)
