"""SSREM over a table of token vectors that learns with M, so that it is fast and needs no other encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.encoders.tables import DISTILLED, LearnedTable
from ssrem.encoders.words import WordAverage
from ssrem.errors import EvaluatorError
from ssrem.evaluators.bilinear.bilinear import SPEAKER_SETS, Bilinear, scale_of
from ssrem.evaluators.bilinear.config import COPY_COST, COPY_FROM, TableConfig
from ssrem.evaluators.bilinear.encoded_candidates import EncodedCandidates
from ssrem.evaluators.core.saved import Saved, tensors_hash
from ssrem.evaluators.core.scaling import Bounds
from ssrem.evaluators.core.state import NetworkState, Run
from ssrem.evaluators.similarity import similarity
from ssrem.samples import TRAIN, VALID, Candidates, Floats, Rows
from ssrem.training import Training

if TYPE_CHECKING:
    from ssrem.evaluators.bilinear.objective import VectorObjective
    from ssrem.training.trainer import Curve, Plan

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
    default_encoder: ClassVar[str | None] = DISTILLED
    unfit: ClassVar[str] = (
        "learns the rows of a table, and {} has none: give --encoder wordllama, glove-6b-50d, word2vec or a file of "
        "vectors, or train ssrem-paper, whose encoder stays as it is"
    )
    """Error message for an encoder of another class."""
    steps_a_state: ClassVar[int | None] = None
    """After how many steps within an epoch the state of a training is written."""
    config: TableConfig  # type: ignore[assignment]

    def __init__(self, encoder: Encoder | None, config: Any = None) -> None:
        super().__init__(encoder, config)
        if not isinstance(encoder, self._encoders()):
            raise EvaluatorError(f"{self.name} {self.unfit.format(self.encoder.name)}")

    @staticmethod
    def _encoders() -> tuple[type[Encoder], type[Encoder]]:
        """The classes of encoders before and after learning."""
        return WordAverage, LearnedTable

    @property
    def start(self) -> Encoder:
        """The encoder before learning."""
        return getattr(self.encoder, "start", self.encoder)

    def _about(self, state: NetworkState) -> str:
        drawn, settings = "+".join((*self.draws, "copied", "batch")), self.config
        return f"f:tanh|enc:{self.encoder.signature}|ctx:{settings.context_turns}|neg:{drawn}|g:{settings.reference}"

    def _hash(self, state: NetworkState) -> str:
        return tensors_hash(state.tensors, state.bounds)

    def _objective(self, candidates: Candidates, wanted: Rows, usable: Mapping[int, Rows]) -> VectorObjective:
        """What is learned from the usable responses."""
        from ssrem.evaluators.bilinear.table_training import TableObjective

        assert isinstance(self.start, WordAverage)
        return TableObjective(self.start, candidates, wanted, usable, self.config)

    def _plan(self) -> Plan:
        """How it is learned."""
        from ssrem.training.trainer import Plan

        return Plan(
            self.config.epochs, self.config.seed, patience=self.config.patience, clip=None, warmup=0.05
        )

    def _share(self, objective: VectorObjective, curve: Curve) -> tuple[float, list[str]]:
        """How far from the start towards what was learned the weights go, and remarks on it."""
        return self.config.share, []

    def _fit(self, candidates: Candidates, run: Run) -> tuple[NetworkState, Training]:
        """Learn V, M and the weights of the turns on the train split, k and the bounds on the valid split."""
        from ssrem.training.trainer import train

        settings, wanted = self.config, self._wanted(candidates)
        usable = self._usable(candidates, wanted)
        objective = self._objective(candidates, wanted, usable)
        unfinished = run.unfinished(
            [self.name, asdict(settings), self.start.signature], objective.data(), every=self.steps_a_state
        )
        curve = train(objective, self._plan(), progress=run.progress, checkpoint=unfinished)
        share, notes = self._share(objective, curve)
        self.encoder = objective.encoder(share)
        learned = objective.learned(share)
        valid = candidates.part(usable[VALID])
        cases = EncodedCandidates(
            self._vectors(valid.texts),
            valid.context_start,
            valid.context_stop,
            self._wanted(valid),
            settings.context_turns,
        )
        learned = {**learned, "cost": np.array([COPY_COST], dtype=np.float32)}
        scale = np.float32(scale_of(table_products(learned, cases)))
        learned |= {name: learned[name] * scale for name in ("matrix", "cost")}
        f_bounds = Bounds.of(self._scores(learned, cases))
        state = NetworkState(learned, {"f": f_bounds, "g": self._g_bounds(candidates)})
        figures = {name: value for name, value in curve.best.items() if name.startswith("valid_")}
        rows = {"train": len(usable[TRAIN]), "valid": len(usable[VALID])}
        return state, curve.training(run.began, rows, figures, [*self._notes(wanted), *notes])

    def _scores(self, tensors: Mapping[str, NDArray[Any]], cases: EncodedCandidates) -> Floats:
        scores: Floats = np.tanh(table_products(tensors, cases))
        return scores

    def _similarity(self, responses: Sequence[str], references: Sequence[str | None]) -> Floats:
        return similarity(self.config.reference, self.start, responses, references)

    def _state_of(self, saved: Saved) -> NetworkState:
        if not isinstance(self.encoder, self._encoders()[1]):
            raise EvaluatorError("the encoder beside it has learned nothing")
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
