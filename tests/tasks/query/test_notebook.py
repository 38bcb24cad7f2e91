"""docs/ssrem.ipynb runs on a home that `ssrem run` made, without Jupyter."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.paths import ROOT
from support.small_home import Made

NOTEBOOK = ROOT / "docs" / "ssrem.ipynb"


def test_its_cells_run_in_order(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSREM_HOME", str(made.home.root))
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells, 1):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), namespace)
    assert all(len(namespace[name]) for name in ("similarity", "hardness", "curves", "agreement"))


def test_it_is_small_and_names_no_machine() -> None:
    text = NOTEBOOK.read_text()
    assert len(text) < 300_000
    assert not [place for place in ("/home/", "/Users/", "/tmp/", "/root/", "/work/") if place in text]
    kinds = {o["output_type"] for cell in json.loads(text)["cells"] for o in cell.get("outputs", [])}
    assert "error" not in kinds and "stream" not in kinds
