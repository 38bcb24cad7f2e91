"""SSREM and RSREM: f is the tanh of a bilinear form of context and response, g compares with the reference, h is their
mean (Bak and Oh 2020, section 3).

`ssrem` learns the matrix of the form together with a table of token vectors, `ssrem-minilm` together with low-rank
adapters of a sentence encoder; `ssrem-paper` and `rsrem` learn the matrix alone, as the paper does. The training is in
`bilinear_training`.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders import DEFAULT_ENCODER, Encoder
from ssrem.encoders.base import unit_length
from ssrem.encoders.hub import MINILM, MPNET
from ssrem.encoders.tables import DISTILLED, LearnedTable
from ssrem.encoders.transformer import AdaptedTransformer, Transformer
from ssrem.encoders.words import WordAverage
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Bounds, EvaluatorSettings, Scores, Trained
from ssrem.evaluators.bilinear_inputs import (
    COPY_FROM,
    AdapterSettings,
    BaseSettings,
    Cases,
    PaperSettings,
    SSREMSettings,
    mean_turn,
)
from ssrem.evaluators.learning import CandidateColumns, usable_rows
from ssrem.evaluators.similarity import similarity
from ssrem.samples import TEST, TRAIN, VALID, Candidates, Floats, Progress, Rows, Sample, draw
from ssrem.training import Training

if TYPE_CHECKING:
    from ssrem.evaluators.bilinear_training import MatrixObjective, VectorObjective

# Number of pairs that give the bounds of g: enough for good bounds, and few, because sentence mover's similarity solves
# a transport problem for each pair.
_BOUND_ROWS = 2_000
# f is scaled so that |f| at the quantile _QUANTILE of the validation candidates is _HIGH, see `scale_of`.
_QUANTILE, _HIGH = 0.999, 0.9
# Number of responses whose candidates are scored at a time.
_CHUNK = 5_000

Tensors = Mapping[str, NDArray[Any]]


def scale_of(values: Floats) -> float:
    """The factor by which products are multiplied before tanh. values: products of candidates, NaN for missing ones.

    The order stays the same, real pairs spread, and few come near ±1, where tanh could not tell good from very good.
    """
    high = float(np.nanquantile(np.abs(values), _QUANTILE)) if np.isfinite(values).any() else 0.0
    return float(np.arctanh(_HIGH)) / high if high > 0 else 1.0


class Bilinear(Trained):
    """Base of SSREM and RSREM: f is the tanh of a product that a subclass defines; g compares with the reference.

    A context or response without a known word gives f = 0. A sample is `truncated` if f needs a text that is longer
    than the encoder reads. h is the mean of f and g, each scaled to the unit range.
    """

    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    parts: ClassVar[tuple[str, ...]] = ("f", "g", "h")
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates"})
    default_encoder: ClassVar[str | None] = DEFAULT_ENCODER
    draws: ClassVar[Mapping[str, int]] = {"SC": 1, "SP": 1, "SS": 1, "Rand": 1}
    """Kind → number of its negatives from which the true response is told; by default one of each kind."""
    encoder: Encoder

    @abstractmethod
    def _product(self, tensors: Tensors, cases: Cases) -> Floats:
        """The values whose tanh is f, float64 (n, k); those of missing candidates are arbitrary."""

    @abstractmethod
    def _objective(
        self, candidates: Candidates, wanted: Rows, usable: Mapping[int, Rows], checkpoint: Path | None = None
    ) -> MatrixObjective | VectorObjective:
        """The objective to train. wanted: the result of `_wanted`. usable: split → positions of the responses to use.
        checkpoint: the folder of the unfinished training; None: there is none."""

    @property
    def start(self) -> Encoder:
        """The encoder before learning; g compares with it, because it has learned nothing from the corpus."""
        return self.encoder

    def compute(self, samples: Sequence[Sample]) -> Scores:
        turns = self.settings.context_turns
        read = [[*reversed(sample.last_turns(turns)), sample.response] for sample in samples]
        place = {text: row for row, text in enumerate(dict.fromkeys(chain.from_iterable(read)))}
        rows = np.full((len(samples), turns + 1), -1)
        for row, (*newest_first, response) in enumerate(read):
            rows[row, : len(newest_first)] = [place[text] for text in newest_first]
            rows[row, -1] = place[response]
        vectors = self.encoder.encode(list(place)).astype(np.float16)
        f = np.tanh(self.products(self.tensors, Cases(vectors, rows[:, :-1], rows[:, -1:])))[:, 0]
        g = self._g([sample.response for sample in samples], [sample.reference for sample in samples])
        f_unit, g_unit = self.bounds["f"].unit(f), self.bounds["g"].unit(g)
        long = np.append(self.encoder.truncated(list(place)), False)
        return Scores.of(
            np.any(long[rows], axis=1), f=f, g=g, h=(f_unit + g_unit) / 2, f_unit=f_unit, g_unit=g_unit
        )

    def score_candidates(self, candidates: Candidates, split: int | None = TEST) -> dict[str, Floats]:
        self._check_trained()
        columns = CandidateColumns.of(candidates, split)
        turns = self.settings.context_turns
        cases = Cases.of(candidates, columns.rows, columns.joined, turns, self.encoder)
        return columns.by_kind(np.tanh(self.products(self.tensors, cases)))

    def products(self, tensors: Tensors, cases: Cases) -> Floats:
        """`_product` of all candidates, float64 (n, k), NaN for missing ones."""
        result = np.full(cases.candidates.shape, np.nan)
        for first in range(0, len(cases), _CHUNK):
            part = cases.part(np.arange(first, min(first + _CHUNK, len(cases))))
            # Rounded, because the order in which sums are added depends on the number of rows.
            values = self._product(tensors, part).round(12)
            result[first : first + _CHUNK] = np.where(part.candidates >= 0, values, np.nan)
        return result

    def _fit(self, candidates: Candidates, progress: Progress | None, checkpoint: Path | None) -> Training:
        """Learn on the train split; the valid split chooses the epoch, the scale of f and the bounds."""
        from ssrem.training.checkpoint import Checkpoint
        from ssrem.training.trainer import train

        began, wanted = time.perf_counter(), self._wanted(candidates)
        present, lacking = np.any(wanted[:, 1:] >= 0, axis=1), f"a negative of kind {', '.join(self.draws)}"
        usable = {
            split: usable_rows(self.name, candidates, split, present, lacking) for split in (TRAIN, VALID)
        }
        objective = self._objective(candidates, wanted, usable, checkpoint)
        key = [self.name, self.settings.model_dump(), self.start.signature]
        every = objective.steps_a_state
        unfinished = Checkpoint(checkpoint, key, objective.data(), every=every) if checkpoint else None
        curve = train(objective, objective.plan(), progress=progress, checkpoint=unfinished)
        self.encoder, learned, notes = objective.learned(curve)
        valid = candidates.part(objective.usable[VALID])
        turns, wanted_of_valid = self.settings.context_turns, self._wanted(valid)
        cases = Cases.of(valid, np.arange(len(valid)), wanted_of_valid, turns, self.encoder)
        scale = scale_of(self.products(learned, cases)) if objective.scaled else 1.0
        # Rounded to the type that is saved, so that a loaded model scores exactly as this one.
        tensors = {
            name: (values * (values.dtype.type(scale) if name in objective.scaled else 1)).astype(np.float32)
            for name, values in learned.items()
        }
        bounds = {
            "f": Bounds.of(np.tanh(self.products(tensors, cases))),
            "g": self._g_bounds(candidates),
        }
        self.take(tensors, bounds)
        figures = {name: value for name, value in curve.best.items() if name.startswith("valid_")}
        counts = {name: len(objective.usable[split]) for split, name in ((TRAIN, "train"), (VALID, "valid"))}
        counts["train_an_epoch"] = getattr(self.settings, "responses", counts["train"])
        return curve.training(began, counts, figures, [*self._notes(wanted), *notes])

    def _wanted(self, candidates: Candidates) -> Rows:
        """Rows of the texts, int64 (n, 1 + k): the true response, then the negatives that the evaluator learns from."""
        columns = [candidates.response[:, None]]
        for kind, count in self.draws.items():
            rows = candidates.negatives.get(kind, np.zeros((len(candidates), 0), dtype=np.int64))
            if rows.shape[1] < count:
                raise EvaluatorError(
                    f"{self.name} learns from {count} negatives of kind {kind} a response, the candidates have "
                    f"{rows.shape[1]}; draw more (an absent negative is -1)"
                )
            columns.append(rows[:, :count])
        return np.concatenate(columns, axis=1).astype(np.int64)

    def _notes(self, wanted: Rows) -> list[str]:
        kinds = np.repeat(list(self.draws), list(self.draws.values()))
        present = set(kinds[(wanted[:, 1:] >= 0).any(axis=0)].tolist())
        absent = ", ".join(kind for kind in self.draws if kind not in present)
        used = ", ".join(kind for kind in self.draws if kind in present)
        return [f"no response has a negative of kind {absent}: learned from {used}"] if absent else []

    def _g(self, responses: Sequence[str], references: Sequence[str | None]) -> Floats:
        """g of each pair (n,), NaN without a reference."""
        return similarity(self.settings.reference, self.start, responses, references)

    def _g_bounds(self, candidates: Candidates) -> Bounds:
        """Bounds of g over the valid split, between each true response and one of its negatives."""
        drawn = np.stack([candidates.negatives[kind][:, 0] for kind in self.draws], axis=1)
        responses, references = [], []
        for row in draw(candidates.rows(VALID), _BOUND_ROWS, [self.settings.seed, 2]).tolist():
            if len(negatives := drawn[row][drawn[row] >= 0]):
                responses.append(candidates.texts[negatives[row % len(negatives)]])
                references.append(candidates.texts[candidates.response[row]])
        return Bounds.of(self._g(responses, references))

    def _check(self) -> None:
        size, shape = self.encoder.dimensions, self.tensors["matrix"].shape
        if shape != (size, size):
            raise EvaluatorError(f"weights of shape {shape} do not fit {size} dimensions")


class SSREM(Bilinear):
    """f = tanh(k (V(c)ᵀ M V(r̂) - copied(c, r̂))), where V is learned with M.

    V of a turn is the mean of its tokens' vectors, brought to unit length. V(c) is the weighted mean of the last
    `context_turns` turns, also of unit length; the weights are learned, the newest turn first. copied(c, r̂) rises from
    0 to COPY_COST as the highest cosine of V(r̂) with one of these turns rises from COPY_FROM to 1. k is chosen after
    training so that f of real pairs spreads and stays away from ± 1.

    It learns by telling the true response from one negative each of SC, SP, SS and Rand, from the responses and
    negatives of all other contexts of the batch, and from copied turns: those that V(c) averages, among which are the
    speaker's own. It saves k M, float32 (d, d), the weights of the turns, and k times the cost of a copy.
    """

    name: ClassVar[str] = "ssrem"
    source: ClassVar[str] = "after Bak and Oh 2020, section 3"
    settings_model: ClassVar[type[EvaluatorSettings]] = SSREMSettings
    form: ClassVar[str] = "ssrem-table-2"
    default_encoder: ClassVar[str | None] = DISTILLED
    learns_on: ClassVar[tuple[type[Encoder], type[Encoder]]] = (WordAverage, LearnedTable)
    """The class of its encoder before learning, and the class after learning."""
    unfit: ClassVar[str] = (
        "learns the rows of a table, and {} has none: give the encoder wordllama, glove-6b-50d, word2vec or a file of "
        "vectors, or train ssrem-paper, whose encoder stays as it is"
    )
    """Error message for an encoder of another class."""

    def __init__(self, settings: EvaluatorSettings | None = None, encoder: Encoder | None = None) -> None:
        super().__init__(settings, encoder)
        # A spec, such as minilm-mpnet, may name an encoder that has learned already, whose start is another one.
        if not isinstance(encoder, self.learns_on) or (encoder is not self.start and encoder.origin):
            raise EvaluatorError(f"{self.name} {self.unfit.format(self.encoder.name)}")

    @property
    def start(self) -> Encoder:
        encoder: Encoder = getattr(self.encoder, "start", self.encoder)
        return encoder

    def _about(self) -> str:
        drawn, settings = "+".join((*self.draws, "copied", "batch")), self.settings
        return f"f:tanh|enc:{self.encoder.signature}|ctx:{settings.context_turns}|neg:{drawn}|g:{settings.reference}"

    def _product(self, tensors: Tensors, cases: Cases) -> Floats:
        gathered, known, candidates = cases.gathered()
        turns, responses = gathered.astype(np.float64), candidates.astype(np.float64)
        context = unit_length(np.einsum("nt,ntd->nd", tensors["turns"].astype(np.float64) * known, turns))
        nearest = np.einsum("ntd,nkd->nkt", turns, responses).max(axis=2)
        copied = float(tensors["cost"][0]) * np.clip((nearest - COPY_FROM) / (1 - COPY_FROM), 0, 1)
        context = context @ tensors["matrix"].astype(np.float64)
        product: Floats = np.einsum("nd,nkd->nk", context, responses) - copied
        return product

    def _objective(
        self, candidates: Candidates, wanted: Rows, usable: Mapping[int, Rows], checkpoint: Path | None = None
    ) -> VectorObjective:
        from ssrem.evaluators.bilinear_training import TableObjective

        start: Any = self.start
        return TableObjective(candidates, wanted, usable, self.settings, start)

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.encoder, self.learns_on[1]):
            raise EvaluatorError("the encoder beside it has learned nothing")
        turns = self.tensors["turns"].shape
        if turns != (self.settings.context_turns,) or self.tensors["cost"].shape != (1,):
            raise EvaluatorError(f"weights of {turns} turns do not fit {self.settings.context_turns}")


class SSREMMiniLM(SSREM):
    """The same f as `ssrem`, with V by a sentence encoder whose upper layers learn through low-rank adapters.

    M starts as the identity. A response is told from all other texts of a batch, among them drawn negatives and copied
    turns. After training, the adapters and M are moved back towards their start as far as the validation split allows;
    the setting `keep` says how far.
    """

    name: ClassVar[str] = "ssrem-minilm"
    settings_model: ClassVar[type[EvaluatorSettings]] = AdapterSettings
    form: ClassVar[str] = "ssrem-adapters-2"
    default_encoder: ClassVar[str | None] = MINILM
    learns_on: ClassVar[tuple[type[Encoder], type[Encoder]]] = (Transformer, AdaptedTransformer)
    unfit: ClassVar[str] = (
        "learns adapters of a transformer, and {} is none: give the encoder all-minilm-l6-v2, hf:NAME or a model's "
        "folder, or train ssrem, which learns a table"
    )

    def _objective(
        self, candidates: Candidates, wanted: Rows, usable: Mapping[int, Rows], checkpoint: Path | None = None
    ) -> VectorObjective:
        from ssrem.evaluators.bilinear_training import AdapterObjective

        start: Any = self.start
        return AdapterObjective(candidates, wanted, usable, self.settings, start, checkpoint)


class SSREMBase(SSREMMiniLM):
    """`ssrem-minilm` over a sentence encoder of base size, all-mpnet-base-v2 (110 M parameters)."""

    name: ClassVar[str] = "ssrem-base"
    settings_model: ClassVar[type[EvaluatorSettings]] = BaseSettings
    default_encoder: ClassVar[str | None] = MPNET


class SSREMPaper(Bilinear):
    """The paper's variant: f = tanh(V(c)ᵀ M V(r̂)) over a V that does not learn; V(c) is the mean of the last turns.

    M learns by telling a response from one negative each of SC, SP, SS and Rand (eq. 3). It is saved multiplied by the
    scale of f, float32 (d, d).
    """

    name: ClassVar[str] = "ssrem-paper"
    source: ClassVar[str] = "Bak and Oh 2020, section 3"
    settings_model: ClassVar[type[EvaluatorSettings]] = PaperSettings
    form: ClassVar[str] = "ssrem-bilinear-2"

    def _about(self) -> str:
        settings, ranking = self.settings, "-ranking" if self.settings.loss == "ranking" else ""
        drawn = "+".join(kind if count == 1 else f"{kind}x{count}" for kind, count in self.draws.items())
        return (
            f"f:tanh|loss:{settings.logits}{ranking}|enc:{self.encoder.signature}"
            f"|ctx:{settings.context_turns}|neg:{drawn}|g:{settings.reference}"
        )

    def _product(self, tensors: Tensors, cases: Cases) -> Floats:
        turns, known, responses = cases.gathered()
        context = mean_turn(turns, known).astype(np.float64) @ tensors["matrix"].astype(np.float64)
        product: Floats = np.einsum("nd,nkd->nk", context, responses.astype(np.float64))
        return product

    def _objective(
        self, candidates: Candidates, wanted: Rows, usable: Mapping[int, Rows], checkpoint: Path | None = None
    ) -> MatrixObjective:
        from ssrem.evaluators.bilinear_training import MatrixObjective

        if self.settings.loss == "ranking" and len(self.draws) == 1:
            raise EvaluatorError(
                f"{self.name}: its negatives are all of one kind; loss=ranking needs an order"
            )
        turns, every = self.settings.context_turns, np.arange(len(candidates))
        cases = Cases.of(candidates, every, wanted, turns, self.encoder)
        return MatrixObjective(cases, usable, self.settings, self.encoder)


class RSREM(SSREMPaper):
    """The paper's baseline: the form of `ssrem-paper`, learned from four random negatives for each response."""

    name: ClassVar[str] = "rsrem"
    source: ClassVar[str] = "Bak and Oh 2020, section 5.1"
    draws: ClassVar[Mapping[str, int]] = {"Rand": 4}
