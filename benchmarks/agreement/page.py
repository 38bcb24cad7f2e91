"""Writes docs/agreement.md from the rows that were computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.agreement.plan import FOLDS, SECTIONS, Entry
from benchmarks.agreement.run import figures_of
from ssrem.agreement.annotated import Labels

PAPER_SETS = ("dailydialog-zhao", "persona-zhao")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Budget:
    """How many contexts the transformers of this page learned from, of which corpus, on which device."""

    corpus: str
    contexts: int
    device: str


def page(
    done: Sequence[tuple[Entry, Sequence[Row]]],
    failed: Mapping[str, str],
    sets: Mapping[str, Labels],
    budget: Budget,
) -> str:
    """The whole page; rows that are missing are listed at its end."""
    lines = [*_head(sets, budget)]
    for section, title in SECTIONS.items():
        rows = [(entry, runs) for entry, runs in done if entry.section == section and runs]
        if rows:
            lines += ["", f"## {title}", "", *_table(rows, list(sets))]
    lines += ["", *_weights(done), "## How each row was computed", "", *_signatures(done)]
    missing = [entry.label for entry, runs in done if not runs]
    if missing:
        lines += ["", "## Missing", ""]
        lines += [
            f"- {label}: {failed.get(label, 'not computed yet; `make agreement` continues with it')}"
            for label in missing
        ]
    return "\n".join(lines) + "\n"


def _head(sets: Mapping[str, Labels], budget: Budget) -> list[str]:
    described = [
        f"- **{name}**: {len(labels.pairs)} responses, {labels.criterion}"
        + (f", {labels.excluded} ground-truth rows left out" if labels.excluded else "")
        for name, labels in sets.items()
    ]
    return [
        "# Agreement with human scores",
        "",
        "Written by `make agreement`; do not edit. A cell is Spearman of an evaluator's score with the raters'",
        "mean, its 95% interval by Fisher's z, and in parentheses Pearson. For rows that were trained with several",
        "seeds it is the mean over seeds, ± half their range. *length* is Spearman of the score with the number of",
        "words of the response on the first set, and shows how much an evaluator relies on length. *fit* is the",
        "time of the training, *s per 1,000* the time to score 1,000 responses. With human scores the latter",
        "includes learning from them; evaluators that share a language model share the time of its passes. These",
        "sets decided nothing except one default of `ssrem` ([encoders.md](encoders.md)).",
        "",
        *described,
        "",
        f"Evaluators learned from the training split of {budget.corpus}; transformers from {budget.contexts:,} of",
        f"its responses on {budget.device}, with their lower layers frozen (the papers: BERT-base, all of",
        "DailyDialog). The papers' figures are Pearson / Spearman as printed: from Park et al. 2021 for rows",
        "without human scores (dailydialog-zhao and persona-zhao, trained on DailyDialog), from Zhao et al. 2020",
        "for rows with them (90 test responses, ground truth among them, split by response). Our figures with human",
        f"scores are cross-validated in {FOLDS} folds by context, over all responses, which is another protocol.",
    ]


def _table(rows: Sequence[tuple[Entry, Sequence[Row]]], sets: Sequence[str]) -> list[str]:
    papers = [name for name in PAPER_SETS if name in sets]
    head = ["evaluator", *sets, *(f"paper, {name}" for name in papers), "length", "fit", "s per 1,000"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for entry, runs in rows:
        paper = dict(zip(PAPER_SETS, entry.paper, strict=True))
        cells = [
            entry.label,
            *(_cell(figures_of(runs, name)) for name in sets),
            *(paper[name] for name in papers),
            _length(runs),
            _seconds(runs),
            f"{np.mean([row['seconds_per_1000'] for row in runs]):.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _cell(figures: Sequence[Row]) -> str:
    computed = [figure for figure in figures if figure["spearman"][0] is not None]
    if not computed:
        return "–"
    rank, low, high = (float(np.mean([figure["spearman"][at] for figure in computed])) for at in range(3))
    linear = float(np.mean([figure["pearson"][0] for figure in computed]))
    spread = ""
    if len(computed) > 1:
        ranks = [figure["spearman"][0] for figure in computed]
        spread = f" ± {_two((max(ranks) - min(ranks)) / 2)}"
    return f"**{_two(rank)}**{spread} [{_two(low)}, {_two(high)}] ({_two(linear)})"


def _two(value: float) -> str:
    """.12, −.12: three digits would not be reproduced."""
    text = f"{abs(value):.2f}".removeprefix("0")
    return f"−{text}" if value < 0 and float(f"{value:.2f}") != 0 else text


def _length(runs: Sequence[Row]) -> str:
    first = next(iter(runs[0]["results"].values()), None)
    return "–" if first is None or first["length"] is None else _two(first["length"])


def _seconds(runs: Sequence[Row]) -> str:
    seconds = float(np.mean([row["fit_seconds"] for row in runs]))
    return "–" if seconds == 0 else f"{seconds:.0f} s"


def _weights(done: Sequence[tuple[Entry, Sequence[Row]]]) -> list[str]:
    lines = []
    for entry, runs in done:
        if runs and runs[0].get("weights"):
            shares = ", ".join(f"{part} {_two(weight)}" for part, weight in runs[0]["weights"].items())
            lines += [f"Weights of {entry.label}, learned without a human score: {shares}.", ""]
    return lines


def _signatures(done: Sequence[tuple[Entry, Sequence[Row]]]) -> list[str]:
    lines = ["| row | n | seeds | learned from | signature |", "|---|---|---|---|---|"]
    order = list(SECTIONS)
    for entry, runs in sorted(done, key=lambda row: order.index(row[0].section)):
        if not runs:
            continue
        sizes = ", ".join(str(figure["n"]) for figure in runs[0]["results"].values())
        rows = runs[0]["training"].get("rows", {})
        learned = ", ".join(f"{value:,} {name}" for name, value in rows.items()) or "–"
        if runs[0]["training"]:
            learned += f"; {runs[0]['training']['epochs']} epochs"
        known = entry.learn in ("nothing", "corpus")
        signature = (runs[0]["signature"] if known else entry.tuned(0)).replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {entry.section}: {entry.label} | {sizes} | {len(runs)} | {learned} | {signature} |")
    return lines
