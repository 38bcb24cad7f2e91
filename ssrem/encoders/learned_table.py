"""A table of word or token vectors, some of whose rows were learned on a corpus."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem import encoders
from ssrem.encoders.base import Encoder, Vectors
from ssrem.encoders.word_average import WordAverage
from ssrem.errors import EvaluatorError
from ssrem.files import read_tensors, write_tensors


class LearnedTable(Encoder):
    """The mean of the vectors of a text's words or tokens, brought to unit length; zero for a text without a known one.

    start: the table before learning. rows (k,): those that were learned. vectors: float16 (k, d), which replace them.
    Only these are saved, and the start if it has no name.
    """

    kind: ClassVar[str] = "learned-table"
    saved: ClassVar[tuple[str, ...]] = ("start", "start_signature", "sha256")

    def __init__(self, start: WordAverage, rows: NDArray[Any], vectors: NDArray[np.float16]) -> None:
        size = len(start.vectors)
        if vectors.shape != (len(rows), start.dimensions) or (len(rows) and int(rows.max()) >= size):
            raise EvaluatorError(f"{len(rows)} rows of shape {vectors.shape} do not fit {start.signature}")
        self.start, self.learned_rows, self.learned_vectors = start, rows, vectors
        self.name, self.dimensions = f"{start.name}-learned", start.dimensions
        self._table = copy.copy(start)
        self._table.vectors = start.vectors.copy()
        self._table.vectors[rows] = vectors

    @cached_property
    def signature(self) -> str:
        digest = hashlib.blake2b(self.start.signature.encode(), digest_size=4)
        digest.update(self.learned_rows.tobytes())
        digest.update(self.learned_vectors.tobytes())
        return f"{self.name}-d{self.dimensions}-{digest.hexdigest()}"

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        vectors = self._table._encode(texts)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)

    def bag(self, text: str) -> tuple[Vectors, NDArray[np.float64]]:
        return self._table.bag(text)

    def _save(self, folder: Path) -> Mapping[str, Any]:
        if self.start.origin is None:
            self.start.save(folder / "start")
        tensors = {"rows": self.learned_rows, "vectors": self.learned_vectors}
        digest = write_tensors(folder / "encoder.safetensors", tensors)
        return {"start": self.start.origin, "start_signature": self.start.signature, "sha256": digest}

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> Self:
        tensors = read_tensors(folder / "encoder.safetensors", described["sha256"], ("rows", "vectors"))
        start = encoders.load_again(described["start"], described["start_signature"], folder / "start")
        if not isinstance(start, WordAverage):
            raise EvaluatorError(f"{folder}: {start.signature} is no table of word vectors; train again")
        return cls(start, tensors["rows"], tensors["vectors"])
