"""How the bilinear evaluators learn: three objectives for `ssrem.training.trainer.train`.

`MatrixObjective` learns the matrix alone, as in Bak and Oh 2020, section 3.3. The other two learn the vectors of texts
too; for them, other responses of the batch and copied turns are further negatives.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy, embedding_bag, normalize

from ssrem.encoders import Encoder, pretrained
from ssrem.encoders.base import padded, short_hash
from ssrem.encoders.layers import LowerStates, add_adapters, divided, layers
from ssrem.encoders.tables import LearnedTable
from ssrem.encoders.transformer import UP, AdaptedTransformer, Transformer, adapter_factors, pool
from ssrem.encoders.words import WordAverage
from ssrem.evaluators.bilinear_inputs import (
    COPY_COST,
    COPY_FROM,
    AdapterSettings,
    Cases,
    FitSettings,
    PaperSettings,
    SSREMSettings,
    last_turns,
    mean_turn,
)
from ssrem.evaluators.learning import contents
from ssrem.files import folder_of
from ssrem.samples import TRAIN, VALID, Candidates, Rows
from ssrem.training.trainer import Curve, Group, Loss, Schedule, Step, precision, shuffled_epochs

ABSENT = -1e30
"""Score of a missing candidate: in a softmax it has the effect of minus infinity, but its gradients are finite."""
RUN = 16
"""Number of consecutive responses that stay together in a batch, so that turns that their contexts share are encoded
once."""
_TEMPERATURE = 0.05
# Number of tokens of a text that a table learns from. Nine turns in ten have no more; the limit keeps long texts from
# slowing training down.
_TABLE_TOKENS = 64
_TOKENS_AT_ONCE = {"cpu": 1_024, "mps": 8_192, "cuda": 65_536}
# Adapters encode the drawn negatives of one in so many responses; they are negatives for the whole batch. The number is
# odd, so that both of two speakers who take turns get some.
_DRAWN = 7

Learned = tuple[Encoder, dict[str, NDArray[Any]], list[str]]
"""What a training results in: the encoder, the tensors of f by name, and notes for the record of the training."""


def row_scores(context: torch.Tensor, matrix: torch.Tensor, responses: torch.Tensor) -> torch.Tensor:
    """cᵀMr of each context and its own candidates: (b, d), (d, d), (b, k, d) → (b, k), without a b × b tensor."""
    return torch.einsum("bd,bkd->bk", context @ matrix, responses)


def row_loss(scores: torch.Tensor, present: torch.Tensor, logits: str, loss: str = "softmax") -> torch.Tensor:
    """Mean loss over the rows of scores (b, k). Column 0 is the true response; candidates not `present` are ignored.

    logits: 'tanh' puts f into the softmax as the paper writes it, 'raw' puts cᵀMr as the authors' code does.
    loss: 'softmax' is -log p(true response), eq. (4) and (5); 'ranking' is -log p(the columns in their order) in the
    model of Plackett and Luce (ListMLE, Xia et al. 2008, section 4.3), where that p is a product and p(true response)
    is its first factor.
    """
    values = torch.tanh(scores) if logits == "tanh" else scores
    values = values.masked_fill(~present, ABSENT)
    if loss == "softmax":
        return -torch.log_softmax(values, dim=1)[:, 0].mean()
    rest = torch.logcumsumexp(values.flip(1), dim=1).flip(1)  # over each column and all after it
    return (rest - values).masked_fill(~present, 0).sum(dim=1).mean()


def outranked(true: torch.Tensor, others: torch.Tensor, present: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How many of the present others (b, k) the true response (b, 1) outranks, and how many are present; float64 (2,).

    A tie counts half.
    """
    wins = np.heaviside((true - others).numpy(), 0.5) * present
    return np.array([wins.sum(), present.sum()], dtype=np.float64)


class MatrixObjective:
    """Learns M alone: tells each response from its own negatives by the vectors of an encoder that does not learn.

    cases: those of all candidates. usable: split → positions of the responses that are learned from or validated on.
    """

    steps_a_state: ClassVar[int | None] = None

    def __init__(
        self, cases: Cases, usable: Mapping[int, Rows], settings: PaperSettings, encoder: Encoder
    ) -> None:
        self.cases, self.valid = cases.part(usable[TRAIN]), cases.part(usable[VALID])
        self.usable, self.settings, self.encoder = usable, settings, encoder
        self.scaled = ("matrix",) if settings.logits == "raw" else ()
        self.matrix = torch.nn.Parameter(torch.from_numpy(initial(cases.vectors.shape[1], settings)))

    def plan(self) -> Schedule:
        settings = self.settings
        return Schedule(
            settings.epochs, settings.seed, patience=settings.patience, weight_decay=settings.weight_decay
        )

    def groups(self) -> Sequence[Group]:
        return [Group({"matrix": self.matrix}, self.settings.learning_rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        return shuffled_epochs(len(self.cases), self.settings.batch_size, [self.settings.seed])

    def loss(self, rows: Rows, step: Step) -> Loss:
        return Loss.averaged(self._scored(self.cases.part(rows))[0], len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        """Mean loss, and the share of negatives that the true response outranks (ties count half)."""
        loss, above, size = 0.0, np.zeros(2), self.settings.batch_size
        for first in range(0, len(self.valid), size):
            part = self.valid.part(np.arange(first, min(first + size, len(self.valid))))
            mean, scores = self._scored(part)
            loss += float(mean) * len(part)
            above += outranked(scores[:, :1], scores[:, 1:], part.candidates[:, 1:] >= 0)
        return {"valid_loss": loss / len(self.valid), "valid_gt_above": float(above[0] / above[1])}

    def data(self) -> list[NDArray[Any]]:
        """All arrays that are learned from, for `Checkpoint`."""
        used = (self.cases, self.valid)
        return [self.cases.vectors, *(rows for part in used for rows in (part.turns, part.candidates))]

    def learned(self, curve: Curve) -> Learned:
        return self.encoder, {"matrix": self.matrix.detach().numpy().astype(np.float64)}, []

    def _scored(self, part: Cases) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean loss of these cases, and the scores of each case's candidates (b, k)."""
        turns, known, responses = part.gathered()
        context = torch.from_numpy(mean_turn(turns, known))
        scores = row_scores(context, self.matrix, torch.from_numpy(responses))
        present = torch.from_numpy(part.candidates >= 0)
        return row_loss(scores, present, self.settings.logits, self.settings.loss), scores


def initial(size: int, settings: PaperSettings) -> NDArray[np.float32]:
    """M before training, float32 (d, d): zeros, the identity / d, or N(0, 1) as in the authors' code."""
    if settings.init == "zero":
        return np.zeros((size, size), dtype=np.float32)
    if settings.init == "identity":
        return np.eye(size, dtype=np.float32) / np.float32(size)
    return np.random.default_rng([settings.seed, 1]).standard_normal((size, size)).astype(np.float32)


class VectorObjective(ABC):
    """Learns M, the weights of the turns and a temperature, together with the vectors of texts.

    wanted: rows (n, 1 + k) of the true response and its negatives, -1 for one that is missing. usable: split →
    positions of the responses that are learned from or validated on.
    rows: split → positions in `texts`, (n, turns + 1 + k): the last turns, the newest first, then the columns of
    `wanted`. content: `contents` of `texts`.
    """

    steps_a_state: ClassVar[int | None] = None
    """Number of steps after which, within an epoch, the state of a training is written; None: only after an epoch."""
    scaled: ClassVar[tuple[str, ...]] = ("matrix", "cost")
    """Names of the tensors that are multiplied by k, the factor before the tanh of f."""

    def __init__(
        self,
        candidates: Candidates,
        wanted: Rows,
        usable: Mapping[int, Rows],
        settings: FitSettings,
        start: Encoder,
    ) -> None:
        self.settings: Any = settings
        self.usable = usable
        both = np.concatenate([last_turns(candidates, settings.context_turns), wanted], axis=1)
        needed = np.unique(np.concatenate([both[usable[TRAIN]], both[usable[VALID]]]))
        needed = needed[needed >= 0]
        self.rows: dict[int, Rows] = {
            split: np.where(both[at] >= 0, np.searchsorted(needed, both[at]), -1)
            for split, at in usable.items()
        }
        self.texts = [candidates.texts[row] for row in needed.tolist()]
        self.content = contents(self.texts)
        device = start.model.device if isinstance(start, Transformer) else None
        self.matrix = torch.nn.Parameter(torch.eye(start.dimensions, device=device))
        weights = -torch.arange(settings.context_turns, device=device) * float(np.log(2))
        self.turns = torch.nn.Parameter(weights)
        self.sharpness = torch.nn.Parameter(torch.tensor([float(-np.log(_TEMPERATURE))], device=device))

    @abstractmethod
    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        """The parameters of V that learn, by name."""

    @abstractmethod
    def plan(self) -> Schedule:
        """The schedule of the training."""

    @abstractmethod
    def data(self) -> list[NDArray[Any]]:
        """All arrays that are learned from, for `Checkpoint`."""

    @abstractmethod
    def learned(self, curve: Curve) -> Learned:
        """The result of the training, as far as it is kept."""

    @abstractmethod
    def scored(self, batch: Rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Mean loss of the batch; scores of each row's own candidates (b, 1 + k), and of its turns as responses
        (b, turns). batch: rows as in `rows`, (b, turns + 1 + k)."""

    def groups(self) -> Sequence[Group]:
        rate = self.settings.learning_rate
        slow = {**self.parameters(), "matrix": self.matrix}
        return [Group(slow, rate), Group({"turns": self.turns, "sharpness": self.sharpness}, rate * 10)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        return shuffled_epochs(len(self.rows[TRAIN]), self.settings.batch_size, [self.settings.seed])

    def loss(self, rows: Rows, step: Step) -> Loss:
        return Loss.averaged(self.scored(self.rows[TRAIN][rows])[0], len(rows))

    def validation(self) -> Rows:
        """The rows of the validation split, in the order in which they are put into batches."""
        # Shuffled, so that a batch's other responses are not those of the same conversation.
        return np.random.default_rng(self.settings.seed).permutation(self.rows[VALID])

    def validate(self, epoch: int) -> dict[str, float]:
        """Mean loss, and the shares of negatives and of copied turns that the true response outranks (ties half)."""
        rows, turns, size = self.validation(), self.settings.context_turns, self.settings.batch_size
        loss, above, copies = 0.0, np.zeros(2), np.zeros(2)
        for batch in (rows[first : first + size] for first in range(0, len(rows), size)):
            mean, own, copied = self.scored(batch)
            loss += float(mean) * len(batch)
            above += outranked(own[:, :1], own[:, 1:], batch[:, turns + 1 :] >= 0)
            copies += outranked(own[:, :1], copied, batch[:, :turns] >= 0)
        return {
            "valid_loss": loss / len(rows),
            "valid_gt_above": float(above[0] / max(above[1], 1)),
            "valid_gt_above_copied": float(copies[0] / max(copies[1], 1)),
        }

    def tensors(self, share: float) -> dict[str, NDArray[Any]]:
        """Tensors of f: M, `share` of the way from the identity, float16; turn weights and cost of a copy, float32."""
        matrix = self.matrix.detach().cpu().numpy()
        identity = np.eye(len(matrix), dtype=np.float32)
        return {
            "matrix": (identity + np.float32(share) * (matrix - identity)).astype(np.float16),
            "turns": torch.exp(self.turns.detach()).cpu().numpy().copy(),
            "cost": np.array([COPY_COST], dtype=np.float32),
        }


def copy_cost(nearest: torch.Tensor) -> torch.Tensor:
    """copied(c, r), the cost of a copy. nearest: the highest cosine of r with a turn of c."""
    return COPY_COST * ((nearest - COPY_FROM) / (1 - COPY_FROM)).clamp(0, 1)


class Texts:
    """The first _TABLE_TOKENS tokens of each of m texts. tokens: rows of the table, text after text. start (m + 1,):
    where each text begins in `tokens`."""

    def __init__(self, table: WordAverage, texts: Sequence[str]) -> None:
        rows = [row[:_TABLE_TOKENS] for row in table.rows(texts)]
        self.start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        self.tokens = np.fromiter((token for row in rows for token in row), np.int64, int(self.start[-1]))

    def bags(self, texts: Rows) -> tuple[Rows, Rows]:
        """Tokens of the texts with these numbers, text after text, and where each text begins."""
        lengths = self.start[texts + 1] - self.start[texts]
        begin = np.cumsum(lengths) - lengths
        return self.tokens[np.repeat(self.start[texts] - begin, lengths) + np.arange(lengths.sum())], begin


class LearnedRows:
    """The rows of the table `start` that occur in `texts`, as a parameter.

    Only rows that occur at least `min_count` times in the texts numbered `seen` learn.
    """

    def __init__(self, start: WordAverage, texts: Texts, seen: Rows, min_count: int) -> None:
        self.start, self.texts = start, texts
        self.used, texts.tokens = np.unique(texts.tokens, return_inverse=True)
        self.frequent = np.bincount(texts.bags(seen)[0], minlength=len(self.used)) >= min_count
        vectors = start.vectors[self.used]
        # Adam's steps have the same size for every table, so each table is brought to the same scale.
        self.scale = float(np.sqrt(np.square(vectors).sum(axis=1).mean())) or 1.0
        self.table = torch.nn.Parameter(torch.from_numpy(vectors / np.float32(self.scale)))
        learns = torch.from_numpy(self.frequent[:, None].astype(np.float32))
        self.table.register_hook(lambda gradient: gradient * learns)  # type: ignore[no-untyped-call]
        self.weights = torch.from_numpy(start.weights[self.used])

    def vectors(self, texts: Rows) -> torch.Tensor:
        """V of the texts with these numbers, of unit length: (…) → (…, d)."""
        distinct, places = np.unique(texts, return_inverse=True)
        tokens, begin = (torch.from_numpy(rows) for rows in self.texts.bags(distinct))
        weights = self.weights[tokens]
        sums = embedding_bag(tokens, self.table, begin, mode="sum", per_sample_weights=weights)
        return normalize(sums, dim=1)[torch.from_numpy(places.reshape(texts.shape))]

    def learned(self) -> tuple[Rows, NDArray[np.float32]]:
        """The rows that learn (k,), as rows of `start`, and their present vectors (k, d)."""
        vectors = self.table.detach().numpy()[self.frequent] * np.float32(self.scale)
        return self.used[self.frequent], vectors


class TableObjective(VectorObjective):
    """Learns M together with those rows of a table of token vectors that occur often enough."""

    settings: SSREMSettings

    def __init__(
        self,
        candidates: Candidates,
        wanted: Rows,
        usable: Mapping[int, Rows],
        settings: SSREMSettings,
        start: WordAverage,
    ) -> None:
        super().__init__(candidates, wanted, usable, settings, start)
        self.start = start
        seen = np.unique(self.rows[TRAIN][self.rows[TRAIN] >= 0])
        self.learning = LearnedRows(start, Texts(start, self.texts), seen, settings.min_count)

    def plan(self) -> Schedule:
        settings = self.settings
        return Schedule(settings.epochs, settings.seed, patience=settings.patience, clip=None, warmup=0.05)

    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        return {"table": self.learning.table}

    def data(self) -> list[NDArray[Any]]:
        texts = self.learning.texts
        return [*self.rows.values(), texts.start, texts.tokens, self.learning.used, self.content]

    def learned(self, curve: Curve) -> Learned:
        """The table and M, each at the setting `share` of the way from its start to what was learned."""
        rows, vectors = self.learning.learned()
        start, share = self.start.vectors[rows], self.settings.share
        mixed = start + np.float32(share) * (vectors - start)
        return LearnedTable.of(self.start, rows, mixed), self.tensors(share), []

    def scored(self, batch: Rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        count = self.settings.context_turns
        present = torch.from_numpy(batch >= 0)
        vectors = self.learning.vectors(np.maximum(batch, 0)) * present[:, :, None]
        turns, responses = vectors[:, :count], vectors[:, count:]
        context = normalize(torch.einsum("t,btd->bd", torch.exp(self.turns), turns), dim=1) @ self.matrix
        nearest = torch.einsum("btd,bkd->bkt", turns, responses).max(dim=2).values
        every = context @ responses.reshape(-1, responses.shape[2]).T
        size, width = responses.shape[:2]
        place = torch.arange(size)[:, None] * width + torch.arange(width)
        own = every.gather(1, place) - copy_cost(nearest)
        copied = torch.einsum("bd,btd->bt", context, turns) - COPY_COST
        # A candidate of another row, or a turn, is no negative if its text is that of the true response.
        content = np.where(batch >= 0, self.content[np.maximum(batch, 0)], -1)
        true = content[:, count, None]
        wrong = (content[:, count:].reshape(1, -1) != true) & (batch[:, count:].reshape(1, -1) >= 0)
        wrong_copied = (content[:, :count] != true) & (batch[:, :count] >= 0)
        values = every.scatter(1, place, own).masked_fill(~torch.from_numpy(wrong), ABSENT)
        values = values.scatter(1, place[:, :1], own[:, :1])
        values = torch.cat([values, copied.masked_fill(~torch.from_numpy(wrong_copied), ABSENT)], dim=1)
        return cross_entropy(values * torch.exp(self.sharpness), place[:, 0]), own.detach(), copied.detach()


class AdapterObjective(VectorObjective):
    """Learns M together with adapters of the linear maps in a transformer's layers from number `freeze` on.

    A response is told from every other text of its batch: the turns and responses of all its contexts, and the drawn
    negatives of some. Responses come in runs of a conversation, so that negatives of the same speaker are among these
    texts. Rand is not encoded in training, because the other conversations of the batch stand for it. There is no
    dropout. Validation takes runs that are drawn by the seed. checkpoint: the folder of the unfinished training, if
    there is one.
    """

    settings: AdapterSettings
    steps_a_state: ClassVar[int | None] = 20

    def __init__(
        self,
        candidates: Candidates,
        wanted: Rows,
        usable: Mapping[int, Rows],
        settings: AdapterSettings,
        start: Transformer,
        checkpoint: Path | None,
    ) -> None:
        valid = usable[VALID]
        runs = np.random.default_rng([settings.seed, 7]).permutation(np.arange(0, len(valid), RUN))
        chosen = np.sort(runs[: -(-settings.valid_responses // RUN)]).tolist()
        drawn = np.concatenate([valid[first : first + RUN] for first in chosen])
        super().__init__(candidates, wanted, {**usable, VALID: drawn}, settings, start)
        self.start, self.device = start, start.model.device
        self.tokens = start.tokens(self.texts, settings.max_tokens)
        self.lengths = np.array([len(ids) for ids in self.tokens], dtype=np.int64)
        self.model = copy.deepcopy(start.model).requires_grad_(False).eval()
        self.adapters = add_adapters(
            *layers(self.model), rank=settings.rank, freeze=settings.freeze, seed=settings.seed
        )
        # If the model can be divided, each text passes the layers without adapters only once.
        self.lower: LowerStates | None = None
        if (parts := divided(self.model, settings.freeze)) is not None:
            checkpoint = checkpoint or folder_of(self)
            texts = (np.array([settings.freeze, *ids], dtype=np.int64).tobytes() for ids in self.tokens)
            key = short_hash(start.signature.encode(), *texts)
            self.lower = LowerStates(parts[0], self.tokens, start.dimensions, checkpoint / "states", key)
            self.model = parts[1]

    def plan(self) -> Schedule:
        epochs, seed, patience = self.settings.epochs, self.settings.seed, self.settings.patience
        return Schedule(epochs, seed, patience=patience, from_0=True, warmup=0.05, one_thread=False)

    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        return adapter_factors(self.adapters)

    def data(self) -> list[NDArray[Any]]:
        tokens = np.concatenate([np.array(ids, dtype=np.int64) for ids in self.tokens])
        return [*self.rows.values(), self.lengths, tokens, self.content]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        count = len(self.rows[TRAIN])
        runs = [np.arange(first, min(first + RUN, count)) for first in range(0, count, RUN)]
        taken = min(-(-self.settings.responses // RUN), len(runs))
        size = max(1, self.settings.batch_size // RUN)
        for batches in shuffled_epochs(len(runs), size, [self.settings.seed], taken=taken):
            yield [np.concatenate([runs[run] for run in batch.tolist()]) for batch in batches]

    def loss(self, rows: Rows, step: Step) -> Loss:
        batch = self.rows[TRAIN][rows]
        batch[rows % _DRAWN > 0, self.settings.context_turns + 1 :] = -1
        batch[:, -1] = -1
        return Loss.averaged(self.scored(batch)[0], len(rows))

    def validation(self) -> Rows:
        return self.rows[VALID]  # whole runs, as in training

    def vectors(self, texts: Rows) -> torch.Tensor:
        """V of the texts with these numbers, float32 (m, d), of unit length."""
        pooled, order = [], []
        at_once = _TOKENS_AT_ONCE.get(self.device.type, _TOKENS_AT_ONCE["cpu"])
        for rows in pretrained.similar_lengths(self.lengths[texts], at_once):
            lengths = self.lengths[texts[rows]]
            mask = np.arange(lengths.max()) < lengths[:, None]
            present = torch.from_numpy(mask).to(self.device)
            with precision(self.device if self.settings.bf16 == "auto" else None):
                if self.lower is not None:
                    inputs = {"inputs_embeds": self.lower.padded(texts[rows], mask).to(self.device)}
                else:
                    ids = padded([self.tokens[text] for text in texts[rows].tolist()])
                    inputs = {"input_ids": torch.from_numpy(ids).to(self.device)}
                states = self.model(**inputs, attention_mask=present.long()).last_hidden_state
            pooled.append(normalize(pool(states.float(), self.start.pooling.mode, present), dim=1))
            order.append(rows)
        return torch.cat(pooled)[torch.from_numpy(np.argsort(np.concatenate(order)))]

    def scored(self, batch: Rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        turns = self.settings.context_turns
        # Equal texts share one column, so that the true response is no negative of itself.
        texts = np.where(batch >= 0, self.content[np.maximum(batch, 0)], -1)
        columns = np.unique(texts[texts >= 0])
        vectors = self.vectors(columns)
        place = torch.from_numpy(np.maximum(np.searchsorted(columns, texts), 0)).to(self.device)
        present = torch.from_numpy(texts >= 0).to(self.device)
        context = vectors[place[:, :turns]] * present[:, :turns, None]
        mean = normalize(torch.einsum("t,btd->bd", torch.exp(self.turns), context), dim=1)
        every = mean @ self.matrix @ vectors.T - copy_cost((context @ vectors.T).amax(dim=1))
        loss = cross_entropy(every * torch.exp(self.sharpness), place[:, turns])
        values = every.detach().gather(1, place).cpu()
        return loss, values[:, turns:], values[:, :turns]

    @torch.no_grad()
    def learned(self, curve: Curve) -> Learned:
        """The result at the fewest tenths of the way from the start that keep the share `keep` of the gain.

        The gain is that of negatives outranked on validation. Bisection finds the number, as if the gain grew with
        every tenth. M and the products B A of the adapters are moved; the factors B and A become float16."""
        before, after = curve.history[0]["valid_gt_above"], curve.best["valid_gt_above"]
        full = {name: value.detach().clone() for name, value in self.parameters().items()}
        matrix, reached = self.matrix.detach().clone(), {10: after}
        identity = torch.eye(len(matrix), device=matrix.device)

        def go(tenths: int) -> None:
            for name, value in self.parameters().items():
                value.copy_(full[name] * (tenths / 10) if name.endswith(UP) else full[name])
            self.matrix.copy_(matrix if tenths == 10 else identity + tenths / 10 * (matrix - identity))

        def keeps(tenths: int) -> bool:
            go(tenths)
            reached[tenths] = self.validate(0)["valid_gt_above"]
            return reached[tenths] - before >= self.settings.keep * (after - before)

        tenths = 1 + bisect_left(range(1, 10), True, key=keeps)
        go(tenths)
        factors = {
            name: value.float().cpu().numpy().astype(np.float16) for name, value in self.parameters().items()
        }
        count = min(self.settings.responses, len(self.rows[TRAIN]))
        note = (
            f"learned from {curve.best_epoch * count:,} responses; {tenths / 10:.0%} of the way from the start. "
            f"Negatives that the true response outranks on validation: {before:.3f} before, {after:.3f} with all that "
            f"was learned, {reached[tenths]:.3f} with this share"
        )
        return AdaptedTransformer(self.start, factors), self.tensors(1.0), [note]
