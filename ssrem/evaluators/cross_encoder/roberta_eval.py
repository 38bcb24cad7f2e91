"""RoBERTa-eval: a reference-free cross-encoder that predicts human scores (Zhao et al. 2020, section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ssrem.evaluators.core.state import NetworkState, Run
from ssrem.evaluators.cross_encoder.config import CrossEncoderConfig
from ssrem.evaluators.cross_encoder.cross_encoder import CrossEncoder
from ssrem.samples import Sample
from ssrem.training import Training


@dataclass(frozen=True)
class RobertaEvalConfig(CrossEncoderConfig):
    """CrossEncoderConfig and the settings of `fine_tuned`, tune_*; tune_batch_size counts annotated responses.

    The paper fine-tunes all of RoBERTa-large: prior 'none', pooling 'cls', freeze 0, all rates 3e-6, batches of 3,
    2 epochs of `fit` and 50 of `fine_tuned`.
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
    """f = sigmoid(a · cos + b + MLP(pooled states)): a prediction of the human score, on the unit range.

    Unsupervised: `fit` alone, true responses against random ones. Supervised: `fine_tuned` alone. Semi-supervised:
    `fine_tuned` after `fit`.
    """

    name: ClassVar[str] = "roberta-eval"
    source: ClassVar[str] = "Zhao et al. 2020, section 5.2 and 5.3, with a prior"
    config_class: ClassVar[type[Any]] = RobertaEvalConfig
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates", "labels", "candidates+labels"})
    head: ClassVar[str] = "mlp"
    config: RobertaEvalConfig

    def negatives(self) -> tuple[str, dict[str, Any]]:
        return "random-1", {}

    def _tune(
        self, annotated: Sequence[tuple[Sample, float]], scale: tuple[float, float], run: Run
    ) -> tuple[NetworkState, Training]:
        from ssrem.evaluators.cross_encoder.fit import tune

        config = replace(
            self.config,
            epochs=self.config.tune_epochs,
            batch_size=self.config.tune_batch_size,
            learning_rate=self.config.tune_learning_rate,
            head_learning_rate=self.config.tune_head_learning_rate,
        )
        fitted = self._state is not None
        net = self._network(self.state) if fitted else self._fresh_net()
        from_0 = fitted or config.prior == "cosine"
        return tune(self.name, net, config, annotated, scale, run, from_0=from_0)
