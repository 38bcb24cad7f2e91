"""The masked language model of mask-and-fill, where none is given: fine-tuned once and kept in the home folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.home import Home
from tasks.progress import progress

if TYPE_CHECKING:
    from ssrem.evaluators.base import Candidates


def masked_lm_for(home: Home, candidates: Candidates, corpora: Mapping[str, str]) -> Path:
    """Folder of the masked language model that the packaged encoder becomes on these corpora (name → content hash)."""
    from ssrem.negatives.tied_head import CARD, TiedHeadSettings, fine_tune

    settings = TiedHeadSettings()
    content = json.dumps([asdict(settings), corpora], sort_keys=True)
    folder = home.root / "masked-lm" / hashlib.sha256(content.encode()).hexdigest()[:16]
    if not (folder / CARD).exists():
        with progress("fine-tuning a masked language model from the packaged encoder") as advance:
            fine_tune(candidates, folder, settings, progress=advance)
    return folder
