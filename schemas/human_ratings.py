"""`rated_responses`, `ratings`, `human_scores`, `overall_human_scores`: responses that people rated, every rating, and
its aggregations."""

from ssrem.schemas.contract import Finite, NotEmpty, OneOf, References, Table, View, at_least, columns

AGGREGATIONS = ("mean", "median", "mode", "mad_mean")

RATED_RESPONSES = Table(
    name="rated_responses",
    grain="One row is a response that people scored.",
    key=("dataset", "response_id"),
    columns=columns(
        dataset="VARCHAR: name of the annotated set, from its file",
        sha256="VARCHAR: digest of that file, and of how it was read unless that is the layout eval",
        response_id="VARCHAR: rank among the responses read from the file, from 0; those without a rating or a text do "
        "not count",
        dialogue_id="VARCHAR: dialogue that the response belongs to, as in the file",
        context="VARCHAR[]: turns, oldest first",
        response="VARCHAR: the response",
        reference="VARCHAR?: the true response, where known",
        system="VARCHAR?: system that made the response, where known",
        ground_truth="BOOLEAN: whether the response is the true one: not compared with human scores",
    ),
    expectations=(NotEmpty(),),
)

RATINGS = Table(
    name="ratings",
    grain="One row is the score of one rater for one response by one criterion, as given.",
    key=("dataset", "response_id", "criterion", "rater"),
    columns=columns(
        dataset="VARCHAR: name of the annotated set",
        response_id="VARCHAR: response",
        criterion="VARCHAR: what the rater was asked, such as overall or relevance",
        rater="BIGINT: rank of the rater's name in the set or, without names, position in the response's list of "
        "scores, from 0",
        score="DOUBLE: the score, raw",
    ),
    expectations=(
        NotEmpty(),
        References(("dataset", "response_id"), "rated_responses"),
        Finite(("score",)),
        *at_least(rater=0),
    ),
)

HUMAN_SCORES = Table(
    name="human_scores",
    grain="One row is the human score of one response by one criterion under one aggregation of its raters.",
    key=("dataset", "response_id", "criterion", "aggregation"),
    columns=columns(
        dataset="VARCHAR: name of the annotated set",
        response_id="VARCHAR: response",
        criterion="VARCHAR: what the raters were asked",
        aggregation="VARCHAR: mean, median, mode (mean of tied modes), mad_mean (see sql/3_agreement)",
        score="DOUBLE: the aggregated score",
        raters="BIGINT: ratings that were aggregated",
    ),
    expectations=(
        NotEmpty(),
        References(("dataset", "response_id"), "rated_responses"),
        OneOf("aggregation", AGGREGATIONS),
        Finite(("score",)),
        *at_least(raters=1),
    ),
)

OVERALL_HUMAN_SCORES = View(
    name="overall_human_scores",
    grain="One row is the mean human score of one response by the set's overall criterion.",
    key=("dataset", "response_id"),
    columns=columns(
        dataset="VARCHAR: name of the annotated set",
        response_id="VARCHAR: response",
        criterion="VARCHAR: 'overall', in any case, or else the set's first by name",
        score="DOUBLE: mean of the ratings",
        raters="BIGINT: number of ratings",
    ),
)
