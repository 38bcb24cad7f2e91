"""The paper's form, f = tanh(V(c)ᵀ M V(r̂)) over a V that stays as it is, mixed with a referenced g.

Bak and Oh 2020, section 3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Scores
from ssrem.evaluators.bilinear.config import BilinearConfig
from ssrem.evaluators.bilinear.encoded_candidates import EncodedCandidates, products
from ssrem.evaluators.core.candidate_columns import CandidateColumns, draw, usable_rows
from ssrem.evaluators.core.fitted import Encoding
from ssrem.evaluators.core.saved import Saved
from ssrem.evaluators.core.scaling import Bounds, unit_range
from ssrem.evaluators.core.state import NetworkState, Run
from ssrem.evaluators.similarity import similarity
from ssrem.samples import TEST, TRAIN, VALID, Candidates, Floats, Rows, Sample
from ssrem.training import Training

# Sentence mover's similarity solves a transport problem a pair: this many pairs fix its bounds well enough.
_BOUND_ROWS = 2_000
# f of this quantile of the validation candidates is ± the second number, see `scale_of`.
_QUANTILE, _HIGH = 0.999, 0.9
SPEAKER_SETS: Mapping[str, int] = {"SC": 1, "SP": 1, "SS": 1, "Rand": 1}
"""Negatives of a response from the sets of its speaker, and a random one: kind → number."""


class Bilinear(Encoding[NetworkState]):
    """f from a learned matrix, g from the reference, h their mean on the unit range.

    V(c) is the mean of the vectors of the last `context_turns` turns that have a known word. A context or response
    without a known word gives f = 0. A sample is `truncated` if f reads a text that is longer than the encoder reads.
    The state holds M, float32 (d, d).
    """

    draws: ClassVar[Mapping[str, int]]
    """Kind → how many negatives of it stand beside the true response."""
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    parts: ClassVar[tuple[str, ...]] = ("f", "g", "h")
    config_class: ClassVar[type[Any]] = BilinearConfig
    form: ClassVar[str] = "ssrem-bilinear-1"
    config: BilinearConfig

    def _about(self, state: NetworkState) -> str:
        drawn = "+".join(kind if count == 1 else f"{kind}x{count}" for kind, count in self.draws.items())
        settings = self.config
        ranking = "-ranking" if settings.loss == "ranking" else ""
        return (
            f"f:tanh|loss:{settings.logits}{ranking}|enc:{self.encoder.signature}"
            f"|ctx:{settings.context_turns}|neg:{drawn}|g:{settings.reference}"
        )

    def _hash(self, state: NetworkState) -> str:
        """sha256 over M and the bounds."""
        digest = hashlib.sha256(state.tensors["matrix"].tobytes())
        digest.update(repr(tuple(map(asdict, state.bounds.values()))).encode())
        return digest.hexdigest()

    def _fit(self, candidates: Candidates, run: Run) -> tuple[NetworkState, Training]:
        """Learn M on the train split, the bounds on the valid split."""
        from ssrem.evaluators.bilinear.training import MatrixObjective
        from ssrem.training.trainer import Plan, train

        if self.config.loss == "ranking" and len(self.draws) == 1:
            raise EvaluatorError(
                f"{self.name}: its negatives are all of one kind; loss=ranking needs an order"
            )
        wanted = self._wanted(candidates)
        vectors = self._vectors(candidates.texts)
        cases = {}
        for split, rows in self._usable(candidates, wanted).items():
            start, stop = candidates.context_start[rows], candidates.context_stop[rows]
            cases[split] = EncodedCandidates(vectors, start, stop, wanted[rows], self.config.context_turns)
        data = [array for part in cases.values() for array in part.data()]
        unfinished = run.unfinished([self.name, asdict(self.config)], data)
        objective = MatrixObjective(cases[TRAIN], cases[VALID], self.config)
        settings = self.config
        plan = Plan(
            settings.epochs, settings.seed, patience=settings.patience, weight_decay=settings.weight_decay
        )
        curve = train(objective, plan, progress=run.progress, checkpoint=unfinished)
        matrix = objective.learned()
        if self.config.logits == "raw":
            matrix = matrix * scale_of(products(matrix, cases[VALID]))
        # Rounded to what is saved, so that a loaded model scores exactly as this one.
        learned = {"matrix": matrix.astype(np.float32)}
        f_bounds = Bounds.of(self._scores(learned, cases[VALID]))
        state = NetworkState(learned, {"f": f_bounds, "g": self._g_bounds(candidates)})
        training = curve.training(
            run.began,
            {"train": len(cases[TRAIN]), "valid": len(cases[VALID])},
            {name: curve.best[name] for name in ("valid_loss", "valid_gt_above")},
            self._notes(wanted),
        )
        return state, training

    def compute(self, samples: Sequence[Sample]) -> Scores:
        bounds = self.state.bounds
        f = self._f(samples)
        references = [sample.reference for sample in samples]
        g = self._similarity([sample.response for sample in samples], references)
        f_unit, g_unit = unit_range(f, bounds["f"]), unit_range(g, bounds["g"])
        return Scores.of(
            self._truncated(samples), f=f, g=g, h=(f_unit + g_unit) / 2, f_unit=f_unit, g_unit=g_unit
        )

    def score_candidates(self, candidates: Candidates, split: int | None = TEST) -> dict[str, Floats]:
        columns, turns = CandidateColumns.of(candidates, split), self.config.context_turns
        vectors = self._vectors(candidates.texts)
        cases = EncodedCandidates(vectors, columns.start, columns.stop, columns.joined, turns)
        return columns.by_kind(self._scores(self.state.tensors, cases))

    def _state_of(self, saved: Saved) -> NetworkState:
        matrix, size = saved.tensors["matrix"], self.encoder.dimensions
        if matrix.shape != (size, size):
            raise EvaluatorError(f"weights of shape {matrix.shape} do not fit {size} dimensions")
        return NetworkState.of(saved)

    def _usable(self, candidates: Candidates, wanted: Rows) -> dict[int, Rows]:
        """Split → positions of its responses with a negative; EvaluatorError for a split without any."""
        usable, lacking = np.any(wanted[:, 1:] >= 0, axis=1), f"a negative of kind {', '.join(self.draws)}"
        return {split: usable_rows(self.name, candidates, split, usable, lacking) for split in (TRAIN, VALID)}

    def _scores(self, tensors: Mapping[str, NDArray[Any]], cases: EncodedCandidates) -> Floats:
        """f of all candidates (n, k) by the learned `tensors`, NaN for a missing one."""
        scores: Floats = np.tanh(products(tensors["matrix"], cases))
        return scores

    def _similarity(self, responses: Sequence[str], references: Sequence[str | None]) -> Floats:
        """g of each pair (n,), NaN without a reference."""
        return similarity(self.config.reference, self.encoder, responses, references)

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

    def _notes(self, wanted: Rows) -> list[str]:
        kinds = [kind for kind, count in self.draws.items() for _ in range(count)]
        present = {kind for at, kind in enumerate(kinds, start=1) if (wanted[:, at] >= 0).any()}
        absent = ", ".join(kind for kind in self.draws if kind not in present)
        used = ", ".join(kind for kind in self.draws if kind in present)
        return [f"no response has a negative of kind {absent}: learned from {used}"] if absent else []

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float16]:
        return self.encoder.encode(texts).astype(np.float16)

    def _f(self, samples: Sequence[Sample]) -> Floats:
        """f of each sample; its last turns and its response are laid out as a conversation of their own."""
        turns, texts = self.config.context_turns, [self._read(sample) for sample in samples]
        layout = [text for read in texts for text in read]
        lengths = np.array([len(read) - 1 for read in texts], dtype=np.int64)
        stop = np.cumsum(lengths + 1) - 1
        row = {text: at for at, text in enumerate(dict.fromkeys(layout))}
        vectors = self._vectors(list(row))[[row[text] for text in layout]]
        cases = EncodedCandidates(vectors, stop - lengths, stop, stop[:, None], turns)
        return self._scores(self.state.tensors, cases)[:, 0]

    def _read(self, sample: Sample) -> list[str]:
        """What f reads: the last turns that are not blank, then the response."""
        return [*sample.last_turns(self.config.context_turns), sample.response]

    def _truncated(self, samples: Sequence[Sample]) -> NDArray[np.bool_]:
        """Whether the encoder leaves out the end of a text that f reads, bool (n,)."""
        texts = [self._read(sample) for sample in samples]
        layout = [text for read in texts for text in read]
        start = np.cumsum([0, *map(len, texts)])[:-1]
        return np.logical_or.reduceat(self.encoder.truncated(layout), start)

    def _g_bounds(self, candidates: Candidates) -> Bounds:
        """Bounds of g between true responses and one of their negatives each, over the valid split."""
        rows = draw(candidates.rows(VALID), _BOUND_ROWS, [self.config.seed, 2])
        drawn = [candidates.negatives[kind] for kind in self.draws]
        responses, references = [], []
        for row in rows.tolist():
            negatives = [int(rows_of_kind[row, 0]) for rows_of_kind in drawn if rows_of_kind[row, 0] >= 0]
            if negatives:
                responses.append(candidates.texts[negatives[row % len(negatives)]])
                references.append(candidates.texts[int(candidates.response[row])])
        return Bounds.of(self._similarity(responses, references))


def scale_of(values: Floats) -> float:
    """By what the products of candidates, NaN for missing ones, are multiplied before tanh.

    The order stays the same, real pairs spread, and few come near ±1, where tanh could not tell good from very good.
    """
    high = float(np.nanquantile(np.abs(values), _QUANTILE)) if np.isfinite(values).any() else 0.0
    return float(np.arctanh(_HIGH)) / high if high > 0 else 1.0


class SSREMPaper(Bilinear):
    """Learns f by telling a response from its speaker's others: one each of SC, SP, SS and Rand (eq. 3)."""

    name: ClassVar[str] = "ssrem-paper"
    source: ClassVar[str] = "Bak and Oh 2020, section 3"
    draws: ClassVar[Mapping[str, int]] = SPEAKER_SETS


class RSREM(Bilinear):
    """The baseline: SSREM's form, learned from four random negatives a response."""

    name: ClassVar[str] = "rsrem"
    source: ClassVar[str] = "Bak and Oh 2020, section 5.1"
    draws: ClassVar[Mapping[str, int]] = {"Rand": 4}
