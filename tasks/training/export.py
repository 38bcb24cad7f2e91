"""Export a version of an evaluator as one file."""

from __future__ import annotations

from pathlib import Path

from ssrem.errors import EvaluatorError
from ssrem.evaluators.core.archive import SUFFIX, pack
from tasks.stage.progress import progress
from tasks.training.versions import promoted, versions
from tasks.warehouse.home import Warehouse


def export_evaluator(home: Warehouse, name: str, version: int | None, file: Path | None) -> Path:
    """Write a version of the evaluator into `file`; returns its path.

    version: None for the promoted one. file: None for NAME-VERSION.ssrem in the current folder. Raises EvaluatorError
    if there is no such version.
    """
    if version is None:
        ((_, version),) = promoted(home, [name])
    known = [row["version"] for row in versions(home, name)]
    if version not in known:
        listed = ", ".join(map(str, known)) or "none"
        raise EvaluatorError(f"{name} has no version {version} in {home.root} (versions: {listed})")
    target = file or Path(f"{name}-{version}{SUFFIX}")
    with progress(f"writing {target}"):
        pack(home.models / name / str(version), target)
    return target
