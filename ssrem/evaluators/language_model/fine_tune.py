"""Fine-tunes a causal language model on a corpus, by low-rank adapters that are finally merged into its weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field

from ssrem.encoders import pretrained
from ssrem.encoders.layers import add_adapters, layers, merge_adapters
from ssrem.encoders.transformer import adapter_factors
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import EvaluatorSettings
from ssrem.evaluators.language_model.likelihood import CausalSettings
from ssrem.evaluators.language_model.models import GEMMA, CausalModel, Tokens, gemma_folder
from ssrem.samples import Candidates
from ssrem.settings import LARGEST, Count, Natural, Positive, Seed
from ssrem.training.fine_tuning import ResponseObjective
from ssrem.training.trainer import Group


class LmSettings(EvaluatorSettings):
    """Settings of the fine-tuning of a causal model."""

    model: str = GEMMA
    """name or folder of the model"""
    device: str | None = Field(None, exclude=True)
    """device of the training: auto, cpu, cuda or mps"""
    steps: Count = 1000
    """updates"""
    batch_size: Count = 8
    """responses in an update"""
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


class LmObjective(ResponseObjective):
    """Trains low-rank adapters of a causal model, on texts laid out as `lm-pmi` reads them by default.

    The whole model is saved. Raises EvaluatorError if it is not causal or has no linear maps for the adapters.
    """

    name: ClassVar[str] = "lm"
    settings_model: ClassVar[type[EvaluatorSettings]] = LmSettings

    def __init__(self, candidates: Candidates, settings: LmSettings) -> None:
        super().__init__(candidates, settings)
        spec = str(gemma_folder()) if settings.model == GEMMA else settings.model
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

    def groups(self) -> Sequence[Group]:
        return [Group(adapter_factors(self.adapters), self.settings.learning_rate)]

    def read(self, texts: Sequence[tuple[Sequence[str], str]], random: np.random.Generator) -> list[Tokens]:
        """The tokens of these texts; those whose response has no token are left out."""
        form = CausalSettings()
        read = self.reader.tokens(
            texts, separator=form.separator, max_length=self.settings.max_tokens,
            speakers=tuple(form.speakers.split("+")),
        )  # fmt: skip
        return [item for item in read if item.response]

    def summed_loss(self, batch: Sequence[Tokens]) -> tuple[torch.Tensor, int]:
        """The sum of -log p of the responses' tokens, and their number."""
        if not batch:
            return torch.zeros(()), 0
        begin = self.reader.frame[0]
        rows = [(*begin, *item.context, *item.response) for item in batch]
        # A token is predicted at the position before it.
        places = [
            (at, len(row) - len(item.response) - 1 + token)
            for at, (row, item) in enumerate(zip(rows, batch, strict=True))
            for token in range(len(item.response))
        ]
        targets = torch.tensor([token for item in batch for token in item.response], device=self.model.device)
        logits = self.reader.logits(rows, places, use_cache=False)
        return torch.nn.functional.cross_entropy(logits.float(), targets, reduction="sum"), len(targets)

    def finish(self) -> None:
        merge_adapters(self.model)
