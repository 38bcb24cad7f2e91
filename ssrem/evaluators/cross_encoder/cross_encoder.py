"""Cross-encoders: a transformer reads context and response together and scores the response."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssrem.config import Config
from ssrem.encoders.base import Encoder
from ssrem.encoders.hub import MINILM
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Scores, Training
from ssrem.evaluators.core import saved as stored
from ssrem.evaluators.core.candidate_columns import CandidateColumns
from ssrem.evaluators.core.fitted import Fitted
from ssrem.evaluators.core.scaling import Bounds, unit_range
from ssrem.samples import TEST, Candidates, Floats, Progress, Sample

if TYPE_CHECKING:
    from ssrem.evaluators.cross_encoder.inputs import Base, Inputs
    from ssrem.evaluators.cross_encoder.model import CrossNet

FORMAT = "ssrem-cross-encoder-1"
_CHUNK = 4_096


@dataclass(frozen=True)
class CrossEncoderConfig(Config):
    """Settings of a cross-encoder; every one is kept with the model.

    model: a transformer's name or folder, as ssrem.encoders.hub takes it.
    prior: 'cosine', the logit starts as a · cos + b, with the cosine of the model's own untrained sentence vectors
    (the evaluator `cosine`), and learning adds to it; 'none', as in the papers.
    pooling: what the head reads, the 'mean' of the last states or the first one, 'cls'.
    context_turns: how many of the last turns are read. max_tokens: of context and response together.
    contexts, valid_contexts: responses that `fit` learns from, and that choose the epoch; drawn once. The default
    is meant for minutes on two processor cores; with a GPU give all there are, freeze 0 and 3 epochs.
    epochs, batch_size: batch_size counts responses, each with its negatives.
    loss: 'binary' cross-entropy of each response, as in the papers, or 'softmax' of the true one among its negatives.
    learning_rate: of the transformer, head_learning_rate: of the head; both rise over the share `warmup` of the
    steps and fall to 0. dropout: before the head.
    freeze: the embeddings and so many of the lowest layers do not learn, and are run once a training where what
    they give can be held in memory (1 GiB); 0: all learn.
    patience: after how many epochs without a lower validation loss training stops.
    device: auto, cpu, cuda or mps. bf16: 'auto', mixed precision while learning on cuda, or 'off'.
    """

    model: str = MINILM
    prior: str = "cosine"
    pooling: str = "mean"
    context_turns: int = 3
    max_tokens: int = 96
    contexts: int = 800
    valid_contexts: int = 200
    epochs: int = 2
    batch_size: int = 16
    loss: str = "binary"
    learning_rate: float = 2e-5
    head_learning_rate: float = 5e-4
    warmup: float = 0.1
    dropout: float = 0.1
    freeze: int = 4
    patience: int = 2
    seed: int = 0
    device: str = "auto"
    bf16: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.one_of(prior=("cosine", "none"), pooling=("mean", "cls"), bf16=("auto", "off"))
        self.one_of(loss=("binary", "softmax"))
        self.at_least(1, "context_turns", "contexts", "valid_contexts", "epochs", "batch_size", "patience")
        self.at_least(0, "freeze", "seed", "warmup", "dropout", "learning_rate")
        self.above_zero("head_learning_rate")
        if self.warmup > 1 or self.dropout >= 1:
            raise EvaluatorError("warmup must be at most 1, dropout below 1")


@dataclass(frozen=True)
class State:
    """What learning leaves: weights, the bounds of f, on how many human scores it was tuned."""

    weights: Mapping[str, NDArray[np.float32]]
    f_bounds: Bounds
    tuned: int = 0


class CrossEncoder(Fitted[State]):
    """f = sigmoid(logit) in (0, 1), computed in float32 on any device.

    A context without a turn and an empty or unknown text are read as they are and have a score too. A sample is
    `truncated` where it has more than `max_tokens` tokens, or a text of it more than the prior's encoder reads.
    What `fit` learns is the same for the same seed, device and number of threads.
    """

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    parts: ClassVar[tuple[str, ...]] = ("f",)
    takes_encoder: ClassVar[bool] = False
    resumes: ClassVar[bool] = True
    test_sample: ClassVar[int | None] = 200
    config: CrossEncoderConfig
    head: ClassVar[str]
    """The form of the head, as CrossNet names them."""

    def __init__(self, encoder: Encoder | None = None, config: Any = None) -> None:
        if encoder is not None:
            raise EvaluatorError(
                f"{self.name} takes no encoder; its setting model names the transformer, pass None"
            )
        super().__init__(None, config)
        self._net: CrossNet | None = None
        self._base: Base | None = None

    @property
    def base(self) -> Base:
        """The transformer as it comes, loaded when first needed."""
        if self._base is None:
            from ssrem.evaluators.cross_encoder.inputs import Base

            self._base = Base(self.name, self.config)
        return self._base

    def keep(self, state: State, net: CrossNet | None = None) -> None:
        """Take over what was learned; net: one that has it already."""
        from ssrem.evaluators.cross_encoder.model import CrossNet

        if net is None:
            net = CrossNet(self.base, self.config, self.head)
            net.take(state.weights)
        self._net, self._state = net, state
        self._weights_hash = stored.tensors_hash(state.weights, {"f": state.f_bounds})

    def _about(self, state: State) -> str:
        settings = self.config
        return (
            f"model:{self.base.fingerprint}|prior:{settings.prior}|pool:{settings.pooling}"
            f"|ctx:{settings.context_turns}|tok:{settings.max_tokens}{self._learned_from()}"
            f"|tuned:{state.tuned}"
        )

    @abstractmethod
    def negatives(self) -> tuple[str, dict[str, Any]]:
        """Spec and settings for ssrem.negatives.load_generator: what `fit` tells the true response from."""

    def fit(
        self, candidates: Candidates, *, progress: Progress | None = None, checkpoint: Path | None = None
    ) -> Training:
        """Learn on the train split to tell true responses from negatives; the valid split chooses the epoch.

        With a prior, epoch 0, its slope and offset fitted and nothing else, is one of those that can be chosen.
        checkpoint: a folder for the unfinished training; a fit with equal settings and data goes on from there
        and ends as it would have without the break. The folder is left to the caller. EvaluatorError where it
        holds a training with other settings or data.
        """
        from ssrem.evaluators.cross_encoder import fit as cross_encoder_fit
        from ssrem.negatives import load_generator

        spec, settings = self.negatives()
        generator = load_generator(spec, **settings)
        state, self.training, net = cross_encoder_fit.fit(self, candidates, generator, progress, checkpoint)
        self.keep(state, net)
        return self.training

    def score(self, samples: Sequence[Sample]) -> Floats:
        """f of each sample."""
        return self._f(samples)[0]

    def components(self, samples: Sequence[Sample]) -> Scores:
        """f and f_unit; the other parts are NaN."""
        f, truncated = self._f(samples)
        absent = np.full(len(samples), np.nan)
        return Scores(f, absent, absent, self.f_unit(f), absent, truncated)

    def f_unit(self, f: Floats) -> Floats:
        """f scaled to the unit range by the bounds that were fitted once."""
        return unit_range(f, self.state.f_bounds)

    def score_candidates(self, candidates: Candidates, split: int | None = TEST) -> dict[str, Floats]:
        """Kind → f (n, k) for GT, the kinds at hand and Context (the last turn copied); NaN where missing."""
        found = CandidateColumns.of(candidates, split)
        contexts = [
            tuple(candidates.texts[turn] for turn in range(first, last))
            for first, last in zip(found.start.tolist(), found.stop.tolist(), strict=True)
        ]
        at = np.argwhere(found.joined >= 0)
        f = np.full(found.joined.shape, np.nan)
        for first in range(0, len(at), _CHUNK):
            here = at[first : first + _CHUNK]
            texts = (candidates.texts[int(found.joined[row, column])] for row, column in here)
            samples = [Sample(contexts[row], text) for (row, _), text in zip(here, texts, strict=True)]
            f[here[:, 0], here[:, 1]] = self._f(samples)[0]
        return found.by_kind(f)

    def save(self, folder: Path, *, card: Mapping[str, Any] | None = None) -> None:
        """What was learned; the transformer beside it unless it can be had again by name."""
        state, base = self.state, self.base
        stored.write(
            folder,
            self,
            FORMAT,
            state.weights,
            {"f": state.f_bounds},
            card,
            transformer=None if base.named else base.folder,
            tuned=state.tuned,
            model={"fingerprint": base.fingerprint, "named": base.named},
        )

    @classmethod
    def load(cls, folder: Path) -> Self:
        from ssrem.evaluators.cross_encoder.inputs import Base

        saved = stored.read_contents(folder, cls.name, FORMAT, (), parts=("f",), keys=("tuned", "model"))
        try:
            named, fingerprint = saved.about["model"]["named"], saved.about["model"]["fingerprint"]
            tuned = int(saved.about["tuned"])
        except (KeyError, TypeError, ValueError) as error:
            raise EvaluatorError(
                f"{folder / stored.MANIFEST}: not as ssrem writes it ({error}); train again"
            ) from error
        # The device that it was trained on may not be here.
        evaluator = cls(None, replace(cls.config_class.of(saved.about["config"]), device="auto"))
        evaluator._base = Base(cls.name, evaluator.config, None if named else folder / stored.TRANSFORMER)
        if evaluator.base.fingerprint != fingerprint:
            raise EvaluatorError(
                f"{folder}: learned on a model {fingerprint}, but {evaluator.config.model} is now "
                f"{evaluator.base.fingerprint}; bring that model back or train again"
            )
        try:
            evaluator.keep(State(saved.tensors, saved.bounds["f"], tuned))
        except EvaluatorError as error:
            raise EvaluatorError(f"{folder}: {error}") from error
        evaluator.training = saved.training
        stored.check_signature(folder, evaluator, saved)
        return evaluator

    def _learned_from(self) -> str:
        """What the signature says of the corpus' negatives."""
        return ""

    def _f(self, samples: Sequence[Sample]) -> tuple[Floats, NDArray[np.bool_]]:
        """f, and whether something was left out; a chunk of samples at a time."""
        from ssrem.evaluators.cross_encoder.model import logits

        if self._net is None:
            raise EvaluatorError(f"{self.name} is not trained yet; call fit, or load a saved model")
        f, truncated = np.zeros(len(samples)), np.zeros(len(samples), dtype=bool)
        for first in range(0, len(samples), _CHUNK):
            at = slice(first, first + _CHUNK)
            inputs: Inputs = self.base.read(samples[at])
            f[at] = sigmoid(logits(self.base, self._net, inputs))
            truncated[at] = inputs.truncated
        return f, truncated


def sigmoid(values: Floats) -> Floats:
    """1 / (1 + exp(-x)), without overflow."""
    result: Floats = 0.5 * (1 + np.tanh(0.5 * values))
    return result
