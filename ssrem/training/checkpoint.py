"""The state of an unfinished training on disk, from which an interrupted training continues."""

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
    """The latest state of one training in `folder`: a safetensors file, and a JSON file with its name and sha256.

    settings: a JSON value with everything that the training depends on besides the data. data: the arrays that are
    learned from. every: a state is written after each epoch and, unless None, after every so many steps.
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
        """Whether a state is written after `step`, a step within an epoch."""
        return self.every is not None and step % self.every == 0

    def write(self, step: int, tensors: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
        """Replace the state. The JSON is renamed into place last: after a crash, the old or new state is complete."""
        self.folder.mkdir(parents=True, exist_ok=True)
        digest = write_tensors(self.folder / f"step-{step}.tmp", tensors)
        # The name depends on the content, so that the file of the old state is not overwritten.
        name = f"step-{step}-{digest[:8]}.safetensors"
        (self.folder / f"step-{step}.tmp").replace(self.folder / name)
        content = {"format": FORMAT, "key": self.key, "tensors": name, "sha256": digest, "about": about}
        write_json(self.folder / f"{_ABOUT}.tmp", content)
        (self.folder / f"{_ABOUT}.tmp").replace(self.folder / _ABOUT)
        for old in self.folder.glob("step-*"):
            if old.name != name:
                old.unlink()

    def read(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """Tensors and `about` of the last state; None if there is none or it is damaged, so that training starts anew.

        Raises EvaluatorError if the state is that of a training with other settings or data.
        """
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
