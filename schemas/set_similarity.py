"""`set_similarity`: how alike the turns inside the four kinds of set are (Bak and Oh 2020, Table 2)."""

from schemas.contract import Between, Column, Finite, OneOf, References, Table

TABLE = Table(
    name="set_similarity",
    grain="One row is a kind of set: the mean cosine similarity among the turns inside its sets.",
    part="corpus",
    key=("corpus", "kind"),
    columns=(
        Column("corpus", "VARCHAR", "corpus it belongs to"),
        Column("kind", "VARCHAR", "SC, SP, SS or Rand"),
        Column(
            "mean",
            "DOUBLE",
            "mean pairwise cosine inside sets: over a speaker's sets, then over speakers; -1 to 1",
            nullable=True,
        ),
        Column("low", "DOUBLE", "lower end of its 95% confidence interval", nullable=True),
        Column("high", "DOUBLE", "upper end of its 95% confidence interval", nullable=True),
        Column("speakers", "BIGINT", "speakers counted, who have a set of every kind"),
        Column("sets", "BIGINT", "their sets with at least two encoded turns"),
        Column("pairs", "BIGINT", "pairs of turns inside these sets"),
        Column("encoder", "VARCHAR", "signature of the encoder"),
    ),
    expectations=(
        References(("corpus",), "corpora"),
        OneOf("kind", ("SC", "SP", "SS", "Rand")),
        Between("mean", -1, 1),
        Finite(("mean", "low", "high")),
        Between("speakers", 0),
        Between("sets", 0),
        Between("pairs", 0),
    ),
)
