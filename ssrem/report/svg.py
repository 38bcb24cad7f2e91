"""A matplotlib figure as an SVG that lives inside a page: its colours, its type, its ids are the page's."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Paint:
    """The colours that drawings use."""

    ink: str
    muted: str
    grid: str
    accent: str
    second: str
    line: str
    warn: str


# Colours that nobody would draw with stand for the page's colours, which differ between light and dark.
PAGE = Paint("#010101", "#020202", "#030303", "#040404", "#050505", "#060606", "#070707")
PRINT = Paint("#17202b", "#566170", "#dde2e8", "#1759b8", "#6b7686", "#c02032", "#a8480a")
_paint: ContextVar[Paint] = ContextVar("paint", default=PAGE)
_VARIABLES = dict(zip(astuple(PAGE), (f"var(--{name})" for name in Paint.__annotations__), strict=True))
POINTS = "points"  # the gid of a cloud of points, which is written in a third of matplotlib's bytes
_COLOUR = re.compile(r"#(0[1-7])\1{2}")
_DECIMALS = re.compile(r"-?\d+\.\d{2,}(?:e-?\d+)?")
_ROUNDED = ("d", "x", "y", "width", "height")


def paint() -> Paint:
    """The colours to draw with now: the page's, unless `painted` says otherwise."""
    return _paint.get()


@contextmanager
def painted(colours: Paint) -> Iterator[None]:
    """Draw with these colours."""
    token = _paint.set(colours)
    try:
        yield
    finally:
        _paint.reset(token)


def inline_svg(figure: Figure, name: str, label: str) -> str:
    """The figure as one `<svg>` element, the same bytes each time.

    `name` is unique in the page and prefixes the element's ids; `label` is what a screen reader says.
    """
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "path.simplify": False}):
        # Date apart, the metadata would be dropped below anyhow.
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    # The text is matplotlib's own output, never a document from elsewhere.
    root = ElementTree.fromstring(buffer.getvalue())
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {_local(key): value for key, value in element.attrib.items()}
    _drop(root)
    _write_points(root)
    for element in root.iter():
        _restyle(element)
    _rename(root, name)
    root.attrib = {"viewBox": root.attrib["viewBox"], "class": "plot", "role": "img", "aria-label": label}
    return re.sub(r"\n\s*", "\n", ElementTree.tostring(root, encoding="unicode")).strip()


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _drop(root: ElementTree.Element) -> None:
    """Metadata, and the style sheet, which would apply to the whole page."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("metadata", "style"):
                parent.remove(child)


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
    if "transform" in element.attrib:
        element.attrib["transform"] = _short(element.attrib["transform"])
    style = element.attrib.get("style")
    if style is None:
        return
    kept = []
    for declaration in style.split(";"):
        key, _, value = declaration.strip().partition(": ")
        if key == "font":  # size and family in one: the size stays, the family is the page's
            size = re.search(r"[\d.]+px", value)
            key, value = "font-size", size.group() if size else "10px"
        if key and key != "font-family":
            kept.append(f"{key}:{_COLOUR.sub(lambda found: _VARIABLES[found.group()], value)}")
    element.attrib["style"] = ";".join(kept)


def _short(numbers: str) -> str:
    return _DECIMALS.sub(lambda found: f"{float(found.group()):.1f}".removesuffix(".0"), numbers)


def _rename(root: ElementTree.Element, name: str) -> None:
    """Keeps the ids that something refers to, under names that no other plot of the page has."""
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
