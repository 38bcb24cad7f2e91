"""The figures of the report, as matplotlib draws them: small panels, stacked on a phone and side by side on a desktop.

Titles from the data, such as names of sets, are not drawn: they are text of the page around, where they can wrap.
"""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings
from zlib import crc32

import numpy as np

from ssrem.agreement import share_interval
from ssrem.agreement.correlate import regression_line
from ssrem.evaluators import BASELINES
from ssrem.report.data import (
    KIND_NAMES,
    Namer,
    ReportData,
    conditions,
    evaluators_of,
    grouped,
    headline,
    learned_elsewhere,
)
from ssrem.report.text import Row, Rows, file_name, fixed, is_figure, percent, real
from ssrem.studies import STUDIES, study_called
from ssrem.studies.scored import UNSCALED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "ink": "#17202b",
    "muted": "#566170",
    "grid": "#dde2e8",
    "accent": "#1759b8",
    "second": "#6b7686",
    "line": "#c02032",
    "warn": "#a8480a",
}
"""The colours of figures, on white; in its dark scheme the page shows each in the colour of that name in page.css."""

PEOPLE = "people"
"""The name that stands for the evaluator where the rows of `sources` are of human scores."""
JITTER = 0.3
"""Standard deviation of the noise on the human score of a dot, as in Figure 2 of the SSREM paper."""
POINTS_A_PANEL = 2_000
POINTS_A_PAGE = 12_000
"""With at most this many points, and their numbers as CSV, a page stays under 3 MB."""

_WIDTH = 3.7  # inches; a panel is shown at about 300 to 400 pixels
_DPI, _PAGE_DPI = 300, 150  # of PNG files, and of the dots of a scatter plot in the page
_BAR: dict[str, Any] = {"markersize": 3.5, "elinewidth": 1.3, "capsize": 4.5, "capthick": 1.3}
_DASHES = ((0, (4, 2)), (0, (1, 1.5)))  # of the lines of BASELINES
_MARKS = "os^Dv*Pph<>X"


@dataclass(frozen=True)
class Panel:
    """One figure. file: name for its files; title and note: shown above it; label: what it shows in words, for screen
    readers; rows: the numbers behind it."""

    file: str
    title: str
    note: str
    label: str
    rows: Rows = field(repr=False)
    figure: Figure = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        # The layout is computed once for all files; this also creates the ticks.
        if engine := self.figure.get_layout_engine():
            engine.execute(self.figure)
        self.figure.set_layout_engine("none")

    def svg(self) -> str:
        """The figure as an `<svg>` element with ids of its own, in the page's typeface; the same text each time."""
        buffer, own = io.StringIO(), f"{crc32(f'{self.file} {self.title} {self.note}'.encode()):x}"
        with styled({"svg.hashsalt": own, "svg.fonttype": "none"}):
            for number, artist in enumerate(self.figure.findobj()):
                artist.set_gid(f"{own}-{number}")
            nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            self.figure.savefig(buffer, format="svg", transparent=True, metadata=nothing, dpi=_PAGE_DPI)
        written = buffer.getvalue()
        return written[written.index("<svg") :]

    def save(self, path: Path) -> None:
        """Write the figure as SVG or PNG, by the suffix of `path`; the same bytes each time. Raises OSError."""
        # Letters as outlines: the drawing looks alike where its typeface is not installed.
        with styled({"svg.hashsalt": path.stem, "svg.fonttype": "path"}):
            no_date = {"Date": None} if path.suffix == ".svg" else None
            self.figure.savefig(path, dpi=_DPI, metadata=no_date)


def panels(data: ReportData) -> dict[str, list[Panel]]:
    """Every figure of the report, by section."""
    return {
        "agreement": forest(data.correlations, data.title),
        "chance": chance(data.identification, data.title),
        "identification": identification(data.identification, data.title),
        "similarity": similarity(data.set_similarity),
        "sources": sources(data.sources, data.title),
        "scatter": scatter(data.points),
        "learning": learning(data.learning_curves, data.title),
        "studies": studies(data.studies),
    }


@contextmanager
def styled(more: dict[str, Any] | None = None) -> Iterator[None]:
    """Draw with the report's settings and `more`, on matplotlib's defaults, not the user's; context and decorator."""
    # matplotlib warns if it cannot write its cache to $HOME; the drawing is the same without.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib import rc_context, rcdefaults, rcParams

    settings: dict[Any, Any] = {
        # Names of people's systems and sets are text, not formulas.
        "text.parse_math": False,
        "font.size": 9,
        "font.sans-serif": ["DejaVu Sans"],
        "text.color": COLOURS["ink"],
        "axes.edgecolor": COLOURS["muted"],
        "axes.labelcolor": COLOURS["muted"],
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "grid.color": COLOURS["grid"],
        "grid.linewidth": 0.7,
        "xtick.color": COLOURS["muted"],
        "ytick.color": COLOURS["muted"],
        "xtick.labelcolor": COLOURS["ink"],
        "ytick.labelcolor": COLOURS["ink"],
        "lines.linewidth": 1.6,
        "legend.frameon": False,
        "legend.fontsize": 8,
        **(more or {}),
    }
    with rc_context(), catch_warnings():
        # Letters that matplotlib's typeface lacks are drawn by the browser.
        filterwarnings("ignore", "Glyph .* missing from font")
        rcdefaults()
        rcParams.update(settings)
        yield


def _canvas(height: float) -> tuple[Figure, Axes]:
    """An empty figure of the report's width and this height, in inches, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def _lines(names: Sequence[str], axis: str, more: float = 0.0) -> tuple[Figure, Axes]:
    """An empty figure with a line for each name, and `more` inches of space below; axis: label of the x axis."""
    figure, axes = _canvas(0.8 + 0.22 * len(names) + more)
    axes.set_yticks(
        range(len(names)), [one if len(one) <= 24 else f"{one[:11]}…{one[-12:]}" for one in names]
    )
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="x")
    axes.margins(x=0.08)
    axes.set_xlabel(axis)
    return figure, axes


Mark = tuple[str, float, Any, Any, str]
"""Label, value, low and high end of its 95% interval (None or NaN: not known), and colour."""


def _marks(
    marks: Sequence[Mark], axis: str, lines: Sequence[tuple[str, float, str, Any]] = ()
) -> tuple[Figure, Axes]:
    """A row for each mark with its interval; lines: (label, place, colour, dashes) of vertical lines."""
    figure, axes = _lines([name for name, *_ in marks], axis, 0.3 * bool(lines))
    for place, (_, value, low, high, colour) in enumerate(marks):
        known = is_figure(low) and is_figure(high)
        ends = [[max(value - low, 0.0)], [max(high - value, 0.0)]] if known else None
        axes.errorbar([value], [place], xerr=ends, fmt="o", color=colour, **_BAR)
    for name, at, colour, dashes in lines:
        axes.axvline(at, color=colour, linestyle=dashes, linewidth=1.2, label=name, zorder=0)
    if lines:
        figure.legend(loc="outside lower center", ncols=3)
    return figure, axes


@styled()
def forest(correlations: Rows, title: Namer) -> list[Panel]:
    """Spearman correlation with the mean of the raters and its 95% interval: a panel per criterion, a row per
    evaluator. Vertical lines: one human rater against the mean of the others, and the untrained baselines."""
    cells = headline(correlations)
    order = sorted(cells, key=lambda one: fmean(row["spearman"] for row in cells[one].values()), reverse=True)
    rows_of: dict[Any, list[Row]] = {}
    for evaluator in order:
        for cell, row in cells[evaluator].items():
            rows_of.setdefault(cell, []).append(row)
    drawn = []
    for (dataset, criterion), rows in sorted(rows_of.items(), key=lambda item: str(item[0])):
        trained = [row for row in rows if row["evaluator"] not in BASELINES] or rows
        lines: list[tuple[str, Any, str, Any]] = [("one rater", rows[0]["ceiling"], COLOURS["line"], "solid")]
        for row in rows:
            if (name := row["evaluator"]) in BASELINES:
                lines.append((name, row["spearman"], COLOURS["second"], _DASHES[list(BASELINES).index(name)]))
        lines = [line for line in lines if is_figure(line[1])]
        marks: list[Mark] = []
        for row in trained:
            interval = (row["spearman"], row["spearman_low"], row["spearman_high"])
            marks.append((title(row["evaluator"], row["version"]), *interval, COLOURS["accent"]))
        legend = [(f"{name} {fixed(at)}", at, *look) for name, at, *look in lines]
        figure, axes = _marks(marks, "Spearman correlation with people", legend)
        axes.set_xlim(min(axes.get_xlim()[0], -0.02))
        values = ", ".join(f"{name} {real(at)}" for name, at, *_ in (*marks, *lines))
        label = f"Spearman correlation with 95% intervals: {values}"
        file, note = file_name("agreement", dataset, criterion), f"{criterion}, {_sizes(rows)}"
        drawn.append(Panel(file, str(dataset), note, label, rows, figure))
    return drawn


def _sizes(rows: Rows) -> str:
    """The number of responses of the rows: `n = 100`, or `n = 90 to 100` if they differ."""
    sizes = [row["n"] for row in rows]
    fewest = f"{min(sizes):,} to " if min(sizes) < max(sizes) else ""
    return f"n = {fewest}{max(sizes):,}"


@styled()
def chance(rows: Rows, title: Namer) -> list[Panel]:
    """Share of cases in which the true response ranks above a kind of false one, with its 95% interval (Wilson 1927): a
    panel per corpus and kind, a row per evaluator. A vertical line marks chance, one half."""
    drawn = []
    cells = [
        (corpus, group, kind) for (corpus,), group in grouped(rows, "corpus").items() for kind in KIND_NAMES
    ]
    for corpus, group, kind in cells:
        measured = [row for row in group if row["kind"] == kind and is_figure(row["gt_above"]) and row["n"]]
        if not measured:
            continue
        measured.sort(key=lambda row: row["gt_above"], reverse=True)
        marks: list[Mark] = []
        for row in measured:
            colour = COLOURS["second" if row["evaluator"] in BASELINES else "accent"]
            share, name = row["gt_above"], title(row["evaluator"], row["version"])
            marks.append((name, share, *share_interval(share, row["n"]), colour))
        line = ("chance 50%", 0.5, COLOURS["line"], "solid")
        figure, axes = _marks(marks, "true response ranked above", [line])
        axes.set_xlim(-0.02, 1.02)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
        values = ", ".join(f"{name} {percent(share)}" for name, share, *_ in marks)
        label = f"Share of true responses ranked above {kind}, chance 50%: {values}"
        note = f"test split of {corpus}, {_sizes(measured)}"
        for names in sorted({row["learned_from"] for row in measured if learned_elsewhere(row)}):
            note += f"; learned from {names}"
        file = file_name("true-above", corpus, kind)
        heading = f"{kind}, {KIND_NAMES[kind]}"
        drawn.append(Panel(file, heading, note, label, measured, figure))
    return drawn


def _means(rows: Rows) -> str:
    return "with 95% intervals: " + ", ".join(f"{row['kind']} {real(row['mean'])}" for row in rows)


@styled()
def identification(rows: Rows, title: Namer) -> list[Panel]:
    """Mean f of true and false responses with 95% intervals (SSREM paper, Figures 3 and 5): a panel per evaluator and
    corpus, each with an axis of its own, as evaluators have their own scales. A kind's label has the share of cases in
    which the ground truth ranks above it."""
    drawn = []
    for (corpus,), of_corpus in grouped(rows, "corpus").items():
        for (evaluator, version), group in grouped(of_corpus, "evaluator", "version").items():
            measured = _measured(group)
            if not measured:
                continue
            colours = {"GT": COLOURS["accent"], "Context": COLOURS["warn"]}  # the copied context is an attack
            marks: list[Mark] = []
            for row in measured:
                share = f" {percent(row['gt_above'])}" if is_figure(row["gt_above"]) else ""
                colour = colours.get(row["kind"], COLOURS["second"])
                marks.append((f"{row['kind']}{share}", row["mean"], row["low"], row["high"], colour))
            figure, _ = _marks(marks, "mean f")
            note = f"test split of {corpus}"
            if learned_elsewhere(group[0]):
                note += f"; learned from {group[0]['learned_from']}"
            heading, label = title(evaluator, version), f"Mean f {_means(measured)}"
            file = file_name("identification", heading, corpus)
            drawn.append(Panel(file, heading, note, label, group, figure))
    return drawn


def _measured(rows: Rows) -> list[Row]:
    """The rows with a mean, one per kind, in the order of KIND_NAMES."""
    return [row for kind in KIND_NAMES for row in rows if row["kind"] == kind and is_figure(row["mean"])]


@styled()
def similarity(rows: Rows) -> list[Panel]:
    """Mean similarity of each kind of set with its 95% interval (SSREM paper, Table 2): a panel per corpus."""
    drawn = []
    for (corpus, encoder), group in grouped(rows, "corpus", "encoder").items():
        if measured := _measured(group):
            marks: list[Mark] = []
            for row in measured:
                colour = COLOURS["second" if row["kind"] == "Rand" else "accent"]
                marks.append((row["kind"], row["mean"], row["low"], row["high"], colour))
            figure, _ = _marks(marks, "mean similarity of the texts in a set")
            file, label = file_name("similarity", corpus), f"Mean similarity {_means(measured)}"
            note = f"vectors of {encoder}"
            drawn.append(Panel(file, str(corpus), note, label, group, figure))
    return drawn


@styled()
def sources(rows: Rows, title: Namer) -> list[Panel]:
    """Box plots of scores by source of the response (Zhao et al. 2020, Figure 1b): a panel per dataset and evaluator.

    Sources are systems, highest human median first, or kinds of candidates. A box holds the middle half of the scores,
    with the median; whiskers end at the quantiles of 5% and 95%.
    """
    drawn = []
    for (dataset,), of_dataset in grouped(rows, "dataset").items():
        by_people = {row["source"]: -row["median"] for row in of_dataset if row["evaluator"] == PEOPLE}
        place = {kind: float(at) for at, kind in enumerate(KIND_NAMES)} | by_people
        for (evaluator, version), unordered in grouped(of_dataset, "evaluator", "version").items():
            group = sorted(unordered, key=lambda row: (place.get(row["source"], 0.0), row["source"]))
            of_people = evaluator == PEOPLE
            axis = "human score" if of_people else "score"
            figure, axes = _lines([str(row["source"]) for row in group], axis)
            colour = COLOURS["line" if of_people else "accent"]
            for at, row in enumerate(group):
                axes.plot([row["q05"], row["q95"]], [at, at], color=colour, linewidth=1.1, zorder=1)
                width, left = row["q75"] - row["q25"], row["q25"]
                axes.barh(at, width, 0.55, left, color=colour, alpha=0.35, zorder=2)
                axes.plot([row["median"]] * 2, [at - 0.27, at + 0.27], color=colour, linewidth=2, zorder=3)
            heading = PEOPLE if of_people else title(evaluator, version)
            note = group[0]["criterion"] if of_people else ""
            medians = ", ".join(f"{row['source']} {real(row['median'])}" for row in group)
            file, label = file_name("sources", heading, dataset), f"Median score by source: {medians}"
            drawn.append(Panel(file, heading, note, label, group, figure))
    return drawn


@styled()
def learning(rows: Rows, title: Namer) -> list[Panel]:
    """Training and validation loss by epoch: a panel per evaluator version, with the best epoch marked."""
    from matplotlib.ticker import MaxNLocator

    drawn = []
    for (evaluator, version), group in grouped(rows, "evaluator", "version").items():
        curves = {
            split: sorted(
                (r["epoch"], r["loss"]) for r in group if r["split"] == split and is_figure(r["loss"])
            )
            for split in ("train", "valid")
        }
        if not any(curves.values()):
            continue
        figure, axes = _canvas(2.4)
        looks = {"train": (COLOURS["second"], (0, (4, 2))), "valid": (COLOURS["accent"], "solid")}
        for split, (colour, dashes) in looks.items():
            if curve := curves[split]:
                look: dict[str, Any] = {"marker": "o", "markersize": 3} if len(curve) == 1 else {}
                axes.plot(*zip(*curve, strict=True), color=colour, linestyle=dashes, label=split, **look)
        label, note = "Training loss by epoch", ""
        if curves["valid"]:
            epoch, loss = min(curves["valid"], key=lambda point: (point[1], point[0]))
            axes.plot([epoch], [loss], "o", color=COLOURS["accent"], markersize=5)
            note = f"lowest validation loss {real(loss)} after epoch {epoch:,}"
            label = f"Loss by epoch, {note}"
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.set_xlim(math.floor(axes.get_xlim()[0]), math.ceil(axes.get_xlim()[1]))
        axes.grid(axis="y")
        axes.set_xlabel("epoch")
        axes.set_ylabel("loss")
        axes.legend(loc="best")
        heading = title(evaluator, version)
        file = file_name("learning", heading)
        drawn.append(Panel(file, heading, note, label, group, figure))
    return drawn


def regressions(points: Rows) -> Rows:
    """The least-squares line of score on human score by dataset, criterion and evaluator, over n responses.

    slope and intercept are None if the human scores do not vary.
    """
    lines = []
    for key, rows in _measured_points(points).items():
        line = regression_line(*np.array([(row["human"], row["score"]) for row in rows], dtype=np.float64).T)
        slope, intercept = line or (None, None)
        named = dict(zip(("dataset", "criterion", "evaluator"), key, strict=True))
        lines.append({**named, "slope": slope, "intercept": intercept, "n": len(rows)})
    return lines


def _measured_points(points: Rows) -> dict[tuple[Any, ...], list[Row]]:
    known = [row for row in points if is_figure(row["human"]) and is_figure(row["score"])]
    return grouped(known, "dataset", "criterion", "evaluator")


@styled()
def scatter(points: Rows) -> list[Panel]:
    """Score against human score, a panel per evaluator, dataset and criterion (SSREM paper, Figures 2 and 4).

    x is the human score with noise from N(0, 0.3); the regression is fitted on all points, without noise.
    """
    groups, drawn = _measured_points(points), []
    most = min(POINTS_A_PANEL, POINTS_A_PAGE // max(len(groups), 1))
    for number, ((key, rows), line) in enumerate(zip(groups.items(), regressions(points), strict=True)):
        dataset, _, evaluator = key
        human, score = np.array([(row["human"], row["score"]) for row in rows], dtype=np.float64).T
        draw = np.random.default_rng([1, number])
        jitter = draw.normal(0.0, JITTER, len(rows))
        shown = np.sort(draw.permutation(len(rows))[:most])
        figure, axes = _canvas(2.7)
        look: dict[str, Any] = {"markersize": 3, "markeredgewidth": 0, "alpha": 0.33}
        # Drawn as an image, because a vector mark for each point would take four times the bytes.
        axes.plot(
            *((human + jitter)[shown], score[shown], "o"), color=COLOURS["accent"], rasterized=True, **look
        )
        if line["slope"] is None:
            coefficient = "no line: the human scores do not vary"
        else:
            ends = np.array([human.min(), human.max()])
            axes.plot(ends, line["intercept"] + line["slope"] * ends, color=COLOURS["line"], linewidth=2)
            coefficient = f"coef {real(line['slope'])}"
        axes.set_title(coefficient, loc="right", color=COLOURS["line"], fontsize=9)
        axes.set_xlabel("human score")
        axes.set_ylabel("score")
        axes.grid()
        note = f"n = {len(rows):,}"
        if len(shown) < len(rows):
            note += f"; {len(shown):,} of them shown, drawn at random"
        label = (
            f"Score against human score with noise of N(0, {JITTER}), {len(rows)} responses, {coefficient}"
        )
        file = file_name("scatter", evaluator, dataset)
        drawn.append(Panel(file, str(evaluator), note, label, [rows[at] for at in shown], figure))
    return drawn


@styled()
def studies(rows: Rows) -> list[Panel]:
    """Figures of studies: a panel per study and dataset, a line per condition under its name, a mark per evaluator."""
    drawn = []
    for (study, dataset), group in grouped(rows, "study", "dataset").items():
        # The unscaled would need an axis of their own: they are in the table alone.
        scaled = [row for row in group if row["measure"] != UNSCALED]
        by_condition, names = conditions(scaled), evaluators_of(group)
        figure, axes = _canvas(0.9 + 0.42 * len(by_condition))
        for place, name in enumerate(names):
            # Marks are moved up or down so that none hides another.
            offset = (place - (len(names) - 1) / 2) * min(0.16, 0.5 / len(names))
            own = [(at + offset, of[name]) for at, of in enumerate(by_condition.values()) if name in of]
            colour = COLOURS[("accent", "line", "second", "warn")[place % 4]]
            marks = [(row["value"], at) for at, row in own if is_figure(row["value"])]
            xs, ys = zip(*marks, strict=True) if marks else ((), ())
            mark = _MARKS[place % len(_MARKS)]
            axes.plot(xs, ys, mark, color=colour, markersize=6, alpha=0.8, label=name)
            for at, row in own:
                if is_figure(row["low"]):
                    axes.hlines(at, row["low"], row["high"], color=colour, linewidth=1.2, alpha=0.6)
        for at, condition in enumerate(by_condition):
            axes.axhline(at, color=COLOURS["grid"], linewidth=0.7, zorder=0)
            where: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
            axes.annotate(condition, (0, at), xytext=(0, 8), fontsize=8, **where)
        axes.set_ylim(len(by_condition) - 0.5, -0.8)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.06)
        axes.grid(axis="x")
        known = study_called(study) if study in STUDIES else None
        axes.set_xlabel(known.axis if known else "")
        figure.legend(loc="outside lower center", ncols=3)
        values = "; ".join(
            f"{condition} " + ", ".join(f"{name} {real(row['value'], 2)}" for name, row in by_name.items())
            for condition, by_name in by_condition.items()
        )
        heading, note = f"{known.title if known else study}: {dataset}", known.note if known else ""
        file, label = file_name("study", study, dataset), f"{study}: {values}"
        drawn.append(Panel(file, heading, note, label, group, figure))
    return drawn
