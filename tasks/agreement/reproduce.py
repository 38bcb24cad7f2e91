"""Reproduce: the figure that a signature stands for, computed again from the published scores and human scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ssrem.agreement.figures import GROUPINGS, LEVELS, SYSTEM_MEASURES, Figure, figure
from ssrem.agreement.inputs import EQUAL
from ssrem.agreement.signature import Signature, SignatureError, differences, parse
from ssrem.errors import AnnotationError, EvaluatorError
from tasks.agreement.scored_set import (
    FORCED,
    GROUND_TRUTH,
    MeasuredSet,
    Version,
    human_scores,
    measured_set,
    scores_of,
    signature_of,
    weights_of,
)
from tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    import duckdb

FIGURES = ("statistic", "p", "low", "high")


@dataclass(frozen=True)
class Reproduced:
    """found: the figure of here. differs: what differs, a sentence each, empty where it is reproduced. noted: what is
    different here without changing the figure. published: whether a published row of that very signature was there."""

    found: Figure
    differs: list[str]
    noted: list[str]
    published: bool


def reproduce(home: Warehouse, line: str) -> Reproduced:
    """Compute the figure of a signature again, and compare it with the published one.

    SsremError, in one line, where the line is no signature, or its set, evaluator or human score is not here.
    """
    wanted = parse(line)
    forced = wanted.level == FORCED
    level = "system" if forced else next((one for one in LEVELS if one == wanted.level), None)
    grouping = next((one for one in GROUPINGS if one == wanted.grouping), None)
    measure = next((one for one in SYSTEM_MEASURES if one == wanted.measure), None)
    if (
        level is None
        or grouping is None
        or measure is None
        or (level, measure) == ("segment", "soft_accuracy")
    ):
        what = f"{wanted.measure}, {wanted.grouping}, at {wanted.level} level"
        raise SignatureError(f"there is no figure such as {what}; copy the whole signature")
    with home.reader() as connection:
        measured = _set(connection, home, wanted)
        version = _version(connection, home, wanted, measured)
        scores = scores_of(connection, measured, version)
        asked = (wanted.criterion, wanted.aggregation)
        humans = human_scores(connection, measured)
        if asked not in humans or wanted.score not in scores:
            what = f"score {wanted.score}" if asked in humans else f"human score {asked[0]} ({asked[1]})"
            there = ", ".join(
                sorted(scores) if asked in humans else sorted({f"{c} ({a})" for c, a in humans})
            )
            raise AnnotationError(f"there is no {what} of {measured.dataset} in {home.root} (there: {there})")
        human = humans[asked]
        keep = GROUND_TRUTH not in wanted.excluded
        responses = measured.responses(scores[wanted.score], human, keep_ground_truth=keep)
        found = figure(
            responses,
            level,
            grouping,
            measure,
            resamples=wanted.resamples,
            seed=wanted.seed,
            force=forced,
        )
        excluded = measured.excluded(human, keep_ground_truth=keep)
        weights = weights_of(connection, version)
        here = signature_of(found, measured, version, weights, asked, wanted.score, excluded)
        row = _published(connection, wanted)
    apart = differences(wanted, here)
    if row is None:
        return Reproduced(found, apart, [], False)
    other = [
        f"the published {name} is {_shown(row[name])}, and computed again {_shown(getattr(found, name))}"
        for name in FIGURES
        if not _equal(row[name], getattr(found, name))
    ]
    return Reproduced(found, [*other, *apart], [], True) if other else Reproduced(found, [], apart, True)


def _set(connection: duckdb.DuckDBPyConnection, home: Warehouse, wanted: Signature) -> MeasuredSet:
    """The annotated set of that name, or one of that content."""
    rows = connection.execute("SELECT DISTINCT dataset, sha256 FROM annotated ORDER BY ALL").fetchall()
    names = [name for name, _ in rows]
    same = [name for name, sha256 in rows if sha256.startswith(wanted.data) or wanted.data.startswith(sha256)]
    name = wanted.dataset if wanted.dataset in names else next(iter(same), None)
    found = None if name is None else measured_set(connection, name)
    if found is None:
        there = ", ".join(names) or "none"
        raise AnnotationError(
            f"the annotated set {wanted.dataset} is not in {home.root} (there: {there}); ssrem correlate FILE lands it"
        )
    return found


def _version(
    connection: duckdb.DuckDBPyConnection, home: Warehouse, wanted: Signature, measured: MeasuredSet
) -> Version:
    scored = connection.execute(
        "SELECT DISTINCT evaluator, version FROM scores WHERE dataset = ? AND kind = 'response' ORDER BY ALL",
        [measured.dataset],
    ).fetchall()
    for name, version in scored:
        if f"{name}@{version}" == wanted.evaluator:
            return name, version
    there = ", ".join(f"{name}@{version}" for name, version in scored) or "none"
    raise EvaluatorError(
        f"{wanted.evaluator} has not scored {measured.dataset} in {home.root} (those that have: {there}); "
        "ssrem correlate FILE --evaluator NAME does"
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
