"""Fine-tunes a causal language model on a corpus, by low-rank adapters that are added to its weights in the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from ssrem.encoders import hub, pretrained
from ssrem.encoders.layers import add_adapters, layers, merge_adapters
from ssrem.encoders.transformer import adapter_factors
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import EvaluatorSettings
from ssrem.evaluators.language_model.likelihood import CausalSettings
from ssrem.evaluators.language_model.models import GEMMA, CausalModel, Tokens, gemma_folder
from ssrem.evaluators.learning import draw
from ssrem.files import write_json
from ssrem.samples import TRAIN, VALID, Candidates, Progress, Rows
from ssrem.settings import LARGEST, Count, Natural, Positive, Seed
from ssrem.training.checkpoint import Checkpoint
from ssrem.training.trainer import Curve, Group, Loss, Schedule, Step, train

CARD = "fine_tuned.json"
_STEPS_A_STATE = 50


class LmSettings(EvaluatorSettings):
    """Settings of the fine-tuning of a causal model."""

    model: str = GEMMA
    """name or folder of the model"""
    device: str | None = None
    """device of the training: auto, cpu, cuda or mps"""
    steps: Count = 1000
    """updates"""
    batch_size: Count = 8
    """responses of an update"""
    rank: Count = 8
    """rank of the adapters"""
    freeze: Natural = 0
    """number of lowest layers that get no adapters"""
    learning_rate: Positive = 2e-4
    """learning rate; it rises over the first tenth of the steps and then falls to 0"""
    context_share: float = Field(0.75, ge=0, le=1)
    """share of responses that are read after their context; the others are read alone, as lm-pmi reads them too"""
    context_turns: Count = 5
    """turns of a context at most"""
    max_tokens: int = Field(128, ge=8, le=LARGEST)
    """tokens of a text at most; the context's oldest are dropped first"""
    held_out: Count = 128
    """responses of the valid split on which the loss is measured"""
    seed: Seed = 0
    """seed of every draw"""


SETTINGS = LmSettings


def fine_tune(
    candidates: Candidates,
    folder: Path,
    settings: LmSettings | None = None,
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Curve:
    """Minimise -log p of the training split's responses; save the whole model into `folder`, as transformers does.

    Texts are laid out as `lm-pmi` reads them by default. Adam, in bf16 where the hardware has it. checkpoint: a folder
    for the unfinished training, from which the next call with equal settings and data goes on. The curve's epoch 0 has
    the loss before. EvaluatorError if the model is not causal, or there is nothing to learn from.
    """
    settings = settings or LmSettings()
    if len(candidates.rows(TRAIN)) == 0:
        raise EvaluatorError("lm: the training split has no response; build the speaker tables first")
    objective = LmObjective(candidates, settings)
    unfinished = None
    if checkpoint is not None:
        made_of = [settings.model_dump(), pretrained.weights_hash(objective.model)]
        unfinished = Checkpoint(checkpoint, made_of, objective.data(), every=_STEPS_A_STATE)
    plan = Schedule(1, settings.seed, from_0=True, warmup=0.1, bf16=objective.model.device, one_thread=False)
    curve = train(objective, plan, progress=progress, checkpoint=unfinished)
    merge_adapters(objective.model)
    folder.mkdir(parents=True, exist_ok=True)
    with hub.quiet():
        objective.model.save_pretrained(folder)
        objective.tokenizer.save_pretrained(folder)
    figures = {
        name: entry["valid_loss"]
        for name, entry in (("before", curve.history[0]), ("after", curve.best))
        if "valid_loss" in entry
    }
    about = {
        "settings": settings.model_dump(),
        "responses": len(objective.rows),
        "seconds": curve.seconds,
        **figures,
    }
    write_json(folder / CARD, {**about, "weights": pretrained.weights_hash(objective.model)})
    return curve


class LmObjective:
    """The adapters of a causal model, learned from responses; mean -log p of their tokens."""

    def __init__(self, candidates: Candidates, settings: LmSettings) -> None:
        spec = str(gemma_folder()) if settings.model == GEMMA else settings.model
        self.candidates, self.settings, self.rows = candidates, settings, candidates.rows(TRAIN)
        self.tokenizer, self.model = pretrained.load(spec, "AutoModelForCausalLM", device=settings.device)
        self.reader = CausalModel(settings.model, self.tokenizer, self.model)
        self.model.requires_grad_(False)
        self.adapters = add_adapters(
            *layers(self.model), rank=settings.rank, freeze=settings.freeze, seed=settings.seed
        )
        if not self.adapters:
            raise EvaluatorError(
                f"lm: {settings.model} has no linear maps that adapters know; name another model"
            )
        valid = draw(candidates.rows(VALID), settings.held_out, [settings.seed, 1])
        self.held_out = self._read(valid, np.random.default_rng([settings.seed, 1]))

    def data(self) -> list[NDArray[np.int64]]:
        """What a training that goes on must find again."""
        held_out = [token for item in self.held_out for token in (*item.context, *item.response)]
        return [self.rows, self.candidates.response[self.rows], np.array(held_out, dtype=np.int64)]

    def groups(self) -> Sequence[Group]:
        return [Group(adapter_factors(self.adapters), self.settings.learning_rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        random = np.random.default_rng([self.settings.seed, 0])
        while True:
            yield [random.choice(self.rows, self.settings.batch_size) for _ in range(self.settings.steps)]

    def loss(self, rows: Rows, step: Step) -> Loss:
        items = self._read(rows, np.random.default_rng([self.settings.seed, 2, step.number]))
        if not items:
            raise EvaluatorError(f"lm: at step {step.number + 1} no response has a token")
        total, count = self._summed_loss(items)
        return Loss.averaged(total / count, len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        """The loss on the held-out responses; nothing where there are none."""
        size, total, tokens = self.settings.batch_size, 0.0, 0
        for first in range(0, len(self.held_out), size):
            summed, count = self._summed_loss(self.held_out[first : first + size])
            total, tokens = total + float(summed), tokens + count
        return {"valid_loss": total / tokens} if tokens else {}

    def _read(self, rows: Rows, random: np.random.Generator) -> list[Tokens]:
        """The responses at `rows`, some after their context, without those that have no token."""
        samples = []
        for row in rows.tolist():
            sample, after = self.candidates.sample(row), random.random() < self.settings.context_share
            samples.append((sample.context[-self.settings.context_turns :] if after else (), sample.response))
        form = CausalSettings()
        read = self.reader.tokens(
            samples, separator=form.separator, max_length=self.settings.max_tokens,
            speakers=tuple(form.speakers.split("+")),
        )  # fmt: skip
        return [item for item in read if item.response]

    def _summed_loss(self, items: Sequence[Tokens]) -> tuple[torch.Tensor, int]:
        """The sum of -log p of the responses' tokens, and their number."""
        begin = self.reader.frame[0]
        rows = [(*begin, *item.context, *item.response) for item in items]
        # A token is predicted at the position before it.
        places = [
            (at, len(row) - len(item.response) - 1 + token)
            for at, (row, item) in enumerate(zip(rows, items, strict=True))
            for token in range(len(item.response))
        ]
        targets = torch.tensor([token for item in items for token in item.response], device=self.model.device)
        logits = self.reader.logits(rows, places, use_cache=False)
        return torch.nn.functional.cross_entropy(logits.float(), targets, reduction="sum"), len(targets)
