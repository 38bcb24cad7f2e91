"""Cross-encoders: a transformer reads context and response together and scores the response."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Provider, Scores
from ssrem.evaluators.core.fitted import Fitted
from ssrem.evaluators.core.saved import TRANSFORMER, Saved, copy_transformer
from ssrem.evaluators.core.state import NetworkState, Run
from ssrem.evaluators.cross_encoder.config import CrossEncoderConfig
from ssrem.negatives import load_generator
from ssrem.samples import Candidates, Floats, Sample
from ssrem.training import Training

if TYPE_CHECKING:
    from ssrem.evaluators.cross_encoder.inputs import Base

_CHUNK = 4_096


class CrossEncoder(Fitted[NetworkState]):
    """f = sigmoid(logit) in (0, 1), computed in float32 on any device.

    Empty contexts and empty or unknown texts are scored like others. A sample is `truncated` if it has more than
    `max_tokens` tokens, or one of its texts more than the prior's encoder reads. Training gives equal weights for equal
    seed, device, precision and number of threads.
    """

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    parts: ClassVar[tuple[str, ...]] = ("f",)
    judged: ClassVar[int] = 200
    form: ClassVar[str] = "ssrem-cross-encoder-1"
    config: CrossEncoderConfig
    head: ClassVar[str]
    """Form of the head: 'linear' or 'mlp', see CrossNet."""

    def __init__(self, encoder: Encoder | None = None, config: Any = None) -> None:
        if encoder is not None:
            raise EvaluatorError(
                f"{self.name} takes no encoder; its setting model names the transformer, pass None"
            )
        super().__init__(None, config)

    @classmethod
    def create(cls, settings: Mapping[str, Any], provider: Provider) -> Self:
        return cls(None, cls.config_class.of(settings))

    @cached_property
    def base(self) -> Base:
        """The transformer before training, loaded when first needed."""
        from ssrem.evaluators.cross_encoder.inputs import Base

        return Base(self.name, self.config)

    def _about(self, state: NetworkState) -> str:
        settings = self.config
        return (
            f"model:{self.base.fingerprint}|prior:{settings.prior}|pool:{settings.pooling}"
            f"|ctx:{settings.context_turns}|tok:{settings.max_tokens}{self._learned_from()}"
            f"|tuned:{state.tuned}"
        )

    @abstractmethod
    def negatives(self) -> tuple[str, dict[str, Any]]:
        """The negatives that `fit` learns from: spec and settings for ssrem.negatives.load_generator."""

    def _fit(self, candidates: Candidates, run: Run) -> tuple[NetworkState, Training]:
        from ssrem.evaluators.cross_encoder.fit import fit

        spec, settings = self.negatives()
        generator = load_generator(spec, **settings)
        return fit(self.name, self._fresh_net(), candidates, generator, run)

    def compute(self, samples: Sequence[Sample]) -> Scores:
        f, truncated = self._f(samples)
        return Scores.of(truncated, f=f, f_unit=self.f_unit(f))

    def _save_more(self, folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
        """The transformer, unless it can be loaded by name."""
        model = {"fingerprint": self.base.fingerprint, "named": self.base.named}
        return {"model": model}, {} if self.base.named else copy_transformer(self.base.folder, folder)

    @classmethod
    def _untrained(cls, folder: Path, saved: Saved) -> Self:
        from ssrem.evaluators.cross_encoder.inputs import Base

        model = saved.about["model"]
        # This machine may lack the device of the training.
        evaluator = cls(None, replace(cls.config_class.of(saved.about["config"]), device="auto"))
        transformer = None if model["named"] else folder / TRANSFORMER
        evaluator.base = Base(cls.name, evaluator.config, transformer)
        if evaluator.base.fingerprint != model["fingerprint"]:
            raise EvaluatorError(
                f"learned on a model {model['fingerprint']}, but {evaluator.config.model} is now "
                f"{evaluator.base.fingerprint}; bring that model back or train again"
            )
        return evaluator

    def _fresh_net(self) -> Any:
        """The network before training."""
        from ssrem.evaluators.cross_encoder.model import CrossNet

        return CrossNet(self.base, self.config, self.head)

    def _network(self, state: NetworkState) -> Any:
        net = self._fresh_net()
        net.take(state.tensors)
        return net

    def _state_of(self, saved: Saved) -> NetworkState:
        return NetworkState.of(saved)

    def _learned_from(self) -> str:
        """The part of the signature about loss and negatives."""
        return ""

    def _f(self, samples: Sequence[Sample]) -> tuple[Floats, NDArray[np.bool_]]:
        """f, and whether the sample was truncated, (n,) each."""
        from ssrem.evaluators.cross_encoder.model import logits, sigmoid

        net = self.net
        f, truncated = np.zeros(len(samples)), np.zeros(len(samples), dtype=bool)
        for first in range(0, len(samples), _CHUNK):
            at = slice(first, first + _CHUNK)
            inputs = self.base.read(samples[at])
            f[at] = sigmoid(logits(net, inputs))
            truncated[at] = inputs.truncated
        return f, truncated
