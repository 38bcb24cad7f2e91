"""Fine-tunes a masked language model; a sentence encoder gets a head that is tied to its embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from pydantic import Field
from safetensors import safe_open
from torch.nn.functional import cross_entropy

from ssrem.encoders import hub, pretrained
from ssrem.encoders.base import padded
from ssrem.encoders.layers import freeze
from ssrem.errors import EvaluatorError
from ssrem.negatives.masked_lm import joined_turns, masked_logits
from ssrem.samples import Candidates, Floats, Rows
from ssrem.settings import LARGEST, Count, Natural, Positive, Seed, Settings
from ssrem.training.fine_tuning import ResponseObjective
from ssrem.training.trainer import Group, Loss, Step

_HEAD = "predictions.transform.dense.weight"
"""End of the name of the head's first weights, by which saved weights are seen to have a head."""


class TiedHeadSettings(Settings, strict=True):
    """Settings of the fine-tuning."""

    encoder: str = hub.MINILM
    """name or folder of a BERT encoder, or of a masked language model, which keeps its head"""
    device: str | None = Field(None, exclude=True)
    """device of the training: auto, cpu, cuda or mps"""
    steps: Count = 5000
    """updates"""
    batch_size: Count = 32
    """responses of an update"""
    learning_rate: Positive = 1e-4
    """learning rate of the encoder; it rises over the first tenth of the steps and then falls to 0"""
    head_learning_rate: Positive = 1e-3
    """learning rate of the new head, which rises and falls alike"""
    masked: float = Field(0.15, gt=0, lt=1)
    """share of tokens that are masked, at least one in each text"""
    context_share: float = Field(0.5, ge=0, le=1)
    """share of responses that are read after their context; the others are read alone: mask-and-fill needs both"""
    context_turns: Count = 5
    """turns of a context at most"""
    max_tokens: int = Field(128, ge=8, le=LARGEST)
    """tokens of a text at most; the context's oldest are dropped first, then the response's last"""
    held_out: Count = 256
    """responses of the valid split on which the loss is measured before and after"""
    freeze: Natural = 0
    """number of lowest layers that do not learn, nor do the embeddings; 0: everything learns"""
    seed: Seed = 0
    """seed of every draw"""


class _Batch(NamedTuple):
    """Masked texts. ids, attention (b, t): padded token ids, and 1 for each that is no padding. row, position (m,):
    places of the masks. truth (m,): ids of the tokens that they hide."""

    ids: torch.Tensor
    attention: torch.Tensor
    row: torch.Tensor
    position: torch.Tensor
    truth: torch.Tensor


class TiedHead(ResponseObjective):
    """Trains an encoder and its head on masked responses, in the form in which mask-and-fill reads them.

    A new head is that of BERT: a dense layer, GELU, normalisation, then the transposed input embeddings and a bias. Its
    dense layer starts as the identity, and its bias as the log frequency of each token. transformers'
    AutoModelForMaskedLM loads what is saved. Raises EvaluatorError if the encoder is no BERT.
    """

    name: ClassVar[str] = "masked-lm"
    settings_model: ClassVar[type[Settings]] = TiedHeadSettings
    weight_decay: ClassVar[float] = 0.01

    def __init__(self, candidates: Candidates, settings: TiedHeadSettings) -> None:
        super().__init__(candidates, settings)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.tokenizer, self.model = pretrained.load(
                settings.encoder, "AutoModelForMaskedLM", device=settings.device, new_weights=True
            )
        config = self.model.config
        if config.model_type != "bert" or config.max_position_embeddings < settings.max_tokens:
            raise EvaluatorError(
                f"masked-lm: {settings.encoder} is a {config.model_type} encoder of "
                f"{config.max_position_embeddings} tokens; expected bert of {settings.max_tokens} or more"
            )
        if self.tokenizer.mask_token_id is None:
            raise EvaluatorError(
                f"masked-lm: the tokenizer of {settings.encoder} has no mask token; name another BERT"
            )
        self.frozen = freeze(self.model, settings.freeze, settings.encoder)
        if not _has_head(settings.encoder):
            self._start()

    def groups(self) -> list[Group]:
        named = {name: value for name, value in self.model.named_parameters() if value.requires_grad}
        head = {name: value for name, value in named.items() if name.startswith("cls.")}
        encoder = {name: value for name, value in named.items() if name not in head}
        return [Group(encoder, self.settings.learning_rate), Group(head, self.settings.head_learning_rate)]

    def loss(self, rows: Rows, step: Step) -> Loss:
        self.model.train()
        for part in self.frozen:
            part.eval()  # no dropout in frozen parts
        return super().loss(rows, step)

    def read(self, texts: Sequence[tuple[Sequence[str], str]], random: np.random.Generator) -> list[_Batch]:
        """A masked batch of the responses read alone, and one of those read after their context, which are longer."""
        parts = [[self._input(*text) for text in texts if bool(text[0]) == after] for after in (False, True)]
        return [self._masked(part, random) for part in parts if part]

    def summed_loss(self, batch: Sequence[_Batch]) -> tuple[torch.Tensor, int]:
        """The sum of -log p of the tokens that the masks hide, and their number."""
        losses = [
            cross_entropy(masked_logits(self.model, *part[:4]).float(), part.truth, reduction="sum")
            for part in batch
        ]
        return torch.stack(losses).sum(), sum(len(part.truth) for part in batch)

    def finish(self) -> None:
        self.model.eval()

    def _start(self) -> None:
        """Set the head's weights before training; its output weights are the input embeddings themselves."""
        head = self.model.cls.predictions
        self.model.tie_weights()
        if head.decoder.weight is not self.model.get_input_embeddings().weight:
            raise EvaluatorError(
                "masked-lm: the encoder's config has tie_word_embeddings off; set it to true"
            )
        with torch.no_grad():
            torch.nn.init.eye_(head.transform.dense.weight)
            head.transform.dense.bias.zero_()
            head.decoder.bias.copy_(torch.from_numpy(np.log(self._frequencies())))

    def _frequencies(self) -> Floats:
        """Relative frequency of each token in a sample of the responses, with one added to each count; (v,)."""
        counts = np.ones(self.model.config.vocab_size)
        sampled = self.rows[:: max(1, len(self.rows) // 20_000)].tolist()
        for ids in self._tokens([self.candidates.sample(row).response for row in sampled]):
            np.add.at(counts, ids, 1)
        return np.asarray(counts / counts.sum())

    def _masked(self, inputs: Sequence[Sequence[int]], random: np.random.Generator) -> _Batch:
        """The batch of these texts' token ids, with the share `masked` of the usable tokens masked."""
        ids = padded(inputs, self.tokenizer.pad_token_id)
        attention = padded([[1] * len(tokens) for tokens in inputs])
        usable = (attention == 1) & ~np.isin(ids, self.tokenizer.all_special_ids)
        chance = np.where(usable, random.random(ids.shape), np.inf)
        masked = chance < self.settings.masked
        # At least one token is masked in each text that has a usable one: the one with the smallest draw.
        every, first = np.arange(len(ids)), chance.argmin(axis=1)
        masked[every, first] = usable[every, first]
        row, position = np.nonzero(masked)
        truth = ids[row, position]
        ids[row, position] = self.tokenizer.mask_token_id
        arrays = (ids, attention, row, position, truth)
        return _Batch(*(torch.from_numpy(array).to(self.model.device) for array in arrays))

    def _input(self, turns: Sequence[str], text: str) -> list[int]:
        *context, response = self._tokens([*turns, text])
        start, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        response = response[: self.settings.max_tokens - 2]
        history, _ = joined_turns(context, end, self.settings.max_tokens - len(response) - 2)
        return [start, *history, *response, end]

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = pretrained.plain_tokens(self.tokenizer, list(texts))["input_ids"]
        return ids


def _has_head(spec: str) -> bool:
    """Whether the weights of a model hold the head of a masked language model."""
    for file in hub.local_folder(spec).glob("*.safetensors"):
        with safe_open(file, framework="np") as weights:
            if any(name.endswith(_HEAD) for name in list(weights.keys())):
                return True
    return False
