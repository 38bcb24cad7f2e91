"""The first sentences of the report: which evaluator agrees best with people, and which are no better than chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import fmean

from ssrem.agreement import ALPHA, share_interval
from ssrem.evaluators import BASELINES
from ssrem.report.data import Evaluator, Namer, ReportData, headline, learned_elsewhere
from ssrem.report.text import Row, Rows, is_figure

FALSE = {
    "SC": "another one of the same conversation",
    "SP": "another one to the same partner",
    "SS": "another one of the same speaker",
    "Rand": "a random one",
    "Context": "a copied turn of its context",
}
"""Kind of false responses → its name in sentences."""


SMALL = 200
"""Corpora with fewer responses share one sentence: the interval of a share near one half is then ± 7 points or more."""


@dataclass(frozen=True)
class FirstSentences:
    """The facts of the first sentences, which `answer.html` puts into words.

    ranked: evaluators with the mean of their correlations over the annotated sets that all have, weighted by responses,
    the best first; empty if no set gave a correlation or, if nothing_shared, none is common to all. rows: correlations
    of the best; tested: its comparisons with the next; won: how many it wins significantly. compared: whether annotated
    sets were scored; an empty `ranked` then means that none gave a correlation. conversations: the highest
    correlation with ratings of whole conversations. identifier: the evaluator that `shares` is of; shares: corpus →
    kind → share of the true responses above false ones.
    """

    ranked: Sequence[tuple[str, float]]
    nothing_shared: bool
    rows: Rows
    tested: Rows
    won: int
    compared: bool
    conversations: Row | None
    identifier: str
    shares: dict[str, dict[str, float]]


def answer(data: ReportData) -> FirstSentences:
    """The facts of the report's first sentences."""
    cells = headline(data.correlations)
    shared = set.intersection(*map(set, cells.values())) if cells else set()
    ranked = _ranked(cells, shared) if shared else []
    best, following = [*(one for one, _ in ranked[:2]), None, None][:2]
    tested = {
        (row["dataset"], row["criterion"]): row
        for row in data.comparisons
        if {(row["first"], row["first_version"]), (row["second"], row["second_version"])} == {best, following}
        and (row["dataset"], row["criterion"]) in shared
        and is_figure(row["p_holm"])
    }.values()
    shares: dict[Evaluator, dict[str, dict[str, float]]] = {}
    for row in _small_together(data.identification):
        if is_figure(row["gt_above"]):
            corpora = shares.setdefault((row["evaluator"], row["version"]), {})
            corpora.setdefault(row["corpus"], {})[row["kind"]] = row["gt_above"]

    def mean_share(one: Evaluator) -> float:
        known = [of[kind] for of in shares[one].values() for kind in of if kind != "Context"]
        return fmean(known) if known else -1.0

    identifier = best if best in shares else max(shares, key=mean_share, default=None)
    of_conversations = headline(data.correlations, "conversation").values()
    return FirstSentences(
        [(data.title(*one), mean) for one, mean in ranked],
        bool(cells) and not shared,
        [row for cell, row in cells[best].items() if cell in shared] if best else [],
        list(tested),
        sum((row["first"], row["first_version"]) == best and row["p_holm"] < ALPHA for row in tested),
        any(row["level"] == "segment" for row in data.correlations),
        max(
            (row for rows in of_conversations for row in rows.values()),
            key=lambda row: float(row["spearman"]),
            default=None,
        ),
        data.title(*identifier) if identifier else "",
        shares[identifier] if identifier else {},
    )


def _ranked(
    cells: dict[Evaluator, dict[Hashable, Row]], shared: set[Hashable]
) -> list[tuple[Evaluator, float]]:
    """Evaluators with the mean of their correlations on the shared cells, the best first.

    The weight of a dataset is its number of responses, divided equally among its criteria.
    """
    first = {cell: row for cell, row in next(iter(cells.values())).items() if cell in shared}
    criteria = Counter(row["dataset"] for row in first.values())
    weights = [row["n"] / criteria[row["dataset"]] for row in first.values()]
    means = {one: fmean([rows[cell]["spearman"] for cell in first], weights) for one, rows in cells.items()}
    return sorted(means.items(), key=lambda item: item[1], reverse=True)


def no_better(identification: Rows, correlations: Rows, comparisons: Rows, title: Namer) -> list[str]:
    """Sentences that each say that an evaluator is no better than chance or than an untrained baseline.

    Identification is no better than chance where the 95% interval of its share (Wilson 1927, responses taken as
    independent) reaches down to one half; a correlation where the lower end of its bootstrap interval is not above 0;
    an evaluator is no better than the best baseline of a criterion if that is as high or higher, or not significantly
    below it in the test of `comparisons` (p < .05 after Holm's correction). Correlations are those of the `headline`.
    The columns of the rows are those of `ReportData`.
    """
    sentences = []
    for row in _small_together(identification):
        share, name = row["gt_above"], row["evaluator"]
        if name in BASELINES or row["kind"] not in FALSE or not is_figure(share) or not row["n"]:
            continue
        low, high = share_interval(share, row["n"])
        if low <= 0.5:
            learned = f"learned from {row['learned_from']}, " if learned_elsewhere(row) else ""
            sentences.append(
                f"{title(name, row['version'])} tells the true response from {FALSE[row['kind']]} in {share:.1%} of "
                f"cases: chance is 50% ({row['corpus']}, {learned}n = {row['n']:,}, 95% interval {low:.1%} to "
                f"{high:.1%})."
            )
    against = _against_baselines(comparisons)
    chance = {
        one: [row["spearman_low"] <= 0 for row in cells.values() if is_figure(row["spearman_low"])]
        for one, cells in headline(correlations).items()
        if one[0] not in BASELINES
    }
    for one in dict.fromkeys([*chance, *against]):
        states = against.get(one, [])
        found = [
            f"not {what} on {sum(which)} of {len(which)} {'criterion' if len(which) == 1 else 'criteria'}"
            for what, which in (
                ("above chance (0)", chance.get(one, [])),
                ("above an untrained baseline", [state == "below" for state in states]),
                ("significantly above an untrained baseline", [state == "unclear" for state in states]),
            )
            if any(which)
        ]
        if found:
            sentences.append(f"{title(*one)}: its Spearman with human scores is {', '.join(found)}.")
    return sentences


def _small_together(identification: Rows) -> Rows:
    """The rows of `identification`, but one row for all corpora with fewer than SMALL responses that are of the same
    evaluator version and kind, with the mean share over their responses."""
    rows, groups = list[Row](), dict[tuple[Hashable, ...], list[Row]]()
    for row in identification:
        if is_figure(row["gt_above"]) and 0 < (row["n"] or 0) < SMALL:
            key = (row["evaluator"], row["version"], row["kind"], learned_elsewhere(row))
            groups.setdefault(key, []).append(row)
        else:
            rows.append(row)
    for first, *more in groups.values():
        n = first["n"] + sum(row["n"] for row in more)
        share = sum(row["gt_above"] * row["n"] for row in (first, *more)) / n
        together = {"corpus": f"{1 + len(more)} small corpora", "gt_above": share, "n": n}
        together |= {} if learned_elsewhere(first) else {"learned_from": None}
        rows.append({**first, **together} if more else first)
    return rows


def _against_baselines(comparisons: Rows) -> dict[Evaluator, list[str]]:
    """Evaluator → how it compares with the best baseline on each criterion: 'above', 'unclear' or 'below'."""
    best: dict[Evaluator, dict[Hashable, tuple[float, str]]] = {}
    for row in comparisons:
        sides = [
            (row[side], row[f"{side}_version"], row[f"{side}_statistic"]) for side in ("first", "second")
        ]
        (name, version, figure), (baseline, _, other) = sorted(sides, key=lambda side: side[0] in BASELINES)
        of_interest = baseline in BASELINES and name not in BASELINES and row["level"] == "segment"
        if not of_interest or not is_figure(figure) or not is_figure(other):
            continue
        clear = is_figure(row["p_holm"]) and row["p_holm"] < ALPHA
        state = "below" if figure <= other else "above" if clear else "unclear"
        cells = best.setdefault((name, version), {})
        cell = (row["dataset"], row["criterion"])
        if cell not in cells or cells[cell][0] < other:
            cells[cell] = (other, state)
    return {one: [state for _, state in cells.values()] for one, cells in best.items()}
