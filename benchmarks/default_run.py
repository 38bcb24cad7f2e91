"""Rows and figures of the default run: what `ssrem run` publishes of the corpus that comes with it.

python -m benchmarks.default_run           run it in a temporary home folder, and renew default_run.json
python -m benchmarks.default_run HOME      renew default_run.json from a home folder that `ssrem run --home HOME` filled
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ssrem.schemas import TABLES, VIEWS
from ssrem.tasks.warehouse.home import Warehouse

ROOT = Path(__file__).resolve().parents[1]
EXPECTED = Path(__file__).with_suffix(".json")

FIGURES = {
    "mean similarity within speaker sets": "SELECT kind, mean FROM set_similarity ORDER BY ALL",
    "identification": """
        SELECT concat_ws(' ', evaluator, kind, figure), value
        FROM (
            UNPIVOT (SELECT evaluator, kind, mean, gt_above, n::DOUBLE AS n FROM identification)
            ON mean, gt_above, n INTO NAME figure VALUE value
        ) ORDER BY ALL""",
    "best epoch of the learning curve": """
        SELECT concat_ws(' ', evaluator, figure), value
        FROM (
            UNPIVOT (SELECT evaluator, best_epoch::DOUBLE AS epoch, valid_loss FROM evaluators)
            ON epoch, valid_loss INTO NAME figure VALUE value
        ) ORDER BY ALL""",
    "correlations": """
        SELECT concat_ws(' ', evaluator, criterion, score, figure), value
        FROM (
            UNPIVOT (SELECT evaluator, criterion, score, pearson, spearman, kendall, n::DOUBLE AS n FROM correlations)
            ON pearson, spearman, kendall, n INTO NAME figure VALUE value
        ) ORDER BY ALL""",
}
"""Queries of (name, value) for each group of figures; all but counts are reproducible to about 1e-6."""


def run(home: Path) -> None:
    """Run `ssrem run` in a process of its own, on one thread; raises CalledProcessError if it fails."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "SSREM_"))}
    subprocess.run(
        [sys.executable, "-m", "ssrem", "run", "--home", str(home)],
        env={**environment, "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        check=True,
    )


def results(home: Path) -> dict[str, dict[str, Any]]:
    """The number of rows of every published table and view, and the figures by group and name."""
    with Warehouse.at(home).reader() as connection:
        counts = {
            name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchall()[0][0]
            for name in (*TABLES, *VIEWS)
        }
        figures = {group: dict(connection.execute(query).fetchall()) for group, query in FIGURES.items()}
    return {"rows": counts, **figures}


def main() -> None:
    """Renew the expected rows and figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("home", type=Path, nargs="?", help="home folder of a finished default run")
    home = parser.parse_args().home
    with TemporaryDirectory() as folder:
        if home is None:
            home = Path(folder) / "home"
            run(home)
        EXPECTED.write_text(json.dumps(results(home), indent=1) + "\n")


if __name__ == "__main__":
    main()
