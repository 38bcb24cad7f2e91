"""A table of word or token vectors, some of whose rows were learned on a corpus."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem import encoders
from ssrem.encoders.base import Encoder, Vectors
from ssrem.encoders.static.word_average import WordAverage
from ssrem.errors import EvaluatorError
from ssrem.files import read_tensors, write_tensors


class LearnedTable(Encoder):
    """The mean of the vectors of a text's words or tokens, brought to unit length; zero for a text without a known one.

    start: the table before learning. rows (k,): those that were learned. change: int8 (k, d), by how many steps of
    their row, steps float32 (k,), its numbers changed: a quarter of the size of float32, and the error is at most a
    254th of a row's largest change. Only these are saved, and the start if it has no name.
    """

    kind: ClassVar[str] = "learned-table"
    saved: ClassVar[tuple[str, ...]] = ("start", "start_signature", "sha256")

    def __init__(
        self,
        start: WordAverage,
        rows: NDArray[np.int32],
        change: NDArray[np.int8],
        steps: NDArray[np.float32],
    ) -> None:
        fits = change.shape == (len(rows), start.dimensions) and steps.shape == rows.shape
        if not fits or (len(rows) and not 0 <= rows.min() <= rows.max() < len(start.vectors)):
            raise EvaluatorError(f"{len(rows)} rows and {change.shape} changes do not fit {start.signature}")
        self.start, self.rows, self.change, self.steps = start, rows, change, steps
        self.unit = start.unit
        self.name, self.dimensions = f"{start.name}-learned", start.dimensions
        vectors = start.vectors.copy()
        vectors[rows] += change * steps[:, None]
        self.table = start.with_vectors(vectors, self.name, None)

    @classmethod
    def of(cls, start: WordAverage, rows: NDArray[Any], vectors: NDArray[Any]) -> Self:
        """The table with `vectors` (k, d), rounded to steps, in these rows."""
        change = vectors - start.vectors[rows]
        steps = (np.abs(change).max(axis=1, initial=0) / 127).astype(np.float32)
        rounded = np.rint(change / np.where(steps > 0, steps, 1)[:, None]).astype(np.int8)
        return cls(start, rows.astype(np.int32), rounded, steps)

    @cached_property
    def signature(self) -> str:
        digest = hashlib.blake2b(self.start.signature.encode(), digest_size=4)
        for part in (self.rows, self.change, self.steps):
            digest.update(part.tobytes())
        return f"{self.name}-d{self.dimensions}-{digest.hexdigest()}"

    @property
    def slow(self) -> bool:
        return False

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        vectors = self.table._encode(texts)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit: NDArray[Any] = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
        return unit

    def bag(self, text: str) -> tuple[Vectors, NDArray[np.float64]]:
        return self.table.bag(text)

    def units(self, texts: Sequence[str]) -> tuple[list[list[int]], Vectors]:
        return self.table.units(texts)

    def _save(self, folder: Path) -> Mapping[str, Any]:
        if self.start.origin is None:
            self.start.save(folder / "start")
        tensors: dict[str, NDArray[Any]] = {"rows": self.rows, "change": self.change, "steps": self.steps}
        digest = write_tensors(folder / "encoder.safetensors", tensors)
        return {"start": self.start.origin, "start_signature": self.start.signature, "sha256": digest}

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> Self:
        tensors = read_tensors(
            folder / "encoder.safetensors", described["sha256"], ("rows", "change", "steps")
        )
        start = encoders.load_again(described["start"], described["start_signature"], folder / "start")
        if not isinstance(start, WordAverage):
            raise EvaluatorError(f"{folder}: {start.signature} is no table of word vectors; train again")
        return cls(start, tensors["rows"], tensors["change"], tensors["steps"])
