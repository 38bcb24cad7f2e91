"""Which versions of the evaluators are in use."""

from __future__ import annotations

from collections.abc import Sequence

from ssrem.errors import EvaluatorError
from ssrem.evaluators import evaluator_class
from tasks.home import Home


def promoted(home: Home, names: Sequence[str] = ()) -> list[tuple[str, int]]:
    """(name, version) in use of the evaluators asked for, of all if none is.

    EvaluatorError for one that does not exist or was never trained, and where none was.
    """
    for name in names:
        evaluator_class(name)
    with home.reader() as connection:
        rows = connection.execute(
            "SELECT evaluator, version FROM evaluators WHERE promoted ORDER BY ALL"
        ).fetchall()
    if not rows:
        what = " ".join(names)
        raise EvaluatorError(
            f"no evaluator has been trained in {home.root}; run {f'ssrem train {what}'.strip()} first"
        )
    known = {name for name, _ in rows}
    for name in names:
        if name not in known:
            raise EvaluatorError(
                f"{name} has not been trained in {home.root} (trained: {', '.join(sorted(known))}); "
                f"run ssrem train {name} first"
            )
    return [(name, version) for name, version in rows if not names or name in names]
