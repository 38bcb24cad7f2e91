"""The look of plots: colours (of the page or for print), size and style; writes them as SVG in a page or as files."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, filterwarnings
from xml.etree import ElementTree

from ssrem.report.data import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 300  # of PNG files
_WIDTH = 3.7  # inches; a panel is shown at about 300 to 400 pixels


@dataclass(frozen=True)
class Paint:
    """The colours of drawings."""

    ink: str
    muted: str
    grid: str
    accent: str
    second: str
    line: str
    warn: str


# Placeholders, replaced in the SVG by CSS variables: the page's colours differ between light and dark.
PAGE = Paint("#010101", "#020202", "#030303", "#040404", "#050505", "#060606", "#070707")
PRINT = Paint("#17202b", "#566170", "#dde2e8", "#1759b8", "#6b7686", "#c02032", "#a8480a")
_paint: ContextVar[Paint] = ContextVar("paint", default=PAGE)
_VARIABLES = dict(zip(astuple(PAGE), (f"var(--{name})" for name in Paint.__annotations__), strict=True))
POINTS = "points"  # gid of a scatter plot's points, which are rewritten as <circle>: a third of the bytes
_COLOUR = re.compile(r"#(0[1-7])\1{2}")
_DECIMALS = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
_ROUNDED = ("d", "x", "y", "width", "height", "transform")


def paint() -> Paint:
    """The colours to draw with: the page's, except within `styled` of others."""
    return _paint.get()


@contextmanager
def styled(colours: Paint | None = None) -> Iterator[None]:
    """Draw with the report's settings over matplotlib's defaults, not the user's; also a decorator.

    colours: used within this context and those inside it; without them, the colours of the outer one.
    """
    # matplotlib warns if it cannot write its cache to $HOME; the drawing is the same without.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    from matplotlib import rc_context, rcdefaults, rcParams

    colours = colours or paint()
    token = _paint.set(colours)
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
        try:
            yield
        finally:
            _paint.reset(token)


@dataclass(frozen=True)
class Panel:
    """One plot: its title, a note shown beside it, and the drawing.

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
        """The panel of a figure."""
        svg = inline_svg(figure, name, label)
        figure.set_layout_engine("none")  # laid out once: to repeat it for each file takes most of the time
        return cls(title, note, svg, name, label, rows, figure)

    def save(self, path: Path) -> None:
        """Write the drawing as SVG, PDF or PNG, by the suffix of `path`; the same bytes each time. Raises OSError."""
        from matplotlib import rc_context

        dates: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        # Letters as outlines: the drawing looks alike where its typeface is not installed.
        with rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "path", "pdf.fonttype": 42}):
            self.figure.savefig(path, dpi=DPI, metadata=dates.get(path.suffix))


def canvas(height: float) -> tuple[Figure, Axes]:
    """An empty figure of the report's width and this height, in inches, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def inline_svg(figure: Figure, name: str, label: str) -> str:
    """The figure as one `<svg>` element, the same bytes each time.

    `name` is unique in the page and prefixes the element's ids; `label` is what a screen reader says.
    """
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "path.simplify": False}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    # Safe to parse: the text is matplotlib's own output.
    root = ElementTree.fromstring(buffer.getvalue())
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {_local(key): value for key, value in element.attrib.items()}
    for element in list(root.iter()):  # the style sheet would apply to the whole page
        element[:] = [child for child in element if child.tag not in ("metadata", "style")]
    _write_points(root)
    for element in root.iter():
        _restyle(element)
    _rename(root, name)
    root.attrib = {"viewBox": root.attrib["viewBox"], "class": "plot", "role": "img", "aria-label": label}
    return re.sub(r"\n\s*", "\n", ElementTree.tostring(root, encoding="unicode")).strip()


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _write_points(root: ElementTree.Element) -> None:
    for group in root.iter("g"):
        if group.get("id") != POINTS:
            continue
        circles = [
            ElementTree.Element(
                "circle", {"cx": _short(use.get("x", "")), "cy": _short(use.get("y", "")), "r": "1.6"}
            )
            for use in group.iter("use")
        ]
        clip = next((child.get("clip-path") for child in group.iter("g") if child.get("clip-path")), None)
        group[:] = circles
        group.attrib = {"class": POINTS, **({"clip-path": clip} if clip else {})}


def _restyle(element: ElementTree.Element) -> None:
    for key in _ROUNDED:
        if key in element.attrib:
            element.attrib[key] = _short(element.attrib[key])
    style = element.attrib.get("style")
    if style is None:
        return
    declarations = []
    for declaration in style.split(";"):
        key, _, value = declaration.strip().partition(": ")
        if key == "font":  # size and family in one: the size stays, the family is the page's
            size = re.search(r"[\d.]+px", value)
            key, value = "font-size", size.group() if size else "10px"
        if key and key != "font-family":
            declarations.append(f"{key}:{_COLOUR.sub(lambda match: _VARIABLES[match.group()], value)}")
    element.attrib["style"] = ";".join(declarations)


def _short(numbers: str) -> str:
    return _DECIMALS.sub(lambda match: f"{float(match.group()):.1f}".removesuffix(".0"), numbers)


def _rename(root: ElementTree.Element, name: str) -> None:
    """Prefix the ids that are referred to with `name`, and remove all others."""
    text = ElementTree.tostring(root, encoding="unicode")
    used = dict.fromkeys(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    names = {old: f"{name}-{number}" for number, old in enumerate(used)}
    for element in root.iter():
        old = element.attrib.pop("id", None)
        if old in names:
            element.attrib["id"] = names[old]
        if "href" in element.attrib:
            element.attrib["href"] = "#" + names[element.attrib["href"][1:]]
        clip = element.attrib.get("clip-path")
        if clip is not None:
            element.attrib["clip-path"] = f"url(#{names[clip[5:-1]]})"
