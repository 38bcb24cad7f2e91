"""What an evaluator has learned, and one training of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from ssrem.evaluators.core.saved import Saved
from ssrem.evaluators.core.scaling import Bounds
from ssrem.samples import Progress
from ssrem.training.checkpoint import Checkpoint


class State(Protocol):
    """What was learned. bounds: part → lowest and highest value. tuned: number of human scores behind it."""

    @property
    def tensors(self) -> Mapping[str, NDArray[Any]]: ...

    @property
    def bounds(self) -> Mapping[str, Bounds]: ...

    @property
    def tuned(self) -> int: ...


@dataclass(frozen=True)
class NetworkState:
    """The state of an evaluator whose learned weights are those of one network."""

    tensors: Mapping[str, NDArray[Any]]
    bounds: Mapping[str, Bounds]
    tuned: int = 0

    @classmethod
    def of(cls, saved: Saved) -> NetworkState:
        """The state in a saved evaluator."""
        return cls(saved.tensors, saved.bounds, int(saved.about["tuned"]))


@dataclass(frozen=True)
class Run:
    """One training. checkpoint: the folder for its unfinished state. encode: texts to vectors, if there is an encoder.

    began: time.perf_counter at the start.
    """

    progress: Progress | None = None
    checkpoint: Path | None = None
    encode: Any = None
    began: float = field(default_factory=time.perf_counter)

    def unfinished(
        self, settings: object, data: Iterable[NDArray[Any]], *, every: int | None = None
    ) -> Checkpoint | None:
        """The checkpoint of a training with these settings and data; None without a folder."""
        return Checkpoint(self.checkpoint, settings, data, every=every) if self.checkpoint else None
