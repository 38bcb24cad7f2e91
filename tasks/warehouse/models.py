"""Saved evaluators: whether the folders of the versions in use hold what was saved."""

from __future__ import annotations

import json
from pathlib import Path

from ssrem.evaluators.core.metric import MANIFEST
from tasks.warehouse.files import file_digest
from tasks.warehouse.home import Warehouse


def broken_models(home: Warehouse, *, deep: bool = False) -> list[str]:
    """What is wrong with the folders of the versions in use, a line each; `deep` compares the files' contents."""
    with home.reader() as connection:
        promoted = connection.execute(
            "SELECT evaluator, version FROM evaluators WHERE promoted ORDER BY ALL"
        ).fetchall()
    damaged = {
        (name, version): damage
        for name, version in promoted
        if (damage := model_damage(home.models / name / str(version), deep=deep))
    }
    return [
        f"{name} version {version} is in use, but {damage}; restore it from a backup, or train it again"
        for (name, version), damage in damaged.items()
    ]


def model_damage(folder: Path, *, deep: bool = False) -> str | None:
    """What is missing from the folder of a saved evaluator or, if `deep`, was changed in it; None if nothing."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        digests = manifest.get("sha256") or {}
        for name, digest in digests.items() if isinstance(digests, dict) else ():
            if not (folder / name).is_file():
                return f"{folder / name} is missing"
            if deep and file_digest(folder / name) != digest:
                return f"{folder / name} was changed"
    except FileNotFoundError:
        return f"{folder / MANIFEST} is missing"
    except (OSError, ValueError, AttributeError) as error:
        return f"{folder / MANIFEST} cannot be read ({error})"
    return None
