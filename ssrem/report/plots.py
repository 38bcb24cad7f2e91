"""The papers' plots, one small panel each, so that they stack on a phone and stand side by side on a desk.

Names from the data never enter a drawing: they are text of the page around it, where they can wrap.
matplotlib is imported where a figure is made.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ssrem.report.data import KINDS, Row, Rows
from ssrem.report.drawing import Namer, Panel, canvas, grouped, styled
from ssrem.report.numbers import is_figure, percent, real
from ssrem.report.svg import paint

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@styled()
def similarity_panels(rows: Rows) -> list[Panel]:
    """Mean similarity of each kind of set with its 95% interval (SSREM paper, Table 2): a panel a corpus."""
    panels = []
    for number, ((corpus, encoder), group) in enumerate(grouped(rows, "corpus", "encoder").items()):
        by_kind = {row["kind"]: row for row in group if is_figure(row["mean"])}
        kinds = [kind for kind in KINDS if kind in by_kind]
        if not kinds:
            continue
        figure, axes = canvas(2.0)
        for place, kind in enumerate(kinds):
            _bar(axes, by_kind[kind], place, paint().second if kind == "Rand" else paint().accent, flat=True)
        axes.set_yticks(range(len(kinds)), kinds)
        axes.set_ylim(len(kinds) - 0.4, -0.6)
        axes.grid(axis="x")
        axes.margins(x=0.12)
        axes.set_xlabel("mean similarity of the texts in a set")
        label = "Mean similarity with 95% intervals: " + _said(by_kind, kinds)
        note = f"vectors of {encoder}"
        panels.append(Panel.of(figure, f"similarity{number}", label, str(corpus), note, group))
    return panels


@styled()
def identification_panels(rows: Rows, label_of: Namer) -> list[Panel]:
    """Mean f of true and false responses with 95% intervals (SSREM paper, Figures 3 and 5).

    A panel an evaluator and corpus; the panels of a corpus share their y axis. Under each kind stands the
    share of cases in which the ground truth ranks above it.
    """
    panels: list[Panel] = []
    for (corpus,), of_corpus in grouped(rows, "corpus").items():
        limits = _limits([row[key] for row in of_corpus for key in ("mean", "low", "high")])
        for (evaluator, version), group in grouped(of_corpus, "evaluator", "version").items():
            by_kind = {row["kind"]: row for row in group if is_figure(row["mean"])}
            kinds = [kind for kind in KINDS if kind in by_kind]
            if not kinds:
                continue
            figure, axes = canvas(2.7)
            # The copied context is an attack and no set of the paper: it stands apart.
            places = [place + (0.6 if kind == "Context" else 0.0) for place, kind in enumerate(kinds)]
            colours = {"GT": paint().accent, "Context": paint().warn}
            for place, kind in zip(places, kinds, strict=True):
                _bar(axes, by_kind[kind], place, colours.get(kind, paint().second))
            if "Context" in kinds[1:]:
                axes.axvline(places[-1] - 0.8, color=paint().grid, linewidth=0.8, linestyle=(0, (3, 3)))
            axes.set_xticks(places, [f"{kind}\n{_above(by_kind[kind])}" for kind in kinds])
            axes.set_xlim(-0.6, places[-1] + 0.6)
            axes.set_ylim(*limits)
            axes.grid(axis="y")
            axes.set_ylabel("mean f")
            label = f"Mean f with 95% intervals: {_said(by_kind, kinds)}"
            called, note = label_of(evaluator, version), f"test split of {corpus}"
            panels.append(Panel.of(figure, f"identification{len(panels)}", label, called, note, group))
    return panels


@styled()
def learning_panels(rows: Rows, label_of: Namer) -> list[Panel]:
    """Training and validation loss by epoch, a panel an evaluator version, the best epoch marked."""
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
        called = label_of(evaluator, version)
        panels.append(Panel.of(figure, f"learning{number}", label, called, note, group))
    return panels


def _bar(axes: Axes, row: Row, place: float, colour: str, *, flat: bool = False) -> None:
    """A dot at the mean, with a bar over the 95% interval."""
    mean, low, high = row["mean"], row["low"], row["high"]
    known = is_figure(low) and is_figure(high)
    error = [[max(mean - low, 0.0)], [max(high - mean, 0.0)]] if known else None
    marker = "D" if row["kind"] == "Context" else "o"
    looks: Any = {"color": colour, "markersize": 3.5, "elinewidth": 1.3, "capsize": 4.5, "capthick": 1.3}
    if flat:
        axes.errorbar([mean], [place], xerr=error, fmt=marker, **looks)
    else:
        axes.errorbar([place], [mean], yerr=error, fmt=marker, **looks)


def _limits(values: list[Any]) -> tuple[float, float]:
    known = [value for value in values if is_figure(value)]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    margin = 0.08 * (high - low) or max(0.05, 0.05 * abs(high))
    return low - margin, high + margin


def _above(row: Row) -> str:
    return percent(row["gt_above"]) if is_figure(row["gt_above"]) else ""


def _said(by_kind: dict[str, Row], kinds: list[str]) -> str:
    return ", ".join(f"{kind} {real(by_kind[kind]['mean'])}" for kind in kinds)


def _whole_numbers(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    low, high = axes.get_xlim()
    axes.set_xlim(math.floor(low), math.ceil(high))
