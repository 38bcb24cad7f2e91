"""A transformer with low-rank adapters, which were learned on a corpus."""

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
from ssrem.encoders.base import Encoder, Vectors, as_float16_values
from ssrem.encoders.transformer.layers import divided, layers
from ssrem.encoders.transformer.transformer import Transformer
from ssrem.errors import EvaluatorError
from ssrem.files import read_tensors, write_tensors

UP, DOWN = ".up", ".down"

Factors = Mapping[str, NDArray[np.float16]]


class AdaptedTransformer(Encoder):
    """Vectors of unit length by a transformer, to some of whose matrices a product of two thin ones was added.

    Hu et al. 2022, section 4.1. start: the transformer before. factors: for a matrix (o, i) of its model the two
    tensors NAME.up (o, r) and NAME.down (r, i). Only these are saved; the products are added once, so that encoding
    takes as long as before.
    """

    kind: ClassVar[str] = "adapted-transformer"
    saved: ClassVar[tuple[str, ...]] = ("start", "start_signature", "sha256")

    def __init__(self, start: Transformer, factors: Factors) -> None:
        import torch

        self.start, self.factors = start, factors
        self.name, self.dimensions = f"{start.name}-adapted", start.dimensions
        model = copy.deepcopy(start.model)
        weights = dict(model.named_parameters())
        with torch.no_grad():
            for name in sorted({name.rpartition(".")[0] for name in factors}):
                try:
                    up, down = (
                        torch.from_numpy(factors[name + side].astype(np.float32)) for side in (UP, DOWN)
                    )
                    weights[name].add_((up @ down).to(weights[name].device))
                except (KeyError, RuntimeError) as error:
                    raise EvaluatorError(f"adapters of {name} do not fit {start.signature}") from error
        self.adapted = start.with_model(model, self.name)

    @cached_property
    def signature(self) -> str:
        digest = hashlib.blake2b(self.start.signature.encode(), digest_size=4)
        for name in sorted(self.factors):
            digest.update(name.encode() + self.factors[name].tobytes())
        return f"{self.name}-d{self.dimensions}-{digest.hexdigest()}"

    def truncated(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        return self.start.truncated(texts)

    def encode_both(self, texts: Sequence[str]) -> tuple[Vectors, Vectors]:
        """What `start` and this encoder give for the texts; the layers below the first adapted one run once."""
        if not texts or self._parts is None:
            return self.start.encode(texts), self.encode(texts)
        below, *above = self._parts

        def states(attention_mask: Any, **inputs: Any) -> list[Any]:
            shared = below(attention_mask=attention_mask, **inputs).last_hidden_state
            return [
                part(inputs_embeds=shared, attention_mask=attention_mask).last_hidden_state for part in above
            ]

        plain, adapted = self.start.vectors(texts, states, len(above))
        return as_float16_values(plain), as_float16_values(_unit(adapted))

    @cached_property
    def _parts(self) -> tuple[Any, Any, Any] | None:
        """The layers that both models have, those above in `start` and those above here; None without such layers."""
        prefix = f"{layers(self.adapted.model)[0]}."
        numbers = [
            int(name.removeprefix(prefix).split(".")[0]) if name.startswith(prefix) else 0
            for name in self.factors
        ]
        first = min(numbers, default=0)
        parts = [divided(model, first) for model in (self.start.model, self.adapted.model)]
        if parts[0] is None or parts[1] is None:
            return None
        return *parts[0], parts[1][1]

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        return _unit(self.adapted._encode(texts))

    def _save(self, folder: Path) -> Mapping[str, Any]:
        digest = write_tensors(folder / "encoder.safetensors", self.factors)
        return {"start": self.start.origin, "start_signature": self.start.signature, "sha256": digest}

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> Self:
        factors = read_tensors(folder / "encoder.safetensors", described["sha256"], ())
        start = encoders.load_again(described["start"], described["start_signature"], folder / "start")
        if not isinstance(start, Transformer):
            raise EvaluatorError(f"{folder}: {start.signature} is no transformer; train again")
        return cls(start, factors)


def _unit(vectors: NDArray[Any]) -> NDArray[Any]:
    """The vectors (n, d) with unit length; a zero vector stays as it is."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[Any] = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    return unit
