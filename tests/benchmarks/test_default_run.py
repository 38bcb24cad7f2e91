"""The default run gives the rows and figures that benchmarks/default_run.json holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import default_run


@pytest.mark.slow
def test_the_default_run_gives_the_expected_rows_and_figures(tmp_path: Path) -> None:
    """Where a difference is intended, `python -m benchmarks.default_run` renews what is expected.

    Processors round float32 sums in their own ways, and training carries that on: figures may differ by .005.
    """
    default_run.run(tmp_path / "home")
    results = default_run.results(tmp_path / "home")
    expected = json.loads(default_run.EXPECTED.read_text())
    assert results["rows"] == expected.pop("rows")
    for group, figures in expected.items():
        assert results[group] == pytest.approx(figures, rel=0, abs=0.005), group
