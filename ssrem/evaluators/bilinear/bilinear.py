"""Evaluators of the form f = tanh(V(c)ᵀ M V(r̂)), mixed with a referenced g (Bak and Oh 2020, section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Scores, Training
from ssrem.evaluators.bilinear.cases import EncodedCandidates, products
from ssrem.evaluators.bilinear.config import BilinearConfig
from ssrem.evaluators.bilinear.similarity import similarity
from ssrem.evaluators.core import saved as checkpoint
from ssrem.evaluators.core.candidate_columns import CandidateColumns
from ssrem.evaluators.core.fitted import Fitted
from ssrem.evaluators.core.scaling import Bounds, unit_range
from ssrem.samples import TEST, TRAIN, VALID, Candidates, Encode, Floats, Progress, Rows, Sample

# Sentence mover's similarity solves a transport problem a pair: this many pairs fix its bounds well enough.
_BOUND_ROWS = 2_000
# After training on raw products, M is scaled so that their spread over the validation candidates is this:
# the order is the same, and tanh still tells good from very good.
_SPREAD = 0.5


@dataclass(frozen=True)
class State:
    """What a fit leaves: M float64 (d, d), the bounds of f and g."""

    matrix: Floats
    f_bounds: Bounds
    g_bounds: Bounds


class Bilinear(Fitted[State]):
    """f from a learned matrix, g from the reference, h their mean on the unit range.

    `score` is h where every sample has a reference and f otherwise; `components` has all of them.
    V(c) is the mean of the vectors of the last `context_turns` turns that have a known word. A context or
    response without a known word gives f = 0. Texts are never truncated.
    """

    draws: ClassVar[Mapping[str, int]]
    """Kind → how many negatives of it stand beside the true response."""
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    parts: ClassVar[tuple[str, ...]] = ("f", "g", "h")
    config_class: ClassVar[type[Any]] = BilinearConfig
    encoder: Encoder

    config: BilinearConfig

    def __init__(self, encoder: Encoder, config: BilinearConfig | None = None) -> None:
        super().__init__(encoder, config)

    def keep(self, state: State) -> None:
        """Take over a fitted state."""
        self._state = state
        self._weights_hash = checkpoint.weights_hash(state)

    def _about(self, state: State) -> str:
        drawn = "+".join(kind if count == 1 else f"{kind}x{count}" for kind, count in self.draws.items())
        settings = self.config
        ranking = "-ranking" if settings.loss == "ranking" else ""
        return (
            f"f:tanh|loss:{settings.logits}{ranking}|enc:{self.encoder.signature}"
            f"|ctx:{settings.context_turns}|neg:{drawn}|g:{settings.reference}"
        )

    def fit(
        self, candidates: Candidates, *, progress: Progress | None = None, encode: Encode | None = None
    ) -> Training:
        """Learn M on the train split and the bounds on the valid split. encode: cached encoding, if any."""
        from ssrem.evaluators.bilinear.training import train

        if self.config.loss == "ranking" and len(self.draws) == 1:
            raise EvaluatorError(
                f"{self.name}: its negatives are all of one kind; loss=ranking needs an order"
            )
        wanted = self._wanted(candidates)
        vectors = self._vectors(candidates.texts, encode)
        cases = {}
        for split, word in ((TRAIN, "training"), (VALID, "validation")):
            rows = candidates.rows(split)
            rows = rows[(wanted[rows, 1:] >= 0).any(axis=1)]
            if len(rows) == 0:
                raise EvaluatorError(
                    f"{self.name}: no response of the {word} split has a negative of kind "
                    f"{', '.join(self.draws)}; more conversations are needed"
                )
            start, stop = candidates.context_start[rows], candidates.context_stop[rows]
            cases[split] = EncodedCandidates(vectors, start, stop, wanted[rows], self.config.context_turns)
        matrix, training = train(cases[TRAIN], cases[VALID], self.config, progress)
        if self.config.logits == "raw":
            spread = float(np.nanstd(products(matrix, cases[VALID])))
            matrix = matrix * (_SPREAD / spread if spread > 0 else 1.0)
        # Rounded to what is saved, so that a loaded model scores exactly as this one.
        matrix = matrix.astype(np.float32).astype(np.float64)
        f_bounds = Bounds.of(np.tanh(products(matrix, cases[VALID])))
        self.keep(State(matrix, f_bounds, self._g_bounds(candidates, encode)))
        self.training = replace(training, notes=self._notes(wanted))
        return self.training

    def score(self, samples: Sequence[Sample], *, encode: Encode | None = None) -> Floats:
        referenced = bool(samples) and all(sample.reference is not None for sample in samples)
        return self.components(samples, encode=encode).h if referenced else self._f(samples, encode)

    def components(self, samples: Sequence[Sample], *, encode: Encode | None = None) -> Scores:
        state = self.state
        f = self._f(samples, encode)
        g = similarity(
            self.config.reference,
            self.encoder,
            [sample.response for sample in samples],
            [sample.reference for sample in samples],
            encode=encode,
        )
        f_unit, g_unit = unit_range(f, state.f_bounds), unit_range(g, state.g_bounds)
        return Scores(f, g, (f_unit + g_unit) / 2, f_unit, g_unit, np.zeros(len(samples), dtype=bool))

    def f_unit(self, f: Floats) -> Floats:
        """f scaled to the unit range by the bounds that were fitted once (eq. 2)."""
        return unit_range(f, self.state.f_bounds)

    def score_candidates(
        self, candidates: Candidates, split: int | None = TEST, *, encode: Encode | None = None
    ) -> dict[str, Floats]:
        """Kind → f (n, k) for GT, the kinds at hand and Context (the last turn copied); NaN where missing."""
        state = self.state
        found = CandidateColumns.of(candidates, split)
        vectors = self._vectors(candidates.texts, encode)
        cases = EncodedCandidates(vectors, found.start, found.stop, found.joined, self.config.context_turns)
        f = np.tanh(products(state.matrix, cases))
        return found.by_kind(f)

    def save(self, folder: Path, *, card: Mapping[str, Any] | None = None) -> None:
        checkpoint.save(folder, self, card)

    @classmethod
    def load(cls, folder: Path, *, encoder: Encoder | None = None) -> Self:
        """encoder: one that is loaded already, used where its signature is the model's."""
        return checkpoint.load(folder, cls, encoder)

    def _wanted(self, candidates: Candidates) -> Rows:
        """Rows (n, 1 + k): the true response, then the negatives that this evaluator learns from."""
        columns = [candidates.response[:, None]]
        for kind, count in self.draws.items():
            rows = candidates.negatives.get(kind)
            if rows is None or rows.shape[1] < count:
                have = 0 if rows is None else rows.shape[1]
                raise EvaluatorError(
                    f"{self.name} learns from {count} negatives of kind {kind} a response, the candidates "
                    f"have {have}; draw more (an absent negative is -1)"
                )
            columns.append(rows[:, :count])
        return np.concatenate(columns, axis=1).astype(np.int64)

    def _notes(self, wanted: Rows) -> tuple[str, ...]:
        kinds = [kind for kind, count in self.draws.items() for _ in range(count)]
        there = {kind for at, kind in enumerate(kinds, start=1) if (wanted[:, at] >= 0).any()}
        absent = [kind for kind in self.draws if kind not in there]
        if not absent:
            return ()
        used = [kind for kind in self.draws if kind in there]
        return (f"no response has a negative of kind {', '.join(absent)}: learned from {', '.join(used)}",)

    def _vectors(self, texts: Sequence[str], encode: Encode | None) -> NDArray[np.float16]:
        return (encode or self.encoder.encode)(texts).astype(np.float16)

    def _f(self, samples: Sequence[Sample], encode: Encode | None) -> Floats:
        """f of each sample: its last turns and its response laid out as a conversation of their own."""
        state, turns = self.state, self.config.context_turns
        texts: dict[str, int] = {}
        layout: list[int] = []
        start, stop = np.zeros((2, len(samples)), dtype=np.int64)
        for position, sample in enumerate(samples):
            start[position] = len(layout)
            layout.extend(texts.setdefault(turn, len(texts)) for turn in sample.context[-turns:])
            stop[position] = len(layout)
            layout.append(texts.setdefault(sample.response, len(texts)))
        if not samples:
            return np.zeros(0)
        vectors = self._vectors(list(texts), encode)[np.asarray(layout)]
        cases = EncodedCandidates(vectors, start, stop, stop[:, None], turns)
        f: Floats = np.tanh(products(state.matrix, cases)[:, 0])
        return f

    def _g_bounds(self, candidates: Candidates, encode: Encode | None) -> Bounds:
        """Bounds of g between true responses and one of their negatives each, over the valid split."""
        rows = candidates.rows(VALID)
        generator = np.random.default_rng([self.config.seed, 2])
        if len(rows) > _BOUND_ROWS:
            rows = np.sort(generator.choice(rows, _BOUND_ROWS, replace=False))
        drawn = [candidates.negatives[kind] for kind in self.draws]
        responses, references = [], []
        for row in rows.tolist():
            there = [int(rows_of_kind[row, 0]) for rows_of_kind in drawn if rows_of_kind[row, 0] >= 0]
            if there:
                responses.append(candidates.texts[there[row % len(there)]])
                references.append(candidates.texts[int(candidates.response[row])])
        return Bounds.of(
            similarity(self.config.reference, self.encoder, responses, references, encode=encode)
        )
