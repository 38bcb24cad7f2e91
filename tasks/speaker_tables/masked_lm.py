"""The masked language model of mask-and-fill, if none is named: fine-tuned once and cached in the home folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.stage.progress import progress
from tasks.warehouse.files import file_digest, whole_folder
from tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    from ssrem.samples import Candidates

_DIGESTS = "digests.json"


def masked_lm_for(home: Warehouse, candidates: Candidates, corpora: Mapping[str, str]) -> Path:
    """Folder of the packaged encoder fine-tuned as a masked language model on the corpora (name → content hash)."""
    from ssrem.negatives.tied_head import TiedHeadSettings, fine_tune

    settings = TiedHeadSettings()
    content = json.dumps([asdict(settings), corpora], sort_keys=True)
    folder = home.root / "masked-lm" / hashlib.sha256(content.encode()).hexdigest()[:16]
    if not _intact(folder):
        with (
            progress("fine-tuning a masked language model from the packaged encoder") as advance,
            whole_folder(folder) as draft,
        ):
            fine_tune(candidates, draft, settings, progress=advance)
            digests = {path.name: file_digest(path) for path in sorted(draft.iterdir())}
            (draft / _DIGESTS).write_text(json.dumps(digests, indent=1))
    return folder


def _intact(folder: Path) -> bool:
    """Whether every file is as it was written."""
    try:
        digests: dict[str, str] = json.loads((folder / _DIGESTS).read_text())
        return all(file_digest(folder / name) == digest for name, digest in digests.items())
    except (OSError, ValueError, AttributeError):
        return False
