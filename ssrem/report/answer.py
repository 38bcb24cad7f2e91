"""What the first sentences of the report say: which evaluator agrees best with human ratings, and how well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from statistics import fmean

from ssrem.report.data import Evaluator, ReportData, Row, headline
from ssrem.report.numbers import is_figure

ALPHA = 0.05
NEGATIVES = ("SC", "SP", "SS", "Rand")


@dataclass(frozen=True)
class Best:
    """The evaluator that agrees best with human ratings, and the next, if there is one.

    mean: of its correlations, weighted by responses; rows: these correlations, the lowest first; tested: comparisons
    with the next evaluator; won: how many of them it wins significantly.
    """

    name: str
    mean: float
    rows: list[Row]
    next_name: str | None
    next_mean: float | None
    tested: list[Row]
    won: int


@dataclass(frozen=True)
class Answer:
    """The findings at the top of the report; `answer.html` puts them into words.

    best: None if no annotated set gave a correlation, or, if nothing_shared, no annotated set is common to all.
    conversations: the highest correlation with ratings of whole conversations; identifier: the evaluator whose shares
    of true responses above false ones are in `shares`, by corpus and kind.
    """

    measured: bool
    failed: bool
    nothing_shared: bool
    best: Best | None
    conversations: Row | None
    identifier: str
    shares: dict[str, dict[str, float]]
    negatives: tuple[str, ...] = NEGATIVES


def answer(data: ReportData) -> Answer:
    """The facts of the report's first sentences."""
    cells = headline(data.correlations)
    shared = set.intersection(*(set(rows) for rows in cells.values())) if cells else set()
    ranked = _ranked(cells, shared) if shared else {}
    top = next(iter(ranked), None)
    conversations = [
        row for of_one in headline(data.correlations, "conversation").values() for row in of_one.values()
    ]
    shares = _shares(data)
    identifier = top if top in shares else max(shares, key=lambda e: _mean_share(shares[e]), default=None)
    return Answer(
        measured=bool(data.identification or data.correlations),
        failed=any(row["level"] == "segment" for row in data.correlations),
        nothing_shared=bool(cells) and not shared,
        best=_best(data, cells, shared, ranked) if ranked else None,
        conversations=max(conversations, key=_spearman, default=None),
        identifier=_name(identifier, shares) if identifier else "",
        shares={
            corpus: kinds
            for corpus, kinds in (shares[identifier] if identifier else {}).items()
            if not kinds.keys().isdisjoint(NEGATIVES)
        },
    )


def _ranked(cells: dict[Evaluator, dict[Hashable, Row]], shared: set[Hashable]) -> dict[Evaluator, float]:
    """Evaluators to the mean of their correlations on the shared cells, the best first.

    The weight of a dataset is its number of responses, divided equally among its criteria.
    """
    first = {cell: row for cell, row in next(iter(cells.values())).items() if cell in shared}
    criteria = Counter(row["dataset"] for row in first.values())
    weights = [row["n"] / criteria[row["dataset"]] for row in first.values()]
    means = {one: fmean([rows[cell]["spearman"] for cell in first], weights) for one, rows in cells.items()}
    return dict(sorted(means.items(), key=lambda item: item[1], reverse=True))


def _best(
    data: ReportData,
    cells: dict[Evaluator, dict[Hashable, Row]],
    shared: set[Hashable],
    ranked: dict[Evaluator, float],
) -> Best:
    best, *others = ranked
    rows = sorted((row for cell, row in cells[best].items() if cell in shared), key=_spearman)
    following = others[0] if others else None
    tested = {
        (row["dataset"], row["criterion"]): row
        for row in data.comparisons
        if {(row["first"], row["first_version"]), (row["second"], row["second_version"])} == {best, following}
        and (row["dataset"], row["criterion"]) in shared
        and is_figure(row["p_holm"])
    }.values()
    won = [row for row in tested if (row["first"], row["first_version"]) == best and row["p_holm"] < ALPHA]
    next_name = _name(following, cells) if following else None
    next_mean = ranked[following] if following else None
    return Best(_name(best, cells), ranked[best], rows, next_name, next_mean, list(tested), len(won))


def _shares(data: ReportData) -> dict[Evaluator, dict[str, dict[str, float]]]:
    """Evaluator → corpus → kind → share of responses whose true response is above a candidate of that kind."""
    shares: dict[Evaluator, dict[str, dict[str, float]]] = {}
    for row in data.identification:
        if is_figure(row["gt_above"]):
            corpora = shares.setdefault((row["evaluator"], row["version"]), {})
            corpora.setdefault(row["corpus"], {})[row["kind"]] = row["gt_above"]
    return shares


def _mean_share(corpora: dict[str, dict[str, float]]) -> float:
    shares = [share for kinds in corpora.values() for kind, share in kinds.items() if kind in NEGATIVES]
    return fmean(shares) if shares else -1.0


def _spearman(row: Row) -> float:
    return float(row["spearman"])


def _name(evaluator: Evaluator, among: Iterable[Evaluator]) -> str:
    """The evaluator's name, with its version only if several versions are measured."""
    name, version = evaluator
    return f"{name} {version}" if sum(other == name for other, _ in among) > 1 else str(name)
