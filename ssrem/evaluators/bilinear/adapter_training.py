"""Learning low-rank adapters of a transformer together with M, from true responses, their negatives and the batch's."""

from __future__ import annotations

import copy
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import cross_entropy, normalize

from ssrem.encoders import pretrained
from ssrem.encoders.layers import add_adapters, layers
from ssrem.encoders.transformer import DOWN, UP, AdaptedTransformer, Transformer, pool
from ssrem.evaluators.bilinear.config import RUN, AdapterConfig
from ssrem.evaluators.bilinear.objective import VectorObjective, copy_cost
from ssrem.samples import TRAIN, VALID, Candidates, Rows
from ssrem.training.trainer import Loss, Step, precision, shuffled_epochs

_DRAWN = 7
"""Of every how many responses the drawn negatives are encoded; they are negatives of the whole batch. An odd number,
so that of two speakers who take turns each has some."""
_TOKENS_AT_ONCE = {"cpu": 1_024, "mps": 8_192, "cuda": 65_536}


class AdapterObjective(VectorObjective):
    """Adapters of the linear maps of the layers from `config.freeze` on learn with M.

    A response is told from every other text of its batch: the turns and responses of all its contexts, and the drawn
    negatives of some. They come in runs of a conversation, so negatives of its own speaker are among them. Rand is not
    encoded for learning: the other conversations of the batch stand for it. There is no dropout.
    """

    config: AdapterConfig

    def __init__(
        self,
        start: Transformer,
        candidates: Candidates,
        wanted: Rows,
        usable: Mapping[int, Rows],
        config: AdapterConfig,
    ) -> None:
        super().__init__(candidates, wanted, usable, config, start)
        self.start = start
        self.tokens = start.tokens(self.texts, config.max_tokens)
        self.lengths = np.array([len(ids) for ids in self.tokens], dtype=np.int64)
        self.model = copy.deepcopy(start.model).requires_grad_(False).eval()
        self.adapters = add_adapters(
            *layers(self.model), rank=config.rank, freeze=config.freeze, seed=config.seed
        )
        device = start.model.device
        self.bf16 = device if config.bf16 == "auto" else None
        for name in ("matrix", "turns", "sharpness"):
            setattr(self, name, torch.nn.Parameter(getattr(self, name).detach().to(device)))

    def parameters(self) -> Mapping[str, torch.nn.Parameter]:
        return {
            name + side: value
            for name, adapter in self.adapters.items()
            for side, value in ((UP, adapter.up), (DOWN, adapter.down))
        }

    def data(self) -> list[NDArray[Any]]:
        tokens = np.concatenate([np.array(ids, dtype=np.int64) for ids in self.tokens])
        return [self.rows[TRAIN], self.rows[VALID], self.lengths, tokens, self.content]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        count = len(self.rows[TRAIN])
        runs = [np.arange(first, min(first + RUN, count)) for first in range(0, count, RUN)]
        taken = min(-(-self.config.responses // RUN), len(runs))
        size = max(1, self.config.batch_size // RUN)
        for batches in shuffled_epochs(len(runs), size, [self.config.seed], taken=taken):
            yield [np.concatenate([runs[run] for run in batch.tolist()]) for batch in batches]

    def loss(self, rows: Rows, step: Step) -> Loss:
        batch, negatives = self.rows[TRAIN][rows], self.config.context_turns + 1
        batch[rows % _DRAWN > 0, negatives:] = -1
        batch[:, -1] = -1
        return Loss.averaged(self.scores(batch)[0], len(rows))

    def validation(self) -> Rows:
        return self.rows[VALID]  # whole runs, as in training

    def encoder(self, share: float) -> AdaptedTransformer:
        """The share applies to the product B A; the factors are float16."""
        factors = {name: value.detach().float().cpu().numpy() for name, value in self.parameters().items()}
        scaled = {
            name: value * np.float32(share) if name.endswith(UP) else value for name, value in factors.items()
        }
        return AdaptedTransformer(
            self.start, {name: value.astype(np.float16) for name, value in scaled.items()}
        )

    def vectors(self, texts: Rows) -> torch.Tensor:
        """V of the texts (m, d), float32, of unit length."""
        pooled, order = [], []
        device = self.start.model.device
        for rows in pretrained.similar_lengths(self.lengths[texts], _TOKENS_AT_ONCE.get(device.type, 1_024)):
            lengths = self.lengths[texts[rows]]
            mask = np.arange(lengths.max()) < lengths[:, None]
            ids = np.zeros(mask.shape, dtype=np.int64)
            for at, text in enumerate(texts[rows].tolist()):
                ids[at, : lengths[at]] = self.tokens[text]
            inputs, present = torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)
            with precision(self.bf16):
                states = self.model(input_ids=inputs, attention_mask=present.long()).last_hidden_state
            pooled.append(normalize(pool(states.float(), self.start.pooling.mode, present), dim=1))
            order.append(rows)
        place = torch.from_numpy(np.argsort(np.concatenate(order)))
        return torch.cat(pooled)[place]

    def scores(self, batch: Rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        turns = self.config.context_turns
        # Texts that are equal are one column, so that the true response is no negative of itself.
        texts = np.where(batch >= 0, self.content[np.maximum(batch, 0)], -1)
        columns = np.unique(texts[texts >= 0])
        vectors = self.vectors(columns)
        device = vectors.device
        place = torch.from_numpy(np.maximum(np.searchsorted(columns, texts), 0)).to(device)
        present = torch.from_numpy(texts >= 0).to(device)
        context = vectors[place[:, :turns]] * present[:, :turns, None]
        mean = normalize(torch.einsum("t,btd->bd", torch.exp(self.turns), context), dim=1)
        nearest = (context @ vectors.T).amax(dim=1)
        every = mean @ self.matrix @ vectors.T - copy_cost(nearest)
        loss = cross_entropy(every * torch.exp(self.sharpness), place[:, turns])
        values = every.detach().gather(1, place).cpu()
        return loss, values[:, turns:], values[:, :turns]

    @torch.no_grad()
    def chosen_share(self, before: float, after: float) -> tuple[float, float]:
        """The smallest tenth with which the share of negatives outranked keeps `config.keep` of its gain.

        before, after: that share before training and with what was learned. It is searched for by halving, as if the
        gain grew with every tenth. Returns also the share of negatives outranked with it.
        """
        reached = {10: after}
        learned = {name: value.detach().clone() for name, value in self.parameters().items()}
        matrix, identity = (
            self.matrix.detach().clone(),
            torch.eye(len(self.matrix), device=self.matrix.device),
        )

        def keeps(tenths: int) -> bool:
            self._set(learned, identity + tenths / 10 * (matrix - identity), tenths / 10)
            reached[tenths] = self.validate(0)["valid_gt_above"]
            return reached[tenths] - before >= self.config.keep * (after - before)

        try:
            tenths = 1 + bisect_left(range(1, 10), True, key=keeps)
            return tenths / 10, reached[tenths]
        finally:
            self._set(learned, matrix, 1.0)

    @torch.no_grad()
    def _set(self, learned: Mapping[str, torch.Tensor], matrix: torch.Tensor, share: float) -> None:
        for name, value in self.parameters().items():
            value.copy_(learned[name] * share if name.endswith(UP) else learned[name])
        self.matrix.copy_(matrix)
