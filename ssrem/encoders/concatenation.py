"""Several encoders' vectors of a text, end to end."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem import files
from ssrem.encoders.base import Encoder, Vectors
from ssrem.errors import EvaluatorError


class Concatenation(Encoder):
    """The vectors of `parts` in their order; sentence mover's similarity uses the first part's bag."""

    kind: ClassVar[str] = "concatenation"

    def __init__(self, parts: Sequence[Encoder]) -> None:
        if len(parts) < 2:
            raise EvaluatorError(f"a concatenation needs two encoders or more, got {len(parts)}")
        self.parts = list(parts)
        self.name = "+".join(part.name for part in parts)
        self.dimensions = sum(part.dimensions for part in parts)

    @property
    def signature(self) -> str:
        joined = "\n".join(part.signature for part in self.parts)
        digest = hashlib.blake2b(joined.encode(), digest_size=4).hexdigest()
        return f"{self.name}-d{self.dimensions}-{digest}"

    @property
    def origin(self) -> str | None:
        origins = [part.origin for part in self.parts if part.origin is not None]
        return "+".join(origins) if len(origins) == len(self.parts) else None

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        return np.concatenate([part.encode(texts) for part in self.parts], axis=1)

    def bag(self, text: str) -> tuple[Vectors, NDArray[np.float64]]:
        return self.parts[0].bag(text)

    def truncated(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        cut: NDArray[np.bool_] = np.any([part.truncated(texts) for part in self.parts], axis=0)
        return cut

    def save(self, folder: Path) -> None:
        """Parts that their origin makes again are named, the others are written into subfolders."""
        folder.mkdir(parents=True, exist_ok=True)
        described = []
        for number, part in enumerate(self.parts):
            if part.origin is None:
                part.save(folder / f"part{number}")
            described.append({"origin": part.origin, "signature": part.signature})
        files.write_json(
            folder / "encoder.json", {"kind": self.kind, "parts": described, "signature": self.signature}
        )

    @classmethod
    def load(cls, folder: Path) -> Concatenation:
        from ssrem.encoders import load_encoder, load_saved

        about = files.read_json(folder / "encoder.json", ("kind", "parts", "signature"))
        parts: list[Encoder] = []
        for number, part in enumerate(about["parts"]):
            saved = load_encoder(part["origin"]) if part["origin"] else load_saved(folder / f"part{number}")
            if saved.signature != part["signature"]:
                raise EvaluatorError(
                    f"{folder}: made with encoder {part['signature']}, but {part['origin']} is now "
                    f"{saved.signature}; install the version it was made with or train again"
                )
            parts.append(saved)
        return cls(parts)
