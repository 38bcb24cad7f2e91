"""A report as figures: texts, numbers and drawings by section, and the CSV files that it holds."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from benchmarks.same_results.masks import masked


class Page(HTMLParser):
    """A report by section: texts, the numbers in them, and the numbers of its drawings; and its CSV files."""

    def __init__(self, text: str, folder: Path) -> None:
        super().__init__()
        self.folder, self.section, self.inside = folder, "header", [""]
        self.sections: dict[str, dict[str, list[Any]]] = {}
        self.files: dict[str, list[list[str]]] = {}
        self.feed(text)
        # What a section about the runs shows is compared as tables; its times and ids differ.
        self.sections.pop("provenance", None)

    def add(self, kind: str, values: list[Any]) -> None:
        self.sections.setdefault(self.section, {}).setdefault(kind, []).extend(values)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "section":
            self.section = values.get("id", "?")
        if tag in ("svg", "style", "script"):
            self.inside.append(tag)
        if "svg" in self.inside:
            drawn = " ".join(values.get(name, "") for name in ("d", "points", "x", "y", "transform"))
            self.add("drawn", [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", drawn)])
        if "download" in values:
            text = unquote(values["href"].partition(",")[2])
            rows = list(csv.DictReader(io.StringIO(text, newline="")))
            self.files[values["download"]] = masked(rows, self.folder)

    def handle_endtag(self, tag: str) -> None:
        if tag == self.inside[-1]:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        text = " ".join(str(masked(data, self.folder, "signature")).split())
        if text and not {"style", "script"} & set(self.inside):
            self.add("text", [text])
            self.add("numbers", re.findall(r"[−-]?(?:\d[\d,]*)?\.?\d+", text))
