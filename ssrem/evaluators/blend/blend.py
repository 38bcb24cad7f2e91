"""Evaluators combined: a weighted mean of their standardised scores, its weights learned and shown."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Evaluator, Scores, TrainedEvaluator, Training
from ssrem.evaluators.blend.config import BlendConfig, BlendRefConfig
from ssrem.evaluators.blend.members import Members, load_members
from ssrem.evaluators.blend.state import TENSORS, State
from ssrem.evaluators.core.candidate_columns import CandidateColumns
from ssrem.evaluators.core.scaling import unit_range
from ssrem.files import read_json, read_tensors, write_json, write_tensors
from ssrem.samples import TEST, Candidates, Floats, Progress, Sample

FORMAT = "ssrem-blend-1"
MANIFEST = "evaluator.json"
WEIGHTS = "weights.safetensors"
# So many responses are scored at a time with all their candidates.
_RESPONSES = 256


class Blend(TrainedEvaluator):
    """f = Σ weight · z over other evaluators' f, each standardised by what was seen when it was fitted.

    `fit` learns the weights without human scores (Σ |weight| = 1 then, and f lies within ± `clip`); `fine_tuned`
    learns them from human scores (f then predicts the score on the unit range, and can pass its ends). The default
    parts need no training: how near the response is to the last turns, how much likelier the context makes it,
    a token and in all, and how likely it is. Likelier a token favours short responses (ρ with the number of words
    of -.59 on dailydialog-zhao), likelier in all long ones (.42): a blend with both follows the length least (-.05).
    `training.figures` show how f follows it. The part `length` has no weight until human scores say whether long
    responses are better or worse.

    members: evaluators at hand, ready to score, by part or as a list; they decide the parts. The others are built
    by the settings. A sample's reference is not read. Parts with one language model share its passes, and the
    last samples' scores are kept, so that cross-validation scores a sample once.
    """

    name: ClassVar[str] = "blend"
    range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    source: ClassVar[str] = "ssrem: conditional logistic regression over evaluators (McFadden 1974)"
    parts: ClassVar[tuple[str, ...]] = ("f",)
    config_class: ClassVar[type[Any]] = BlendConfig
    takes_encoder: ClassVar[bool] = False
    takes_members: ClassVar[bool] = True
    test_sample: ClassVar[int | None] = 50
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates", "labels"})
    _learn: ClassVar[str] = "fit or fine_tuned"

    def __init__(
        self,
        encoder: Encoder | None = None,
        config: BlendConfig | None = None,
        *,
        members: Mapping[str, Evaluator] | Sequence[Evaluator] | None = None,
    ) -> None:
        """encoder: None, as the parts bring their own. EvaluatorError for parts that cannot be had."""
        self.config: BlendConfig = config or self.config_class()
        given = _by_part(members)
        if given and [(p.name, p.evaluator) for p in self.config.members] != _kinds(given):
            parts = "+".join(f"{part}={kind}" for part, kind in _kinds(given))
            self.config = replace(self.config, parts=parts, settings="{}")
        self.members = Members(self.config.members, referenced="reference" in self.needs, given=given)
        self.training: Training | None = None
        self._state: State | None = None

    @property
    def state(self) -> State:
        """The fitted state; EvaluatorError before `fit`, `fine_tuned` or `load`."""
        if self._state is None:
            raise EvaluatorError(f"{self.name} has no weights yet; call {self._learn}, or load a saved model")
        return self._state

    def keep(self, state: State) -> None:
        """Take over a fitted state."""
        self._state = state

    @property
    def weights(self) -> dict[str, float]:
        """Part → its weight, as a share of the sum of absolute weights."""
        weights = self.state.weights
        total = float(np.abs(weights).sum()) or 1.0
        return {name: float(w) / total for name, w in zip(self.members.names, weights, strict=True)}

    @property
    def signature(self) -> str:
        state = self.state
        digest = hashlib.sha256()
        for tensor in state.tensors().values():
            digest.update(tensor.tobytes())
        return (
            f"{self.name}|parts:{self.members.signature}|clip:{self.config.clip:g}|tuned:{state.tuned}"
            f"|seed:{self.config.seed}|w:{digest.hexdigest()[:8]}"
        )

    def fit(self, candidates: Candidates, *, progress: Progress | None = None) -> Training:
        """Learn the weights by telling true responses from their negatives, `contexts` of the train split; the
        valid split chooses how far they may part from one another and gives the bounds."""
        from ssrem.evaluators.blend import fit as blend_fit

        state, self.training = blend_fit.fit(self.name, self.members, candidates, self.config, progress)
        self.keep(state)
        return self.training

    def fine_tuned(
        self,
        annotated: Sequence[tuple[Sample, float]],
        *,
        scale: tuple[float, float] = (1.0, 5.0),
        progress: Progress | None = None,
    ) -> Self:
        """A copy that has its weights from human scores; this evaluator is left as it is, and need not be fitted.

        scale: the lowest and highest score a rater could give; f learns (score - low) / (high - low) by ridge
        regression that holds on to the weights learned before, or to equal ones. With human scores a part may count
        against its meaning. EvaluatorError for scores beyond the scale, or fewer than 10 samples or 5 contexts.
        """
        from ssrem.evaluators.blend import tune as blend_tune

        tuned = copy.copy(self)
        state, tuned.training = blend_tune.tune(
            self.name, self.members, annotated, scale, self._state, self.config, progress
        )
        tuned.keep(state)
        return tuned

    def score(self, samples: Sequence[Sample]) -> Floats:
        """f of each sample."""
        return self.components(samples).f

    def components(self, samples: Sequence[Sample]) -> Scores:
        """f and f_unit; the other parts are NaN."""
        state, features = self.state, self.members.features(samples)
        f, absent = state.f(features.values, self.config.clip), np.full(len(samples), np.nan)
        return Scores(f, absent, absent, self.f_unit(f), absent, features.truncated)

    def f_unit(self, f: Floats) -> Floats:
        """f scaled to the unit range by the bounds that were fitted once."""
        return unit_range(f, self.state.bounds)

    def score_candidates(self, candidates: Candidates, split: int | None = TEST) -> dict[str, Floats]:
        """Kind → f (n, k) for GT, the kinds at hand and Context (the last turn copied); NaN where missing.

        Every part scores every candidate: with a language model among them, a thousand responses take minutes.
        """
        found = CandidateColumns.of(candidates, split)
        f = np.full(found.joined.shape, np.nan)
        for first in range(0, len(found.rows), _RESPONSES):
            here = slice(first, first + _RESPONSES)
            there = found.joined[here] >= 0
            contexts = [
                tuple(candidates.texts[at] for at in range(low, high))
                for low, high in zip(found.start[here].tolist(), found.stop[here].tolist(), strict=True)
            ]
            at = zip(np.nonzero(there)[0].tolist(), found.joined[here][there].tolist(), strict=True)
            f[here][there] = self.score([Sample(contexts[row], candidates.texts[text]) for row, text in at])
        return found.by_kind(f)

    def save(self, folder: Path, *, card: Mapping[str, Any] | None = None) -> None:
        """Also each part, in members/PART; the manifest comes last, so a folder that has it is whole."""
        state, signature = self.state, self.signature
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).unlink(missing_ok=True)
        self.members.save(folder)
        digest = write_tensors(folder / WEIGHTS, state.tensors())
        if card is not None:
            write_json(folder / "card.json", card)
        about = {
            "format": FORMAT,
            "name": self.name,
            "signature": signature,
            "config": asdict(self.config),
            "weights": self.weights,
            "sha256": {WEIGHTS: digest},
            "training": asdict(self.training) if self.training else None,
        }
        write_json(folder / MANIFEST, about)

    @classmethod
    def load(cls, folder: Path) -> Self:
        about = read_json(folder / MANIFEST, ("format", "name"))
        if about["format"] != FORMAT or about["name"] != cls.name:
            raise EvaluatorError(
                f"{folder}: holds {about['name']} in format {about['format']}, expected {cls.name} in {FORMAT}"
            )
        about = read_json(folder / MANIFEST, ("config", "signature", "sha256"))
        try:
            config: BlendConfig = cls.config_class.of(about["config"])
            training = Training(**about["training"]) if about.get("training") else None
            digest = about["sha256"][WEIGHTS]
        except (KeyError, TypeError, AttributeError) as error:
            raise EvaluatorError(
                f"{folder / MANIFEST}: not as ssrem writes it ({error}); train again"
            ) from error
        tensors = read_tensors(folder / WEIGHTS, digest, TENSORS)
        evaluator = cls(None, config, members=load_members(folder, config.members))
        evaluator.keep(State.of(tensors, len(evaluator.members.names), folder / WEIGHTS))
        evaluator.training = training
        if evaluator.signature != about["signature"]:
            raise EvaluatorError(
                f"{folder}: reads as {evaluator.signature}, saved as {about['signature']}; "
                "a part or the manifest was changed, copy or train it again"
            )
        return evaluator


class BlendRef(Blend):
    """h: a weighted sum over evaluators that may read the reference, its weights learned from human scores alone.

    A part gives h where it has one, else g, else f. The true response is its own reference, so telling it from
    negatives teaches nothing here: `fit` refuses. `score` is h, NaN without a reference.
    """

    name: ClassVar[str] = "blend-ref"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "reference"})
    parts: ClassVar[tuple[str, ...]] = ("h",)
    source: ClassVar[str] = "ssrem: ridge regression over evaluators"
    config_class: ClassVar[type[Any]] = BlendRefConfig
    learns_from: ClassVar[frozenset[str]] = frozenset({"labels"})
    _learn: ClassVar[str] = "fine_tuned"

    def fit(self, candidates: Candidates, *, progress: Progress | None = None) -> Training:
        raise EvaluatorError(f"{self.name} learns from human scores alone; call fine_tuned, or fit a blend")

    def score(self, samples: Sequence[Sample]) -> Floats:
        """h of each sample."""
        return self.components(samples).h

    def components(self, samples: Sequence[Sample]) -> Scores:
        """h; the other parts are NaN."""
        there = np.array([sample.reference is not None for sample in samples], dtype=bool)
        h, absent = np.full(len(samples), np.nan), np.full(len(samples), np.nan)
        truncated = np.zeros(len(samples), dtype=bool)
        found = super().components([sample for sample, has in zip(samples, there, strict=True) if has])
        h[there], truncated[there] = found.f, found.truncated
        return Scores(absent, absent, h, absent, absent, truncated)

    def score_candidates(self, candidates: Candidates, split: int | None = TEST) -> dict[str, Floats]:
        raise EvaluatorError(f"{self.name} has no f: candidates have no reference but the true response")


def _by_part(members: Mapping[str, Evaluator] | Sequence[Evaluator] | None) -> dict[str, Evaluator]:
    if members is None or isinstance(members, Mapping):
        return dict(members or {})
    named = {member.name: member for member in members}
    if len(named) < len(members):
        raise EvaluatorError("two members have one name; hand them over as a mapping, part → evaluator")
    return named


def _kinds(members: Mapping[str, Evaluator]) -> list[tuple[str, str]]:
    return [(part, member.name) for part, member in members.items()]
