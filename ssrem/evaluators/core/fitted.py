"""Evaluators that learn: fitted, tuned, saved and loaded, with a signature that names what they learned."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from pydantic import create_model, model_validator

from ssrem.encoders import DEFAULT_ENCODER
from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators import MANIFEST, source_hash
from ssrem.evaluators.base import Evaluator, EvaluatorSettings, Provider, Trained
from ssrem.evaluators.core import saved as stored
from ssrem.evaluators.core.scaling import unit_range
from ssrem.evaluators.core.state import Run, State
from ssrem.files import write_json, write_tensors
from ssrem.samples import Candidates, Floats, Labels, Progress, Sample
from ssrem.training import Training

S = TypeVar("S", bound=State)


def settings_by(kind: Any, defaults: Mapping[str, Any]) -> type[EvaluatorSettings]:
    """A model of settings with these defaults that `kind.check_settings` checks."""

    def check(self: EvaluatorSettings) -> EvaluatorSettings:
        kind.check_settings({name: getattr(self, name) for name in self.model_fields_set})
        return self

    validators: Any = {"check": model_validator(mode="after")(check)}
    fields: Any = {name: (Any, default) for name, default in defaults.items()}
    model: Any = create_model("Settings", __base__=EvaluatorSettings, __validators__=validators, **fields)
    return model  # type: ignore[no-any-return]


class Fitted(Evaluator, Generic[S]):
    """An evaluator that learns from candidates, from human scores, or from both; S is the state that this leaves."""

    config_class: ClassVar[type[Any]]
    """Its settings: a dataclass derived from Config, with a seed."""
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates"})
    form: ClassVar[str]
    """Name of the format in which it is saved; another name for every change of the format."""
    judged: ClassVar[int] = 500
    """As that of `Trained`."""

    def __init__(self, encoder: Encoder | None, config: Any = None) -> None:
        self.encoder = encoder
        self.config = config or self.config_class()
        self.training: Training | None = None
        self._state: S | None = None
        self._net: Any = None
        self._weights_hash = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "config_class" in dir(cls):
            defaults = {field.name: field.default for field in dataclass_fields(cls.config_class)}
            cls.settings_model = settings_by(cls, defaults)

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """All settings, with defaults for those not in `settings`."""
        return asdict(cls.config_class.of(settings))

    @property
    def settings(self) -> Any:
        """The settings as those of `Trained`."""
        return self.settings_model(**asdict(self.config))

    @property
    def state(self) -> S:
        """What was learned; EvaluatorError before training."""
        if self._state is None:
            verbs = {"candidates": "fit", "labels": "fine_tuned"}
            way = " or ".join(verb for source, verb in verbs.items() if source in self.learns_from)
            raise EvaluatorError(f"{self.name} is not trained yet; call {way}, or load a saved model")
        return self._state

    @property
    def net(self) -> Any:
        """The network with the learned weights, None for an evaluator without one; EvaluatorError before training."""
        return self._net if self.state else None

    def set_state(self, state: S) -> None:
        """Replace what was learned; EvaluatorError if it does not fit the settings and the encoder."""
        self._net = self._network(state)
        self._state, self._weights_hash = state, self._hash(state)

    def fit(
        self, candidates: Candidates, *, progress: Progress | None = None, checkpoint: Path | None = None
    ) -> Training:
        """As `Trained.fit`."""
        state, training = self._fit(candidates, self._run(progress, checkpoint))
        self.set_state(state)
        warning = self._no_better_than_chance(candidates)
        notes = (*training.notes, warning) if warning else training.notes
        self.training = replace(training, notes=notes, warning=warning)
        return self.training

    def fine_tuned(
        self,
        annotated: Sequence[tuple[Sample, float]],
        *,
        scale: tuple[float, float] = (1.0, 5.0),
        progress: Progress | None = None,
    ) -> Self:
        """A copy that has learned from human scores; this evaluator does not change.

        annotated: samples with their human score. scale: the lowest and highest score that a rater could give. Some
        of the contexts, with all of their responses, are held out and choose the epoch. The bounds of f become those
        of the annotated samples. EvaluatorError for scores beyond the scale, for fewer than 10 samples or 5 contexts,
        and from an evaluator that cannot learn from human scores.
        """
        state, training = self._tune(annotated, scale, self._run(progress, None))
        tuned = copy.copy(self)
        tuned.training = training
        tuned.set_state(state)
        return tuned

    def tuned_on(self, sets: Mapping[str, Labels], *, progress: Progress | None = None) -> Self:
        """As `Trained.tuned_on`."""
        if len(sets) != 1:
            raise EvaluatorError(f"{self.name} learns from one annotated set at a time, not from {len(sets)}")
        (labels,) = sets.values()
        return self.fine_tuned(labels.pairs, scale=labels.scale, progress=progress)

    def _no_better_than_chance(self, candidates: Candidates) -> str:
        return Trained._no_better_than_chance(self, candidates)  # type: ignore[arg-type]

    def f_unit(self, f: Floats) -> Floats:
        """Scores of `score_candidates`, scaled to the unit range by the bounds of the last training."""
        return unit_range(f, self.state.bounds[self.parts[0]])

    @property
    def signature(self) -> str:
        about = self._about(self.state)
        weights = f"seed:{self.config.seed}|w:{self._weights_hash[:8]}"
        return f"{self.name}|{about}|{weights}{source_hash(type(self))}"

    def save(self, folder: Path) -> None:
        state, encoder = self.state, self.encoder
        folder.mkdir(parents=True, exist_ok=True)
        # The manifest is written last: a folder that has one is complete.
        (folder / MANIFEST).unlink(missing_ok=True)
        more, digests = self._save_more(folder)
        digests = {stored.WEIGHTS: write_tensors(folder / stored.WEIGHTS, state.tensors), **digests}
        if encoder is not None and encoder.origin is None:
            encoder.save(folder / "encoder")
        about = {
            "format": self.form,
            "name": self.name,
            "signature": self.signature,
            "config": asdict(self.config),
            "bounds": {part: asdict(limits) for part, limits in state.bounds.items()},
            "encoder": encoder and {"signature": encoder.signature, "origin": encoder.origin},
            "sha256": digests,
            "training": asdict(self.training) if self.training else None,
            "tuned": state.tuned,
        }
        write_json(folder / MANIFEST, {**about, **more})

    @classmethod
    def load(cls, folder: Path, *, encoder: Encoder | None = None) -> Self:
        """As the base class. encoder: one that is loaded already, used if its signature is the model's."""
        saved = stored.read(folder, cls.name, cls.form, encoder)
        try:
            evaluator = cls._untrained(folder, saved)
            evaluator.set_state(evaluator._state_of(saved))
        except EvaluatorError as error:
            raise EvaluatorError(f"{folder}: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise stored.foreign(folder, error) from error
        evaluator.training = saved.training
        if evaluator.signature != saved.about["signature"]:
            raise EvaluatorError(
                f"{folder}: reads as {evaluator.signature}, saved as {saved.about['signature']}; "
                f"{MANIFEST} or what lies beside it was changed, copy or train it again"
            )
        return evaluator

    @abstractmethod
    def _fit(self, candidates: Candidates, run: Run) -> tuple[S, Training]:
        """What `fit` learns."""

    def _tune(
        self, annotated: Sequence[tuple[Sample, float]], scale: tuple[float, float], run: Run
    ) -> tuple[S, Training]:
        """What `fine_tuned` learns."""
        raise EvaluatorError(f"{self.name} does not learn from human scores")

    def _run(self, progress: Progress | None, checkpoint: Path | None) -> Run:
        return Run(progress, checkpoint)

    def _network(self, state: S) -> Any:
        """The network with the weights of `state`, if there is one; EvaluatorError if they do not fit."""
        return None

    def _save_more(self, folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
        """Write what belongs to the evaluator besides weights and encoder.

        Returns further keys of the manifest, and the sha256 of files by their path within `folder`.
        """
        return {}, {}

    @classmethod
    def _untrained(cls, folder: Path, saved: stored.Saved) -> Self:
        """The saved evaluator without its state."""
        return cls(saved.encoder, cls.config_class.of(saved.about["config"]))

    @abstractmethod
    def _state_of(self, saved: stored.Saved) -> S:
        """The saved state; KeyError or EvaluatorError if something is missing or does not fit."""

    @abstractmethod
    def _about(self, state: S) -> str:
        """The middle of the signature: the settings that change a score, and what was learned from."""

    def _hash(self, state: S) -> str:
        """sha256 of everything learned; its first 8 digits end the signature."""
        return stored.tensors_hash(state.tensors, state.bounds)


class Encoding(Fitted[S]):
    """A fitted evaluator that reads texts through an encoder."""

    encoder: Encoder
    default_encoder: ClassVar[str | None] = DEFAULT_ENCODER
    """The spec of the encoder that it uses unless another is chosen."""

    def __init__(self, encoder: Encoder | None, config: Any = None) -> None:
        if encoder is None:
            raise EvaluatorError(f"{self.name} needs an encoder; pass what ssrem.encoders.load_encoder gives")
        super().__init__(encoder, config)

    @classmethod
    def create(cls, settings: Mapping[str, Any], provider: Provider) -> Self:
        return cls(provider.encoder(), cls.config_class.of(settings))

    def _run(self, progress: Progress | None, checkpoint: Path | None) -> Run:
        return Run(progress, checkpoint, self.encoder.encode)
