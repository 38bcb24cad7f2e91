"""Which versions of the evaluators are in use."""

from __future__ import annotations

from collections.abc import Sequence

from ssrem.errors import EvaluatorError
from ssrem.evaluators import evaluator_class
from tasks.home import Home


def promoted(home: Home, names: Sequence[str] = ()) -> list[tuple[str, int]]:
    """(name, version) in use of the evaluators asked for, of all if none is; EvaluatorError for one never trained."""
    with home.reader() as connection:
        rows = connection.execute(
            "SELECT evaluator, version FROM evaluators WHERE promoted ORDER BY ALL"
        ).fetchall()
    for name in names:
        evaluator_class(name)
        if name not in {known for known, _ in rows}:
            raise EvaluatorError(f"{name} has not been trained in {home.root}; run ssrem train {name} first")
    return [(name, version) for name, version in rows if not names or name in names]
