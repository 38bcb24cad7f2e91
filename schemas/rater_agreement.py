"""`rater_agreement`: how people agree with each other, by which an evaluator's agreement with them is read."""

from schemas.agreement import OUTCOMES
from schemas.contract import Between, Column, Finite, OneOf, Table

MEASURES = (
    *("alpha_nominal", "alpha_ordinal", "alpha_interval", "fleiss_kappa", "weighted_kappa"),
    *("one_rater", "attainable"),
)

TABLE = Table(
    name="rater_agreement",
    grain="One row is one figure of how the raters of an annotated set agree by one criterion.",
    part="annotated set",
    key=("dataset", "criterion", "measure"),
    columns=(
        Column("dataset", "VARCHAR", "annotated set"),
        Column("criterion", "VARCHAR", "what people were asked"),
        Column(
            "measure",
            "VARCHAR",
            "alpha_* (Krippendorff), fleiss_kappa, weighted_kappa (Cohen's, quadratic, mean over pairs of raters), "
            "one_rater (Spearman of a rater with the mean of the others: the noise ceiling), attainable (Spearman that "
            "an evaluator of the true score would reach, from split halves)",
        ),
        Column("value", "DOUBLE", "at most 1, which is perfect agreement; 0 is chance", nullable=True),
        Column(
            "raters",
            "BIGINT",
            "raters that went into it: places in the responses' lists of scores, which need not be one person each",
        ),
        Column(
            "units",
            "BIGINT",
            "responses that went into it; the ground truth where correlations leave it out is not",
        ),
        Column("outcome", "VARCHAR", "ok: there is a value; otherwise the kind of reason why there is none"),
        Column("reason", "VARCHAR", "why there is none", nullable=True),
    ),
    expectations=(
        OneOf("measure", MEASURES),
        OneOf("outcome", OUTCOMES),
        Finite(("value",)),
        Between("raters", 0),
        Between("units", 0),
    ),
)
