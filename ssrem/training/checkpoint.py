"""An unfinished training on disk, from which one that was broken off continues."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.files import read_json, read_tensors, write_json, write_tensors

FORMAT = "ssrem-training-2"
_ABOUT = "training.json"


class Checkpoint:
    """The latest state of one training in `folder`: safetensors, and JSON that names them with their sha256.

    settings: all but the data that the training depends on, as JSON holds it. data: arrays that are learned from.
    A state of a training with others is an EvaluatorError.
    every: the trainer writes a state after so many steps and after each epoch; None: after each epoch.
    """

    def __init__(
        self, folder: Path, settings: object, data: Iterable[NDArray[Any]], *, every: int | None = None
    ) -> None:
        self.folder, self.every = folder, every
        digest = hashlib.sha256(json.dumps(settings).encode())
        for array in data:
            digest.update(np.ascontiguousarray(array).tobytes())
        self.key = digest.hexdigest()

    def due(self, step: int) -> bool:
        """Whether the state after `step`, within an epoch, is to be written."""
        return self.every is not None and step % self.every == 0

    def write(self, step: int, tensors: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
        """Replace the state. The JSON is renamed into place last, so that a kill leaves the old or the new one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        digest = write_tensors(self.folder / f"step-{step}.tmp", tensors)
        # Named by its content, so that the file that the JSON names now is never overwritten.
        name = f"step-{step}-{digest[:8]}.safetensors"
        (self.folder / f"step-{step}.tmp").replace(self.folder / name)
        content = {"format": FORMAT, "key": self.key, "tensors": name, "sha256": digest, "about": about}
        write_json(self.folder / f"{_ABOUT}.tmp", content)
        (self.folder / f"{_ABOUT}.tmp").replace(self.folder / _ABOUT)
        for old in self.folder.glob("step-*"):
            if old.name != name:
                old.unlink()

    def read(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """What was written last, tensors and `about`; None, and the training begins anew, where there is nothing or
        it is damaged. EvaluatorError where it belongs to a training with other settings or data."""
        if not (self.folder / _ABOUT).exists():
            return None
        try:
            content = read_json(self.folder / _ABOUT, ("format", "key", "tensors", "sha256", "about"))
        except EvaluatorError:
            return None
        if content["format"] != FORMAT or content["key"] != self.key:
            raise EvaluatorError(
                f"{self.folder}: holds a training with other settings or data; name another folder or delete it"
            )
        try:
            tensors = read_tensors(self.folder / Path(str(content["tensors"])).name, content["sha256"], ())
        except EvaluatorError:
            return None
        return tensors, content["about"]
