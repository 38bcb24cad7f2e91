"""Second copies of what nobody could make again."""

from __future__ import annotations

import shutil
from pathlib import Path

from tasks.warehouse.files import sync_path

KEPT_TWICE = (
    *("corpora", "evaluators", "learning_curves", "identification", "correlations"),
    *("agreement", "comparisons", "rankings", "rater_agreement"),
    *("annotated", "annotations", "human_scores", "runs", "check_results"),
)
"""Small tables that no stage can make again as they were: their files lie in a run folder twice."""


def keep_twice(table: str, path: Path) -> None:
    """Lay a second copy beside a part whose table is one of KEPT_TWICE."""
    if table in KEPT_TWICE:
        sync_path(Path(shutil.copyfile(path, second_copy(path))))


def second_copy(path: Path) -> Path:
    """Where the second copy of a part lies whose table is one of KEPT_TWICE."""
    return path.with_name(f"{path.name}.copy")
