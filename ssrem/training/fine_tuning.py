"""Fine-tunes a language model on a corpus' responses, some of them read after their context."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from ssrem.encoders import hub, pretrained
from ssrem.errors import EvaluatorError
from ssrem.files import write_json
from ssrem.samples import TRAIN, VALID, Candidates, Progress, Rows, draw
from ssrem.training.checkpoint import Checkpoint
from ssrem.training.trainer import Curve, Group, Loss, Schedule, Step, train

CARD = "fine_tuned.json"
"""File in a saved model's folder with the settings, the loss before and after, and the hash of the weights."""
_STEPS_A_STATE = 50
"""After how many steps the state of an unfinished training is written."""


class ResponseObjective(ABC):
    """Objective of training a language model on responses, in one epoch of `settings.steps` batches.

    The loss is the mean -log p of the tokens that are predicted. Raises EvaluatorError if the training split has no
    response.
    """

    name: ClassVar[str]
    """Name of the objective, with which messages begin."""
    settings_model: ClassVar[type[Any]]
    """Class of the settings: steps, batch_size, held_out, context_share, context_turns, seed and others of its own."""
    weight_decay: ClassVar[float] = 0.0
    tokenizer: Any
    model: Any

    def __init__(self, candidates: Candidates, settings: Any) -> None:
        self.candidates, self.settings, self.rows = candidates, settings, candidates.rows(TRAIN)
        if len(self.rows) == 0:
            raise EvaluatorError(
                f"{self.name}: the training split has no response; build the speaker tables first"
            )

    @abstractmethod
    def groups(self) -> Sequence[Group]:
        """The parameters that learn."""

    @abstractmethod
    def read(self, texts: Sequence[tuple[Sequence[str], str]], random: np.random.Generator) -> Any:
        """The batch of these pairs of context and response; the context is empty for a response that is read alone."""

    @abstractmethod
    def summed_loss(self, batch: Any) -> tuple[torch.Tensor, int]:
        """The sum of -log p of a batch's predicted tokens, and their number."""

    @abstractmethod
    def finish(self) -> None:
        """Put what was learned where `model.save_pretrained` saves it."""

    @cached_property
    def held_out(self) -> list[Any]:
        """Batches of held-out responses of the valid split, read once, so that every loss is of the same tokens."""
        seed, size = [self.settings.seed, 1], self.settings.batch_size
        rows = draw(self.candidates.rows(VALID), self.settings.held_out, seed)
        random = np.random.default_rng(seed)
        return [self._batch(rows[first : first + size], random) for first in range(0, len(rows), size)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        random = np.random.default_rng([self.settings.seed, 0])
        while True:
            yield [random.choice(self.rows, self.settings.batch_size) for _ in range(self.settings.steps)]

    def loss(self, rows: Rows, step: Step) -> Loss:
        random = np.random.default_rng([self.settings.seed, 2, step.number])
        total, count = self.summed_loss(self._batch(rows, random))
        if count == 0:
            raise EvaluatorError(
                f"{self.name}: at step {step.number + 1} no response has a token that the model knows; "
                "it does not fit this corpus"
            )
        return Loss.averaged(total / count, len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        """valid_loss: the mean -log p of the predicted tokens of the held-out responses; empty if there are none."""
        self.model.eval()
        with torch.inference_mode():
            parts = [self.summed_loss(batch) for batch in self.held_out]
        count = sum(count for _, count in parts)
        return {"valid_loss": sum(float(total) for total, _ in parts) / count} if count else {}

    def _batch(self, rows: Rows, random: np.random.Generator) -> Any:
        after = random.random(len(rows)) < self.settings.context_share
        samples = map(self.candidates.sample, rows.tolist())
        texts = [
            (sample.context[-self.settings.context_turns :] if read else (), sample.response)
            for sample, read in zip(samples, after.tolist(), strict=True)
        ]
        return self.read(texts, random)


def fine_tune(
    objective: ResponseObjective,
    folder: Path,
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Curve:
    """Fine-tune the objective's model, and save it and its tokenizer in `folder` as transformers does, with `CARD`.

    Training uses Adam, in bf16 where the hardware has it; the learning rates rise over the first tenth of the steps and
    then fall to 0. The draws depend on the seed; the weights depend on it and, in the last digits, on hardware and
    number of threads. Epoch 0 of the curve has the loss before training. checkpoint: a folder for the unfinished
    training, from which the next call with equal settings and data continues. Raises EvaluatorError if training
    diverges; `folder` is then not written.
    """
    settings, model, candidates = objective.settings.model_dump(), objective.model, objective.candidates
    unfinished = None
    if checkpoint is not None:
        made_of = [settings, pretrained.weights_hash(model), list(candidates.texts)]
        data = [objective.rows, candidates.response, candidates.context_start, candidates.context_stop]
        unfinished = Checkpoint(checkpoint, made_of, data, every=_STEPS_A_STATE)
    plan = Schedule(
        1, objective.settings.seed, from_0=True, weight_decay=objective.weight_decay, decoupled=True, warmup=0.1,
        bf16=model.device, one_thread=False,
    )  # fmt: skip
    curve = train(objective, plan, progress=progress, checkpoint=unfinished)
    objective.finish()
    folder.mkdir(parents=True, exist_ok=True)
    with hub.quiet():
        model.save_pretrained(folder)
        objective.tokenizer.save_pretrained(folder)
    losses = {"before": curve.history[0].get("valid_loss"), "after": curve.best.get("valid_loss")}
    about = {"settings": settings, "responses": len(objective.rows), "seconds": curve.seconds}
    about |= {name: loss for name, loss in losses.items() if loss is not None}
    write_json(folder / CARD, about | {"weights": pretrained.weights_hash(model)})
    return curve
