"""RUBER's unreferenced part: the texts as it reads them, the network, and its scores (Tao et al. 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.encoders.base import Encoder
from ssrem.encoders.gru import RecurrentNetwork, Weights
from ssrem.encoders.recurrent import Stretches, Words
from ssrem.evaluators.ruber.config import RuberConfig
from ssrem.samples import Candidates, Floats, Rows, Sample
from ssrem.training.trainer import one_thread

_ENCODED = 256
_SCORED = 20_000


@dataclass(frozen=True)
class Laid:
    """Words, and the contexts and responses as stretches of them."""

    words: Words
    contexts: Stretches
    responses: Stretches

    def known(self, contexts: Rows, responses: Rows) -> NDArray[np.bool_]:
        """Whether context and response of each pair have a known word, bool (n,)."""
        return np.asarray((self.contexts.lengths[contexts] > 0) & (self.responses.lengths[responses] > 0))


def lay_candidates(
    candidates: Candidates, rows: Rows, wanted: Rows, encoder: Encoder, config: RuberConfig
) -> Laid:
    """Contexts of `rows`, in order, and all texts as responses; empty if not in `wanted` (any shape, -1: none)."""
    start, stop = candidates.context_start[rows], candidates.context_stop[rows]
    start = np.maximum(start, stop - config.context_turns)
    needed = np.zeros(len(candidates.texts), dtype=bool)
    needed[wanted[wanted >= 0]] = True
    for back in range(1, config.context_turns + 1):
        needed[(stop - back)[stop - back >= start]] = True
    words = Words.of(candidates.texts, encoder, needed)
    return Laid(words, _contexts(words, start, stop, config), words.first(len(needed), config.response_words))


def lay_samples(
    samples: Sequence[Sample], encoder: Encoder, config: RuberConfig
) -> tuple[Laid, NDArray[np.int64]]:
    """Distinct contexts and responses, and each sample's context and response among them, int64 (n, 2)."""
    responses = {text: row for row, text in enumerate(dict.fromkeys(sample.response for sample in samples))}
    turns = [sample.context[-config.context_turns :] for sample in samples]
    contexts = {context: row for row, context in enumerate(dict.fromkeys(turns))}
    texts = [*responses, *(turn for context in contexts for turn in context)]
    edges = len(responses) + np.cumsum([0, *(len(context) for context in contexts)])
    words = Words.of(texts, encoder)
    laid = Laid(
        words,
        _contexts(words, edges[:-1], edges[1:], config),
        words.first(len(responses), config.response_words),
    )
    pairs = [
        (contexts[turn], responses[sample.response]) for turn, sample in zip(turns, samples, strict=True)
    ]
    return laid, np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _contexts(words: Words, start: Rows, stop: Rows, config: RuberConfig) -> Stretches:
    first, last = words.ends[start], words.ends[stop]
    begin = np.maximum(first, last - config.context_words)
    return Stretches(begin, last, begin > first)


class RuberNet(RecurrentNetwork):
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
    def seeded(cls, dimensions: int, config: RuberConfig) -> RuberNet:
        """The network before training; the caller's random state does not change."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            return cls(dimensions, config.hidden, config.mlp)

    @classmethod
    def of(cls, weights: Weights, dimensions: int, config: RuberConfig) -> RuberNet:
        """The network with these weights; EvaluatorError if their shapes do not fit."""
        net = cls.seeded(dimensions, config)
        net.take(weights, "RUBER's", dimensions)
        return net

    def encode(self, side: str, words: Words, texts: Stretches) -> torch.Tensor:
        """Last states of both directions, float32 (b, 2 · hidden); padding is never read."""
        _, last = (self.context if side == "context" else self.response)(texts.packed(words))
        return torch.cat([last[0], last[1]], dim=1)

    def forward(self, q: torch.Tensor, r: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        """Scores in (0, 1), float32 (b,), of states (b, 2 · hidden) each; 0.5 where `known` is false."""
        quadratic = ((q @ self.matrix) * r).sum(dim=1, keepdim=True)
        inner = self.inner(torch.cat([q, quadratic, r], dim=1))
        return self._score(inner, known)

    def every_pair(self, q: torch.Tensor, r: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        """As `forward`, of each of q, (b, 2 · hidden), with each of r, (c, 2 · hidden): float32 (b, c)."""
        of_q, of_quadratic, of_r = torch.split(
            self.inner.weight, [2 * self.hidden, 1, 2 * self.hidden], dim=1
        )
        quadratic = (q @ self.matrix) @ r.T
        inner = (q @ of_q.T)[:, None] + (r @ of_r.T)[None] + quadratic[:, :, None] * of_quadratic[:, 0]
        return self._score(inner + self.inner.bias, known)

    def _score(self, inner: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.outer(torch.tanh(inner))[..., 0] * known)


def scores(net: RuberNet, laid: Laid, pairs: Rows) -> Floats:
    """f, float64 (n,), of `pairs`, int64 (n, 2): rows of the contexts and responses. Each text is read once."""
    f = np.empty(len(pairs))
    with torch.no_grad(), one_thread():
        q, left = _states(net, "context", laid.words, laid.contexts, pairs[:, 0])
        r, right = _states(net, "response", laid.words, laid.responses, pairs[:, 1])
        for first in range(0, len(pairs), _SCORED):
            at = slice(first, first + _SCORED)
            known = torch.from_numpy(laid.known(pairs[at, 0], pairs[at, 1]))
            f[at] = net(q[left[at]], r[right[at]], known).numpy()
    return f


def _states(
    net: RuberNet, side: str, words: Words, texts: Stretches, rows: Rows
) -> tuple[torch.Tensor, torch.Tensor]:
    """States of the distinct texts among `rows`, and the position of each row's state among them."""
    used, place = np.unique(rows, return_inverse=True)
    states = torch.empty(len(used), 2 * net.hidden)
    order = np.argsort(texts.lengths[used], kind="stable")
    for first in range(0, len(order), _ENCODED):
        batch = order[first : first + _ENCODED]
        states[torch.from_numpy(batch)] = net.encode(side, words, texts.of(used[batch]))
    return states, torch.from_numpy(place)
