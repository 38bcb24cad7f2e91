"""The evaluators that a blend is made of: built when first needed, scored together, saved with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder, Vectors
from ssrem.encoders.transformer import AdaptedTransformer
from ssrem.errors import EvaluatorError
from ssrem.evaluators import comes_packaged, evaluator_class, load_evaluator, save_packaged
from ssrem.evaluators.base import Evaluator
from ssrem.evaluators.blend.config import Part
from ssrem.samples import Floats, Sample

FOLDER = "members"
# How many samples are scored at a time, and of how many of the latest the scores are remembered.
_CHUNK, _REMEMBERED = 8_192, 20_000
# Of how many texts the vectors of an encoder are remembered: 150 MB of 384 dimensions.
_TEXTS = 100_000


@dataclass(frozen=True)
class PartScores:
    """The parts' scores of n samples.

    values: float64 (n, m), NaN where a part has none. truncated: bool (n,), whether a part did not read all of a
    sample. reasons: str (n,), why a part has no score, "" where all have one.
    """

    values: Floats
    truncated: NDArray[np.bool_]
    reasons: NDArray[np.str_]

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which samples every part scored, bool (n,): what weights are learned from."""
        return np.asarray(self.reasons == "")

    @property
    def notes(self) -> tuple[str, ...]:
        """How many samples are not `complete`, and why; nothing if all are."""
        counts = Counter(self.reasons[~self.complete].tolist())
        listed = ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
        total, n = counts.total(), len(self.reasons)
        return (f"{total:,} of {n:,} responses are left out, {listed}",) if counts else ()


class Members:
    """The parts of a blend. referenced: whether a part gives its score with the reference, or f.

    at_hand: evaluators by part; the others are built from their settings when first used. EvaluatorError for an
    unknown evaluator or setting, a part that has to be trained first, or, unless `referenced`, one without f.
    """

    def __init__(
        self, parts: Sequence[Part], *, referenced: bool, at_hand: Mapping[str, Evaluator] | None = None
    ) -> None:
        self.parts = tuple(parts)
        self.names = tuple(part.name for part in parts)
        self.referenced = referenced
        self._at_hand = dict(at_hand or {})
        self._known: dict[Sample, tuple[Floats, bool, str]] = {}
        for part in self.parts:
            self._check(part)

    @cached_property
    def evaluators(self) -> dict[str, Evaluator]:
        """Part → evaluator, in order."""
        members = {part.name: self._at_hand.get(part.name) or part.build() for part in self.parts}
        share_encoders(members.values())
        return members

    @property
    def signature(self) -> str:
        """Each part's name with the signature of its evaluator."""
        return "+".join(f"{name}[{member.signature}]" for name, member in self.evaluators.items())

    def scores(self, samples: Sequence[Sample]) -> PartScores:
        """Every part's score of every sample. EvaluatorError where one is not finite, and the part does not say why."""
        values = np.zeros((len(samples), len(self.parts)))
        truncated, reasons = np.zeros(len(samples), dtype=bool), [""] * len(samples)
        for first in range(0, len(samples), _CHUNK):
            chunk = [self._visible(sample) for sample in samples[first : first + _CHUNK]]
            self._known |= self._computed([s for s in dict.fromkeys(chunk) if s not in self._known])
            for position, sample in enumerate(chunk, start=first):
                values[position], truncated[position], reasons[position] = self._known[sample]
            for sample in list(self._known)[: max(0, len(self._known) - _REMEMBERED)]:
                del self._known[sample]
        return PartScores(values, truncated, np.array(reasons, dtype=str))

    def save(self, folder: Path) -> None:
        """Write each part into a folder of its own within `folder`."""
        for name, member in self.evaluators.items():
            if comes_packaged(member.name, member.signature):
                save_packaged(member, folder / FOLDER / name)
            else:
                member.save(folder / FOLDER / name)

    def _visible(self, sample: Sample) -> Sample:
        """What the parts may read of the sample: f never depends on whether it has a reference."""
        return sample if self.referenced else Sample(sample.context, sample.response)

    def _computed(self, samples: Sequence[Sample]) -> dict[Sample, tuple[Floats, bool, str]]:
        """Sample → a row of `PartScores`."""
        if not samples:
            return {}
        if self.referenced and (lacking := sum(sample.reference is None for sample in samples)):
            raise EvaluatorError(f"{lacking} of {len(samples)} samples have no reference; give each one")
        columns: dict[str, Floats] = {}
        truncated, reasons = np.zeros(len(samples), dtype=bool), [""] * len(samples)
        # What is adapted from an encoder is asked after that one, since its vectors are then known.
        adapted = {name: isinstance(one.encoder, AdaptedTransformer) for name, one in self.evaluators.items()}
        for name in sorted(self.names, key=adapted.__getitem__):
            scores = self.evaluators[name].compute(samples)
            columns[name] = scores.score if self.referenced else scores.f
            unscored = ~np.isfinite(columns[name])
            if broken := int((unscored & (scores.reasons == "")).sum()):
                raise EvaluatorError(
                    f"part {name} gives no number for {broken} of {len(samples)} samples; "
                    "leave it out, or give the samples what it needs"
                )
            for row in np.flatnonzero(unscored).tolist():
                reasons[row] = reasons[row] or f"part {name}: {scores.reasons[row]}"
            truncated |= scores.truncated
        rows = zip(
            np.column_stack([columns[name] for name in self.names]), truncated.tolist(), reasons, strict=True
        )
        return dict(zip(samples, rows, strict=True))

    def _check(self, part: Part) -> None:
        member = self._at_hand.get(part.name)
        if member is not None and member.name != part.evaluator:
            raise EvaluatorError(
                f"part {part.name} is an evaluator {part.evaluator}, but was given {member.name}"
            )
        kind = evaluator_class(part.evaluator) if member is None else type(member)
        if not self.referenced and "f" not in kind.parts:
            raise EvaluatorError(f"part {part.name} needs a reference; leave it out, or use blend-ref")
        if member is None and part.must_be_trained:
            raise EvaluatorError(
                f"part {part.name} has to be trained first; train {part.evaluator}, then hand it over, or name its "
                f'folder in settings: {{"{part.name}": {{"folder": "PATH"}}}}'
            )
        if member is None and "folder" not in part.settings:
            kind.settings_model(**part.settings)


class Memory:
    """An encoder's cache: each text is encoded once for all parts that read it through this encoder.

    adapted: the memory of an encoder that was adapted from this one. What this one is asked for both then encode
    together, since the layers below the first adapter are the same.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.adapted: Memory | None = None
        self.known: dict[str, Vectors] = {}

    def __call__(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        if self.adapted is not None:
            assert isinstance(self.adapted.encoder, AdaptedTransformer)
            before, after = self.adapted.encoder.encode_both(new)
            self.known |= zip(new, before, strict=True)
            self.adapted.known |= zip(new, after, strict=True)
        else:
            self.known |= zip(new, self.encoder.compute(new), strict=True)
        vectors = np.stack([self.known[text] for text in texts])
        if len(self.known) > _TEXTS:
            self.known.clear()
        return vectors


def share_encoders(members: Iterable[Evaluator]) -> None:
    """Give members that have equal encoders one between them, with a `Memory`."""
    shared: dict[str, Memory] = {}
    for member in members:
        if member.encoder is not None:
            memory = shared.setdefault(member.encoder.signature, Memory(member.encoder))
            member.encoder = memory.encoder
            memory.encoder.cache = memory
    for memory in shared.values():
        if isinstance(memory.encoder, AdaptedTransformer):
            start = shared.get(memory.encoder.start.signature)
            if start is not None:
                start.adapted = memory


def load_members(folder: Path, parts: Sequence[Part]) -> dict[str, Evaluator]:
    """What `Members.save` wrote of these parts; EvaluatorError where a part is missing or damaged."""
    return {part.name: load_evaluator(folder / FOLDER / part.name) for part in parts}
