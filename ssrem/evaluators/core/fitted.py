"""What evaluators with weights of their own have in common: a state, how it is saved, and a signature that names it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Provider, TrainedEvaluator, Training
from ssrem.evaluators.core import saved as stored
from ssrem.evaluators.core.scaling import Bounds, unit_range
from ssrem.samples import Floats


class State(Protocol):
    """What learning leaves. tensors: by name. bounds: of parts. tuned: on how many human scores."""

    @property
    def tensors(self) -> Mapping[str, NDArray[Any]]: ...

    @property
    def bounds(self) -> Mapping[str, Bounds]: ...

    @property
    def tuned(self) -> int: ...


S = TypeVar("S", bound=State)


class Fitted(TrainedEvaluator, Generic[S]):
    """A trained evaluator whose `fit`, `fine_tuned` and `load` leave a state S."""

    form: ClassVar[str]
    """Names the format in which it is saved, and changes with it."""

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
            verbs = {"candidates": "fit", "labels": "fine_tuned"}
            way = " or ".join(verb for source, verb in verbs.items() if source in self.learns_from)
            raise EvaluatorError(f"{self.name} is not trained yet; call {way}, or load a saved model")
        return self._state

    def set_state(self, state: S) -> None:
        """Become the evaluator that learned this; EvaluatorError where it does not fit settings and encoder."""
        self._state, self._weights_hash = state, self._hash(state)

    @property
    def signature(self) -> str:
        about = self._about(self.state)
        return f"{self.name}|{about}|seed:{self.config.seed}|w:{self._weights_hash[:8]}"

    def f_unit(self, f: Floats) -> Floats:
        """What `score_candidates` gives, scaled to the unit range by the bounds that were fitted once."""
        return unit_range(f, self.state.bounds[self.parts[0]])

    def save(self, folder: Path, *, card: Mapping[str, Any] | None = None) -> None:
        state = self.state
        stored.write(folder, self, self.form, state.tensors, state.bounds, card, {"tuned": state.tuned})

    @classmethod
    def load(cls, folder: Path, *, encoder: Encoder | None = None) -> Self:
        """encoder: one that is loaded already, used where its signature is the model's."""
        saved = stored.read(folder, cls.name, cls.form, encoder)
        try:
            evaluator = cls._made_of(folder, saved)
            evaluator.set_state(evaluator._state_of(saved))
        except EvaluatorError as error:
            raise EvaluatorError(f"{folder}: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise stored.foreign(folder, error) from error
        evaluator.training = saved.training
        if evaluator.signature != saved.about["signature"]:
            raise EvaluatorError(
                f"{folder}: reads as {evaluator.signature}, saved as {saved.about['signature']}; "
                f"{stored.MANIFEST} or what lies beside it was changed, copy or train it again"
            )
        return evaluator

    @classmethod
    def _made_of(cls, folder: Path, saved: stored.Saved) -> Self:
        """The saved evaluator without its state."""
        return cls(saved.encoder, cls.config_class.of(saved.about["config"]))

    @abstractmethod
    def _state_of(self, saved: stored.Saved) -> S:
        """The saved state; KeyError or EvaluatorError where something is missing or does not fit."""

    @abstractmethod
    def _about(self, state: S) -> str:
        """The signature's middle: settings that change a score, and what was learned from."""

    def _hash(self, state: S) -> str:
        return stored.tensors_hash(state.tensors, state.bounds)


class Encoding(Fitted[S]):
    """A fitted evaluator that reads texts through an encoder."""

    encoder: Encoder

    def __init__(self, encoder: Encoder | None, config: Any = None) -> None:
        if encoder is None:
            raise EvaluatorError(f"{self.name} needs an encoder; pass what ssrem.encoders.load_encoder gives")
        super().__init__(encoder, config)

    @classmethod
    def create(cls, settings: Mapping[str, Any], provider: Provider) -> Self:
        return cls(provider.encoder(), cls.config_class.of(settings))

    @classmethod
    def encoder_spec(cls, chosen: str) -> str | None:
        return chosen
