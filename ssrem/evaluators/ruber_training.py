"""RUBER's unreferenced part (Tao et al. 2018): the layout of its texts, its network, and its training, on a corpus by a
margin loss or on human scores by the squared error."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.encoders import Encoder
from ssrem.encoders.recurrent import Stretches, Words, learned_weights
from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import Bounds
from ssrem.evaluators.learning import HeldOutSplit, contents, learned_and_valid
from ssrem.evaluators.similarity import pooled_cosine
from ssrem.samples import Candidates, Floats, Labels, Progress, Rows, Sample
from ssrem.training import Training
from ssrem.training.checkpoint import Checkpoint
from ssrem.training.trainer import Curve, Group, Loss, Schedule, Step, one_thread, shuffled_epochs, train

_HELD_OUT = 0.1
_MEASURED = _ENCODED = 256
_SCORED = 20_000


@dataclass(frozen=True)
class Laid:
    """The words of all texts, and contexts and responses as stretches of these words."""

    words: Words
    contexts: Stretches
    responses: Stretches

    @classmethod
    def of(
        cls,
        contexts: Sequence[tuple[str, ...]],
        responses: Sequence[str],
        encoder: Encoder,
        settings: Any,
    ) -> Laid:
        """The layout of these texts: of a context the last words of its last turns, of a response the first words."""
        turns = [context[-settings.context_turns :] for context in contexts]
        words = Words.of([*responses, *(turn for context in turns for turn in context)], encoder)
        edges = words.ends[len(responses) + np.cumsum([0, *map(len, turns)])]
        first, last = edges[:-1], edges[1:]
        begin = np.maximum(first, last - settings.context_words)
        read = words.first(len(responses), settings.response_words)
        return cls(words, Stretches(begin, last, begin > first), read)

    def known(self, contexts: Rows, responses: Rows) -> NDArray[np.bool_]:
        """Whether context and response of each pair both have a known word, bool, in the shape of the pairs."""
        return np.asarray((self.contexts.lengths[contexts] > 0) & (self.responses.lengths[responses] > 0))


def lay_samples(samples: Sequence[Sample], encoder: Encoder, settings: Any) -> tuple[Laid, Rows]:
    """The distinct contexts and responses, and the positions of each sample's two among them, int64 (n, 2)."""
    contexts: dict[tuple[str, ...], int] = {}
    responses: dict[str, int] = {}
    pairs = [
        (
            contexts.setdefault(sample.context[-settings.context_turns :], len(contexts)),
            responses.setdefault(sample.response, len(responses)),
        )
        for sample in samples
    ]
    laid = Laid.of(list(contexts), list(responses), encoder, settings)
    return laid, np.array(pairs, dtype=np.int64).reshape(-1, 2)


class RuberNet(torch.nn.Module):
    """sigmoid(MLP([q; qᵀMr; r])), where q and r are the last states of two bidirectional GRUs over word vectors."""

    def __init__(self, dimensions: int, hidden: int, mlp: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.context = torch.nn.GRU(dimensions, hidden, bidirectional=True, batch_first=True)
        self.response = torch.nn.GRU(dimensions, hidden, bidirectional=True, batch_first=True)
        self.matrix = torch.nn.Parameter(torch.empty(2 * hidden, 2 * hidden))
        self.inner = torch.nn.Linear(4 * hidden + 1, mlp)
        self.outer = torch.nn.Linear(mlp, 1)
        torch.nn.init.xavier_uniform_(self.matrix)

    @classmethod
    def seeded(cls, dimensions: int, settings: Any) -> RuberNet:
        """The network before training; the caller's random state does not change."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            return cls(dimensions, settings.hidden, settings.mlp)

    def encode(self, side: str, words: Words, texts: Stretches) -> torch.Tensor:
        """Last states of both directions, float32 (b, 2 · hidden); padding is never read."""
        _, last = (self.context if side == "context" else self.response)(texts.packed(words))
        return torch.cat([last[0], last[1]], dim=1)

    def forward(self, q: torch.Tensor, r: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        """Scores in (0, 1), float32 (b,), of pairs of states q and r, (b, 2 · hidden); 0.5 where `known` is false."""
        quadratic = ((q @ self.matrix) * r).sum(dim=1, keepdim=True)
        return self._score(self.inner(torch.cat([q, quadratic, r], dim=1)), known)

    def every_pair(self, q: torch.Tensor, r: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        """Scores as by `forward` of each q, (b, 2 · hidden), paired with each r, (c, 2 · hidden): float32 (b, c)."""
        sizes = [2 * self.hidden, 1, 2 * self.hidden]
        of_q, of_quadratic, of_r = torch.split(self.inner.weight, sizes, dim=1)
        quadratic = (q @ self.matrix) @ r.T
        inner = (q @ of_q.T)[:, None] + (r @ of_r.T)[None] + quadratic[:, :, None] * of_quadratic[:, 0]
        return self._score(inner + self.inner.bias, known)

    def _score(self, inner: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.outer(torch.tanh(inner))[..., 0] * known)


def scores(net: RuberNet, laid: Laid, pairs: Rows) -> Floats:
    """f, float64 (n,), of `pairs`, int64 (n, 2): rows of contexts and responses. Each text is encoded once."""

    def states(side: str, texts: Stretches, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        """States of the distinct texts among `rows`, and the position of each row's state among them."""
        used, place = np.unique(rows, return_inverse=True)
        states = torch.empty(len(used), 2 * net.hidden)
        order = np.argsort(texts.lengths[used], kind="stable")
        for first in range(0, len(order), _ENCODED):
            batch = order[first : first + _ENCODED]
            states[torch.from_numpy(batch)] = net.encode(side, laid.words, texts.of(used[batch]))
        return states, torch.from_numpy(place)

    f = np.empty(len(pairs))
    with torch.no_grad(), one_thread():
        q, left = states("context", laid.contexts, pairs[:, 0])
        r, right = states("response", laid.responses, pairs[:, 1])
        for first in range(0, len(pairs), _SCORED):
            at = slice(first, first + _SCORED)
            known = torch.from_numpy(laid.known(pairs[at, 0], pairs[at, 1]))
            f[at] = net(q[left[at]], r[right[at]], known).numpy()
    return f


def fit(
    evaluator: Any, candidates: Candidates, progress: Progress | None, checkpoint: Path | None
) -> Training:
    """Train by a margin ranking loss against random negatives (Tao et al. 2018): the one drawn for each response, and
    all other responses of its batch."""
    began, name, settings = time.perf_counter(), evaluator.name, evaluator.settings
    random = candidates.negatives.get("Rand")
    if random is None or random.shape[1] < 1:
        raise EvaluatorError(
            f"{name} learns from a negative of kind Rand a response, the candidates have none; draw one"
        )
    usable = np.any(random >= 0, axis=1)
    learned, valid, notes = learned_and_valid(name, candidates, usable, "a negative of kind Rand", settings)
    rows, texts = np.concatenate([learned, valid]), candidates.texts
    # Equal texts count as one response.
    wanted = np.column_stack([candidates.response[rows], random[rows]])
    used, place = np.unique(contents(texts)[wanted[wanted >= 0]], return_inverse=True)
    wanted[wanted >= 0] = place
    contexts = [candidates.sample(row).context for row in rows.tolist()]
    laid = Laid.of(contexts, [texts[row] for row in used.tolist()], evaluator.encoder, settings)
    examples = LabelledPairs(np.arange(len(rows)), wanted)
    first, second = (examples.part(part) for part in np.split(np.arange(len(rows)), [len(learned)]))
    net = RuberNet.seeded(evaluator.encoder.dimensions, settings)
    objective = RuberObjective(net, laid, first, second, settings)
    key = [evaluator.form, settings.model_dump()]
    unfinished = Checkpoint(checkpoint, key, objective.data()) if checkpoint else None
    curve = objective.learn(progress, unfinished)
    present = second.response >= 0
    pairs = np.column_stack([second.context[np.nonzero(present)[0]], second.response[present]])
    # The bounds of g are those of random negatives, because few of the responses to be scored are true ones.
    negative = random[valid, (random[valid] >= 0).argmax(axis=1)]
    drawn, true = ([texts[row] for row in side.tolist()] for side in (negative, candidates.response[valid]))
    g = pooled_cosine(drawn, true, evaluator.encoder)
    evaluator.take(learned_weights(net), {"f": Bounds.of(scores(net, laid, pairs)), "g": Bounds.of(g)})
    taken = min(settings.max_train, len(learned))
    if taken < len(learned):
        part = f"an epoch takes {taken} of {len(learned)} responses"
        notes.insert(0, f"{part}, the next one goes on from there (max_train)")
    counts = {"train": len(learned), "train_an_epoch": taken, "valid": len(valid)}
    figures = {figure: curve.best[figure] for figure in ("valid_loss", "valid_gt_above")}
    return curve.training(began, counts, figures, notes)


def tune(evaluator: Any, labels: Labels, progress: Progress | None) -> Training:
    """Train all weights by the mean squared error of f on human scores on the unit range (Zhao et al. 2020, 5.2).

    A tenth of the contexts is held out. The bounds of g stay as they are.
    """
    began, settings, encoder = time.perf_counter(), evaluator.settings, evaluator.encoder
    seed = [settings.seed, 6]
    human = HeldOutSplit.of(evaluator.name, labels.pairs, labels.scale, share=_HELD_OUT, seed=seed)
    laid, pairs = lay_samples(human.samples, encoder, settings)
    examples = LabelledPairs(pairs[:, 0], pairs[:, 1:], human.unit.astype(np.float32))
    first, second = (examples.part(rows) for rows in human.split)
    net = RuberNet.seeded(encoder.dimensions, settings)
    net.load_state_dict(evaluator.net.state_dict())
    curve = RuberObjective(net, laid, first, second, settings.tuning, len(examples)).learn(progress)
    bounds = {**evaluator.bounds, "f": Bounds.of(scores(net, laid, pairs))}
    evaluator.take(learned_weights(net), bounds, tuned=len(labels.pairs))
    return curve.training(began, human.counts, {"valid_loss": curve.best["valid_loss"]}, [human.note])


@dataclass(frozen=True)
class LabelledPairs:
    """Examples to learn from, as rows of the contexts and responses of a layout.

    context: (n,). response: (n, 1 + k), the response and, for the margin loss, its negatives: one or more, -1 for a
    missing one. targets: float32 (n,) in [0, 1]; with them the loss is the squared error.
    """

    context: Rows
    response: Rows
    targets: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.context)

    def part(self, rows: Rows) -> LabelledPairs:
        """The examples at `rows`."""
        targets = None if self.targets is None else self.targets[rows]
        return LabelledPairs(self.context[rows], self.response[rows], targets)

    def negative(self, rows: Rows, turn: int) -> Rows:
        """One negative of each row: the one at `turn` among those that are not missing, counted cyclically."""
        present = self.response[rows, 1:] >= 0
        wanted = turn % present.sum(axis=1)
        column = (np.cumsum(present, axis=1) == (wanted + 1)[:, None]).argmax(axis=1)
        return np.asarray(self.response[rows, 1 + column])


@dataclass(frozen=True)
class RuberObjective:
    """The training of `net` on `train`, validated on `valid`; taken: examples an epoch, None: `settings.max_train`."""

    net: RuberNet
    laid: Laid
    train: LabelledPairs
    valid: LabelledPairs
    settings: Any
    taken: int | None = None

    def learn(self, progress: Progress | None, checkpoint: Checkpoint | None = None) -> Curve:
        """Train with Adam, gradients clipped to norm 1, and a learning rate that falls to a tenth on a plateau."""
        chosen = self.settings
        plan = Schedule(
            chosen.epochs, chosen.seed, patience=chosen.patience, decay_patience=chosen.decay_patience
        )
        return train(self, plan, progress=progress, checkpoint=checkpoint)

    def groups(self) -> Sequence[Group]:
        return [Group(dict(self.net.named_parameters()), self.settings.learning_rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        n, lengths = len(self.train), self.laid.contexts.lengths[self.train.context]
        taken, seed = min(self.taken or self.settings.max_train, n), [self.settings.seed, 3]
        return shuffled_epochs(n, self.settings.batch_size, seed, taken=taken, lengths=lengths)

    def loss(self, rows: Rows, step: Step) -> Loss:
        each, _ = losses(self.net, self.laid, self.train, rows, step.epoch - 1, self.settings.margin)
        return Loss.averaged(each.mean(), len(each))

    def validate(self, epoch: int) -> dict[str, float]:
        """Mean loss and, with negatives, the share of true responses that score above their own first negative."""
        loss = above = 0.0
        order = np.argsort(self.laid.contexts.lengths[self.valid.context], kind="stable")
        for first in range(0, len(order), _MEASURED):
            rows = order[first : first + _MEASURED]
            each, wins = losses(self.net, self.laid, self.valid, rows, 0, self.settings.margin)
            loss, above = loss + float(each.sum()), above + float(wins.sum())
        figures = {"valid_loss": loss / len(self.valid), "valid_gt_above": above / len(self.valid)}
        return {name: value for name, value in figures.items() if name == "valid_loss" or not np.isnan(value)}

    def data(self) -> list[NDArray[Any]]:
        """The arrays that a checkpoint recognises the data by."""
        words, contexts = self.laid.words, self.laid.contexts
        laid: list[NDArray[Any]] = [words.ids, words.ends, words.vectors, contexts.start, contexts.stop]
        return [*laid, self.train.response, self.valid.response]


def losses(
    net: RuberNet, laid: Laid, examples: LabelledPairs, rows: Rows, turn: int, margin: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss of each row, (b,), and whether its response scores above its negative: 1, 0, 0.5 (tie) or NaN (none).

    The margin loss is the mean over all other responses of the batch, true ones and negatives: they are random for this
    context, too, and have been encoded already.
    """
    context, response = examples.context[rows], examples.response[rows, 0]
    q = net.encode("context", laid.words, laid.contexts.of(context))
    if examples.targets is not None:
        known = torch.from_numpy(laid.known(context, response))
        f = net(q, net.encode("response", laid.words, laid.responses.of(response)), known)
        return (f - torch.from_numpy(examples.targets[rows])) ** 2, torch.full((len(rows),), torch.nan)
    responses = np.concatenate([response, examples.negative(rows, turn)])
    r = net.encode("response", laid.words, laid.responses.of(responses))
    f = net.every_pair(q, r, torch.from_numpy(laid.known(context[:, None], responses)))
    high, low = f.diagonal(), f.diagonal(len(rows))
    others = torch.from_numpy(responses != response[:, None])
    each = (torch.relu(margin - high[:, None] + f) * others).sum(dim=1) / others.sum(dim=1).clamp(min=1)
    above = torch.heaviside((high - low).detach(), torch.tensor(0.5))
    return each, above
