"""An unfinished training on disk, from which a killed one goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.files import read_json, read_tensors, write_json, write_tensors

FORMAT = "ssrem-training-1"
_ABOUT = "training.json"


class Checkpoint:
    """The latest state of one training in `folder`: safetensors, and JSON that names and vouches for them.

    key: hash of settings, model and data; a state of another key is an EvaluatorError, not gone on from.
    every: after how many steps `due` says that it is time to write.
    """

    def __init__(self, folder: Path, key: str, *, every: int) -> None:
        self.folder, self.key, self.every = folder, key, every

    def due(self, step: int) -> bool:
        """Whether the state after `step` is to be written."""
        return step % self.every == 0

    def write(self, step: int, tensors: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
        """Replace the state. The JSON is renamed into place last, so that a kill leaves the old or the new one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        digest = write_tensors(self.folder / f"step-{step}.tmp", tensors)
        # Named by its content, so that what the JSON names now is never overwritten.
        name = f"step-{step}-{digest[:8]}.safetensors"
        (self.folder / f"step-{step}.tmp").replace(self.folder / name)
        content = {"format": FORMAT, "key": self.key, "tensors": name, "sha256": digest, "about": about}
        write_json(self.folder / f"{_ABOUT}.tmp", content)
        (self.folder / f"{_ABOUT}.tmp").replace(self.folder / _ABOUT)
        for old in self.folder.glob("step-*"):
            if old.name != name:
                old.unlink()

    def read(self) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]] | None:
        """Tensors and what `write` was told; None where nothing was written yet, or what was is damaged: a training
        then begins anew."""
        if not (self.folder / _ABOUT).exists():
            return None
        try:
            found = read_json(self.folder / _ABOUT, ("format", "key", "tensors", "sha256", "about"))
        except EvaluatorError:
            return None
        if found["format"] != FORMAT or found["key"] != self.key:
            raise EvaluatorError(
                f"{self.folder}: holds a training with other settings or data; name another folder or delete it"
            )
        try:
            tensors = read_tensors(self.folder / Path(str(found["tensors"])).name, found["sha256"], ())
        except EvaluatorError:
            return None
        return tensors, found["about"]
