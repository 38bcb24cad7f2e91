"""What evaluators with weights of their own have in common: a state, and a signature that names it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import TrainedEvaluator, Training

S = TypeVar("S")


class Fitted(TrainedEvaluator, Generic[S]):
    """A trained evaluator whose `fit`, `fine_tuned` and `load` leave a state S, taken over by its `keep`."""

    def __init__(self, encoder: Encoder | None, config: Any = None) -> None:
        self.encoder = encoder
        self.config = config or self.config_class()
        self.training: Training | None = None
        self._state: S | None = None
        self._weights_hash = ""

    @property
    def state(self) -> S:
        """What was learned; EvaluatorError before anything was."""
        if self._state is None:
            raise EvaluatorError(f"{self.name} is not trained yet; call fit, or load a saved model")
        return self._state

    @property
    def signature(self) -> str:
        about = self._about(self.state)
        return f"{self.name}|{about}|seed:{self.config.seed}|w:{self._weights_hash[:8]}"

    @abstractmethod
    def _about(self, state: S) -> str:
        """The signature's middle: settings that change a score, and what was learned from."""
