"""The vectors that several encoders give a text, concatenated."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem import encoders
from ssrem.encoders.base import Encoder, Vectors
from ssrem.encoders.transformer.hub import is_model_folder
from ssrem.errors import EvaluatorError
from ssrem.files import expanded


class Concatenation(Encoder):
    """The vectors of `parts` in their order; sentence mover's similarity uses the first part's bag."""

    kind: ClassVar[str] = "concatenation"
    saved: ClassVar[tuple[str, ...]] = ("parts",)

    def __init__(self, parts: Sequence[Encoder]) -> None:
        if len(parts) < 2:
            raise EvaluatorError(f"a concatenation needs two encoders or more, got {len(parts)}")
        self.parts = list(parts)
        self.name = "+".join(part.name for part in parts)
        self.dimensions = sum(part.dimensions for part in parts)

    @classmethod
    def from_spec(cls, spec: str, *, train_texts: Sequence[str] | None, seed: int) -> Self | None:
        is_path = spec.startswith("file:") or expanded(spec).is_file() or is_model_folder(spec)
        if "+" not in spec or is_path:
            return None
        parts = (encoders.load_encoder(part, train_texts=train_texts, seed=seed) for part in spec.split("+"))
        return cls(list(parts))

    @property
    def signature(self) -> str:
        joined = "\n".join(part.signature for part in self.parts)
        digest = hashlib.blake2b(joined.encode(), digest_size=4).hexdigest()
        return f"{self.name}-d{self.dimensions}-{digest}"

    @property
    def origin(self) -> str | None:
        origins = [part.origin for part in self.parts if part.origin is not None]
        return "+".join(origins) if len(origins) == len(self.parts) else None

    @property
    def slow(self) -> bool:
        return any(part.slow for part in self.parts)

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        return np.concatenate([part.encode(texts) for part in self.parts], axis=1)

    def bag(self, text: str) -> tuple[Vectors, NDArray[np.float64]]:
        return self.parts[0].bag(text)

    def truncated(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        return np.asarray(np.any([part.truncated(texts) for part in self.parts], axis=0))

    def _save(self, folder: Path) -> Mapping[str, Any]:
        """Only the spec of parts that have an origin; the others are written into subfolders."""
        for number, part in enumerate(self.parts):
            if part.origin is None:
                part.save(folder / f"part{number}")
        return {"parts": [{"origin": part.origin, "signature": part.signature} for part in self.parts]}

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> Self:
        parts = [
            encoders.load_again(saved["origin"], saved["signature"], folder / f"part{number}")
            for number, saved in enumerate(described["parts"])
        ]
        return cls(parts)
