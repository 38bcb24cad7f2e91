"""Reproduce: recompute the figure of a signature from the published scores and human scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ssrem.agreement.figures import GROUPINGS, LEVELS, SYSTEM_MEASURES, Figure, figure
from ssrem.agreement.inputs import EQUAL, View
from ssrem.agreement.signature import Signature, SignatureError, differences, parse
from ssrem.errors import AnnotationError, EvaluatorError
from ssrem.tasks.agreement.landed_set import (
    GROUND_TRUTH,
    ScoredSet,
    human_scores,
    landed_sets,
    scored_set,
    scores_of,
)
from ssrem.tasks.scoring.conversations import conversation_figures_of
from ssrem.tasks.scoring.signatures import FORCED, Version, signature_of, weights_of
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    import duckdb

FIGURES = ("statistic", "p", "low", "high")


@dataclass(frozen=True)
class Reproduced:
    """A figure computed again. differs: sentences on what differs; empty if the figure is reproduced. noted: sentences
    on differences that do not change the figure. published: whether a figure with exactly this signature is
    published."""

    figure: Figure
    differs: list[str]
    noted: list[str]
    published: bool


def reproduce(home: Warehouse, line: str) -> Reproduced:
    """Compute the figure of a signature again, and compare it with the published one.

    Raises SsremError if the line is not a signature, or the home folder lacks its set, evaluator or human score.
    """
    wanted = parse(line)
    with home.reader() as connection:
        of_level = _conversation_figure if wanted.level == "conversation" else _figure
        again, signature = of_level(connection, home, wanted)
        row = _published(connection, wanted)
    apart = differences(wanted, signature)
    if row is None:
        return Reproduced(again, apart, [], False)
    other = [
        f"the published {name} is {_shown(row[name])}, and computed again {_shown(getattr(again, name))}"
        for name in FIGURES
        if not _equal(row[name], getattr(again, name))
    ]
    return Reproduced(again, [*other, *apart], [], True) if other else Reproduced(again, [], apart, True)


def _figure(
    connection: duckdb.DuckDBPyConnection, home: Warehouse, wanted: Signature
) -> tuple[Figure, Signature]:
    """The figure of an annotated set, and its signature in this home folder."""
    forced = wanted.level == FORCED
    level = "system" if forced else next((one for one in LEVELS if one == wanted.level), None)
    grouping = next((one for one in GROUPINGS if one == wanted.grouping), None)
    measure = next((one for one in SYSTEM_MEASURES if one == wanted.measure), None)
    segment_soft = (level, measure) == ("segment", "soft_accuracy")
    if level is None or grouping is None or measure is None or segment_soft:
        raise _no_such_figure(wanted)
    data = _set(connection, home, wanted)
    version = _version(connection, home, wanted, data.dataset, "response")
    scores, humans = scores_of(connection, data, version), human_scores(connection, data)
    criterion = (wanted.criterion, wanted.aggregation)
    if criterion not in humans:
        names = sorted(f"{name} ({aggregation})" for name, aggregation in humans)
        raise _absent(f"human score {wanted.criterion} ({wanted.aggregation})", names, data.dataset, home)
    if wanted.score not in scores:
        raise _absent(f"score {wanted.score}", sorted(scores), data.dataset, home)
    human, with_truth = humans[criterion], GROUND_TRUTH not in wanted.excluded
    again = figure(
        data.responses(scores[wanted.score], human, ground_truth_kept=with_truth),
        View(measure, level, grouping, forced),
        resamples=wanted.resamples,
        seed=wanted.seed,
    )
    excluded = [GROUND_TRUTH] if again.excluded else []
    weights, content = weights_of(connection, version), (data.dataset, data.sha256)
    return again, signature_of(again, version, weights, content, criterion, wanted.score, excluded)


def _conversation_figure(
    connection: duckdb.DuckDBPyConnection, home: Warehouse, wanted: Signature
) -> tuple[Figure, Signature]:
    """The figure of a corpus's rated conversations, and its signature in this home folder."""
    version = _version(connection, home, wanted, wanted.dataset, "GT")
    rows = list(conversation_figures_of(connection, version, wanted.dataset))
    criteria = sorted({signature.criterion for _, signature in rows})
    if wanted.criterion not in criteria or wanted.score != "f":
        raise _absent(f"rating {wanted.criterion} of score {wanted.score}", criteria, wanted.dataset, home)
    for again, signature in rows:
        same = (signature.criterion, signature.measure) == (wanted.criterion, wanted.measure)
        if same and signature.grouping == wanted.grouping:
            return again, signature
    raise _no_such_figure(wanted)


def _no_such_figure(wanted: Signature) -> SignatureError:
    what = f"{wanted.measure}, {wanted.grouping}, at {wanted.level} level"
    return SignatureError(f"there is no figure such as {what}; copy the whole signature")


def _absent(what: str, names: Sequence[str], dataset: str, home: Warehouse) -> AnnotationError:
    return AnnotationError(f"there is no {what} of {dataset} in {home.root} (available: {', '.join(names)})")


def _set(connection: duckdb.DuckDBPyConnection, home: Warehouse, wanted: Signature) -> ScoredSet:
    """The annotated set that the signature names, or else one with the same content."""
    sets = landed_sets(connection)
    same = [
        name
        for name, sha256 in sets.items()
        if sha256.startswith(wanted.data) or wanted.data.startswith(sha256)
    ]
    name = wanted.dataset if wanted.dataset in sets else next(iter(same), None)
    data = None if name is None else scored_set(connection, name)
    if data is None:
        names = ", ".join(sets) or "none"
        raise AnnotationError(
            f"the annotated set {wanted.dataset} is not in {home.root} (available: {names}); "
            "ssrem correlate FILE lands it"
        )
    return data


def _version(
    connection: duckdb.DuckDBPyConnection, home: Warehouse, wanted: Signature, dataset: str, kind: str
) -> Version:
    """The evaluator of the signature; EvaluatorError if it has no scores of that kind for the dataset."""
    scored = connection.execute(
        "SELECT DISTINCT evaluator, version FROM scores WHERE dataset = ? AND kind = ? ORDER BY ALL",
        [dataset, kind],
    ).fetchall()
    for name, version in scored:
        if f"{name}@{version}" == wanted.evaluator:
            return name, version
    names = ", ".join(f"{name}@{version}" for name, version in scored) or "none"
    verb = "correlate FILE --evaluator NAME" if kind == "response" else "score"
    raise EvaluatorError(
        f"{wanted.evaluator} has not scored {dataset} in {home.root} (those that have: {names}); ssrem {verb} does"
    )


def _published(connection: duckdb.DuckDBPyConnection, wanted: Signature) -> dict[str, Any] | None:
    row = connection.execute(
        f"SELECT {', '.join(FIGURES)} FROM agreement WHERE signature = ?", [str(wanted)]
    ).fetchone()
    return None if row is None else dict(zip(FIGURES, row, strict=True))


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= EQUAL


def _shown(value: float | None) -> str:
    return "none" if value is None else repr(value)
