"""What every encoder offers: texts in, vectors out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

_FLOAT16_MAX = float(np.finfo(np.float16).max)


def as_float16_values(vectors: NDArray[Any]) -> Vectors:
    """The same vectors as float32 that float16 holds exactly, so that a cached vector equals a fresh one."""
    clipped = np.clip(vectors, -_FLOAT16_MAX, _FLOAT16_MAX)
    return np.asarray(clipped, dtype=np.float16).astype(np.float32)


class Encoder(ABC):
    """Texts to vectors: deterministic, and the same vector for a text whatever stands beside it.

    A text in which the encoder knows nothing becomes the zero vector.
    """

    kind: ClassVar[str]
    """Under which `load_saved` finds the class again."""

    name: str
    dimensions: int

    @property
    @abstractmethod
    def signature(self) -> str:
        """Names the weights (by hash) and the settings; usable as a folder name."""

    @property
    def origin(self) -> str | None:
        """The spec from which `load_encoder` makes the same encoder without the corpus, or None."""
        return None

    def encode(self, texts: Sequence[str]) -> Vectors:
        """float32 (n, d), each value one that float16 holds exactly."""
        if len(texts) == 0:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        return as_float16_values(self._encode(texts))

    @abstractmethod
    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        """Floats (n, d) for at least one text."""

    def bag(self, text: str) -> tuple[Vectors, NDArray[np.float64]]:
        """What sentence mover's similarity moves: vectors (k, d) of the text's units and their weights (k,).

        Units are sentences, weighted by their words; encoders that also have vectors of words add those.
        """
        from ssrem.encoders.tokenize import sentences, words

        parts = sentences(text)
        vectors = self.encode(parts)
        weights = np.array([len(words(part)) for part in parts], dtype=np.float64)
        known = vectors.any(axis=1) & (weights > 0)
        return vectors[known], weights[known]

    def truncated(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Which texts are not read to their end, bool (n,); none where the encoder has no limit."""
        return np.zeros(len(texts), dtype=bool)

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write safetensors and JSON into `folder`, which is made if need be."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Encoder:
        """The encoder that `save` wrote; EvaluatorError where the folder does not hold it whole."""
