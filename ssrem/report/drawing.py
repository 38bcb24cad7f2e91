"""What every plot of the report shares: its size, its looks, and what it is beside the drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings

from ssrem.report.data import Row, Rows
from ssrem.report.svg import inline_svg, paint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 3.7  # inches; a panel is shown at about 300 to 400 pixels

Namer = Callable[[Any, Any], str]  # how a page calls an evaluator (name, version)


@contextmanager
def styled() -> Iterator[None]:
    """As a decorator, too: matplotlib's defaults, whatever the user's own, under ours while something is drawn."""
    from matplotlib import rc_context, rcdefaults, rcParams

    colours = paint()
    with rc_context(), catch_warnings():
        # Letters that matplotlib's typeface lacks are drawn by the browser.
        filterwarnings("ignore", "Glyph .* missing from font")
        rcdefaults()
        rcParams.update(
            {
                # Names of people's systems and sets are text, not formulas.
                "text.parse_math": False,
                "font.size": 9,
                "axes.edgecolor": colours.muted,
                "axes.labelcolor": colours.muted,
                "axes.linewidth": 0.8,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.axisbelow": True,
                "grid.color": colours.grid,
                "grid.linewidth": 0.7,
                "xtick.color": colours.muted,
                "ytick.color": colours.muted,
                "xtick.labelcolor": colours.ink,
                "ytick.labelcolor": colours.ink,
                "lines.linewidth": 1.6,
            }
        )
        yield


@dataclass(frozen=True)
class Panel:
    """One plot: what it shows, what the reader should know beside it, and the drawing.

    name: unique in the page; label: what it shows in words; rows: the numbers behind it; figure: matplotlib's.
    """

    title: str
    note: str
    svg: str
    name: str
    label: str
    rows: Rows = field(repr=False)
    figure: Figure = field(repr=False, compare=False)

    @classmethod
    def of(cls, figure: Figure, name: str, label: str, title: str, note: str, rows: Rows) -> Panel:
        """The panel of a figure that was just drawn."""
        svg = inline_svg(figure, name, label)
        figure.set_layout_engine("none")  # it is laid out now; to do so for each file takes most of the time
        return cls(title, note, svg, name, label, rows, figure)


def grouped(rows: Rows, *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows by the values of `keys`, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def canvas(height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()
