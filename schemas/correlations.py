"""`correlations`: how an evaluator agrees with people, a score and a level a row."""

from schemas.contract import Column, View

CORRELATIONS = View(
    name="correlations",
    grain="One row is the agreement of one score of an evaluator's version with one human score at one level.",
    key=("evaluator", "version", "dataset", "criterion", "aggregation", "level", "score"),
    columns=(
        Column("evaluator", "VARCHAR", "name of the evaluator"),
        Column("version", "BIGINT", "its version"),
        Column("dataset", "VARCHAR", "annotated set, or corpus whose conversations carry ratings"),
        Column("criterion", "VARCHAR", "what people were asked"),
        Column(
            "aggregation", "VARCHAR", "how their scores were made one; rating: a single rating, unchanged"
        ),
        Column("level", "VARCHAR", "segment: responses; system: means by system; conversation: means by it"),
        Column("score", "VARCHAR", "f, g or h"),
        *(
            Column(f"{name}{suffix}", "DOUBLE", meaning.format(title), nullable=True)
            for name, title in (
                ("pearson", "Pearson's r"),
                ("spearman", "Spearman's rho"),
                ("kendall", "tau-b"),
            )
            for suffix, meaning in (
                ("", "{}"),
                ("_p", "two-sided p of {}"),
                ("_low", "lower end of the 95% interval of {}"),
                ("_high", "upper end of the 95% interval of {}"),
            )
        ),
        Column("n", "BIGINT", "pairs compared: responses, systems or conversations"),
        Column("excluded", "BIGINT", "responses left out as ground truth, or ratings left at their default"),
        Column("outcome", "VARCHAR", "ok; constant: a side does not vary; too_few: fewer than 3 pairs"),
    ),
)
