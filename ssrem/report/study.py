"""A study of one dataset: its figures as Markdown, and a plot of them."""

from __future__ import annotations

from pathlib import Path

from ssrem.report.data import Row, Rows, grouped
from ssrem.report.drawing import PAGE, PRINT, Panel, canvas, paint, styled
from ssrem.report.formats import markdown_text
from ssrem.report.numbers import is_figure, real
from ssrem.studies import STUDIES, study_called
from ssrem.studies.scored import UNSCALED

MARKS = "os^Dv*Pph<>X"
GLYPHS = "●■▲◆▼★✚⬟⬢◀▶✖"
"""The plot's marks as characters, for the legend in the page."""

_HEIGHT = 0.42  # inches a condition


def evaluators(rows: Rows) -> list[str]:
    """Names of the evaluators, in the order of the rows."""
    return list(dict.fromkeys(row["evaluator"] for row in rows))


def conditions(rows: Rows) -> dict[str, dict[str, Row]]:
    """Condition → evaluator → row, in the order of the rows; conditions name the measure if there are several."""
    several = len({row["measure"] for row in rows}) > 1
    by_condition: dict[str, dict[str, Row]] = {}
    for row in rows:
        label = f"{row['condition']}, {row['measure']}" if several else row["condition"]
        by_condition.setdefault(label, {})[row["evaluator"]] = row
    return by_condition


def described(study: str) -> tuple[str, str, str]:
    """Title and note of a study, and the label of its axis; only its name if this version of ssrem does not know it."""
    if study not in STUDIES:
        return study, "", ""
    kind = study_called(study)
    return kind.title, kind.note, kind.axis


def markdown(rows: Rows) -> str:
    """Title, note, and a table with a row per condition and a column per evaluator; IndexError without rows."""
    study, dataset = rows[0]["study"], rows[0]["dataset"]
    names = evaluators(rows)
    lines = [f"# {study}: {markdown_text(dataset)}", ""]
    if note := described(study)[1]:
        lines += [note, ""]
    lines += [f"| | {' | '.join(map(markdown_text, names))} | n |", f"|---|{'---:|' * (len(names) + 1)}"]
    for label, by_name in conditions(rows).items():
        cells = [_cell(by_name.get(name)) for name in names]
        n = max(row["n"] for row in by_name.values())
        lines.append(f"| {markdown_text(label)} | {' | '.join(cells)} | {n:,} |")
    return "\n".join(lines) + "\n"


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    if row["value"] is None:
        return str(row["outcome"]).replace("_", " ")
    interval = "" if row["low"] is None else f" ({row['low']:.2f} to {row['high']:.2f})"
    return f"{row['value']:.2f}{interval}"


def save_plot(rows: Rows, path: Path) -> None:
    """Write the plot of one study of one dataset as SVG, PDF or PNG, in print colours. Raises OSError."""
    with styled(PRINT):
        (panel,) = study_panels(rows).values()
        panel.save(path)


@styled()
def study_panels(rows: Rows) -> dict[tuple[str, str], Panel]:
    """(study, dataset) to its panel: a line per condition, with its name above, and a mark per evaluator.

    rows: of the table `studies`, several evaluators of one study together.
    """
    panels = {}
    scaled = [row for row in rows if row["measure"] != UNSCALED]  # others have an axis of their own
    for number, ((study, dataset), group) in enumerate(grouped(scaled, "study", "dataset").items()):
        by_condition = conditions(group)
        figure, axes = canvas(0.7 + _HEIGHT * len(by_condition))
        names = evaluators(group)
        for place, name in enumerate(names):
            # Marks are moved up or down so that none hides another.
            offset = (place - (len(names) - 1) / 2) * min(0.16, 0.5 / len(names))
            marks = [
                (row["value"], at + offset)
                for at, by_name in enumerate(by_condition.values())
                if (row := by_name.get(name)) is not None and is_figure(row["value"])
            ]
            intervals = [
                (row["low"], row["high"], at + offset)
                for at, by_name in enumerate(by_condition.values())
                if (row := by_name.get(name)) is not None and is_figure(row["low"])
            ]
            colours = (paint().accent, paint().line, paint().second, paint().warn)
            axes.plot(
                [value for value, _ in marks],
                [at for _, at in marks],
                MARKS[place % len(MARKS)],
                color=colours[place % len(colours)],
                markersize=6,
                alpha=0.8,
                label=name,
            )
            axes.hlines(
                [at for *_, at in intervals],
                [low for low, *_ in intervals],
                [high for _, high, _ in intervals],
                color=colours[place % len(colours)],
                linewidth=1.2,
                alpha=0.6,
            )
        for at, condition in enumerate(by_condition):
            axes.axhline(at, color=paint().grid, linewidth=0.7, zorder=0)
            axes.annotate(
                condition,
                (0, at),
                xycoords=axes.get_yaxis_transform(),
                xytext=(0, 8),
                textcoords="offset points",
                color=paint().ink,
                fontsize=8,
            )
        axes.set_ylim(len(by_condition) - 0.5, -0.8)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.06)
        axes.grid(axis="x")
        axes.set_xlabel(described(str(study))[2])
        if paint() is not PAGE:  # a page has its own legend beside the drawing
            figure.legend(loc="outside lower center", ncols=3, frameon=False)
        values = (
            f"{condition} " + ", ".join(f"{name} {real(row['value'], 2)}" for name, row in by_name.items())
            for condition, by_name in by_condition.items()
        )
        label, title = f"{study}: {'; '.join(values)}", f"{study} of {dataset}"
        panels[str(study), str(dataset)] = Panel.of(figure, f"study{number}", label, title, "", group)
    return panels
