"""Base classes of all evaluators, which score a response by its context and reference, and of those that learn."""

from __future__ import annotations

import copy
import hashlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import compress, zip_longest
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.identify import share_above
from ssrem.encoders import Encoder, load_again
from ssrem.errors import EvaluatorError, SsremError
from ssrem.evaluators import MANIFEST, PARTS, overall_part, source_hash
from ssrem.evaluators.learning import CandidateColumns, check_enough, left_out
from ssrem.files import read_json, read_tensors, sha256, write_json, write_tensors
from ssrem.registry import object_at
from ssrem.samples import TEST, VALID, Candidates, Floats, Labels, Progress, Sample
from ssrem.settings import Settings
from ssrem.training import Training

EMPTY_RESPONSE = "empty response"
EMPTY_CONTEXT = "empty context"
NO_REFERENCE = "no reference"

WEIGHTS = "weights.safetensors"
OWN_FOLDERS = ("encoder", "members", "transformer")
"""Subfolders that a saved evaluator may have."""
_KEYS = ("config", "bounds", "encoder", "sha256", "signature", "tuned")
# Number of candidates that are scored at a time.
_CANDIDATES = 16_384


class EvaluatorSettings(Settings, strict=True):
    """Base of the settings of evaluators; the types of values are those of `ssrem.settings`.

    Each field has a default. A value is never converted: "5" is no number.
    """

    error: ClassVar[type[SsremError]] = EvaluatorError

    @property
    def tuning(self) -> Self:
        """The settings with which `tuned_on` learns: each tune_NAME takes the place of NAME."""
        values = {name.removeprefix("tune_"): value for name, value in self if name.startswith("tune_")}
        return self.model_copy(update=values)


@dataclass(frozen=True)
class Bounds:
    """The lowest and highest value of a part in training; saved with the model."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Floats) -> Bounds:
        """The bounds of the finite values; 0 and 1 if there are none."""
        finite = values[np.isfinite(values)]
        return cls(float(finite.min()), float(finite.max())) if finite.size else cls(0.0, 1.0)

    def unit(self, values: Floats) -> Floats:
        """(x - l) / (u - l) of each value (Bak and Oh 2020, eq. 2), clipped to [0, 1]; NaN stays NaN.

        With equal bounds every value becomes 0.5.
        """
        if self.high <= self.low:
            return np.where(np.isnan(values), np.nan, 0.5)
        return np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0)


@dataclass(frozen=True)
class Scores:
    """Scores of n samples, float64 (n,); NaN if the evaluator has no such part or the sample lacks what it needs.

    f: unreferenced. g: referenced. h: mixed. f_unit, g_unit: f and g scaled to the unit range. truncated: bool (n,),
    whether a text of the sample was not read to its end. reasons: str (n,), why a sample has no score at all, "" where
    it has one.
    """

    f: Floats
    g: Floats
    h: Floats
    f_unit: Floats
    g_unit: Floats
    truncated: NDArray[np.bool_]
    reasons: NDArray[np.str_]

    @classmethod
    def of(cls, truncated: NDArray[np.bool_], reasons: Sequence[str] = (), /, **parts: Floats) -> Scores:
        """Scores with the given parts; the others are NaN."""
        n = len(truncated)
        values = {name: parts.get(name, np.full(n, np.nan)) for name in ("f", "g", "h", "f_unit", "g_unit")}
        return cls(**values, truncated=truncated, reasons=np.array(list(reasons) or [""] * n, dtype=str))

    def __len__(self) -> int:
        return len(self.f)

    @property
    def score(self) -> Floats:
        """The evaluator's score of each sample: the part that `overall_part` selects."""
        counts = {part: int((~np.isnan(getattr(self, part))).sum()) for part in PARTS}
        scores: Floats = getattr(self, overall_part(counts))
        return scores

    def placed(self, rows: Sequence[int], reasons: Sequence[str]) -> Scores:
        """Scores of len(reasons) samples: these at `rows`, NaN elsewhere. reasons: why a sample has no score, or ""."""
        whole = Scores.of(np.zeros(len(reasons), dtype=bool), reasons)
        columns = {}
        for field in fields(self):
            own, all_rows = getattr(self, field.name), getattr(whole, field.name)
            columns[field.name] = all_rows.astype(np.promote_types(all_rows.dtype, own.dtype))
            columns[field.name][rows] = own
        return Scores(**columns)


class Provider(Protocol):
    """Objects that an evaluator is created from; each is loaded when its method is called."""

    def encoder(self) -> Encoder:
        """The chosen encoder, fitted to the corpora if it learns from them."""

    def evaluator(self, name: str) -> Evaluator:
        """The promoted version of the trained evaluator `name`."""

    def masked_lm(self) -> Path:
        """The folder of a masked language model for the corpora."""


class Evaluator(ABC):
    """Base of all evaluators. A subclass sets the class variables below and implements the abstract methods."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"context"})
    """Which of "context" and "reference" it reads besides the response; `lacks` says what a sample must have."""
    range: ClassVar[tuple[float, float]]
    """The lowest and the highest possible `score`; may be infinite."""
    source: ClassVar[str]
    """The publication that describes it: authors, year, section."""
    parts: ClassVar[tuple[str, ...]] = ("f",)
    """Which of the parts f, g and h `components` returns; g and h only for samples with a reference."""
    settings_model: ClassVar[type[EvaluatorSettings]] = EvaluatorSettings
    """The class of its settings."""
    learns_from: ClassVar[frozenset[str]] = frozenset()
    """What it can learn from: "candidates", by `fit`; "labels", the human scores of an annotated set, by `tuned_on`;
    "candidates+labels", labels after candidates; "sets", the labels of several sets at once. Empty: no training."""
    default_encoder: ClassVar[str | None] = None
    """The spec of the encoder that it is created with unless another is chosen; None if it takes none."""
    encoder: Encoder | None = None
    """The encoder that it reads texts through, if it has one; a cache of its vectors can be set there."""

    @classmethod
    @abstractmethod
    def create(cls, settings: Mapping[str, Any], provider: Provider) -> Self:
        """An evaluator with these settings, not trained yet; `provider` has the encoder or models that it needs.

        EvaluatorError for a setting that does not exist or a value that does not fit.
        """

    @property
    @abstractmethod
    def signature(self) -> str:
        """Name, settings, encoder, hash of the weights, and `source_hash`: evaluators with equal signatures give equal
        scores."""

    @abstractmethod
    def compute(self, samples: Sequence[Sample]) -> Scores:
        """The parts of the score of samples that lack nothing, in order; NaN for a part whose reference is missing."""

    def f_unit(self, f: Floats) -> Floats:
        """f scaled to the unit range by the bounds of the last training; NaN without one."""
        return np.full(f.shape, np.nan)

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write safetensors and JSON into `folder`."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Self:
        """The evaluator that `save` wrote; EvaluatorError if it is another one or files are missing or changed."""

    def score(self, samples: Sequence[Sample]) -> Floats:
        """`Scores.score` of the samples, in order, float64 (n,); NaN where a sample lacks what is needed.

        The scores of all samples are the same part: h if each sample that has f also has h, else f (g if the evaluator
        has neither). It warns if only some samples have h.
        """
        scores = self.components(samples)
        referenced, scored = (int(np.isfinite(part).sum()) for part in (scores.h, scores.f))
        if 0 < referenced < scored:
            warnings.warn(
                f"{self.name}: {referenced:,} of {scored:,} samples have a reference, so their scores are f, which "
                "needs none; the evaluator's `components` gives both parts",
                stacklevel=2,
            )
        return scores.score

    def components(self, samples: Sequence[Sample]) -> Scores:
        """The parts of the score of each sample, in order; all are NaN where a sample `lacks` something. A blank
        reference counts as none."""
        reasons = [self.lacks(sample) for sample in samples]
        rows = [row for row, reason in enumerate(reasons) if not reason]
        usable = [_without_blank_reference(samples[row]) for row in rows]
        return (
            self.compute(usable).placed(rows, reasons)
            if rows
            else Scores.of(np.zeros(len(samples), bool), reasons)
        )

    @classmethod
    def lacks(cls, sample: Sample) -> str:
        """What the sample lacks, so that it has no score; empty if it lacks nothing."""
        if not sample.response.strip():
            return EMPTY_RESPONSE
        if "context" in cls.needs and not any(turn.strip() for turn in sample.context):
            return EMPTY_CONTEXT
        return "" if "f" in cls.parts or (sample.reference or "").strip() else NO_REFERENCE

    def score_candidates(self, candidates: Candidates, split: int | None = TEST) -> dict[str, Floats]:
        """Kind of candidate → f (n, k) for each response of the split, in order; NaN for a missing candidate.

        The kinds are GT (the true response), those of `candidates.negatives`, and Context (the last turn as the
        response). split: None takes the responses of all splits.
        """
        columns = CandidateColumns.of(candidates, split)
        contexts = [
            tuple(candidates.texts[turn] for turn in range(first, last))
            for first, last in zip(columns.start.tolist(), columns.stop.tolist(), strict=True)
        ]
        places = np.argwhere(columns.joined >= 0)
        f = np.full(columns.joined.shape, np.nan)
        for first in range(0, len(places), _CANDIDATES):
            row, column = places[first : first + _CANDIDATES].T
            texts = [candidates.texts[text] for text in columns.joined[row, column].tolist()]
            samples = [Sample(contexts[at], text) for at, text in zip(row.tolist(), texts, strict=True)]
            f[row, column] = self.components(samples).f
        return columns.by_kind(f)


def _without_blank_reference(sample: Sample) -> Sample:
    blank = sample.reference is not None and not sample.reference.strip()
    return replace(sample, reference=None) if blank else sample


class Trained(Evaluator):
    """An evaluator that learns. Its settings, encoder, tensors and bounds determine its scores, and are saved.

    A subclass implements `compute`, `_about`, and `_fit`, `_tune` or both, which end with `take`. What it
    derives from the tensors, such as a network, it builds in `_check`; what else it consists of, it saves in
    `_save_more`.
    """

    form: ClassVar[str]
    """Name of the format in which it is saved; it changes with every change of the tensors or the settings."""
    learned_by: ClassVar[str] = ""
    """The module whose functions `fit` and `tune` are used by classes without own `_fit` and `_tune`; imported late."""
    judged: ClassVar[int] = 500
    """The largest number of responses of the valid split on which `fit` checks that f is above chance; 0: no check."""

    def __init__(self, settings: Any = None, encoder: Encoder | None = None) -> None:
        """settings: an instance of `settings_model`, whose fields must include `seed`; None: the defaults.

        EvaluatorError if the encoder that it needs is missing, or if it takes no encoder and gets one.
        """
        if "seed" not in self.settings_model.model_fields:
            raise EvaluatorError(f"{self.name}: {self.settings_model.__name__} lacks the field seed: int = 0")
        if (encoder is None) != (self.default_encoder is None):
            way = "needs an encoder; pass what load_encoder gives" if encoder is None else "takes no encoder"
            raise EvaluatorError(f"{self.name} {way}")
        self.settings: Any = settings or self.settings_model()
        self.encoder = encoder
        self.tensors: Mapping[str, NDArray[Any]] = {}
        self.bounds: Mapping[str, Bounds] = {}
        self.tuned = 0
        self.training: Training | None = None

    @classmethod
    def create(cls, settings: Mapping[str, Any], provider: Provider) -> Self:
        checked = cls.settings_model(**settings)
        return cls(checked, provider.encoder() if cls.default_encoder else None)

    def fit(
        self, candidates: Candidates, *, progress: Progress | None = None, checkpoint: Path | None = None
    ) -> Training:
        """Learn from the train split of `candidates`; the valid split chooses the epoch and gives the bounds.

        checkpoint: a folder for the unfinished training; a fit with equal settings and data continues from there and
        gives the result of an uninterrupted one. The folder is not deleted. EvaluatorError if it holds a training with
        other settings or data.
        """
        training = self._fit(candidates, progress, checkpoint)
        warning = self._no_better_than_chance(candidates)
        notes = (*training.notes, warning) if warning else training.notes
        self.training = replace(training, notes=notes, warning=warning)
        return self.training

    def tuned_on(self, sets: Mapping[str, Labels], *, progress: Progress | None = None) -> Self:
        """A copy that has learned from the human scores of annotated sets; this evaluator does not change.

        sets: name → annotated set. Some of the contexts, with all of their responses, are held out and choose the
        epoch. The bounds of f become those of the annotated samples. Samples that lack something (`lacks`) are left
        out. EvaluatorError for scores beyond the scale, for fewer than 10 samples or 5 contexts, for several sets if
        the evaluator learns from one, and if it cannot learn from human scores.
        """
        if len(sets) != 1 and "sets" not in self.learns_from:
            raise EvaluatorError(f"{self.name} learns from one annotated set at a time, not from {len(sets)}")
        if "candidates+labels" in self.learns_from and "labels" not in self.learns_from:
            self._check_trained()
        tuned, usable, reasons = copy.copy(self), {}, list[str]()
        for name, labels in sets.items():
            own = [self.lacks(sample) for sample in labels.samples]
            pairs = ((_without_blank_reference(sample), score) for sample, score in labels.pairs)
            usable[name] = replace(labels, pairs=tuple(compress(pairs, (not reason for reason in own))))
            reasons += own
        if notes := left_out(reasons):
            samples = [sample for labels in usable.values() for sample in labels.samples]
            check_enough(self.name, samples, f"annotated responses ({notes[0]})")
        training = tuned._tune(usable, progress)
        tuned.training = replace(training, notes=(*training.notes, *notes))
        return tuned

    def take(self, tensors: Mapping[str, NDArray[Any]], bounds: Mapping[str, Bounds], tuned: int = 0) -> None:
        """Store the result of a training; EvaluatorError if it does not fit the settings and the encoder.

        bounds: part → its lowest and highest value. tuned: the number of human scores that it was learned from.
        """
        self.tensors, self.bounds, self.tuned = tensors, bounds, tuned
        self._check()
        digest = hashlib.sha256()
        for name in sorted(tensors):
            digest.update(f"{name} {tensors[name].dtype} {tensors[name].shape}\n".encode())
            digest.update(np.ascontiguousarray(tensors[name]).tobytes())
        digest.update(repr(sorted((part, asdict(limits)) for part, limits in bounds.items())).encode())
        self._digest = digest.hexdigest()

    @property
    def signature(self) -> str:
        self._check_trained()
        weights = f"seed:{self.settings.seed}|w:{self._digest[:8]}"
        return f"{self.name}|{self._about()}|{weights}{source_hash(type(self))}"

    def f_unit(self, f: Floats) -> Floats:
        return self.bounds[self.parts[0]].unit(f)

    def components(self, samples: Sequence[Sample]) -> Scores:
        self._check_trained()
        return super().components(samples)

    def save(self, folder: Path) -> None:
        signature = self.signature
        folder.mkdir(parents=True, exist_ok=True)
        # The manifest is written last: a folder that has one is complete.
        (folder / MANIFEST).unlink(missing_ok=True)
        write_tensors(folder / WEIGHTS, self.tensors)
        encoder = self.encoder and self.encoder.save_unless_named(folder / "encoder")
        self._save_more(folder)
        about = {
            "format": self.form,
            "name": self.name,
            "signature": signature,
            "config": self.settings.model_dump(mode="json"),
            "bounds": {part: asdict(limits) for part, limits in self.bounds.items()},
            "encoder": encoder,
            "sha256": {name: sha256(path) for name, path in _saved_files(folder).items()},
            "training": asdict(self.training) if self.training else None,
            "tuned": self.tuned,
        }
        write_json(folder / MANIFEST, about)

    @classmethod
    def load(cls, folder: Path) -> Self:
        about = read_json(folder / MANIFEST, ("format", "name"))
        if (about["format"], about["name"]) != (cls.form, cls.name):
            found = f"{about['name']} in format {about['format']}"
            raise EvaluatorError(
                f"{folder}: holds {found}, expected {cls.name} in {cls.form}; train it again"
            )
        about = read_json(folder / MANIFEST, _KEYS)
        try:
            digests = dict(about["sha256"])
            files = _saved_files(folder)
            for name in sorted(files.keys() ^ digests.keys()):
                what = "is missing" if name in digests else "was not saved with it"
                raise EvaluatorError(f"{name} {what}; copy the folder or train again")
            for name, path in files.items():
                if name != WEIGHTS and sha256(path) != digests[name]:
                    raise EvaluatorError(f"{name} was changed; copy the folder or train again")
            tensors = read_tensors(folder / WEIGHTS, digests[WEIGHTS], ())
            encoder = about["encoder"]
            if encoder is not None:
                encoder = load_again(encoder["origin"], encoder["signature"], folder / "encoder")
            evaluator = cls._untrained(folder, cls.settings_model(**about["config"]), encoder)
            bounds = {part: Bounds(**limits) for part, limits in about["bounds"].items()}
            evaluator.take(tensors, bounds, int(about["tuned"]))
            evaluator.training = Training(**about["training"]) if about.get("training") else None
            if evaluator.signature != about["signature"]:
                changed = _first_difference(about["signature"], evaluator.signature)
                raise EvaluatorError(
                    f"it is not the evaluator that was saved: {changed}; {MANIFEST}, what lies beside it, or an "
                    "encoder or part that it names was changed; copy or train it again"
                )
        except EvaluatorError as error:
            text = str(error)
            raise error if str(folder) in text else EvaluatorError(f"{folder}: {text}") from error
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"not as ssrem writes it ({type(error).__name__}: {error}); train again"
            raise EvaluatorError(f"{folder / MANIFEST}: {what}") from error
        return evaluator

    @abstractmethod
    def _about(self) -> str:
        """The middle of the signature: the settings that change a score, and what the evaluator learned from."""

    def _fit(self, candidates: Candidates, progress: Progress | None, checkpoint: Path | None) -> Training:
        """Learn from the candidates and store the result with `take`; `fit` calls it."""
        if not self.learned_by:
            raise EvaluatorError(f"{self.name} learns from human scores alone; call tuned_on")
        training: Training = object_at(f"{self.learned_by}:fit")(self, candidates, progress, checkpoint)
        return training

    def _tune(self, sets: Mapping[str, Labels], progress: Progress | None) -> Training:
        """Learn from human scores and store the result with `take`; `tuned_on` calls it on the copy."""
        if not self.learned_by or self.learns_from == {"candidates"}:
            raise EvaluatorError(f"{self.name} does not learn from human scores")
        (labels,) = sets.values()
        training: Training = object_at(f"{self.learned_by}:tune")(self, labels, progress)
        return training

    def _check(self) -> None:
        """Build what scores need from the tensors, such as a network; EvaluatorError or KeyError if they do not fit."""

    def _save_more(self, folder: Path) -> None:
        """Write what else the evaluator consists of, besides weights and encoder, into one of OWN_FOLDERS."""

    @classmethod
    def _untrained(cls, folder: Path, settings: Any, encoder: Encoder | None) -> Self:
        """The evaluator saved in the folder, as it is before its tensors are read."""
        return cls(settings, encoder)

    def _check_trained(self) -> None:
        if not self.tensors:
            ways = ["fit"] * ("candidates" in self.learns_from) + ["tuned_on"] * (
                "labels" in self.learns_from
            )
            raise EvaluatorError(
                f"{self.name} is not trained yet; call {' or '.join(ways)}, or load a saved one"
            )

    def _no_better_than_chance(self, candidates: Candidates) -> str:
        """A warning if f does not tell true responses from their negatives better than chance; otherwise empty.

        It does if true responses of the valid split, at most `judged`, are above more than half of their negatives: the
        95% interval of the share, over responses, must lie above 50%."""
        if "f" not in self.parts or not self.judged:
            return ""
        rows = candidates.sampled(VALID, self.judged).rows(VALID)
        share, low, high, n = share_above(self.score_candidates(candidates.part(rows), None))
        if share is None or (low is not None and low > 0.5):
            return ""
        interval = "" if low is None or high is None else f", 95% interval {low:.0%} to {high:.0%}"
        return (
            f"it is not above chance: true responses of the validation split are above {share:.0%} of their negatives "
            f"(n = {n:,}{interval}), where chance is 50%; give it more conversations, or use an evaluator that comes "
            "trained"
        )


def _first_difference(saved: str, now: str) -> str:
    """Where two signatures first differ, in words."""
    pairs = zip_longest(saved.split("|"), now.split("|"), fillvalue="nothing")
    return next(f"{one} is now {other}" for one, other in pairs if one != other)


def _saved_files(folder: Path) -> dict[str, Path]:
    """The weights in the folder and the files in OWN_FOLDERS, by their path within the folder, sorted."""
    own = [path for name in OWN_FOLDERS for path in (folder / name).rglob("*") if path.is_file()]
    weights = [folder / WEIGHTS] if (folder / WEIGHTS).is_file() else []
    return {path.relative_to(folder).as_posix(): path for path in sorted([*weights, *own])}
