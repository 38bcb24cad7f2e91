"""docs/agreement.md from the rows."""

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
    """What the transformers of this page learned from, and where."""

    corpus: str
    contexts: int
    device: str


def page(
    done: Sequence[tuple[Entry, Sequence[Row]]],
    failed: Mapping[str, str],
    sets: Mapping[str, Labels],
    budget: Budget,
) -> str:
    """The whole page; rows that were not made are named at its end."""
    lines = [*_head(sets, budget)]
    for section, title in SECTIONS.items():
        rows = [(entry, made) for entry, made in done if entry.section == section and made]
        if rows:
            lines += ["", f"## {title}", "", *_table(rows, list(sets))]
    lines += ["", *_weights(done), "## What a row was", "", *_signatures(done)]
    missing = [entry.label for entry, made in done if not made]
    if missing:
        lines += ["", "## Not made", ""]
        lines += [
            f"- {label}: {failed.get(label, 'not run yet; `make agreement` goes on with it')}"
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
        "Written by `make agreement`; do not edit. Spearman (and Pearson) of an evaluator's score with the mean of the",
        "raters, with the 95% interval of Spearman by Fisher's z; where a row was trained with several seeds, the mean",
        "over seeds, and ± half their range. *length* is Spearman of the score with the response's number of words on",
        "the first set: an evaluator that lives on length shows there. Nothing was chosen by these sets, but for one",
        "default of `ssrem` ([encoders.md](encoders.md)). *s per 1,000* is the time to score 1,000 responses; with",
        "human scores it includes learning from them, and evaluators with one language model share its passes.",
        "",
        *described,
        "",
        f"Learned from the training split of {budget.corpus}; transformers from {budget.contexts:,} of its responses",
        f"on {budget.device}, lower layers frozen (the papers: BERT-base, all of DailyDialog). The papers' figures",
        "are Pearson / Spearman as printed: Park et al. 2021 for rows without human scores (dailydialog-zhao,",
        "persona-zhao, trained on DailyDialog), Zhao et al. 2020 for rows with them (90 test responses, ground truth",
        f"among them, split by response). Ours with human scores are {FOLDS}-fold, split by context, over all",
        "responses: not the same protocol.",
    ]


def _table(rows: Sequence[tuple[Entry, Sequence[Row]]], sets: Sequence[str]) -> list[str]:
    papers = [name for name in PAPER_SETS if name in sets]
    head = ["evaluator", *sets, *(f"paper, {name}" for name in papers), "length", "fit", "s per 1,000"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for entry, made in rows:
        paper = dict(zip(PAPER_SETS, entry.paper, strict=True))
        cells = [
            entry.label,
            *(_cell(figures_of(made, name)) for name in sets),
            *(paper[name] for name in papers),
            _length(made),
            _seconds(made),
            f"{np.mean([row['seconds_per_1000'] for row in made]):.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _cell(figures: Sequence[Row]) -> str:
    found = [figure for figure in figures if figure["spearman"][0] is not None]
    if not found:
        return "–"
    rank, low, high = (float(np.mean([figure["spearman"][at] for figure in found])) for at in range(3))
    linear = float(np.mean([figure["pearson"][0] for figure in found]))
    spread = ""
    if len(found) > 1:
        ranks = [figure["spearman"][0] for figure in found]
        spread = f" ± {_two((max(ranks) - min(ranks)) / 2)}"
    return f"**{_two(rank)}**{spread} [{_two(low)}, {_two(high)}] ({_two(linear)})"


def _two(value: float) -> str:
    """.12, −.12: three digits would not be reproduced."""
    text = f"{abs(value):.2f}".removeprefix("0")
    return f"−{text}" if value < 0 and float(f"{value:.2f}") != 0 else text


def _length(made: Sequence[Row]) -> str:
    first = next(iter(made[0]["results"].values()), None)
    return "–" if first is None or first["length"] is None else _two(first["length"])


def _seconds(made: Sequence[Row]) -> str:
    seconds = float(np.mean([row["fit_seconds"] for row in made]))
    return "–" if seconds == 0 else f"{seconds:.0f} s"


def _weights(done: Sequence[tuple[Entry, Sequence[Row]]]) -> list[str]:
    lines = []
    for entry, made in done:
        if made and made[0].get("weights"):
            shares = ", ".join(f"{part} {_two(weight)}" for part, weight in made[0]["weights"].items())
            lines += [f"Weights of {entry.label}, learned without a human score: {shares}.", ""]
    return lines


def _signatures(done: Sequence[tuple[Entry, Sequence[Row]]]) -> list[str]:
    lines = ["| row | n | seeds | learned from | signature |", "|---|---|---|---|---|"]
    order = list(SECTIONS)
    for entry, made in sorted(done, key=lambda row: order.index(row[0].section)):
        if not made:
            continue
        sizes = ", ".join(str(figure["n"]) for figure in made[0]["results"].values())
        rows = made[0]["training"].get("rows", {})
        learned = ", ".join(f"{value:,} {name}" for name, value in rows.items()) or "–"
        if made[0]["training"]:
            learned += f"; {made[0]['training']['epochs']} epochs"
        known = entry.learn in ("nothing", "corpus")
        signature = (made[0]["signature"] if known else entry.tuned(0)).replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {entry.section}: {entry.label} | {sizes} | {len(made)} | {learned} | {signature} |")
    return lines
