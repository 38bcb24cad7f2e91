"""docs/ssrem.ipynb runs on a home that `ssrem run` made, without Jupyter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support.paths import ROOT
from support.small_home import Made

NOTEBOOK = ROOT / "docs" / "ssrem.ipynb"


def test_its_cells_run_in_order(made: Made, tmp_path: Path) -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    script = "\n".join("".join(cell["source"]) for cell in cells)
    script += "\nassert all(map(len, (similarity, hardness, curves, agreement)))"
    (tmp_path / "notebook.py").write_text(script, encoding="utf-8")
    environment = {**os.environ, "SSREM_HOME": str(made.home.root), "MPLBACKEND": "agg"}
    subprocess.run([sys.executable, tmp_path / "notebook.py"], env=environment, check=True)


def test_it_is_small_and_names_no_machine() -> None:
    text = NOTEBOOK.read_text()
    assert len(text) < 300_000
    assert not [place for place in ("/home/", "/Users/", "/tmp/", "/root/", "/work/") if place in text]
    kinds = {o["output_type"] for cell in json.loads(text)["cells"] for o in cell.get("outputs", [])}
    assert "error" not in kinds and "stream" not in kinds
