"""Cross-encoders, transformers that read context and response together: retrieval (Park et al. 2021; Mehri and Eskenazi
2020) and RoBERTa-eval (Zhao et al. 2020)."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from ssrem.encoders.base import Encoder
from ssrem.encoders.hub import MINILM
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import EvaluatorSettings, Provider, Scores, Trained
from ssrem.negatives import load_generator, needs_model
from ssrem.samples import Sample
from ssrem.settings import Count, Natural, Positive, Seed

if TYPE_CHECKING:
    from ssrem.evaluators.cross_encoder_network import Base
    from ssrem.negatives.base import Generator

_CHUNK = 4_096
_TRANSFORMER = "transformer"
_COPIED = (".json", ".txt", ".model", ".safetensors")

_Rate = Annotated[float, Field(ge=0, le=1e9)]


class CrossEncoderSettings(EvaluatorSettings):
    """Settings of a cross-encoder."""

    model: str = MINILM
    """a transformer's name or folder, as ssrem.encoders.hub takes it"""
    prior: Literal["cosine", "none"] = "cosine"
    """cosine: the logit is a · cos + b before training, with the cosine of the untrained model's sentence vectors (the
    evaluator `cosine`), and training adds to it; none, as in the papers: there is no such term"""
    pooling: Literal["mean", "cls"] = "mean"
    """whether the head reads the mean of the last states or the first one"""
    context_turns: Count = 3
    """number of last turns that are read"""
    max_tokens: Count = 96
    """tokens of context and response together, at most"""
    contexts: Count = 800
    """responses to learn from, drawn once; the default takes minutes on two processor cores: with a GPU use all
    responses, freeze 0 and 3 epochs"""
    valid_contexts: Count = 200
    """responses that choose the epoch, drawn once"""
    epochs: Count = 2
    batch_size: Count = 16
    """responses in a batch, each with its negatives"""
    loss: Literal["binary", "softmax"] = "binary"
    """binary: cross-entropy of each response, as in the papers; softmax: of the true response among its negatives"""
    learning_rate: _Rate = 2e-5
    """learning rate of the transformer; this and the next rise over the share `warmup` of the steps, then fall to 0"""
    head_learning_rate: Positive = 5e-4
    """learning rate of the head"""
    warmup: Annotated[float, Field(ge=0, le=1)] = 0.1
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """dropout before the head"""
    freeze: Natural = 4
    """number of lowest layers that do not learn, nor do the embeddings; their output is computed once per training if
    it fits into 1 GiB; 0: everything learns"""
    rank: Natural = 0
    """rank of adapters that learn in place of the layers from `freeze` on, so that a saved evaluator takes a few MB; 0:
    the layers themselves learn"""
    patience: Count = 2
    """epochs without a lower validation loss before training stops"""
    seed: Seed = 0
    device: str = Field("auto", exclude=True)
    """auto, cpu, cuda or mps; it is not saved, since another machine may lack it"""
    bf16: Literal["auto", "off"] = "auto"
    """auto: mixed precision in training if the processor or GPU has bfloat16; off: float32"""


class CrossEncoder(Trained):
    """f = sigmoid(logit) in (0, 1), computed in float32 on any device.

    Texts without a known word are scored like others. A sample is `truncated` if it has more than `max_tokens` tokens,
    or one of its texts has more than the prior's encoder reads. Training gives equal weights for equal seed, device,
    precision and number of threads.
    """

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    judged: ClassVar[int] = 100
    form: ClassVar[str] = "ssrem-cross-encoder-2"
    learned_by: ClassVar[str] = "ssrem.evaluators.cross_encoder_training"
    head: ClassVar[str]
    """Form of the head: 'linear' or 'mlp', see CrossNet."""
    net: Any = None
    """The network with the learned weights."""
    int8: bool = False
    """Whether scoring on the CPU multiplies whole numbers; a blend sets it."""

    @cached_property
    def base(self) -> Base:
        """The transformer before training, loaded when first needed."""
        from ssrem.evaluators.cross_encoder_network import Base

        return Base(self.name, self.settings)

    def fresh_net(self) -> Any:
        """The network before training."""
        from ssrem.evaluators.cross_encoder_network import CrossNet

        return CrossNet(self.base, self.settings, self.head)

    @abstractmethod
    def negatives(self) -> Generator:
        """The generator of the negatives that `fit` learns from."""

    def _about(self) -> str:
        chosen = self.settings
        return (
            f"model:{self.base.fingerprint}|prior:{chosen.prior}|pool:{chosen.pooling}"
            f"|ctx:{chosen.context_turns}|tok:{chosen.max_tokens}{self._learned_from()}|tuned:{self.tuned}"
        )

    def _learned_from(self) -> str:
        """The part of the signature about loss and negatives."""
        return ""

    def _check(self) -> None:
        net = self.fresh_net()
        net.take(self.tensors)
        self.net = net

    def compute(self, samples: Sequence[Sample]) -> Scores:
        from ssrem.evaluators.cross_encoder_network import logits, sigmoid

        if self.int8:
            self.net.use_int8()
        f, truncated = np.zeros(len(samples)), np.zeros(len(samples), dtype=bool)
        for first in range(0, len(samples), _CHUNK):
            at = slice(first, first + _CHUNK)
            inputs = self.base.read(samples[at])
            f[at], truncated[at] = sigmoid(logits(self.net, inputs)), inputs.truncated
        return Scores.of(truncated, f=f, f_unit=self.f_unit(f))

    def _save_more(self, folder: Path) -> None:
        """Copy a transformer that cannot be loaded by name, without pickled weights, code and other runtimes' files."""
        source, target = self.base.folder, folder / _TRANSFORMER
        # An evaluator may be saved to the folder that it was loaded from.
        if not self.base.named and target.exists() and target.samefile(source):
            return
        shutil.rmtree(target, ignore_errors=True)
        if self.base.named:
            return

        def others(within: str, names: list[str]) -> list[str]:
            folders = [n for n in names if Path(within, n).is_dir() and n not in ("onnx", "openvino")]
            return [name for name in names if name not in folders and not name.endswith(_COPIED)]

        shutil.copytree(source, target, ignore=others)

    @classmethod
    def _untrained(cls, folder: Path, settings: Any, encoder: Encoder | None) -> Self:
        from ssrem.evaluators.cross_encoder_network import Base

        evaluator = cls(settings)
        if (folder / _TRANSFORMER).exists():
            evaluator.base = Base(cls.name, settings, folder / _TRANSFORMER)
        return evaluator


class RetrievalSettings(CrossEncoderSettings):
    """Settings of `retrieval`: those of every cross-encoder, and the negatives.

    The paper fine-tunes all of BERT-base: prior 'none', pooling 'cls', freeze 0, epochs 3, both learning rates 2e-5;
    its batches of 64 count pairs of context and response.
    """

    negatives: str = "random-1+sc"
    """a spec for ssrem.negatives.load_generator, such as 'random-1', 'random-2' or 'random-1+mask-and-fill'"""
    negatives_model: str = ""
    """name or folder of the masked language model for the generators that need one, such as mask-and-fill"""


class Retrieval(CrossEncoder):
    """f = sigmoid(a · cos + b + linear(pooled states)): how likely the response is the true one, not a negative."""

    name: ClassVar[str] = "retrieval"
    source: ClassVar[str] = "Park et al. 2021, section 4.1.2 (BERT-retrieval), with a prior"
    settings_model: ClassVar[type[EvaluatorSettings]] = RetrievalSettings
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates"})
    head: ClassVar[str] = "linear"

    def __init__(self, settings: RetrievalSettings | None = None, encoder: Encoder | None = None) -> None:
        super().__init__(settings, encoder)
        self.negatives()  # raises EvaluatorError for an unknown name at once

    @classmethod
    def create(cls, settings: Mapping[str, Any], provider: Provider) -> Self:
        """An evaluator with the provider's masked language model if the negatives need one and none is set."""
        chosen = RetrievalSettings(**settings)
        if not chosen.negatives_model and needs_model(chosen.negatives):
            chosen = chosen.model_copy(update={"negatives_model": str(provider.masked_lm())})
        return cls(chosen)

    def negatives(self) -> Generator:
        spec, model, device = self.settings.negatives, self.settings.negatives_model, self.settings.device
        if not needs_model(spec):
            return load_generator(spec)
        if not model:
            raise EvaluatorError(
                f"{self.name}: negatives {spec} need a masked language model; set negatives_model to its name "
                "or folder, or make one from the packaged encoder with ssrem train masked-lm"
            )
        return load_generator(spec, model=model, device=None if device == "auto" else device)

    def _learned_from(self) -> str:
        return f"|loss:{self.settings.loss}|neg:{self.settings.negatives}"


class RobertaEvalSettings(CrossEncoderSettings):
    """Settings of `roberta-eval`: those of every cross-encoder, and tune_* for `tuned_on`.

    The paper fine-tunes all of RoBERTa-large: prior 'none', pooling 'cls', freeze 0, all rates 3e-6, batches of 3,
    2 epochs of `fit` and 50 of `tuned_on`.
    """

    tune_epochs: Count = 8
    tune_batch_size: Count = 16
    """in annotated responses"""
    tune_learning_rate: _Rate = 5e-5
    tune_head_learning_rate: Positive = 5e-4


class RobertaEval(CrossEncoder):
    """f = sigmoid(a · cos + b + MLP(pooled states)): a prediction of the human score, on the unit range.

    Unsupervised: `fit` alone, true responses against random ones. Supervised: `tuned_on` alone. Semi-supervised:
    `tuned_on` after `fit`.
    """

    name: ClassVar[str] = "roberta-eval"
    source: ClassVar[str] = "Zhao et al. 2020, section 5.2 and 5.3, with a prior"
    settings_model: ClassVar[type[EvaluatorSettings]] = RobertaEvalSettings
    learns_from: ClassVar[frozenset[str]] = frozenset({"candidates", "labels", "candidates+labels"})
    head: ClassVar[str] = "mlp"

    def negatives(self) -> Generator:
        return load_generator("random-1")
