"""RoBERTa-eval: a reference-free cross-encoder that learns human scores (Zhao et al. 2020, section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ssrem.evaluators.cross_encoder.config import CrossEncoderConfig
from ssrem.evaluators.cross_encoder.cross_encoder import CrossEncoder
from ssrem.samples import Progress, Sample


@dataclass(frozen=True)
class RobertaEvalConfig(CrossEncoderConfig):
    """As CrossEncoderConfig, and tune_*: of `fine_tuned`, on human scores; its batch counts annotated responses.

    The paper fine-tunes all of RoBERTa-large: prior 'none', pooling 'cls', freeze 0, every rate 3e-6, batches of
    3, 2 epochs of `fit` and 50 of `fine_tuned`.
    """

    tune_epochs: int = 8
    tune_batch_size: int = 16
    tune_learning_rate: float = 5e-5
    tune_head_learning_rate: float = 5e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "tune_epochs", "tune_batch_size")
        self.at_least(0, "tune_learning_rate")
        self.above_zero("tune_head_learning_rate")


class RobertaEval(CrossEncoder):
    """f = sigmoid(a · cos + b + MLP(pooled states)): the score that people would give, on the unit range.

    Unsupervised: `fit`, true responses against random ones. Supervised: `fine_tuned` of one that learned nothing
    yet. Semi-supervised: `fine_tuned` of a fitted one.
    """

    name: ClassVar[str] = "roberta-eval"
    source: ClassVar[str] = "Zhao et al. 2020, section 5.2 and 5.3, with a prior"
    config_class: ClassVar[type[Any]] = RobertaEvalConfig
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates", "labels"})
    head: ClassVar[str] = "mlp"
    config: RobertaEvalConfig

    def negatives(self) -> tuple[str, dict[str, Any]]:
        return "random-1", {}

    def fine_tuned(
        self,
        annotated: Sequence[tuple[Sample, float]],
        *,
        scale: tuple[float, float] = (1.0, 5.0),
        progress: Progress | None = None,
    ) -> Self:
        """A copy that has learned from human scores; this evaluator, fitted before or not, is left as it is.

        annotated: samples with their human score. scale: the lowest and highest score a rater could give; f
        learns (score - low) / (high - low) by mean squared error. A tenth of the contexts, with all of their
        responses, is held out and chooses the epoch; epoch 0, what it was before with slope and offset fitted to
        the scores, is among them, unless nothing was fitted and there is no prior. The bounds of f become those
        of the annotated samples. EvaluatorError for scores beyond the scale, or fewer than 10 samples or 5
        contexts.
        """
        from ssrem.evaluators.cross_encoder.fit import tune
        from ssrem.evaluators.cross_encoder.model import CrossNet
        from ssrem.evaluators.cross_encoder.training import Rates

        settings = self.config
        tuned = type(self)(None, settings)
        tuned._base = self.base
        net = CrossNet(self.base, settings, self.head)
        if self._state is not None:
            net.take(self._state.tensors)
        rates = Rates(
            "squared",
            settings.tune_epochs,
            settings.tune_batch_size,
            settings.tune_learning_rate,
            settings.tune_head_learning_rate,
            from_0=self._state is not None or settings.prior == "cosine",
        )
        state, tuned.training = tune(self.name, self.base, net, settings, annotated, scale, rates, progress)
        tuned.set_state(state, net)
        return tuned
