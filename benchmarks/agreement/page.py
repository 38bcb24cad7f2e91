"""Writes docs/agreement.md from the rows that are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.agreement.plan import CONTEXTS, FOLDS, LANGUAGE_SETTINGS, MASKED_SETTINGS, SECTIONS, Entry
from benchmarks.agreement.rows import TOO_SMALL, ComputedRows, too_small
from benchmarks.agreement.run import figures_of
from benchmarks.agreement.seeds import RESAMPLES, difference_over_seeds
from ssrem.samples import Labels

PAPER_SETS = ("dailydialog-zhao", "persona-zhao")
PAIRED = (
    ("retrieval-mask-and-fill", "retrieval-random-2"),
    ("retrieval-mask-and-fill", "retrieval-random-1"),
    ("retrieval-random-2", "retrieval-random-1"),
    ("retrieval-mask-and-fill-with-the-prior", "retrieval-random-1-with-the-prior"),
    ("retrieval-mask-and-fill-mpnet", "retrieval-random-2-mpnet"),
    ("retrieval-random-2-mpnet", "retrieval-random-1-mpnet"),
)
"""Rows that are compared pair by pair: mask-and-fill adds a second negative, as random-2 does."""

Run = Mapping[str, Any]
Done = Sequence[tuple[Entry, Sequence[Run]]]


def page(plan: Sequence[Entry], computed: ComputedRows, sets: Mapping[str, Labels]) -> str:
    """The whole page; rows that are missing or out of date are listed at its end."""
    done = [(entry, runs) for entry in plan if (runs := computed.runs(entry))]
    missing = [entry for entry in plan if not computed.runs(entry)]
    lines = [*_head(sets)]
    for section, title in SECTIONS.items():
        rows = [(entry, runs) for entry, runs in done if entry.section == section]
        if rows:
            lines += ["", f"## {title}", "", *_table(rows, list(sets))]
            lines += _paired(rows, sets) if section == "negatives" else []
    lines += ["", *_weights(done), "## How each row was made", "", *_provenance(done, computed)]
    if missing:
        lines += ["", "## Missing", "", "`make agreement` goes on with them; the time is of one core.", ""]
        lines += [
            f"- {entry.label} (`{entry.name}`): {computed.state(entry)}, about {entry.minutes:g} min"
            + (" a seed" if entry.seeds > 1 else "")
            for entry in missing
        ]
    return "\n".join(lines) + "\n"


def _head(sets: Mapping[str, Labels]) -> list[str]:
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
        "time of the training, *s per 1,000* the time to score 1,000 responses, both on a machine with other work, so",
        "orders of magnitude. With human scores the latter includes learning from them. Rows of one language model,",
        "or of blends with the same parts, that are computed in one run share its passes, which count for the first.",
        "",
        *described,
        "",
        f"**{TOO_SMALL.capitalize()}** stands in place of a row's figures where training gained nothing beyond noise:",
        "where no gain over the start has a 95% interval above 0. The gains of its seeds are those of the share of",
        "validation negatives below the true response, with the prior also of false responses on the dev split of",
        "DailyDialog++, or, with human scores, of Spearman on scores that were not learned from. Its start is the same",
        "evaluator before training, or chance. The last table has the means over seeds; *at least* is the lower end of",
        "the gain's interval, of the seed where it is lowest.",
        "",
        "Rows learned from the training split of the packaged corpus (chitchat), except transformers, which learned",
        f"from {CONTEXTS:,} responses to contexts of DailyDialog (DailyDialog++, Sai et al. 2020), each with one or",
        "two negatives and three turns of context, once. (The papers: all of DailyDialog, five turns; Park et al. 2021",
        "BERT-base, Zhao et al. 2020 RoBERTa-large.) `ruber` learns from all other responses of a batch, in the papers",
        "from one random negative each. MiniLM learned on two cores, with the lowest",
        "two layers as they were; *mpnet*, all-mpnet-base-v2 of BERT-base's size, on a GPU (H100, H200), all layers,",
        "but the second seed of its mask-and-fill on two cores, in 83 minutes. *All responses* are the 37,400 of the",
        "training split. From these responses learned the masked language model of mask-and-fill and its ablations, in",
        f"{MASKED_SETTINGS.steps:,} steps of {MASKED_SETTINGS.batch_size} (for mpnet's rows 1,250 of 64, at twice the",
        "rate), and the language model of the rows that say so, in",
        f"{LANGUAGE_SETTINGS.steps:,} steps of {LANGUAGE_SETTINGS.batch_size}. The papers' figures are Pearson /",
        "Spearman as printed: from Park et al. 2021 for rows without human scores (dailydialog-zhao and",
        "persona-zhao, trained on DailyDialog; of persona-zhao without the 150 golden responses, which its file does",
        "not mark, so that they are among our 900), from Zhao et al. 2020 for rows with them (90 test responses,",
        "ground truth among them, split by response). Their human score is the mean without outliers. Our figures",
        "with human scores are cross-validated in",
        f"{FOLDS} folds by context, over all responses, which is another protocol.",
        "",
        "The score of `ssrem*` and `rsrem` on dailydialog-zhao, whose responses have references, is h, the mean of",
        "both parts (Bak and Oh 2020, section 5.1); by f alone `ssrem-minilm` has .31 there and `ssrem-base` .33. The",
        "other sets have no references. The rows of `ssrem`, `ssrem-paper` and `rsrem` read the encoder wordllama;",
        "the packaged `ssrem` reads wordllama-minilm, and is in [evaluators.md](evaluators.md).",
    ]


def _table(rows: Done, sets: Sequence[str]) -> list[str]:
    papers = [name for name in PAPER_SETS if name in sets]
    head = ["evaluator", *sets, *(f"paper, {name}" for name in papers), "length", "fit", "s per 1,000"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for entry, runs in rows:
        paper = dict(zip(PAPER_SETS, entry.paper, strict=True))
        figures = [_cell(figures_of(runs, name)) for name in sets]
        if too_small(runs):
            figures = [TOO_SMALL, *("–" for _ in sets[1:])]
        cells = [
            entry.label,
            *figures,
            *(paper[name] for name in papers),
            _length(runs),
            _seconds(runs),
            f"{np.mean([run['seconds_per_1000'] for run in runs]):.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _cell(figures: Sequence[Run]) -> str:
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
    """The value with two decimals, such as .12 or −.12; a third would not be reproduced."""
    text = f"{abs(value):.2f}".removeprefix("0")
    return f"−{text}" if value < 0 and float(f"{value:.2f}") != 0 else text


def _length(runs: Sequence[Run]) -> str:
    first = next(iter(runs[0]["results"].values()), None)
    return "–" if first is None or first["length"] is None else _two(first["length"])


def _seconds(runs: Sequence[Run]) -> str:
    seconds = float(np.mean([run["fit_seconds"] for run in runs]))
    return "–" if seconds == 0 else f"{seconds:.0f} s"


def _paired(rows: Done, sets: Mapping[str, Labels]) -> list[str]:
    """Lines of the table of differences in Spearman between two rows on the same responses, with intervals."""
    by_name = {entry.name: (entry, runs) for entry, runs in rows if not too_small(runs)}
    lines = []
    for one, other in PAIRED:
        if one not in by_name or other not in by_name:
            continue
        (first, a), (second, b) = by_name[one], by_name[other]
        for name, labels in sets.items():
            scores = [
                [np.array(run["scores"][name], dtype=np.float64) for run in runs if name in run["scores"]]
                for runs in (a, b)
            ]
            if all(scores):
                compared = difference_over_seeds(*scores, labels)
                value, low, high = map(_two, (compared.difference, compared.low, compared.high))
                lines.append(
                    f"| {first.label} − {second.label} | {name} | **{value}** [{low}, {high}] | {compared.p:.3f} |"
                )
    if not lines:
        return []
    return [
        "",
        "Paired differences of Spearman on the same responses, means over seeds, 95% intervals and p (two-sided)",
        f"by {RESAMPLES:,} resamples of contexts and, where a row has several seeds, of its seeds:",
        "",
        "| rows | set | difference | p |",
        "|---|---|---|---|",
        *lines,
    ]


def _weights(done: Done) -> list[str]:
    lines = []
    for entry, runs in done:
        if runs[0].get("weights"):
            weights = {part: weight for part, weight in runs[0]["weights"].items() if weight}
            shares = ", ".join(f"{part} {_two(weight)}" for part, weight in weights.items())
            lines += [f"Weights of {entry.label}, learned without a human score: {shares}.", ""]
    return lines


def _provenance(done: Done, computed: ComputedRows) -> list[str]:
    lines = [
        "| row | n | seeds | learned from | gain over the start | date | signature |",
        "|---|---|---|---|---|---|---|",
    ]
    order = list(SECTIONS)

    def mean(name: str, of: Sequence[Mapping[str, float]]) -> float:
        return float(np.mean([one[name] for one in of]))

    for entry, runs in sorted(done, key=lambda row: order.index(row[0].section)):
        sizes = ", ".join(str(figure["n"]) for figure in runs[0]["results"].values())
        training = runs[0].get("training", {"rows": {}})
        learned = ", ".join(f"{value:,} {name}" for name, value in training["rows"].items()) or "–"
        if "epochs" in training:
            learned += f"; {training['epochs']:g} epochs"
        gains = "; ".join(
            f"{_two(mean('start', of))} → {_two(mean('end', of))} (at least {_two(min(gain['low'] for gain in of))})"
            for of in zip(*(run["gains"] for run in runs), strict=True)
        )
        if above := [run["dailydialog_plusplus"] for run in runs if run.get("dailydialog_plusplus")]:
            kinds = (f"{kind} {_two(mean(kind, above))}" for kind in above[0])
            gains += f"; DailyDialog++ dev: {', '.join(kinds)}"
        row = computed.read(entry) or {}
        signature = (
            json.dumps(runs[0]["signature"], ensure_ascii=False)[1:-1].replace("|", "\\|").replace("\n", " ")
        )
        lines.append(
            f"| `{entry.name}` | {sizes} | {len(runs)} | {learned} | {gains or '–'} | {row.get('date')} | {signature} |"
        )
    return lines
