"""ADEM's recurrent encoder on its own: texts to the vectors that its dialogue model learned."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders import trusted_sources
from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators import load_evaluator
from ssrem.evaluators.adem.adem import Adem

_MODEL = "adem"


class HierarchicalGru(Encoder):
    """The state of a hierarchical GRU after a text of one turn (Lowe et al. 2017, section 4), before ADEM's projection.

    It is the encoder of a trained `adem`, whose words and turns it reads as that does.
    """

    kind: ClassVar[str] = "hierarchical-gru"
    specs: ClassVar[tuple[str, ...]] = ("adem:FOLDER",)

    def __init__(self, adem: Adem) -> None:
        """EvaluatorError where `adem` is not trained or has no recurrent encoder."""
        if not adem.state.encoder:
            raise EvaluatorError(
                f"{adem.name} was trained with pretrained={adem.config.pretrained}, so it has no recurrent encoder; "
                "train it with pretrained=vhred, or name its encoder itself"
            )
        self.adem = adem
        self.name = "adem"
        self.dimensions = adem.config.context

    @classmethod
    def from_spec(cls, spec: str, *, train_texts: Sequence[str] | None, seed: int) -> Self | None:
        if not spec.startswith("adem:"):
            return None
        return cls.of(Path(spec.removeprefix("adem:")).expanduser())

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Of a trained evaluator's folder; EvaluatorError where it holds no ADEM."""
        trusted_sources.check(folder)
        adem = load_evaluator(folder)
        if not isinstance(adem, Adem):
            raise EvaluatorError(f"encoder adem:{folder}: holds {adem.name}, not adem; train one first")
        return cls(adem)

    @property
    def signature(self) -> str:
        digest = hashlib.blake2b(self.adem.signature.encode(), digest_size=4).hexdigest()
        return f"adem-gru-d{self.dimensions}-{digest}"

    def _encode(self, texts: Sequence[str]) -> NDArray[Any]:
        return self.adem.encoded(texts).vectors

    def truncated(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        return self.adem.encoded(texts).cut

    def _save(self, folder: Path) -> Mapping[str, Any]:
        self.adem.save(folder / _MODEL)
        return {}

    @classmethod
    def _load(cls, folder: Path, described: Mapping[str, Any]) -> Self:
        return cls.of(folder / _MODEL)
