"""The evaluators that a blend is made of: built when first needed, scored together, saved with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.encoders.transformer import AdaptedTransformer
from ssrem.errors import EvaluatorError
from ssrem.evaluators import comes_packaged, evaluator_class, load_evaluator, save_packaged
from ssrem.evaluators.base import Evaluator
from ssrem.evaluators.blend.config import Part
from ssrem.samples import Floats, Sample

FOLDER = "members"
# How many samples are scored at a time, and of how many of the latest the scores are remembered.
_CHUNK, _REMEMBERED = 8_192, 20_000
# Of how many texts the vectors of an encoder are remembered within a call: 150 MB of 384 dimensions.
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
        return {part.name: self._at_hand.get(part.name) or part.build() for part in self.parts}

    @property
    def signature(self) -> str:
        """Each part's name with the signature of its evaluator."""
        return "+".join(f"{name}[{member.signature}]" for name, member in self.evaluators.items())

    def scores(self, samples: Sequence[Sample]) -> PartScores:
        """Every part's score of every sample. EvaluatorError where one is not finite, and the part does not say why."""
        values = np.zeros((len(samples), len(self.parts)))
        truncated, reasons = np.zeros(len(samples), dtype=bool), [""] * len(samples)
        encoders: dict[str, _Vectors] = {}
        for first in range(0, len(samples), _CHUNK):
            for vectors in encoders.values():
                vectors.trim()
            chunk = [self._visible(sample) for sample in samples[first : first + _CHUNK]]
            self._known |= self._computed([s for s in dict.fromkeys(chunk) if s not in self._known], encoders)
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

    def _computed(
        self, samples: Sequence[Sample], encoders: dict[str, _Vectors]
    ) -> dict[Sample, tuple[Floats, bool, str]]:
        """Sample → a row of `PartScores`. encoders: those in use with the vectors that they gave, by signature."""
        if not samples:
            return {}
        if self.referenced and (lacking := sum(sample.reference is None for sample in samples)):
            raise EvaluatorError(f"{lacking} of {len(samples)} samples have no reference; give each one")
        self._encode_shared(samples, encoders)
        columns, truncated = [], np.zeros(len(samples), dtype=bool)
        reasons = [""] * len(samples)
        for name, member in self.evaluators.items():
            reading: dict[str, Any] = {}
            if member.encoder is not None:
                reading["encode"] = encoders[member.encoder.signature]
            scores = member.compute(samples, **reading)
            columns.append(scores.score if self.referenced else scores.f)
            unscored = ~np.isfinite(columns[-1])
            if broken := int((unscored & (scores.reasons == "")).sum()):
                raise EvaluatorError(
                    f"part {name} gives no number for {broken} of {len(samples)} samples; "
                    "leave it out, or give the samples what it needs"
                )
            for row in np.flatnonzero(unscored).tolist():
                reasons[row] = reasons[row] or f"part {name}: {scores.reasons[row]}"
            truncated |= scores.truncated
        rows = zip(np.column_stack(columns), truncated.tolist(), reasons, strict=True)
        return dict(zip(samples, rows, strict=True))

    def _encode_shared(self, samples: Sequence[Sample], encoders: dict[str, _Vectors]) -> None:
        """Add the encoders of the parts, and encode what an adapted transformer and the one before it both read."""
        texts: dict[str, dict[str, None]] = {}
        for member in self.evaluators.values():
            if (encoder := member.encoder) is not None:
                vectors = encoders.setdefault(encoder.signature, _Vectors(encoder))
                own = texts.setdefault(encoder.signature, {})
                own |= dict.fromkeys(
                    text for text in member.encoded_texts(samples) if text not in vectors.known
                )
        for signature, adapted in encoders.items():
            if isinstance(adapted.encoder, AdaptedTransformer):
                start = adapted.encoder.start.signature
                both = [text for text in texts[signature] if text in texts.get(start, ())]
                if both:
                    before, after = adapted.encoder.encode_both(both)
                    encoders[start].known |= zip(both, before, strict=True)
                    adapted.known |= zip(both, after, strict=True)

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
            kind.check_settings(part.settings)


class _Vectors:
    """An encoder's `encode` that encodes a text once, so that parts with one encoder share its vectors."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.known: dict[str, NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        self.known |= zip(new, self.encoder.encode(new), strict=True)
        return np.stack([self.known[text] for text in texts]) if texts else self.encoder.encode([])

    def trim(self) -> None:
        """Forget all vectors if there are too many."""
        if len(self.known) > _TEXTS:
            self.known.clear()


def load_members(folder: Path, parts: Sequence[Part]) -> dict[str, Evaluator]:
    """What `Members.save` wrote of these parts; EvaluatorError where a part is missing or damaged."""
    return {part.name: load_evaluator(folder / FOLDER / part.name) for part in parts}
