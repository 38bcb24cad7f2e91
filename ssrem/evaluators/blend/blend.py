"""Evaluators combined: a weighted mean of their standardised scores, its weights learned and shown."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Evaluator, Provider, Scores
from ssrem.evaluators.blend.config import BlendConfig, BlendFastConfig, BlendRefConfig
from ssrem.evaluators.blend.members import Members, load_members
from ssrem.evaluators.blend.state import State
from ssrem.evaluators.core.fitted import Fitted
from ssrem.evaluators.core.saved import Saved
from ssrem.evaluators.core.state import Run
from ssrem.samples import Candidates, Labels, Progress, Sample
from ssrem.training import Training


class Blend(Fitted[State]):
    """f = Σ weight · z over other evaluators' f, each standardised by its scores of true responses in the fit.

    `fit` learns the weights without human scores: Σ |weight| = 1, and f lies from -`clip` to `cap`. `fine_tuned`
    learns them from human scores: f predicts the score on the unit range, and may exceed it. The default parts are
    those of `BlendFast` and `lm-pmi`, how much likelier the context makes the response, as a mean over its
    tokens, which favours short responses, and as their sum, which favours long ones. The mean log-probability
    itself, `lm-coherence`, follows wording and length. Like `length` it is a control, which has no weight until
    human scores tell whether much of it is good.

    members: evaluators that are ready to score, by part or as a list; they decide the parts. The others are built from
    the settings. A sample's reference is not read. Parts with one language model share its passes, and the latest
    scores are remembered, so that a cross-validation scores each sample once.
    """

    name: ClassVar[str] = "blend"
    range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    source: ClassVar[str] = "ssrem: pairwise logistic regression over evaluators (Bradley and Terry 1952)"
    parts: ClassVar[tuple[str, ...]] = ("f",)
    config_class: ClassVar[type[Any]] = BlendConfig
    form: ClassVar[str] = "ssrem-blend-1"
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates", "labels", "candidates+labels", "sets"})
    judged: ClassVar[int] = 0
    config: BlendConfig

    def __init__(
        self,
        encoder: Encoder | None = None,
        config: BlendConfig | None = None,
        *,
        members: Mapping[str, Evaluator] | Sequence[Evaluator] | None = None,
    ) -> None:
        """encoder: None, because the parts have their own. EvaluatorError for parts that cannot be used."""
        if encoder is not None:
            raise EvaluatorError(f"{self.name} takes no encoder, its parts have their own; pass None")
        super().__init__(None, config)
        at_hand = _by_part(members)
        kinds = [(part, member.name) for part, member in at_hand.items()]
        if at_hand and kinds != [(part.name, part.evaluator) for part in self.config.members]:
            parts = "+".join(f"{part}={kind}" for part, kind in kinds)
            self.config = replace(self.config, parts=parts, settings="{}")
        self.members = Members(self.config.members, referenced="reference" in self.needs, at_hand=at_hand)

    @classmethod
    def create(cls, settings: Mapping[str, Any], provider: Provider) -> Self:
        """With the provider's evaluators for the parts that have to be trained first."""
        config: BlendConfig = cls.config_class.of(settings)
        members = {
            part.name: provider.evaluator(part.evaluator) if part.learns else part.build()
            for part in config.members
        }
        return cls(None, config, members=members)

    @property
    def weights(self) -> dict[str, float]:
        """Part → its weight, as a share of the sum of absolute weights."""
        weights = self.state.weights
        total = float(np.abs(weights).sum()) or 1.0
        return {name: float(w) / total for name, w in zip(self.members.names, weights, strict=True)}

    def _about(self, state: State) -> str:
        return f"parts:{self.members.signature}|clip:{self.config.clip:g}|cap:{self.config.cap:g}|tuned:{state.tuned}"

    def _hash(self, state: State) -> str:
        digest = hashlib.sha256()
        for tensor in state.tensors.values():
            digest.update(tensor.tobytes())
        return digest.hexdigest()

    def _fit(self, candidates: Candidates, run: Run) -> tuple[State, Training]:
        """Learn on `contexts` responses of the train split; the valid split chooses the strength of regularisation and
        gives the bounds. There is no checkpoint, as most of the time goes into the parts' scores."""
        from ssrem.evaluators.blend.fit import fit

        return fit(self.name, self.members, candidates, self.config, run.progress)

    def _tune(
        self, annotated: Sequence[tuple[Sample, float]], scale: tuple[float, float], run: Run
    ) -> tuple[State, Training]:
        """f learns (score - low) / (high - low) by ridge regression towards the weights learned before, or equal ones:
        the evaluator need not be fitted. A weight may be negative."""
        from ssrem.evaluators.blend.tune import tune

        return tune(self.name, self.members, annotated, scale, self._state, self.config, run.progress)

    def tuned_on(self, sets: Mapping[str, Labels], *, progress: Progress | None = None) -> Self:
        """From several sets at once weights that hold on each: see `tune_on_sets`, whose figures show it."""
        if len(sets) < 2:
            return super().tuned_on(sets, progress=progress)
        from ssrem.evaluators.blend.tune import tune_on_sets

        tuned = copy.copy(self)
        state, tuned.training = tune_on_sets(
            self.name, self.members, sets, self._state, self.config, progress
        )
        tuned.set_state(state)
        return tuned

    def compute(self, samples: Sequence[Sample]) -> Scores:
        """f and f_unit; the other parts are NaN, and all are where a part of the blend has no score."""
        scored = self.members.scores(samples)
        f = self.state.f(scored.values, self.config.limits)
        return Scores.of(scored.truncated, scored.reasons.tolist(), f=f, f_unit=self.f_unit(f))

    def _save_more(self, folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
        """Each part, in members/PART."""
        self.members.save(folder)
        return {"weights": self.weights}, {}

    @classmethod
    def _untrained(cls, folder: Path, saved: Saved) -> Self:
        config: BlendConfig = cls.config_class.of(saved.about["config"])
        return cls(None, config, members=load_members(folder, config.members))

    def _state_of(self, saved: Saved) -> State:
        return State.of(saved.tensors, len(self.members.names))


class BlendFast(Blend):
    """A `Blend` without a language model.

    Its parts: the cosine of a sentence encoder with the last turn, `ssrem-minilm`, and three that recognise faults:
    `novelty` (copied words), `own-turn` (the speaker's own turn again), `fluency` (word order). `length` is a control.
    """

    name: ClassVar[str] = "blend-fast"
    config_class: ClassVar[type[Any]] = BlendFastConfig


class BlendRef(Blend):
    """h: a weighted sum over evaluators that may read the reference, its weights learned from human scores alone.

    A part gives h where it has one, else g, else f. The true response is its own reference, so telling it from
    negatives teaches nothing here: `fit` refuses. h is NaN without a reference.
    """

    name: ClassVar[str] = "blend-ref"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "reference"})
    parts: ClassVar[tuple[str, ...]] = ("h",)
    source: ClassVar[str] = "ssrem: ridge regression over evaluators"
    config_class: ClassVar[type[Any]] = BlendRefConfig
    learns_from: ClassVar[frozenset[str]] = frozenset({"labels", "sets"})

    def _fit(self, candidates: Candidates, run: Run) -> tuple[State, Training]:
        raise EvaluatorError(f"{self.name} learns from human scores alone; call fine_tuned, or fit a blend")

    def compute(self, samples: Sequence[Sample]) -> Scores:
        """h; the other parts are NaN, and all are where a part of the blend has no score."""
        rows = [row for row, sample in enumerate(samples) if sample.reference is not None]
        scored = self.members.scores([samples[row] for row in rows])
        h = self.state.f(scored.values, self.config.limits)
        return Scores.of(scored.truncated, scored.reasons.tolist(), h=h).placed(rows, [""] * len(samples))


def _by_part(members: Mapping[str, Evaluator] | Sequence[Evaluator] | None) -> dict[str, Evaluator]:
    if members is None or isinstance(members, Mapping):
        return dict(members or {})
    named = {member.name: member for member in members}
    if len(named) < len(members):
        raise EvaluatorError("two members have one name; pass a mapping, part → evaluator")
    return named
