"""Cross-encoders: a transformer reads context and response together and scores the response."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Provider, Scores, Training
from ssrem.evaluators.core import saved as stored
from ssrem.evaluators.core.candidate_columns import score_as_samples
from ssrem.evaluators.core.fitted import Fitted
from ssrem.evaluators.core.saved import Saved
from ssrem.evaluators.cross_encoder.config import CrossEncoderConfig
from ssrem.evaluators.cross_encoder.state import State, sigmoid
from ssrem.negatives import load_generator
from ssrem.samples import TEST, Candidates, Floats, Progress, Sample

if TYPE_CHECKING:
    from ssrem.evaluators.cross_encoder.inputs import Base
    from ssrem.evaluators.cross_encoder.model import CrossNet

_CHUNK = 4_096


class CrossEncoder(Fitted[State]):
    """f = sigmoid(logit) in (0, 1), computed in float32 on any device.

    A context without a turn and an empty or unknown text are read as they are and have a score too. A sample is
    `truncated` where it has more than `max_tokens` tokens, or a text of it more than the prior's encoder reads.
    What `fit` learns is the same for the same seed, device, precision and number of threads.
    """

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    parts: ClassVar[tuple[str, ...]] = ("f",)
    test_sample: ClassVar[int | None] = 200
    shard: ClassVar[int] = 50
    form: ClassVar[str] = "ssrem-cross-encoder-1"
    config: CrossEncoderConfig
    head: ClassVar[str]
    """The form of the head, as CrossNet names them."""

    def __init__(self, encoder: Encoder | None = None, config: Any = None) -> None:
        if encoder is not None:
            raise EvaluatorError(
                f"{self.name} takes no encoder; its setting model names the transformer, pass None"
            )
        super().__init__(None, config)
        self._net: CrossNet | None = None
        self._base: Base | None = None

    @classmethod
    def create(cls, settings: Mapping[str, Any], provider: Provider) -> Self:
        return cls(None, cls.config_class.of(settings))

    @property
    def base(self) -> Base:
        """The transformer as it comes, loaded when first needed."""
        if self._base is None:
            from ssrem.evaluators.cross_encoder.inputs import Base

            self._base = Base(self.name, self.config)
        return self._base

    def set_state(self, state: State, net: CrossNet | None = None) -> None:
        """Become the evaluator that learned this. net: a network that has the weights already."""
        from ssrem.evaluators.cross_encoder.model import CrossNet

        if net is None:
            net = CrossNet(self.base, self.config, self.head)
            net.take(state.tensors)
        self._net = net
        super().set_state(state)

    def _about(self, state: State) -> str:
        settings = self.config
        return (
            f"model:{self.base.fingerprint}|prior:{settings.prior}|pool:{settings.pooling}"
            f"|ctx:{settings.context_turns}|tok:{settings.max_tokens}{self._learned_from()}"
            f"|tuned:{state.tuned}"
        )

    @abstractmethod
    def negatives(self) -> tuple[str, dict[str, Any]]:
        """Spec and settings for ssrem.negatives.load_generator: what `fit` tells the true response from."""

    def fit(
        self, candidates: Candidates, *, progress: Progress | None = None, checkpoint: Path | None = None
    ) -> Training:
        """Learn on the train split to tell true responses from negatives; the valid split chooses the epoch.

        With a prior, epoch 0, its slope and offset fitted and nothing else, is one of those that can be chosen.
        """
        from ssrem.evaluators.cross_encoder.fit import fit
        from ssrem.evaluators.cross_encoder.model import CrossNet

        spec, settings = self.negatives()
        generator = load_generator(spec, **settings)
        net = CrossNet(self.base, self.config, self.head)
        state, self.training = fit(
            self.name, self.base, net, self.config, candidates, generator, progress, checkpoint
        )
        self.set_state(state, net)
        return self.training

    def components(self, samples: Sequence[Sample]) -> Scores:
        """f and f_unit; the other parts are NaN."""
        f, truncated = self._f(samples)
        return Scores.of(truncated, f=f, f_unit=self.f_unit(f))

    def score_candidates(self, candidates: Candidates, split: int | None = TEST) -> dict[str, Floats]:
        """Kind → f (n, k) for GT, the kinds at hand and Context (the last turn copied); NaN where missing."""
        return score_as_samples(candidates, split, lambda samples: self._f(samples)[0], _CHUNK)

    def save(self, folder: Path, *, card: Mapping[str, Any] | None = None) -> None:
        """What was learned; the transformer beside it unless it can be had again by name."""
        state, base = self.state, self.base
        more = {"tuned": state.tuned, "model": {"fingerprint": base.fingerprint, "named": base.named}}
        transformer = None if base.named else base.folder
        stored.write(
            folder, self, self.form, state.tensors, state.bounds, card, more, transformer=transformer
        )

    @classmethod
    def _made_of(cls, folder: Path, saved: Saved) -> Self:
        from ssrem.evaluators.cross_encoder.inputs import Base

        model = saved.about["model"]
        # The device that it was trained on may not be here.
        evaluator = cls(None, replace(cls.config_class.of(saved.about["config"]), device="auto"))
        transformer = None if model["named"] else folder / stored.TRANSFORMER
        evaluator._base = Base(cls.name, evaluator.config, transformer)
        if evaluator.base.fingerprint != model["fingerprint"]:
            raise EvaluatorError(
                f"learned on a model {model['fingerprint']}, but {evaluator.config.model} is now "
                f"{evaluator.base.fingerprint}; bring that model back or train again"
            )
        return evaluator

    def _state_of(self, saved: Saved) -> State:
        return State(saved.tensors, saved.bounds["f"], int(saved.about["tuned"]))

    def _learned_from(self) -> str:
        """What the signature says of the corpus' negatives."""
        return ""

    def _f(self, samples: Sequence[Sample]) -> tuple[Floats, NDArray[np.bool_]]:
        """f, and whether something was left out; a chunk of samples at a time."""
        from ssrem.evaluators.cross_encoder.model import logits

        if self._net is None:
            raise EvaluatorError(f"{self.name} is not trained yet; call fit, or load a saved model")
        f, truncated = np.zeros(len(samples)), np.zeros(len(samples), dtype=bool)
        for first in range(0, len(samples), _CHUNK):
            at = slice(first, first + _CHUNK)
            inputs = self.base.read(samples[at])
            f[at] = sigmoid(logits(self.base, self._net, inputs))
            truncated[at] = inputs.truncated
        return f, truncated
