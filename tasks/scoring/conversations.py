"""Agreement of an evaluator with the ratings that participants gave to a corpus's conversations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np

from ssrem.agreement.figures import Figure, conversation_figures
from ssrem.agreement.signature import Signature
from ssrem.sql import statement
from ssrem.tasks.scoring.signatures import Version, figure_row, signature_of, weights_of

UNTOUCHED_RATING = {"chitchat": 5}
"""Format to the initial position of its rating sliders; a rating of that value may be no rating, and is excluded."""

UNTOUCHED = "untouched-ratings"
"""How signatures name such ratings, as excluded."""

AGGREGATION = "rating"


def conversation_figures_of(
    connection: duckdb.DuckDBPyConnection, version: Version, corpus: str
) -> Iterator[tuple[Figure, Signature]]:
    """Every figure at conversation level of the version on the corpus's test split, with its signature.

    A conversation's score is the mean f of its true responses. Conversations whose rating stayed at its default are
    left out and counted as excluded.
    """
    values = {"evaluator": version[0], "version": version[1], "corpus": corpus}
    rows = connection.execute(statement("3_agreement/conversation_scores"), values).fetchall()
    weights = weights_of(connection, version) if rows else ""
    for criterion in sorted({row[0] for row in rows}):
        own = [row for row in rows if row[0] == criterion]
        compared = [(f, rating) for _, form, _, f, rating in own if rating != UNTOUCHED_RATING.get(form)]
        scores, ratings = np.array(compared, dtype=np.float64).reshape(-1, 2).T
        content, left_out = (corpus, own[0][2]), len(own) - len(compared)
        excluded, human = [UNTOUCHED] if left_out else [], (criterion, AGGREGATION)
        for figure in conversation_figures(scores, ratings, excluded=left_out):
            yield figure, signature_of(figure, version, weights, content, human, "f", excluded)


def conversation_rows(
    connection: duckdb.DuckDBPyConnection, version: Version, corpus: str
) -> Iterator[dict[str, Any]]:
    """Rows of `agreement` at conversation level."""
    for figure, signature in conversation_figures_of(connection, version, corpus):
        yield figure_row(
            version, figure, signature, ground_truth_kept=True, systems_forced=False, permutations=0
        )
