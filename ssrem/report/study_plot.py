"""The figures of studies as panels: a line a condition under its name, a mark an evaluator."""

from __future__ import annotations

from ssrem.report.data import Row, Rows
from ssrem.report.drawing import Panel, canvas, grouped, styled
from ssrem.report.numbers import is_figure, real
from ssrem.report.study import conditions, evaluators
from ssrem.report.svg import PAGE, paint
from ssrem.studies import study_called

MARKS = "os^Dv*Pph<>X"
GLYPHS = "●■▲◆▼★✚⬟⬢◀▶✖"
"""The marks as text of the page, where the names of evaluators stand."""

_HEIGHT = 0.42  # inches a condition


@styled()
def study_panels(rows: Rows) -> dict[tuple[str, str], Panel]:
    """(study, dataset) to its panel. rows: of `studies`, several evaluators of one study together."""
    panels = {}
    for number, ((study, dataset), group) in enumerate(grouped(rows, "study", "dataset").items()):
        by_condition = conditions(group)
        figure, axes = canvas(0.7 + _HEIGHT * len(by_condition))
        names = evaluators(group)
        for place, name in enumerate(names):
            aside = (place - (len(names) - 1) / 2) * min(0.16, 0.5 / len(names))  # none hides another
            marks = [
                (row["value"], at + aside)
                for at, by_name in enumerate(by_condition.values())
                if (row := by_name.get(name)) is not None and is_figure(row["value"])
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
        axes.set_xlabel(study_called(str(study)).axis)
        if paint() is not PAGE:  # a page has the names of the marks beside the drawing
            figure.legend(loc="outside lower center", ncols=3, frameon=False)
        label = f"{study}: " + "; ".join(
            f"{condition} {_said(by_name)}" for condition, by_name in by_condition.items()
        )
        panels[str(study), str(dataset)] = Panel.of(
            figure, f"study{number}", label, f"{study} of {dataset}", "", group
        )
    return panels


def _said(by_name: dict[str, Row]) -> str:
    return ", ".join(f"{name} {real(row['value'], 2)}" for name, row in by_name.items())
