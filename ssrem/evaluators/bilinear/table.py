"""SSREM over a table of token vectors that learns with M, so that it is fast and needs no other encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.encoders.learned_table import LearnedTable
from ssrem.encoders.token_average import DISTILLED
from ssrem.encoders.word_average import WordAverage
from ssrem.errors import EvaluatorError
from ssrem.evaluators.bilinear.bilinear import SPEAKER_SETS, Bilinear, scale_of
from ssrem.evaluators.bilinear.config import COPY_COST, COPY_FROM, TableConfig
from ssrem.evaluators.bilinear.encoded_candidates import EncodedCandidates
from ssrem.evaluators.bilinear.similarity import similarity
from ssrem.evaluators.core.fitted import NetworkState, Run
from ssrem.evaluators.core.saved import Saved, tensors_hash
from ssrem.evaluators.core.scaling import Bounds
from ssrem.samples import VALID, Candidates, Encode, Floats
from ssrem.training import Training

_CHUNK = 5_000


class SSREM(Bilinear):
    """f = tanh(k (V(c)ᵀ M V(r̂) - copied(c, r̂))), where V is learned with M.

    V of a turn is the mean of its tokens' vectors, brought to unit length. V(c) is the weighted mean of the last
    `context_turns` turns, also of unit length; the weights are learned, the newest turn first. copied(c, r̂) rises from
    0 to COPY_COST as the highest cosine of V(r̂) with one of these turns rises from COPY_FROM to 1. k is chosen after
    training so that f of real pairs spreads and stays away from ± 1.

    It learns by telling the true response from one each of SC, SP, SS and Rand, from the responses and negatives of
    all other contexts of the batch, and from copied turns: those that V(c) averages, the speaker's own among them.
    g compares with the table as it was before learning, which did not see the corpus. The state holds M with k,
    float32 (d, d), the weights of the turns, and the cost of a copy with k.
    """

    name: ClassVar[str] = "ssrem"
    source: ClassVar[str] = "after Bak and Oh 2020, section 3"
    draws: ClassVar[Mapping[str, int]] = SPEAKER_SETS
    config_class: ClassVar[type[Any]] = TableConfig
    form: ClassVar[str] = "ssrem-table-1"
    default_encoder: ClassVar[str] = DISTILLED
    config: TableConfig  # type: ignore[assignment]

    def __init__(self, encoder: Encoder | None, config: Any = None) -> None:
        super().__init__(encoder, config)
        if not isinstance(encoder, WordAverage | LearnedTable):
            raise EvaluatorError(
                f"ssrem learns the rows of a table, and {self.encoder.name} has none: give --encoder wordllama, "
                "glove-6b-50d, word2vec or a file of vectors, or train ssrem-paper, whose encoder stays as it is"
            )

    @property
    def start(self) -> WordAverage:
        """The table before learning."""
        encoder = self.encoder
        if isinstance(encoder, LearnedTable):
            return encoder.start
        assert isinstance(encoder, WordAverage)
        return encoder

    def _about(self, state: NetworkState) -> str:
        drawn, settings = "+".join((*self.draws, "copied", "batch")), self.config
        return f"f:tanh|enc:{self.encoder.signature}|ctx:{settings.context_turns}|neg:{drawn}|g:{settings.reference}"

    def _hash(self, state: NetworkState) -> str:
        return tensors_hash(state.tensors, state.bounds)

    def _fit(self, candidates: Candidates, run: Run) -> tuple[NetworkState, Training]:
        """Learn the table, M and the weights of the turns on the train split, k and the bounds on the valid split."""
        from ssrem.evaluators.bilinear.table_training import TableObjective
        from ssrem.training.trainer import Plan, train

        settings, wanted = self.config, self._wanted(candidates)
        usable = self._usable(candidates, wanted)
        objective = TableObjective(self.start, candidates, wanted, usable, settings)
        unfinished = run.unfinished([self.name, asdict(settings), self.start.signature], objective.data())
        plan = Plan(settings.epochs, settings.seed, patience=settings.patience, clip=None, warmup=0.05)
        curve = train(objective, plan, progress=run.progress, checkpoint=unfinished)
        self.encoder = objective.encoder(settings.share)
        learned = objective.learned(settings.share)
        valid = candidates.part(usable[VALID])
        cases = EncodedCandidates(
            self._vectors(valid.texts, None),
            valid.context_start,
            valid.context_stop,
            self._wanted(valid),
            settings.context_turns,
        )
        learned = {**learned, "cost": np.array([COPY_COST], dtype=np.float32)}
        scale = np.float32(scale_of(table_products(learned, cases)))
        learned |= {name: learned[name] * scale for name in ("matrix", "cost")}
        f_bounds = Bounds.of(self._scores(learned, cases))
        state = NetworkState(learned, {"f": f_bounds, "g": self._g_bounds(candidates, None)})
        figures = {name: value for name, value in curve.best.items() if name.startswith("valid_")}
        rows = {"train": len(usable[0]), "valid": len(usable[VALID])}
        return state, curve.training(run.began, rows, figures, self._notes(wanted))

    def _scores(self, tensors: Mapping[str, NDArray[Any]], cases: EncodedCandidates) -> Floats:
        scores: Floats = np.tanh(table_products(tensors, cases))
        return scores

    def _similarity(
        self, responses: Sequence[str], references: Sequence[str | None], encode: Encode | None
    ) -> Floats:
        return similarity(self.config.reference, self.start, responses, references)

    def _state_of(self, saved: Saved) -> NetworkState:
        if not isinstance(self.encoder, LearnedTable):
            raise EvaluatorError("the table beside it has no learned rows")
        turns = saved.tensors["turns"]
        if turns.shape != (self.config.context_turns,) or saved.tensors["cost"].shape != (1,):
            raise EvaluatorError(f"weights of {turns.shape} turns do not fit {self.config.context_turns}")
        return super()._state_of(saved)


def table_products(tensors: Mapping[str, NDArray[Any]], cases: EncodedCandidates) -> Floats:
    """k (V(c)ᵀ M V(r) - copied(c, r)) of all candidates, float64 (n, k), NaN for -1. tensors: matrix, turns, cost."""
    result = np.empty(cases.candidates.shape)
    matrix, weights = tensors["matrix"].astype(np.float64), tensors["turns"].astype(np.float64)
    for first in range(0, len(cases), _CHUNK):
        rows = np.arange(first, min(first + _CHUNK, len(cases)))
        turns, known = cases.last_turns(rows)
        vectors, present = cases.responses(rows)
        context = np.einsum("nt,ntd->nd", weights * known, turns.astype(np.float64))
        norms = np.linalg.norm(context, axis=1, keepdims=True)
        context = np.divide(context, norms, out=np.zeros_like(context), where=norms > 0) @ matrix
        responses = vectors.astype(np.float64)
        nearest = np.einsum("ntd,nkd->nkt", turns.astype(np.float64), responses).max(axis=2)
        copied = float(tensors["cost"][0]) * np.clip((nearest - COPY_FROM) / (1 - COPY_FROM), 0, 1)
        values = np.einsum("nd,nkd->nk", context, responses) - copied
        # Rounded, so that the order of sums, which depends on the number of rows, does not show.
        result[rows] = np.where(present, values.round(12), np.nan)
    return result
