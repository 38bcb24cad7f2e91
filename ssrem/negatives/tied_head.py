"""Makes a masked language model from a sentence encoder, by a head that is tied to its embeddings."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssrem.config import Config
from ssrem.encoders import hub
from ssrem.errors import EvaluatorError
from ssrem.files import write_json
from ssrem.negatives.base import Case
from ssrem.samples import TRAIN, VALID, Candidates, Progress

if TYPE_CHECKING:
    import torch

    from ssrem.training.trainer import Group, Loss, Step

CARD = "tied_head.json"


@dataclass(frozen=True)
class TiedHeadSettings(Config):
    """encoder: a BERT encoder's name or folder. steps, batch_size: updates, and responses in each.

    learning_rate: of the encoder, head_learning_rate: of what is new on it; both rise over the first tenth of the
    steps and fall to 0. masked: the share of tokens that are masked, one in each text at least. context_share: how
    many of the responses are read after their context, the last `context_turns` turns; the others stand alone, as
    mask-and-fill asks for both. max_tokens: of a text; a context's oldest give way, then a response's last.
    held_out: responses of the valid split on which the loss is taken before and after.
    """

    encoder: str = hub.MINILM
    device: str | None = None
    steps: int = 1000
    batch_size: int = 32
    learning_rate: float = 1e-4
    head_learning_rate: float = 1e-3
    masked: float = 0.15
    context_share: float = 0.5
    context_turns: int = 5
    max_tokens: int = 128
    held_out: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.at_least(1, "steps", "batch_size", "context_turns", "held_out")
        self.above_zero("learning_rate", "head_learning_rate")
        self.at_least(0, "seed")
        self.at_least(8, "max_tokens")
        if not 0 < self.masked < 1 or not 0 <= self.context_share <= 1:
            raise EvaluatorError("masked must lie between 0 and 1, context_share from 0 to 1")


@dataclass(frozen=True)
class Tuned:
    """How it went. losses: mean -log p of the masked tokens, one a step. before, after: on held-out responses.

    before is taken with the head's bias at the log frequencies already; both are NaN without a valid split.
    """

    folder: Path
    losses: tuple[float, ...]
    before: float
    after: float
    seconds: float


@dataclass(frozen=True)
class _Batch:
    """ids, attention (b, t): padded inputs. row, position, truth (m,): where the masks are and what they hide."""

    ids: NDArray[np.int64]
    attention: NDArray[np.int64]
    row: NDArray[np.int64]
    position: NDArray[np.int64]
    truth: NDArray[np.int64]


def fine_tune(
    candidates: Candidates,
    folder: Path,
    settings: TiedHeadSettings | None = None,
    *,
    progress: Progress | None = None,
) -> Tuned:
    """Fine-tune the encoder and a new head on the responses of the training split; save both into `folder`.

    The head is BERT's (dense, GELU, norm, then the input embeddings transposed, and a bias), its dense layer the
    identity at first and its bias the log frequency of each token. Adam with decoupled weight decay, in bf16 where
    the hardware has it, masked tokens only. What is drawn depends on the seed; the weights on it and, in the last
    digits, on hardware and number of threads. transformers' AutoModelForMaskedLM loads the folder. EvaluatorError
    where the encoder is no BERT, there is nothing to learn from, or training diverges; the folder is then not written.
    """
    import torch

    from ssrem.training.trainer import Plan, train

    settings = settings or TiedHeadSettings()
    learned = candidates.rows(TRAIN)
    if len(learned) == 0:
        raise EvaluatorError("tied head: the training split has no response; build the speaker tables first")
    began = time.perf_counter()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        tokenizer, model = hub.load(
            settings.encoder, "AutoModelForMaskedLM", device=settings.device, new_weights=True
        )
        if model.config.model_type != "bert" or model.config.max_position_embeddings < settings.max_tokens:
            raise EvaluatorError(
                f"tied head: {settings.encoder} is a {model.config.model_type} encoder of "
                f"{model.config.max_position_embeddings} tokens; expected bert of {settings.max_tokens} or more"
            )
        reader = _Reader(candidates, tokenizer, settings)
        _start_head(model, reader.frequencies(learned, model.config.vocab_size))
        held_out = reader.held_out(candidates.rows(VALID))
        before = _loss(model, held_out)
        objective = _TiedObjective(model, reader, learned, held_out, settings)
        plan = Plan(
            1,
            settings.seed,
            weight_decay=0.01,
            decoupled=True,
            warmup=0.1,
            bf16=model.device,
            one_thread=False,
        )
        after = train(objective, plan, progress=progress).best.get("valid_loss", math.nan)
        model.eval()
    losses = objective.losses
    folder.mkdir(parents=True, exist_ok=True)
    with hub.quiet():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    tuned = Tuned(folder, tuple(losses), before, after, time.perf_counter() - began)
    figures = {"before": before, "after": after, "last_loss": losses[-1], "seconds": tuned.seconds}
    known = {name: value for name, value in figures.items() if math.isfinite(value)}
    about = {
        "settings": asdict(settings),
        "responses": len(learned),
        **known,
        "weights": hub.weights_hash(model),
    }
    write_json(folder / CARD, about)
    return tuned


class _Reader:
    """Rows of the candidates → masked inputs, in the form that mask-and-fill uses."""

    def __init__(self, candidates: Candidates, tokenizer: Any, settings: TiedHeadSettings) -> None:
        self.candidates, self.tokenizer, self.settings = candidates, tokenizer, settings
        self.special = np.array(sorted(tokenizer.all_special_ids))

    def frequencies(self, rows: NDArray[np.int64], size: int) -> NDArray[np.float64]:
        """Relative frequency of each token in a sample of the responses, with one added to each count; (v,)."""
        counts = np.ones(size)
        some = rows[:: max(1, len(rows) // 20_000)]
        for first in range(0, len(some), 1000):
            texts = [Case(self.candidates, int(row)).response for row in some[first : first + 1000]]
            for ids in self._tokens(texts):
                np.add.at(counts, ids, 1)
        counts /= counts.sum()
        return counts

    def batch(self, rows: Sequence[int], random: np.random.Generator) -> _Batch:
        """The responses at `rows`, some after their context, a share of the tokens masked."""
        inputs = [self._input(int(row), random.random() < self.settings.context_share) for row in rows]
        length = max(len(ids) for ids in inputs)
        ids = np.full((len(inputs), length), self.tokenizer.pad_token_id, dtype=np.int64)
        attention = np.zeros_like(ids)
        for i, tokens in enumerate(inputs):
            ids[i, : len(tokens)], attention[i, : len(tokens)] = tokens, 1
        usable = (attention == 1) & ~np.isin(ids, self.special)
        chance = np.where(usable, random.random(ids.shape), np.inf)
        masked = chance < self.settings.masked
        # At least one in each text with a usable token: the smallest draw, which is masked anyway if any is.
        first = chance.argmin(axis=1)
        masked[np.arange(len(ids)), first] = usable[np.arange(len(ids)), first]
        row, position = np.nonzero(masked)
        truth = ids[row, position]
        ids[row, position] = self.tokenizer.mask_token_id
        return _Batch(ids, attention, row, position, truth)

    def held_out(self, rows: NDArray[np.int64]) -> list[_Batch]:
        """The same responses of the valid split, masked in the same way, before and after."""
        random = np.random.default_rng([self.settings.seed, 1])
        size, n = self.settings.batch_size, min(self.settings.held_out, len(rows))
        chosen = rows[np.sort(random.choice(len(rows), n, replace=False))] if n else rows
        return [self.batch(chosen[i : i + size].tolist(), random) for i in range(0, n, size)]

    def _input(self, row: int, with_context: bool) -> list[int]:
        case = Case(self.candidates, row)
        turns = case.context[-self.settings.context_turns :] if with_context else ()
        *context, response = self._tokens([*turns, case.response])
        start, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        response = response[: self.settings.max_tokens - 2]
        history = [id_ for turn in context for id_ in (*turn, end)]
        room = self.settings.max_tokens - len(response) - 2
        return [start, *history[max(0, len(history) - room) :], *response, end]

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = self.tokenizer(
            list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False
        )["input_ids"]
        return ids


def _start_head(model: Any, frequencies: NDArray[np.float64]) -> None:
    """The head before training; its output weights are the input embeddings themselves."""
    import torch

    head = model.cls.predictions
    model.tie_weights()
    if head.decoder.weight is not model.get_input_embeddings().weight:
        raise EvaluatorError("tied head: the encoder's config has tie_word_embeddings off; set it to true")
    with torch.no_grad():
        torch.nn.init.eye_(head.transform.dense.weight)
        head.transform.dense.bias.zero_()
        head.decoder.bias.copy_(torch.from_numpy(np.log(frequencies)))


class _TiedObjective:
    """The encoder and its new head, learned from masked responses: one epoch of `settings.steps` batches."""

    def __init__(
        self,
        model: Any,
        reader: _Reader,
        rows: NDArray[np.int64],
        held_out: Sequence[_Batch],
        settings: TiedHeadSettings,
    ) -> None:
        self.model, self.reader, self.rows, self.held_out = model, reader, rows, held_out
        self.settings = settings
        self.losses: list[float] = []

    def groups(self) -> list[Group]:
        from ssrem.training.trainer import Group

        head = self.model.cls.predictions
        new = {id(parameter) for parameter in (*head.transform.parameters(), head.decoder.bias)}
        named = dict(self.model.named_parameters())
        return [
            Group(
                {name: value for name, value in named.items() if id(value) not in new},
                self.settings.learning_rate,
            ),
            Group(
                {name: value for name, value in named.items() if id(value) in new},
                self.settings.head_learning_rate,
            ),
        ]

    def epochs(self) -> Iterator[list[NDArray[np.int64]]]:
        random, size = np.random.default_rng([self.settings.seed, 0]), self.settings.batch_size
        while True:
            yield [random.choice(self.rows, size) for _ in range(self.settings.steps)]

    def loss(self, rows: NDArray[np.int64], step: Step) -> Loss:
        random = np.random.default_rng([self.settings.seed, 2, step.number])
        batch = self.reader.batch(rows.tolist(), random)
        if len(batch.truth) == 0:
            raise EvaluatorError(
                f"tied head: at step {step.number + 1} no response has a token that the encoder knows; "
                f"{self.settings.encoder} does not fit this corpus"
            )
        from ssrem.training.trainer import Loss

        self.model.train()
        mean = _mean_loss(self.model, batch)
        self.losses.append(float(mean.detach()))
        return Loss.averaged(mean, len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        """Mean -log p of the masked tokens of held-out responses; nothing where there are none."""
        loss = _loss(self.model, self.held_out)
        return {"valid_loss": loss} if math.isfinite(loss) else {}


def _mean_loss(model: Any, batch: _Batch) -> torch.Tensor:
    """Mean -log p of the tokens behind the masks; the head is applied to those alone."""
    import torch

    def there(values: NDArray[np.int64]) -> torch.Tensor:
        return torch.from_numpy(values).to(model.device)

    hidden = model.bert(input_ids=there(batch.ids), attention_mask=there(batch.attention)).last_hidden_state
    logits = model.cls(hidden[there(batch.row), there(batch.position)])
    return torch.nn.functional.cross_entropy(logits, there(batch.truth))


def _loss(model: Any, batches: Sequence[_Batch]) -> float:
    """Mean -log p over the masked tokens of all batches; NaN where there is none."""
    import torch

    model.eval()
    total = masked = 0.0
    with torch.inference_mode():
        for batch in batches:
            if len(batch.truth):
                total += float(_mean_loss(model, batch)) * len(batch.truth)
                masked += len(batch.truth)
    return total / masked if masked else float("nan")
