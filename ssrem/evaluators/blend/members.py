"""The evaluators that a blend is made of: built when first needed, scored together, kept on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders import trusted_sources
from ssrem.errors import EvaluatorError
from ssrem.evaluators import evaluator_class, load_evaluator
from ssrem.evaluators.base import Evaluator
from ssrem.evaluators.blend.config import Part
from ssrem.evaluators.language_model.language_model import LanguageModel, Tokens
from ssrem.evaluators.language_model.likelihood import Likelihood
from ssrem.samples import Floats, Sample

FOLDER = "members"
# So many samples are scored at a time; of so many the scores are kept, for whoever asks again.
_CHUNK, _KEPT = 1_024, 20_000


@dataclass(frozen=True)
class Features:
    """What the parts give: values float64 (n, m), and whether one of them cut a sample, bool (n,)."""

    values: Floats
    truncated: NDArray[np.bool_]


class Members:
    """The parts of a blend. referenced: each gives its score with the reference, not f.

    at_hand: evaluators by part; the others are built by their settings when first used. EvaluatorError
    for an unknown evaluator or setting, one that has to be trained first, or, unless `referenced`, has no f.
    """

    def __init__(
        self, parts: Sequence[Part], *, referenced: bool, at_hand: Mapping[str, Evaluator] | None = None
    ) -> None:
        self.parts = tuple(parts)
        self.names = tuple(part.name for part in parts)
        self.judging = np.array([not part.is_control for part in parts])
        """Of which parts a weight is learned without human scores, bool (m,)."""
        self.referenced = referenced
        self._at_hand = dict(at_hand or {})
        self._known: dict[Sample, tuple[Floats, bool]] = {}
        for part in self.parts:
            self._check(part)

    @cached_property
    def evaluators(self) -> dict[str, Evaluator]:
        """Part → evaluator, in order."""
        return {part.name: self._at_hand.get(part.name) or build_member(part) for part in self.parts}

    @property
    def signature(self) -> str:
        """Each part's name with the signature of its evaluator."""
        return "+".join(f"{name}[{member.signature}]" for name, member in self.evaluators.items())

    def features(self, samples: Sequence[Sample]) -> Features:
        """Every part's score of every sample; EvaluatorError where one is not finite."""
        values = np.zeros((len(samples), len(self.parts)))
        truncated = np.zeros(len(samples), dtype=bool)
        for first in range(0, len(samples), _CHUNK):
            chunk = [self._seen(sample) for sample in samples[first : first + _CHUNK]]
            new = list(dict.fromkeys(sample for sample in chunk if sample not in self._known))
            # Looked up before anything has to make room.
            rows = {sample: self._known[sample] for sample in chunk if sample in self._known}
            rows |= self._computed(new)
            for position, sample in enumerate(chunk, start=first):
                values[position], truncated[position] = rows[sample]
            self._known |= {sample: rows[sample] for sample in new}
            for sample in list(self._known)[: max(0, len(self._known) - _KEPT)]:
                del self._known[sample]
        return Features(values, truncated)

    def save(self, folder: Path) -> None:
        """Each part into a folder of its own."""
        for name, member in self.evaluators.items():
            member.save(folder / FOLDER / name)

    def _seen(self, sample: Sample) -> Sample:
        """What the parts may read of it: f never depends on a reference that happens to be there."""
        return sample if self.referenced else Sample(sample.context, sample.response)

    def _computed(self, samples: list[Sample]) -> dict[Sample, tuple[Floats, bool]]:
        columns, truncated = [], np.zeros(len(samples), dtype=bool)
        if not samples:
            return {}
        if self.referenced and (lacking := sum(sample.reference is None for sample in samples)):
            raise EvaluatorError(f"{lacking} of {len(samples)} samples have no reference; give each one")
        with _one_pass(self.evaluators.values()):
            for name, member in self.evaluators.items():
                scores = member.components(samples)
                column = scores.score if self.referenced else scores.f
                if broken := int((~np.isfinite(column)).sum()):
                    raise EvaluatorError(
                        f"part {name} gives no number for {broken} of {len(samples)} samples; "
                        "leave it out, or give the samples what it needs"
                    )
                columns.append(column)
                truncated |= scores.truncated
        rows = np.column_stack(columns)
        return {sample: (row, bool(cut)) for sample, row, cut in zip(samples, rows, truncated, strict=True)}

    def _check(self, part: Part) -> None:
        member = self._at_hand.get(part.name)
        if member is not None and member.name != part.evaluator:
            raise EvaluatorError(
                f"part {part.name} is an evaluator {part.evaluator}, but was given {member.name}"
            )
        kind = evaluator_class(part.evaluator) if member is None else type(member)
        if not self.referenced and "f" not in kind.parts:
            raise EvaluatorError(f"part {part.name} needs a reference; leave it out, or use blend-ref")
        if member is not None or "folder" in part.settings:
            return
        if must_be_trained(part):
            raise EvaluatorError(
                f"part {part.name} has to be trained first; train {part.evaluator}, then hand it over, or name its "
                f'folder in settings: {{"{part.name}": {{"folder": "PATH"}}}}'
            )
        kind.check_settings(part.settings)


def must_be_trained(part: Part) -> bool:
    """Whether the part can only be had trained, and no folder of one is named."""
    return bool(evaluator_class(part.evaluator).learns_from) and "folder" not in part.settings


def load_members(folder: Path, parts: Iterable[Part]) -> dict[str, Evaluator]:
    """What `Members.save` wrote of these parts; EvaluatorError where a part is missing or damaged."""
    return {part.name: load_evaluator(folder / FOLDER / part.name) for part in parts}


def build_member(part: Part) -> Evaluator:
    """The part's evaluator by its settings; EvaluatorError where it cannot be had."""
    if "folder" not in part.settings:
        kind: Any = evaluator_class(part.evaluator)
        evaluator: Evaluator = kind(**part.settings)
        return evaluator
    if set(part.settings) != {"folder"} or not isinstance(part.settings["folder"], str):
        raise EvaluatorError(f"part {part.name}: a folder's evaluator has its settings; give its path alone")
    trusted_sources.check(part.settings["folder"])
    loaded = load_evaluator(Path(part.settings["folder"]).expanduser())
    if loaded.name != part.evaluator:
        raise EvaluatorError(
            f"part {part.name}: {part.settings['folder']} holds {loaded.name}, not {part.evaluator}"
        )
    return loaded


@contextmanager
def _one_pass(members: Iterable[Evaluator]) -> Iterator[None]:
    """Inside, parts with one language model have it compute each likelihood once: most of a blend's time."""
    models: dict[int, LanguageModel] = {}
    for member in members:
        if isinstance(member, Likelihood) and "log_likelihoods" not in vars(member.model):
            models[id(member.model)] = member.model
    for model in models.values():
        vars(model)["log_likelihoods"] = _remembering(model.log_likelihoods)
    try:
        yield
    finally:
        for model in models.values():
            del vars(model)["log_likelihoods"]


def _remembering(
    compute: Callable[[Sequence[Tokens], int], Floats],
) -> Callable[[Sequence[Tokens], int], Floats]:
    known: dict[Tokens, float] = {}

    def log_likelihoods(items: Sequence[Tokens], batch_size: int) -> Floats:
        new = list(dict.fromkeys(item for item in items if item not in known))
        known.update(zip(new, compute(new, batch_size).tolist(), strict=True))
        return np.array([known[item] for item in items], dtype=np.float64)

    return log_likelihoods
