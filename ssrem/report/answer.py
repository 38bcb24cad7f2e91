"""The first sentences of the report: which evaluator agrees best with human ratings, and how well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from statistics import fmean
from typing import Any

from ssrem.report.data import ReportData, Row
from ssrem.report.numbers import is_figure, p_value, percent, real

SCORES = ("h", "f", "g")  # h, the hybrid score, first; f, else g, where there is no h
ALPHA = 0.05
NEGATIVES = ("SC", "SP", "SS", "Rand")
Evaluator = tuple[Any, Any]


def answer(data: ReportData) -> list[str]:
    """The report's first sentences, as plain text."""
    if not data.identification and not data.correlations:
        return [
            "Nothing has been measured yet: ssrem run ingests a corpus, trains evaluators and measures them."
        ]
    agreement, best = _agreement(data)
    return [*agreement, *_identification(data, best)]


def headline(data: ReportData, level: str) -> dict[Evaluator, dict[Hashable, Row]]:
    """For each evaluator and (dataset, criterion), the correlation that the report goes by.

    That is the correlation with the mean human score of the first of SCORES that has one.
    """
    cells: dict[Evaluator, dict[Hashable, Row]] = {}
    for score in SCORES:
        for row in data.correlations:
            if (
                row["score"] == score
                and row["aggregation"] == "mean"
                and row["level"] == level
                and row["outcome"] == "ok"
                and is_figure(row["spearman"])
            ):
                evaluator = cells.setdefault((row["evaluator"], row["version"]), {})
                evaluator.setdefault((row["dataset"], row["criterion"]), row)
    return cells


def _agreement(data: ReportData) -> tuple[list[str], Evaluator | None]:
    cells = headline(data, "segment")
    if not cells:
        return [_without_annotations(data)], None
    shared = set.intersection(*(set(rows) for rows in cells.values()))
    if not shared:
        return ["The evaluators have no annotated set in common, so none can be named the best."], None

    weights = _weights(next(iter(cells.values())), shared)

    def mean(evaluator: Evaluator) -> float:
        return fmean([cells[evaluator][cell]["spearman"] for cell in weights], list(weights.values()))

    best, *others = sorted(cells, key=mean, reverse=True)
    rows = sorted((row for cell, row in cells[best].items() if cell in shared), key=_spearman)
    name, score = _name(best, cells), rows[0]["score"]
    if mean(best) <= 0:
        verdict = f"No evaluator agrees with human ratings: the best, {name}, has a"
    elif others:
        verdict = f"{name} agrees best with human ratings, with a"
    else:
        verdict = f"{name}, the only evaluator compared with human ratings, has a"
    rest = f"; next is {_name(others[0], cells)} with {real(mean(others[0]))}." if others else "."
    if len(rows) == 1:
        correlation = f"Spearman correlation of {real(mean(best))} on {_cell(rows[0])}"
        detail = f"That is its score {score}, {p_value(rows[0]['spearman_p'])}, n = {rows[0]['n']:,}."
    else:
        sets = len({row["dataset"] for row in rows})
        over = _sets(sets) if sets == len(rows) else f"{len(rows)} criteria of {_sets(sets)}"
        correlation = f"mean Spearman correlation of {real(mean(best))} over {over}"
        if sets > 1:
            correlation += ", weighted by their responses"
        ends = [
            f"{real(r['spearman'])} ({_cell(r)}, {p_value(r['spearman_p'])})" for r in (rows[0], rows[-1])
        ]
        detail = f"Its score {score} ranges from {ends[0]} to {ends[1]}."
    lead = _lead(data, best, others[0], rows, cells) if others else []
    return [f"{verdict} {correlation}{rest}", *lead, detail], best


def _weights(cells: dict[Hashable, Row], shared: set[Hashable]) -> dict[Hashable, float]:
    """Weight of each cell: a dataset weighs its number of responses, shared equally among its criteria."""
    criteria = Counter(row["dataset"] for cell, row in cells.items() if cell in shared)
    return {cell: row["n"] / criteria[row["dataset"]] for cell, row in cells.items() if cell in shared}


def _lead(
    data: ReportData, best: Evaluator, other: Evaluator, rows: list[Row], cells: dict[Evaluator, Any]
) -> list[str]:
    """Whether the best is significantly better than the next, where that was tested: a sentence, or none."""
    shared = {(row["dataset"], row["criterion"]) for row in rows}
    tested = {
        (row["dataset"], row["criterion"]): row
        for row in data.comparisons
        if {(row["first"], row["first_version"]), (row["second"], row["second_version"])} == {best, other}
        and (row["dataset"], row["criterion"]) in shared
        and is_figure(row["p_holm"])
    }
    if not tested:
        return []
    ahead = [row for row in tested.values() if (row["first"], row["first_version"]) == best]
    won = [row for row in ahead if row["p_holm"] < ALPHA]
    over = f"Its lead over {_name(other, cells)}"
    if len(shared) == 1:
        (row,) = tested.values()
        verdict = "is significant" if won else "is not significant"
        return [
            f"{over} {verdict} ({p_value(row['p_holm'])} in a paired bootstrap, after Holm’s correction)."
        ]
    verdict = f"is significant on {len(won) or 'none'} of the {len(tested)} criteria tested"
    return [f"{over} {verdict} (paired bootstrap, p < 0.05 after Holm’s correction)."]


def _without_annotations(data: ReportData) -> str:
    failed = any(row["level"] == "segment" for row in data.correlations)
    sentence = (
        "No annotated set gave a correlation (the table says why), so it is unknown how well the scores of "
        "single responses agree with human ratings."
        if failed
        else "There are no annotated sets, so it is unknown how well the scores of single responses agree with "
        "human ratings: ssrem correlate FILE measures it."
    )
    rows = [row for cells in headline(data, "conversation").values() for row in cells.values()]
    if rows:
        top = max(rows, key=_spearman)
        sentence += (
            f" The ratings of whole conversations are the only human scores: the highest Spearman "
            f"correlation is {real(top['spearman'])} ({top['evaluator']} with {_cell(top)}, "
            f"{p_value(top['spearman_p'])}, n = {top['n']:,})."
        )
    return sentence


def _identification(data: ReportData, best: Evaluator | None) -> list[str]:
    shares: dict[Evaluator, dict[str, dict[str, float]]] = {}
    for row in data.identification:
        if is_figure(row["gt_above"]):
            corpora = shares.setdefault((row["evaluator"], row["version"]), {})
            corpora.setdefault(row["corpus"], {})[row["kind"]] = row["gt_above"]
    if not shares:
        return ["How well the evaluators tell true responses from false ones has not been measured."]
    known = [
        evaluator
        for evaluator in shares
        if any(set(kinds) & set(NEGATIVES) for kinds in shares[evaluator].values())
    ]
    chosen = (
        best if best in shares else max(known or shares, key=lambda evaluator: _mean_share(shares[evaluator]))
    )
    sentences = []
    for corpus, kinds in shares[chosen].items():
        parts = [f"{percent(kinds[kind])} ({kind})" for kind in NEGATIVES if kind in kinds]
        if not parts:
            continue
        sentence = (
            f"On the test split of {corpus}, the f of {_name(chosen, shares)} ranks the true response above "
            f"a false one in {_listed(parts)} of the cases"
        )
        if "Context" in kinds:
            sentence += f", and above a copied turn of the context in {percent(kinds['Context'])}"
        sentences.append(sentence + ".")
    return sentences


def _mean_share(corpora: dict[str, dict[str, float]]) -> float:
    shares = [share for kinds in corpora.values() for kind, share in kinds.items() if kind in NEGATIVES]
    return fmean(shares) if shares else 0.0


def _spearman(row: Row) -> float:
    return float(row["spearman"])


def _name(evaluator: Evaluator, among: dict[Evaluator, Any]) -> str:
    """The evaluator's name, with its version only if several versions are measured."""
    name, version = evaluator
    return f"{name} {version}" if sum(other == name for other, _ in among) > 1 else str(name)


def _cell(row: Row) -> str:
    return f"{row['dataset']}, {row['criterion']}"


def _sets(n: int) -> str:
    return "one annotated set" if n == 1 else f"{n} annotated sets"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
