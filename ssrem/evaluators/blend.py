"""Blends: evaluators combined as a weighted sum of their standardised scores, with weights that are learned."""

from __future__ import annotations

import shutil
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from ssrem import trusted_sources
from ssrem.encoders import Encoder
from ssrem.encoders.base import Vectors
from ssrem.encoders.hub import MPNET
from ssrem.encoders.tables import DISTILLED
from ssrem.encoders.transformer import MOVED, AdaptedTransformer, Transformer
from ssrem.errors import EvaluatorError
from ssrem.evaluators import check_name, comes_packaged, evaluator_class, load_evaluator, packaged
from ssrem.evaluators.base import Bounds, Evaluator, EvaluatorSettings, Provider, Scores, Trained
from ssrem.evaluators.cross_encoder import CrossEncoder
from ssrem.files import expanded
from ssrem.samples import Candidates, Floats, Labels, Progress, Sample
from ssrem.settings import LARGEST, Count, Positive, Seed
from ssrem.training import Training

MEMBERS = "members"
"""Subfolder of a saved blend for parts that were loaded from a folder, or trained and do not come with the package."""
# Number of samples that are scored at a time, and number of latest samples whose parts' scores are remembered.
_CHUNK, _REMEMBERED = 8_192, 20_000
# Number of texts whose vectors are remembered for each encoder: 150 MB with 384 dimensions.
_TEXTS = 100_000

Products = Literal["float32", "int8"]
"""The kinds of numbers that encoders and cross-encoders multiply."""


class Part(EvaluatorSettings):
    """One part of a blend."""

    evaluator: str
    """name of the evaluator"""
    name: str = Field("", pattern=r"^([a-z0-9][a-z0-9-]*)?$")
    """the part's own name (default: the evaluator's)"""
    settings: dict[str, Any] = Field({})
    """settings of the evaluator, if it needs no training and has no folder"""
    folder: str = ""
    """folder with a saved evaluator of that name"""
    weight: float = Field(1.0, ge=0, le=1e9)
    """weight before learning, relative to the other parts; a part with 0 is a control, which has no weight, and takes
    no time, until human scores give it one; `length` is always a control"""
    guard: bool = False
    """whether the part keeps its share of the weights when the blend learns from human scores; for parts that recognise
    a fault, such as a copied turn, which is so rare in annotated sets that their scores do not tell what it costs"""

    @property
    def key(self) -> str:
        """The name of the part in the blend: its own or, without one, its evaluator's."""
        return self.name or self.evaluator

    def check(self) -> None:
        """Raise EvaluatorError if the evaluator is unknown or a blend, or cannot have the settings; loads none."""
        check_name(self.evaluator)
        if issubclass(evaluator_class(self.evaluator), Blend):
            raise EvaluatorError("parts: a blend is no part of a blend; name its parts")
        learned = bool(evaluator_class(self.evaluator).learns_from) or self.folder
        if learned and self.settings:
            raise EvaluatorError(
                f"part {self.key} has learned or was saved with its settings; give it none, or a folder alone"
            )
        if not learned:
            evaluator_class(self.evaluator).settings_model(**self.settings)

    def build(self) -> Evaluator:
        """The part's evaluator, loaded or created with the settings; EvaluatorError if that is impossible."""
        kind: Any = evaluator_class(self.evaluator)
        if self.folder:
            trusted_sources.check(self.folder)
            loaded = load_evaluator(expanded(self.folder))
            if loaded.name != self.evaluator:
                raise EvaluatorError(
                    f"part {self.key}: {self.folder} holds {loaded.name}, not {self.evaluator}"
                )
            return loaded
        if kind.learns_from and self.evaluator not in packaged():
            raise EvaluatorError(
                f"part {self.key} has to be trained first; train {self.evaluator}, or name its folder"
            )
        built: Evaluator = load_evaluator(self.evaluator) if kind.learns_from else kind(**self.settings)
        return built


_PMI_SUM = Part(evaluator="lm-pmi", name="lm-pmi-sum", settings={"aggregate": "sum"})
_RETRIEVAL = Part(evaluator="retrieval", weight=2)
_LENGTH = Part(evaluator="length", weight=0)


def _mostly_cosine(*more: Part) -> tuple[Part, ...]:
    """The parts that `blend` and `blend-base` have in common, and `more`: those that read context and response
    together."""
    settings = {"encoder": MPNET}
    return (
        Part(evaluator="cosine", settings={**settings, "join": "mean"}, weight=6),
        Part(evaluator="ssrem-minilm"),
        Part(evaluator="repetition", settings=settings, weight=12, guard=True),
        Part(evaluator="fluency"),
        *more,
        _LENGTH,
    )


class BlendSettings(EvaluatorSettings):
    """Settings of `blend`. The default controls follow the response's length and wording; only human scores can tell
    whether a high value of these is good."""

    parts: tuple[Part, ...] = Field(
        _mostly_cosine(
            _RETRIEVAL,
            Part(evaluator="lm-pmi", weight=2),
            _PMI_SUM.model_copy(update={"weight": 2}),
            Part(evaluator="lm-coherence", weight=0),
        ),
        min_length=1,
    )
    """a list of parts, each a name or a table of `Part`; or @FILE, a TOML file with a table [[parts]] each"""
    negatives: str = "drawn+copied+own+generic+shuffle-golden+other-question"
    """negatives to tell true responses from, named as by `ssrem negatives`; drawn: all those of the speaker tables"""
    generator_settings: dict[str, Any] = Field({})
    """settings of the generator of negatives, such as mask-and-fill's model"""
    contexts: Count = 160
    """responses of the training split that are drawn and scored"""
    valid_contexts: Count = 60
    """responses of the validation split that are drawn and scored"""
    l2: float = Field(1.0, ge=0, le=1e9)
    """regularisation towards the weights before learning; which kinds of negatives there are, and how many of
    each, is arbitrary, and with less regularisation the weights follow the kind that is easiest to tell"""
    clip: Positive = 8.0
    """how far below the mean of true responses a part's score counts at most, in their standard deviations"""
    cap: Positive = 2.0
    """the same above the mean; low, since a response that is closer to its context, or likelier after it, than
    nearly all true ones is no better for that: it may be a copy"""
    products: Products = "int8"
    """numbers that the parts' cross-encoders multiply, and their sentence encoders unless their name sets it; int8:
    whole numbers on the CPU, in half to three quarters of the time"""
    folds: int = Field(5, ge=2, le=LARGEST)
    """folds of the cross-validation by context when learning from the human scores of one set"""
    seed: Seed = 0

    @field_validator("parts", mode="before")
    @classmethod
    def _listed(cls, parts: object) -> object:
        if isinstance(parts, str):
            if not parts.startswith("@"):
                raise ValueError(f"{parts[:60]!r} is no list of parts; give one, or @FILE, a TOML file")
            trusted_sources.check(parts[1:])
            try:
                parts = tomllib.loads(expanded(parts[1:]).read_text(encoding="utf-8"))["parts"]
            except (OSError, ValueError, KeyError) as error:
                raise ValueError(f"{parts} is no TOML file with [[parts]] ({error!r:.100})") from None
        if not isinstance(parts, list | tuple):
            return parts
        listed = [{"evaluator": one} if isinstance(one, str) else one for one in parts]
        return tuple(Part(**one) if isinstance(one, dict) else one for one in listed)

    @field_validator("parts")
    @classmethod
    def _usable(cls, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        for part in parts:
            part.check()
        twice = [name for name, count in Counter(part.key for part in parts).items() if count > 1]
        if twice:
            raise ValueError(f"{twice[0]} stands there twice; give one a name of its own")
        if not any(share for share, part in zip(_shares(parts), parts, strict=True) if not part.guard):
            raise ValueError("controls and guards alone judge nothing; add an evaluator")
        return parts

    @property
    def prior(self) -> Floats:
        """The weights before learning, float64 (m,), with sum 1."""
        shares: Floats = np.array(_shares(self.parts))
        return shares / sum(shares)


def _shares(parts: Iterable[Part]) -> list[float]:
    """The weight of each part before learning; `length` has none."""
    return [0.0 if part.evaluator == "length" else part.weight for part in parts]


class BlendFastSettings(BlendSettings):
    """Settings of `blend-fast`, which can learn from more responses because it has no language model.

    What is learned from one corpus fits other conversations less well, so `ssrem-minilm` is a control here. Without it
    only `cosine` needs a transformer, which takes nearly all of the time.
    """

    parts: tuple[Part, ...] = Field(
        (
            Part(evaluator="cosine", settings={"encoder": MOVED, "join": "mean"}, weight=6),
            Part(evaluator="ssrem-minilm", weight=0),
            Part(evaluator="repetition", settings={"encoder": DISTILLED}, weight=12, guard=True),
            Part(evaluator="fluency"),
            _LENGTH,
        ),
        min_length=1,
    )
    contexts: Count = 1500
    valid_contexts: Count = 500


class BlendBaseSettings(BlendFastSettings):
    """Settings of `blend-base`: its parts are those of `blend` that are no language model."""

    parts: tuple[Part, ...] = Field(_mostly_cosine(_RETRIEVAL), min_length=1)


class BlendRefSettings(BlendSettings):
    """Settings of `blend-ref`; those that concern negatives have no effect. The cap is high, because no scores of true
    responses show how close to the reference is close enough."""

    parts: tuple[Part, ...] = Field(
        (
            Part(evaluator="cosine"),
            Part(evaluator="lm-pmi"),
            _PMI_SUM,
            Part(evaluator="lm-coherence"),
            _LENGTH,
            Part(evaluator="bertscore"),
            Part(evaluator="rouge-l"),
        ),
        min_length=1,
    )
    cap: Positive = 8.0
    products: Products = "float32"


class LmSumSettings(BlendSettings):
    """Settings of `lm-sum`, whose parts' scores are not limited: both limits are practically infinite."""

    parts: tuple[Part, ...] = Field((Part(evaluator="lm-coherence"), Part(evaluator="lm-pmi")), min_length=1)
    clip: Positive = 1e9
    cap: Positive = 1e9
    products: Products = "float32"


class Blend(Trained):
    """f = offset + Σ weight · z, where z is another evaluator's f, standardised by its scores of true responses.

    `fit` learns the weights without human scores; then Σ |weight| = 1, and f lies from -`clip` to `cap`. `tuned_on`
    learns them from human scores; with one set, f predicts the score on the unit range, and may exceed it. Two default
    parts measure how much likelier the context makes the response: `lm-pmi` as the mean over the response's tokens,
    which favours short responses, and `lm-pmi-sum` as the sum, which favours long ones. `lm-coherence`, the mean
    log-probability itself, follows wording and length; like `length` it is a control.

    members: part → evaluator, in order. A sample's reference is not read. Parts with the same encoder share its
    vectors, and parts with the same language model its passes. `known` remembers, by the parts that were asked, their
    scores of the latest samples, so that a cross-validation scores each sample once. The saved tensors are weights,
    centre and spread, float64 (m,), and offset (1,).
    """

    name: ClassVar[str] = "blend"
    range: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    source: ClassVar[str] = "ssrem: pairwise logistic regression over evaluators (Bradley and Terry 1952)"
    settings_model: ClassVar[type[EvaluatorSettings]] = BlendSettings
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates", "labels", "candidates+labels", "sets"})
    form: ClassVar[str] = "ssrem-blend-3"
    judged: ClassVar[int] = 0
    referenced: ClassVar[bool] = False
    """Whether the parts give their overall score, which may read the reference; otherwise they give f."""

    def __init__(
        self, settings: BlendSettings | None = None, *, members: Mapping[str, Evaluator] | None = None
    ) -> None:
        """members: evaluators that are ready to score, by part. If their names are not those of the parts in the
        settings, they replace these, each with weight 1. Without members the parts of the settings are built.
        EvaluatorError for a part that cannot be used."""
        super().__init__(settings)
        keys = [part.key for part in self.settings.parts]
        if members and members.keys() == set(keys):
            members = {part: members[part] for part in keys}
        elif members:
            named = [Part(evaluator=one.name, name=part) for part, one in members.items()]
            self.settings = self.settings.model_copy(update={"parts": tuple(named)})
        self.members: dict[str, Evaluator] = dict(members or _built(self.settings))
        # Parts are saved with all of their settings, so that a later change of a default or a file has no effect.
        parts = [_in_full(part, self.members[part.key]) for part in self.settings.parts]
        self.settings = self.settings.model_copy(update={"parts": tuple(parts)})
        for part, member in self.members.items():
            if not self.referenced and "f" not in member.parts:
                raise EvaluatorError(f"part {part} needs a reference; leave it out, or use blend-ref")
        self.known: dict[tuple[str, ...], dict[Sample, tuple[Floats, bool, str]]] = {}
        int8 = self.settings.products == "int8"
        _share_encoders(self.members.values(), int8=int8)
        for member in self.members.values():
            if isinstance(member, CrossEncoder):
                member.int8 = int8

    @classmethod
    def create(cls, settings: Mapping[str, Any], provider: Provider) -> Self:
        """A blend with these settings; parts that have to be trained first come from the provider."""
        chosen: Any = cls.settings_model(**settings)
        trained = {
            part.key: provider.evaluator(part.evaluator)
            for part in chosen.parts
            if evaluator_class(part.evaluator).learns_from and not part.folder
        }
        return cls(chosen, members=_built(chosen, trained))

    @property
    def weights(self) -> dict[str, float]:
        """Map each part to its weight, as a share of the sum of absolute weights."""
        self._check_trained()
        weights = self.tensors["weights"]
        shares = weights / (np.abs(weights).sum() or 1.0)
        return dict(zip(self.members, shares.tolist(), strict=True))

    def _about(self) -> str:
        parts = "+".join(f"{name}[{member.signature}]" for name, member in self.members.items())
        limits = f"clip:{self.settings.clip:g}|cap:{self.settings.cap:g}"
        products = "|int8" if self.settings.products == "int8" else ""
        return f"parts:{parts}|{limits}{products}|tuned:{self.tuned}"

    def compute(self, samples: Sequence[Sample]) -> Scores:
        values, truncated, reasons = self.part_scores(samples, weighted=True)
        z = self.standardised(values, self.tensors["centre"], self.tensors["spread"])
        total = float(self.tensors["offset"][0]) + z @ self.tensors["weights"]
        if self.referenced:
            return Scores.of(truncated, reasons, h=total)
        return Scores.of(truncated, reasons, f=total, f_unit=self.f_unit(total))

    def standardised(self, values: Floats, centre: Floats, spread: Floats) -> Floats:
        """The parts' scores (n, m), standardised and limited to the range from -`clip` to `cap`."""
        z: Floats = np.clip((values - centre) / spread, -self.settings.clip, self.settings.cap)
        return z

    def part_scores(
        self, samples: Sequence[Sample], *, weighted: bool = False
    ) -> tuple[Floats, NDArray[np.bool_], list[str]]:
        """The parts' scores (n, m), NaN where a part has none; whether a part did not read all of a sample (n,); and
        why a part has no score, "" where all have one. weighted: only parts that have a weight are asked; the scores
        of the others are 0."""
        weights = self.tensors["weights"] if weighted else np.ones(len(self.members))
        asked = tuple(name for name, weight in zip(self.members, weights, strict=True) if weight)
        remembered = self.known.setdefault(asked, {})
        # f never depends on whether there is a reference.
        visible = samples if self.referenced else [Sample(one.context, one.response) for one in samples]
        rows: list[tuple[Floats, bool, str]] = []
        for first in range(0, len(visible), _CHUNK):
            chunk = visible[first : first + _CHUNK]
            # Copied, because other threads may remove scores from `remembered` meanwhile.
            known = {one: row for one in dict.fromkeys(chunk) if (row := remembered.get(one))}
            known |= self._scored([one for one in dict.fromkeys(chunk) if one not in known], asked)
            rows += [known[sample] for sample in chunk]
            remembered |= known
            for sample in list(remembered)[: max(0, len(remembered) - _REMEMBERED)]:
                remembered.pop(sample, None)
        values = np.array([row[0] for row in rows]).reshape(-1, len(self.members))
        return values, np.array([row[1] for row in rows], dtype=bool), [row[2] for row in rows]

    def _scored(
        self, samples: Sequence[Sample], asked: Sequence[str]
    ) -> dict[Sample, tuple[Floats, bool, str]]:
        """Map each sample to its row of `part_scores`; EvaluatorError if a score is not finite without a reason."""
        if not samples:
            return {}
        values = np.zeros((len(samples), len(self.members)))
        truncated, reasons = np.zeros(len(samples), dtype=bool), [""] * len(samples)
        for at, (name, member) in enumerate(self.members.items()):
            if name not in asked:
                continue
            scores = member.compute(samples)
            values[:, at] = scores.score if self.referenced else scores.f
            unscored = ~np.isfinite(values[:, at])
            if broken := int((unscored & (scores.reasons == "")).sum()):
                raise EvaluatorError(
                    f"part {name} gives no number for {broken} of {len(samples)} samples; leave it out, or give the "
                    "samples what it needs"
                )
            for row in np.flatnonzero(unscored).tolist():
                reasons[row] = reasons[row] or f"part {name}: {scores.reasons[row]}"
            truncated |= scores.truncated
        return dict(zip(samples, zip(values, truncated.tolist(), reasons, strict=True), strict=True))

    def _fit(self, candidates: Candidates, progress: Progress | None, checkpoint: Path | None) -> Training:
        """Learn from pairs; `checkpoint` is not used, as most of the time goes into the parts' scores."""
        from ssrem.evaluators.blend_learning import learn_pairs

        return learn_pairs(self, candidates, progress)

    def _tune(self, sets: Mapping[str, Labels], progress: Progress | None) -> Training:
        from ssrem.evaluators.blend_learning import learn_scores

        return learn_scores(self, sets, progress)

    def learned(
        self, weights: Floats, scales: tuple[Floats, Floats], offset: float, z: Floats, tuned: int
    ) -> None:
        """Make these the learned weights. scales: centre and spread of the parts; z (n, m): standardised scores, which
        give the bounds; tuned: number of human scores that the weights were learned from."""
        tensors = dict(zip(("weights", "centre", "spread"), (weights, *scales), strict=True))
        tensors["offset"] = np.array([offset])
        self.take(tensors, {self.parts[0]: Bounds.of(offset + z @ weights)}, tuned)

    def _check(self) -> None:
        sizes = dict.fromkeys(("weights", "centre", "spread"), len(self.members)) | {"offset": 1}
        for name, size in sizes.items():
            if self.tensors[name].shape != (size,) or not np.isfinite(self.tensors[name]).all():
                raise EvaluatorError(f"{name} does not fit {len(self.members)} parts; train or copy it again")

    def _save_more(self, folder: Path) -> None:
        for part in self.settings.parts:
            member = self.members[part.key]
            if part.folder or (member.learns_from and not comes_packaged(member.name, member.signature)):
                member.save(folder / MEMBERS / part.key)
            else:  # left by an earlier save
                shutil.rmtree(folder / MEMBERS / part.key, ignore_errors=True)

    @classmethod
    def _untrained(cls, folder: Path, settings: Any, encoder: Encoder | None) -> Self:
        saved = [part.key for part in settings.parts if (folder / MEMBERS / part.key).is_dir()]
        members = {name: load_evaluator(folder / MEMBERS / name) for name in saved}
        return cls(settings, members=_built(settings, members))


class BlendFast(Blend):
    """A `Blend` without a language model.

    Its parts: `cosine`, the similarity to the last turns by a sentence encoder, and two that recognise faults,
    `repetition` (of a turn of the context) and `fluency` (word order). `ssrem-minilm` and `length` are controls.
    """

    name: ClassVar[str] = "blend-fast"
    settings_model: ClassVar[type[EvaluatorSettings]] = BlendFastSettings


class BlendBase(Blend):
    """A `Blend` without a language model, with the larger encoder all-mpnet-base-v2 for `cosine` and `repetition`."""

    name: ClassVar[str] = "blend-base"
    settings_model: ClassVar[type[EvaluatorSettings]] = BlendBaseSettings


class LmSum(Blend):
    """`lm-coherence` plus `lm-pmi`, each standardised by its scores of true responses."""

    name: ClassVar[str] = "lm-sum"
    source: ClassVar[str] = "ssrem: standardised sum of lm-coherence and lm-pmi"
    settings_model: ClassVar[type[EvaluatorSettings]] = LmSumSettings


class BlendRef(Blend):
    """h = a weighted sum over evaluators that may read the reference, with weights learned from human scores alone.

    Each part gives its overall score: h if it has one, else f, else g. The true response is its own reference, so
    telling it from negatives teaches nothing here, and `fit` raises EvaluatorError. h is NaN without a reference.
    """

    name: ClassVar[str] = "blend-ref"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "reference"})
    parts: ClassVar[tuple[str, ...]] = ("h",)
    source: ClassVar[str] = "ssrem: ridge regression over evaluators"
    settings_model: ClassVar[type[EvaluatorSettings]] = BlendRefSettings
    learns_from: ClassVar[frozenset[str]] = frozenset({"labels", "sets"})
    referenced: ClassVar[bool] = True

    def _fit(self, candidates: Candidates, progress: Progress | None, checkpoint: Path | None) -> Training:
        raise EvaluatorError(f"{self.name} learns from human scores alone; call tuned_on, or fit a blend")


def _built(settings: Any, at_hand: Mapping[str, Evaluator] | None = None) -> dict[str, Evaluator]:
    """Map each part, in order, to its evaluator; those that are not at hand are built."""
    known = at_hand or {}
    return {part.key: known.get(part.key) or part.build() for part in settings.parts}


def _in_full(part: Part, member: Any) -> Part:
    """The part with all settings of its evaluator; unchanged for a trained evaluator and for one from a folder."""
    if member.learns_from or part.folder:
        return part
    return part.model_copy(update={"settings": member.settings.model_dump(mode="json")})


class Memory:
    """An encoder's cache: each text is encoded once for all parts that read it through this encoder.

    given: the parts' encoder. int8: whether a transformer on the CPU multiplies whole numbers, unless its name asks for
    other numbers.
    """

    def __init__(self, given: Encoder, *, int8: bool) -> None:
        self.given, self.int8 = given, int8
        self.known: dict[str, Vectors] = {}

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder that computes the vectors, made when it is first needed."""
        given = self.given
        if not self.int8 or not isinstance(given, Transformer | AdaptedTransformer):
            return given
        start = given.start if isinstance(given, AdaptedTransformer) else given
        return given if start.form or start.model.device.type != "cpu" else given.in_int8()

    def __call__(self, texts: Sequence[str]) -> Vectors:
        known = self.known  # another thread may replace the dict, but never empties it
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known |= zip(new, self.encoder.compute(new), strict=True)
        if len(known) > _TEXTS:
            self.known = {}
        return np.stack([known[text] for text in texts])


def _share_encoders(members: Iterable[Evaluator], *, int8: bool) -> None:
    """Give members that have equal encoders one `Memory` between them."""
    shared: dict[str, Memory] = {}
    for member in members:
        if (encoder := member.encoder) is not None:
            encoder.cache = shared.setdefault(encoder.signature, Memory(encoder, int8=int8))
