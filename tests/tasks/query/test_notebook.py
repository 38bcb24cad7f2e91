"""The notebooks of docs/ run without Jupyter: ssrem.ipynb on a home that `ssrem run` made, python.ipynb without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT
from support.small_home import Made

NOTEBOOKS = {path.name: path for path in (ROOT / "docs").glob("*.ipynb")}


def run(notebook: str, checks: str, folder: Path, **environment: str) -> None:
    """Run the notebook's cells in order, and then the checks, in a process of its own."""
    cells = json.loads(NOTEBOOKS[notebook].read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (folder / "notebook.py").write_text("\n".join([*sources, checks]), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg", **environment}
    subprocess.run([sys.executable, "notebook.py"], env=environment, cwd=folder, check=True)


def test_the_cells_on_a_home_folder_run_in_order(made: Made, tmp_path: Path) -> None:
    checks = "assert all(map(len, (similarity, hardness, curves, agreement)))"
    run("ssrem.ipynb", checks, tmp_path, SSREM_HOME=str(made.home.root))


@pytest.mark.slow  # trains on 12,468 turns; tests/ssrem/test_in_memory.py does the same on 600
def test_the_cells_without_a_home_folder_run_in_order(tmp_path: Path) -> None:
    checks = (
        "assert len(conversations.frames['turns']) == 12_468 and len(conversations.sets) == 4\n"
        "assert all(abs(score) <= 1 for score in model.score([(context, response) for response in responses]))\n"
        "assert model.training.figures['valid_gt_above'] > 0.55"
    )
    run("python.ipynb", checks, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notebook.py"]


@pytest.mark.parametrize("name", sorted(NOTEBOOKS))
def test_they_are_small_and_name_no_machine(name: str) -> None:
    text = NOTEBOOKS[name].read_text(encoding="utf-8")
    assert len(text) < 300_000
    assert not [place for place in ("/home/", "/Users/", "/tmp/", "/root/", "/work/") if place in text]
    kinds = {o["output_type"] for cell in json.loads(text)["cells"] for o in cell.get("outputs", [])}
    assert "error" not in kinds and "stream" not in kinds
