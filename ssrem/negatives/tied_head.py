"""Fine-tunes a masked language model; a sentence encoder gets a head that is tied to its embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from pydantic import Field
from safetensors import safe_open
from torch.nn.functional import cross_entropy

from ssrem.encoders import hub, pretrained
from ssrem.encoders.base import padded
from ssrem.encoders.layers import freeze
from ssrem.errors import EvaluatorError
from ssrem.files import write_json
from ssrem.negatives.masked_lm import joined_turns, masked_logits
from ssrem.samples import TRAIN, VALID, Candidates, Floats, Progress, Rows
from ssrem.settings import LARGEST, Count, Natural, Positive, Seed, Settings
from ssrem.training.checkpoint import Checkpoint
from ssrem.training.trainer import Group, Loss, Schedule, Step, train

CARD = "tied_head.json"
_STEPS_A_STATE = 100
"""After how many steps the state of an unfinished training is written."""
_HEAD = "predictions.transform.dense.weight"
"""The end of the name of the head's first weights."""


class TiedHeadSettings(Settings, strict=True):
    """Settings of the fine-tuning."""

    encoder: str = hub.MINILM
    """name or folder of a BERT encoder, or of a masked language model, which keeps its head"""
    device: str | None = None
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


SETTINGS = TiedHeadSettings


def fine_tune(
    candidates: Candidates,
    folder: Path,
    settings: TiedHeadSettings | None = None,
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> None:
    """Fine-tune the encoder and its head on the responses of the training split; save both and a card in `folder`.

    A new head is BERT's (dense, GELU, norm, then the input embeddings transposed, and a bias), its dense layer the
    identity at first and its bias the log frequency of each token. The loss is that of the masked tokens; the optimiser
    is Adam with decoupled weight decay, in bf16 where the hardware has it. The draws depend on the seed; the weights
    depend on it and, in the last digits, on hardware and number of threads. transformers' AutoModelForMaskedLM loads
    the folder. The card has the mean -log p of the masked tokens of held-out responses before (with a new head's bias
    at the log frequencies) and after. checkpoint: a folder for the unfinished training, from which the next call with
    equal settings and data goes on. Raises EvaluatorError if the encoder is no BERT, there is nothing to learn from, or
    training diverges; the folder is then not written.
    """
    settings = settings or TiedHeadSettings()
    if len(candidates.rows(TRAIN)) == 0:
        raise EvaluatorError("masked-lm: the training split has no response; build the speaker tables first")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        head = TiedHead(candidates, settings)
        before, device = head.validate(0), head.model.device
        plan = Schedule(
            1, settings.seed, weight_decay=0.01, decoupled=True, warmup=0.1, bf16=device, one_thread=False
        )
        unfinished = None
        if checkpoint is not None:
            made_of = [settings.model_dump(), pretrained.weights_hash(head.model)]
            unfinished = Checkpoint(checkpoint, made_of, head.data(), every=_STEPS_A_STATE)
        curve = train(head, plan, progress=progress, checkpoint=unfinished)
        head.model.eval()
    folder.mkdir(parents=True, exist_ok=True)
    with hub.quiet():
        head.model.save_pretrained(folder)
        head.tokenizer.save_pretrained(folder)
    losses = {"before": before.get("valid_loss"), "after": curve.best.get("valid_loss")}
    about = {
        "settings": settings.model_dump(),
        "responses": len(head.rows),
        **{name: loss for name, loss in losses.items() if loss is not None},
        "seconds": curve.seconds,
        "train_loss": curve.best["train_loss"],
        "weights": pretrained.weights_hash(head.model),
    }
    write_json(folder / CARD, about)


class _Batch(NamedTuple):
    """ids, attention (b, t): padded inputs. row, position, truth (m,): the masks and the tokens that they hide."""

    ids: torch.Tensor
    attention: torch.Tensor
    row: torch.Tensor
    position: torch.Tensor
    truth: torch.Tensor


class TiedHead:
    """The encoder and its new head, learned from masked responses in the form that mask-and-fill uses.

    One epoch of `settings.steps` batches.
    """

    def __init__(self, candidates: Candidates, settings: TiedHeadSettings) -> None:
        self.candidates, self.settings, self.rows = candidates, settings, candidates.rows(TRAIN)
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
        # Masked once, so that all losses are of the same masks.
        random, size, rows = (
            np.random.default_rng([settings.seed, 1]),
            settings.batch_size,
            candidates.rows(VALID),
        )
        rows = rows[np.sort(random.choice(len(rows), min(settings.held_out, len(rows)), replace=False))]
        parts = (rows[first : first + size] for first in range(0, len(rows), size))
        self.held_out = [batch for part in parts for batch in self._batches(part, random)]

    def groups(self) -> list[Group]:
        named = {name: value for name, value in self.model.named_parameters() if value.requires_grad}
        head = {name: value for name, value in named.items() if name.startswith("cls.")}
        encoder = {name: value for name, value in named.items() if name not in head}
        return [Group(encoder, self.settings.learning_rate), Group(head, self.settings.head_learning_rate)]

    def data(self) -> list[Rows]:
        """What must be the same for a training to be resumed: the responses to draw from and the held-out ones."""
        held_out = (batch.ids.numpy(force=True) for batch in self.held_out)
        return [self.rows, self.candidates.response[self.rows], *held_out]

    def epochs(self) -> Iterator[list[Rows]]:
        random, size = np.random.default_rng([self.settings.seed, 0]), self.settings.batch_size
        while True:
            yield [random.choice(self.rows, size) for _ in range(self.settings.steps)]

    def loss(self, rows: Rows, step: Step) -> Loss:
        random = np.random.default_rng([self.settings.seed, 2, step.number])
        self.model.train()
        for part in self.frozen:
            part.eval()  # no dropout in frozen parts
        batches = self._batches(rows, random)
        masked = sum(len(batch.truth) for batch in batches)
        if masked == 0:
            raise EvaluatorError(
                f"masked-lm: at step {step.number + 1} no response has a token that the encoder knows; "
                f"{self.settings.encoder} does not fit this corpus"
            )
        summed = torch.stack([self._summed_loss(batch) for batch in batches]).sum()
        return Loss.averaged(summed / masked, len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        """Mean -log p over the masked tokens of the held-out responses; nothing where there is none."""
        self.model.eval()
        masked = sum(len(batch.truth) for batch in self.held_out)
        with torch.inference_mode():
            total = sum(float(self._summed_loss(batch)) for batch in self.held_out)
        return {"valid_loss": total / masked} if masked else {}

    def _summed_loss(self, batch: _Batch) -> torch.Tensor:
        """The sum of -log p of the tokens behind the masks."""
        logits = masked_logits(self.model, *batch[:4]).float()
        return cross_entropy(logits, batch.truth, reduction="sum")

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

    def _batches(self, rows: Rows, random: np.random.Generator) -> list[_Batch]:
        """The responses at `rows`, first those read alone, then those read after their context, which are longer."""
        after = random.random(len(rows)) < self.settings.context_share
        parts = [[self._input(row, read) for row in rows[after == read].tolist()] for read in (False, True)]
        return [self._batch(part, random) for part in parts if part]

    def _batch(self, inputs: Sequence[Sequence[int]], random: np.random.Generator) -> _Batch:
        """The texts' tokens, a share of them masked."""
        ids = padded(inputs, self.tokenizer.pad_token_id)
        attention = padded([[1] * len(tokens) for tokens in inputs])
        usable = (attention == 1) & ~np.isin(ids, self.tokenizer.all_special_ids)
        chance = np.where(usable, random.random(ids.shape), np.inf)
        masked = chance < self.settings.masked
        # At least one in each text with a usable token: the smallest draw, which is masked anyway if any is.
        every, first = np.arange(len(ids)), chance.argmin(axis=1)
        masked[every, first] = usable[every, first]
        row, position = np.nonzero(masked)
        truth = ids[row, position]
        ids[row, position] = self.tokenizer.mask_token_id
        arrays = (ids, attention, row, position, truth)
        return _Batch(*(torch.from_numpy(array).to(self.model.device) for array in arrays))

    def _input(self, row: int, with_context: bool) -> list[int]:
        sample = self.candidates.sample(row)
        turns = sample.context[-self.settings.context_turns :] if with_context else ()
        *context, response = self._tokens([*turns, sample.response])
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
