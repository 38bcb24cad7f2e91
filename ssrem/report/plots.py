"""The papers' plots as small panels, which stack on a phone and stand side by side on a desktop.

Titles from the data, such as names of sets, are not drawn: they are text of the page around, where they can wrap.
"""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ssrem.agreement import share_interval
from ssrem.evaluators import BASELINES
from ssrem.report.data import KIND_NAMES, KINDS, Namer, Row, Rows, grouped, headline, learned_elsewhere
from ssrem.report.drawing import Panel, canvas, paint, styled
from ssrem.report.numbers import fixed, is_figure, percent, real

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PEOPLE = "people"  # the evaluator of human scores among the sources
_DASHES = ((0, (4, 2)), (0, (1, 1.5)))  # of the lines of BASELINES
_BAR: dict[str, Any] = {"markersize": 3.5, "elinewidth": 1.3, "capsize": 4.5, "capthick": 1.3}


@styled()
def forest_panels(correlations: Rows, label_of: Namer) -> list[Panel]:
    """Spearman correlation with the mean of the raters and its 95% interval: a panel per criterion, a row per
    evaluator.

    Vertical lines: one human rater against the mean of the others, and the untrained baselines.
    """
    cells = headline(correlations)
    order = sorted(cells, key=lambda one: fmean(row["spearman"] for row in cells[one].values()), reverse=True)
    rows_of: dict[Any, list[Row]] = {}
    for evaluator in order:
        for cell, row in cells[evaluator].items():
            rows_of.setdefault(cell, []).append(row)
    panels: list[Panel] = []
    for (dataset, criterion), rows in sorted(rows_of.items(), key=lambda item: str(item[0])):
        trained = [row for row in rows if row["evaluator"] not in BASELINES] or rows
        figure, axes = canvas(1.1 + 0.22 * len(trained))
        for place, row in enumerate(trained):
            error = _interval(row["spearman"], row["spearman_low"], row["spearman_high"])
            axes.errorbar([row["spearman"]], [place], xerr=error, fmt="o", color=paint().accent, **_BAR)
        lines: list[tuple[str, Any, str, Any]] = [("one rater", rows[0]["ceiling"], paint().line, "solid")]
        for row in rows:
            if row["evaluator"] in BASELINES:
                dash = _DASHES[BASELINES.index(row["evaluator"])]
                lines.append((row["evaluator"], row["spearman"], paint().second, dash))
        lines = [line for line in lines if is_figure(line[1])]
        for name, at, colour, dash in lines:
            axes.axvline(
                at, color=colour, linestyle=dash, linewidth=1.2, label=f"{name} {fixed(at)}", zorder=0
            )
        names = [_shortened(label_of(row["evaluator"], row["version"])) for row in trained]
        axes.set_yticks(range(len(trained)), names)
        axes.set_ylim(len(trained) - 0.4, -0.6)
        axes.grid(axis="x")
        axes.margins(x=0.08)
        axes.set_xlabel("Spearman correlation with people")
        if lines:
            figure.legend(
                loc="outside lower center", ncols=3, frameon=False, labelcolor=paint().ink, fontsize=8
            )
        values = [(label_of(row["evaluator"], row["version"]), row["spearman"]) for row in trained]
        values += [(name, at) for name, at, *_ in lines]
        label = "Spearman correlation with 95% intervals: " + ", ".join(
            f"{name} {real(at)}" for name, at in values
        )
        note = f"{criterion}, n = {rows[0]['n']:,}"
        panels.append(Panel.of(figure, f"forest{len(panels)}", label, str(dataset), note, rows))
    return panels


@styled()
def similarity_panels(rows: Rows) -> list[Panel]:
    """Mean similarity of each kind of set with its 95% interval (SSREM paper, Table 2): a panel per corpus."""
    panels = []
    for number, ((corpus, encoder), group) in enumerate(grouped(rows, "corpus", "encoder").items()):
        measured = _measured(group)
        if not measured:
            continue
        figure, axes = canvas(2.0)
        for place, row in enumerate(measured):
            colour = paint().second if row["kind"] == "Rand" else paint().accent
            axes.errorbar([row["mean"]], [place], xerr=_error(row), fmt="o", color=colour, **_BAR)
        axes.set_yticks(range(len(measured)), [row["kind"] for row in measured])
        axes.set_ylim(len(measured) - 0.4, -0.6)
        axes.grid(axis="x")
        axes.margins(x=0.12)
        axes.set_xlabel("mean similarity of the texts in a set")
        label = f"Mean similarity with 95% intervals: {_means(measured)}"
        note = f"vectors of {encoder}"
        panels.append(Panel.of(figure, f"similarity{number}", label, str(corpus), note, group))
    return panels


@styled()
def chance_panels(rows: Rows, label_of: Namer) -> list[Panel]:
    """Share of cases in which the true response ranks above a kind of false one, with its 95% interval (Wilson 1927): a
    panel per corpus and kind, a row per evaluator. A vertical line marks chance, one half."""
    panels: list[Panel] = []
    ordered = [
        row
        for of_corpus in grouped(rows, "corpus").values()
        for kind in KINDS
        for row in of_corpus
        if row["kind"] == kind
    ]
    for (corpus, kind), group in grouped(ordered, "corpus", "kind").items():
        measured = [row for row in group if is_figure(row["gt_above"]) and row["n"]]
        if not measured:
            continue
        measured.sort(key=lambda row: row["gt_above"], reverse=True)
        figure, axes = canvas(1.0 + 0.22 * len(measured))
        for place, row in enumerate(measured):
            share = row["gt_above"]
            colour = paint().second if row["evaluator"] in BASELINES else paint().accent
            ends = _interval(share, *share_interval(share, row["n"]))
            axes.errorbar([share], [place], xerr=ends, fmt="o", color=colour, **_BAR)
        axes.axvline(0.5, color=paint().line, linewidth=1.2, label="chance 50%", zorder=0)
        axes.set_yticks(
            range(len(measured)), [_shortened(label_of(row["evaluator"], row["version"])) for row in measured]
        )
        axes.set_ylim(len(measured) - 0.4, -0.6)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
        axes.grid(axis="x")
        axes.set_xlabel("true response ranked above")
        figure.legend(loc="outside lower center", frameon=False, labelcolor=paint().ink, fontsize=8)
        values = ", ".join(
            f"{label_of(row['evaluator'], row['version'])} {percent(row['gt_above'])}" for row in measured
        )
        label = f"Share of true responses ranked above {kind}, chance 50%: {values}"
        title = f"{kind}, {KIND_NAMES[kind]}"
        elsewhere = {row["learned_from"] for row in measured if learned_elsewhere(row)}
        note = f"test split of {corpus}, n = {max(row['n'] for row in measured):,}" + "".join(
            f"; learned from {names}" for names in sorted(elsewhere)
        )
        panels.append(Panel.of(figure, f"chance{len(panels)}", label, title, note, measured))
    return panels


@styled()
def identification_panels(rows: Rows, label_of: Namer) -> list[Panel]:
    """Mean f of true and false responses with 95% intervals (SSREM paper, Figures 3 and 5).

    A panel per evaluator and corpus; the panels of a corpus share their y axis. The label of a kind has the share of
    cases in which the ground truth ranks above it.
    """
    panels: list[Panel] = []
    for (corpus,), of_corpus in grouped(rows, "corpus").items():
        limits = _limits([row[key] for row in of_corpus for key in ("mean", "low", "high")])
        for (evaluator, version), group in grouped(of_corpus, "evaluator", "version").items():
            measured = _measured(group)
            if not measured:
                continue
            figure, axes = canvas(2.7)
            # The copied context is an attack, not a set of the paper, and is set apart.
            places = [at + (0.6 if row["kind"] == "Context" else 0.0) for at, row in enumerate(measured)]
            styles = {"GT": (paint().accent, "o"), "Context": (paint().warn, "D")}
            for place, row in zip(places, measured, strict=True):
                colour, marker = styles.get(row["kind"], (paint().second, "o"))
                axes.errorbar([place], [row["mean"]], yerr=_error(row), fmt=marker, color=colour, **_BAR)
            if any(row["kind"] == "Context" for row in measured[1:]):
                axes.axvline(places[-1] - 0.8, color=paint().grid, linewidth=0.8, linestyle=(0, (3, 3)))
            shares = [percent(row["gt_above"]) if is_figure(row["gt_above"]) else "" for row in measured]
            labels = [f"{row['kind']}\n{share}" for row, share in zip(measured, shares, strict=True)]
            axes.set_xticks(places, labels)
            axes.set_xlim(-0.6, places[-1] + 0.6)
            axes.set_ylim(*limits)
            axes.grid(axis="y")
            axes.set_ylabel("mean f")
            label = f"Mean f with 95% intervals: {_means(measured)}"
            title, note = label_of(evaluator, version), f"test split of {corpus}"
            note += f"; learned from {group[0]['learned_from']}" if learned_elsewhere(group[0]) else ""
            panels.append(Panel.of(figure, f"identification{len(panels)}", label, title, note, group))
    return panels


@styled()
def source_panels(rows: Rows, label_of: Namer) -> list[Panel]:
    """Box plots of scores by source of the response (Zhao et al. 2020, Figure 1b): a panel per dataset and evaluator.

    Sources are systems, highest human median first, or kinds of candidates. A box holds the middle half of the scores,
    with the median; whiskers end at the quantiles of 5% and 95%.
    """
    panels: list[Panel] = []
    for (dataset,), of_dataset in grouped(rows, "dataset").items():
        by_people = {row["source"]: -row["median"] for row in of_dataset if row["evaluator"] == PEOPLE}
        place = {kind: float(at) for at, kind in enumerate(KINDS)} | by_people
        for (evaluator, version), unordered in grouped(of_dataset, "evaluator", "version").items():
            group = sorted(unordered, key=lambda row: (place.get(row["source"], 0.0), row["source"]))
            of_people = evaluator == PEOPLE
            figure, axes = canvas(0.8 + 0.22 * len(group))
            colour = paint().line if of_people else paint().accent
            for at, row in enumerate(group):
                axes.plot([row["q05"], row["q95"]], [at, at], color=colour, linewidth=1.1, zorder=1)
                axes.barh(
                    *(at, row["q75"] - row["q25"], 0.55, row["q25"]), color=colour, alpha=0.35, zorder=2
                )
                axes.plot([row["median"]] * 2, [at - 0.27, at + 0.27], color=colour, linewidth=2, zorder=3)
            axes.set_yticks(range(len(group)), [_shortened(str(row["source"])) for row in group])
            axes.set_ylim(len(group) - 0.4, -0.6)
            axes.grid(axis="x")
            axes.margins(x=0.05)
            axes.set_xlabel("human score" if of_people else "score")
            medians = ", ".join(f"{row['source']} {real(row['median'])}" for row in group)
            title = PEOPLE if of_people else label_of(evaluator, version)
            note = f"{dataset}, {group[0]['criterion']}" if of_people else str(dataset)
            label = f"Median score by source: {medians}"
            panels.append(Panel.of(figure, f"source{len(panels)}", label, title, note, group))
    return panels


@styled()
def learning_panels(rows: Rows, label_of: Namer) -> list[Panel]:
    """Training and validation loss by epoch, a panel per evaluator version, the best epoch marked."""
    panels = []
    for number, ((evaluator, version), group) in enumerate(grouped(rows, "evaluator", "version").items()):
        curves = {
            split: sorted(
                (r["epoch"], r["loss"]) for r in group if r["split"] == split and is_figure(r["loss"])
            )
            for split in ("train", "valid")
        }
        if not any(curves.values()):
            continue
        figure, axes = canvas(2.4)
        for split, colour, dashes in (
            ("train", paint().second, (0, (4, 2))),
            ("valid", paint().accent, "solid"),
        ):
            if curves[split]:
                epochs, losses = zip(*curves[split], strict=True)
                marker = "o" if len(epochs) == 1 else None
                axes.plot(
                    epochs, losses, color=colour, linestyle=dashes, marker=marker, markersize=3, label=split
                )
        note = ""
        if curves["valid"]:
            epoch, loss = min(curves["valid"], key=lambda point: (point[1], point[0]))
            axes.plot([epoch], [loss], "o", color=paint().accent, markersize=5)
            note = f"lowest validation loss {real(loss)} after epoch {epoch:,}"
        _whole_numbers(axes)
        axes.grid(axis="y")
        axes.set_xlabel("epoch")
        axes.set_ylabel("loss")
        axes.legend(frameon=False, labelcolor=paint().ink, loc="upper right")
        label = f"Loss by epoch, {note}" if note else "Training loss by epoch"
        title = label_of(evaluator, version)
        panels.append(Panel.of(figure, f"learning{number}", label, title, note, group))
    return panels


def _shortened(name: str) -> str:
    return name if len(name) <= 24 else name[:23] + "…"


def _measured(rows: Rows) -> list[Row]:
    """The rows with a mean, one per kind, in the order of KINDS."""
    return [row for kind in KINDS for row in rows if row["kind"] == kind and is_figure(row["mean"])]


def _error(row: Row) -> list[list[float]] | None:
    """The 95% interval as lengths below and above the mean, for a bar of matplotlib; None if it is not known."""
    return _interval(row["mean"], row["low"], row["high"])


def _interval(mean: float, low: Any, high: Any) -> list[list[float]] | None:
    return [[max(mean - low, 0.0)], [max(high - mean, 0.0)]] if is_figure(low) and is_figure(high) else None


def _limits(values: list[Any]) -> tuple[float, float]:
    known = [value for value in values if is_figure(value)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    margin = 0.08 * (high - low) or max(0.05, 0.05 * abs(high))
    return low - margin, high + margin


def _means(rows: Rows) -> str:
    return ", ".join(f"{row['kind']} {real(row['mean'])}" for row in rows)


def _whole_numbers(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    low, high = axes.get_xlim()
    axes.set_xlim(math.floor(low), math.ceil(high))
