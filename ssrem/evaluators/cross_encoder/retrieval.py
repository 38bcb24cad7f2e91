"""BERT-retrieval: a cross-encoder on next-utterance prediction (Park et al. 2021; Mehri and Eskenazi 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Provider
from ssrem.evaluators.cross_encoder.config import CrossEncoderConfig
from ssrem.evaluators.cross_encoder.cross_encoder import CrossEncoder
from ssrem.negatives import load_generator, needs_model


@dataclass(frozen=True)
class RetrievalConfig(CrossEncoderConfig):
    """CrossEncoderConfig and the negatives.

    negatives: a spec for ssrem.negatives.load_generator, such as 'random-1', 'random-2', 'random-1+sc' or
    'random-1+mask-and-fill'. negatives_model: name or folder of the masked language model for the generators that need
    one, such as mask-and-fill.

    The paper fine-tunes all of BERT-base: prior 'none', pooling 'cls', freeze 0, epochs 3, both learning rates 2e-5;
    its batches of 64 count pairs of context and response.
    """

    negatives: str = "random-1+sc"
    negatives_model: str = ""


class Retrieval(CrossEncoder):
    """f = sigmoid(a · cos + b + linear(pooled states)): how likely the response is the true one, not a negative."""

    name: ClassVar[str] = "retrieval"
    source: ClassVar[str] = "Park et al. 2021, section 4.1.2 (BERT-retrieval), with a prior"
    config_class: ClassVar[type[Any]] = RetrievalConfig
    head: ClassVar[str] = "linear"
    config: RetrievalConfig

    def __init__(self, encoder: Encoder | None = None, config: RetrievalConfig | None = None) -> None:
        super().__init__(encoder, config)
        spec, settings = self.negatives()
        load_generator(spec, **settings)  # an unknown name is an error at once

    @classmethod
    def create(cls, settings: Mapping[str, Any], provider: Provider) -> Self:
        """With the provider's masked language model if the negatives need one and none is set."""
        config = cls.config_class.of(settings)
        if not config.negatives_model and needs_model(config.negatives):
            config = replace(config, negatives_model=str(provider.masked_lm()))
        return cls(None, config)

    def negatives(self) -> tuple[str, dict[str, Any]]:
        spec, model = self.config.negatives, self.config.negatives_model
        if not needs_model(spec):
            return spec, {}
        if not model:
            raise EvaluatorError(
                f"{self.name}: negatives {spec} need a masked language model; set negatives_model to its name "
                "or folder, or make one from the packaged encoder with ssrem train masked-lm"
            )
        device = self.config.device
        return spec, {"model": model, "device": None if device == "auto" else device}

    def _learned_from(self) -> str:
        return f"|loss:{self.config.loss}|neg:{self.config.negatives}"
