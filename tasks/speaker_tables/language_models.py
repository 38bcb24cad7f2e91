"""Language models that are fine-tuned on landed corpora and kept in the home folder."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssrem.files import sha256, write_json
from ssrem.registry import registered
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.warehouse.files import folder_damage, whole_folder
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    from ssrem.samples import Candidates

_MANIFEST = "manifest.json"
"""File of a kept model with the digests of its other files."""

MODULES = {
    "masked-lm": "ssrem.negatives.tied_head.fine_tune",
    "lm": "ssrem.evaluators.language_model.fine_tune",
}
"""Language model to the module that fine-tunes it, with `fine_tune`, `SETTINGS` and the name of its CARD."""


def settings_of(name: str, values: Mapping[str, Any]) -> Any:
    """The settings of a fine-tuning; EvaluatorError for an unknown one or a value that it cannot have."""
    return registered(f"{MODULES[name]}:SETTINGS").of(values)


def language_model_for(
    home: Warehouse, name: str, candidates: Candidates, corpora: Mapping[str, str], settings: Any
) -> Path:
    """Folder of the language model fine-tuned on the corpora (name → content hash) with the settings.

    It is fine-tuned once and kept in the home folder; a training that was stopped goes on.
    """
    content = json.dumps([asdict(settings), corpora], sort_keys=True)
    folder = home.root / name / hashlib.sha256(content.encode()).hexdigest()[:16]
    unfinished = home.root / "checkpoints" / f"{name}-{folder.name}"
    if folder_damage(folder, _MANIFEST, deep=True):
        fine_tune = registered(f"{MODULES[name]}:fine_tune")
        with progress(f"training {name}") as advance, whole_folder(folder) as draft:
            fine_tune(candidates, draft, settings, progress=advance, checkpoint=unfinished)
            digests = {path.name: sha256(path) for path in sorted(draft.iterdir())}
            write_json(draft / _MANIFEST, {"sha256": digests})
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def masked_lm_for(home: Warehouse, candidates: Candidates, corpora: Mapping[str, str]) -> Path:
    """Folder of the packaged encoder fine-tuned as a masked language model with the default settings."""
    return language_model_for(home, "masked-lm", candidates, corpora, settings_of("masked-lm", {}))
