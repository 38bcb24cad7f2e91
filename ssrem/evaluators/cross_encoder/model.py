"""The network of a cross-encoder, and its logits."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.encoders import pretrained
from ssrem.encoders.layers import divided, freeze
from ssrem.errors import EvaluatorError
from ssrem.evaluators.cross_encoder.config import CrossEncoderConfig
from ssrem.evaluators.cross_encoder.inputs import Base, Inputs
from ssrem.samples import Floats

Weights = Mapping[str, NDArray[np.float32]]

_MOST_HELD = 1 << 30
"""Limit in bytes of the frozen layers' output that is kept in memory; above it, the layers are run for every batch."""
_TOKENS_AT_ONCE = {"cpu": 2_048, "mps": 8_192, "cuda": 65_536}


class CrossNet(torch.nn.Module):
    """logit = slope · cos + head(pooled states of context and response, read together).

    head: 'linear', or 'mlp': dropout, linear, tanh, dropout, linear. With a prior the head's last layer starts as zero,
    so that training starts from the prior, and `calibrate` sets the slope and the offset.
    """

    def __init__(self, base: Base, config: CrossEncoderConfig, head: str) -> None:
        super().__init__()
        self.base, self.config = base, config
        self.model = copy.deepcopy(base.model)
        if getattr(self.model, "pooler", None) is not None:
            self.model.pooler = None
        self._frozen = freeze(self.model, config.freeze, config.model)
        self._parts = divided(self.model, config.freeze)
        size = int(self.model.config.hidden_size)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            inner = (torch.nn.Dropout(config.dropout), torch.nn.Linear(size, size), torch.nn.Tanh())
            self.inner = torch.nn.Sequential(*(inner if head == "mlp" else ()))
            self.dropout = torch.nn.Dropout(config.dropout)
            self.outer = torch.nn.Linear(size, 1)
        prior = config.prior == "cosine"
        self.slope = torch.nn.Parameter(torch.full((1,), float(prior)), requires_grad=prior)
        if prior:
            torch.nn.init.zeros_(self.outer.weight)
            torch.nn.init.zeros_(self.outer.bias)
        self.to(base.device).eval()

    def train(self, mode: bool = True) -> CrossNet:
        super().train(mode)
        for part in self._frozen:
            part.eval()  # no dropout in frozen parts
        return self

    def forward(
        self,
        ids: torch.Tensor,
        mask: torch.Tensor,
        prior: torch.Tensor,
        types: torch.Tensor | None = None,
        states: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Logits (b,) of tokens (b, t), their mask, the cosines (b,) and segments (b, t).

        states: the output of `held`, float32 (b, t, d), which replaces tokens and segments.
        """
        if states is None or self._parts is None:
            arguments = {"input_ids": ids} if types is None else {"input_ids": ids, "token_type_ids": types}
            states = self.model(**arguments, attention_mask=mask.long()).last_hidden_state
        else:
            states = self._parts[1](inputs_embeds=states, attention_mask=mask.long()).last_hidden_state
        if self.config.pooling == "cls":
            pooled = states[:, 0]
        else:
            weights = mask.to(states.dtype)[:, :, None]
            pooled = (states * weights).sum(dim=1) / weights.sum(dim=1)
        added: torch.Tensor = self.outer(self.dropout(self.inner(pooled)))[:, 0]
        return added.float() + self.slope * prior

    @property
    def trained(self) -> dict[str, torch.nn.Parameter]:
        """The parameters that learn, by name."""
        return {name: value for name, value in self.named_parameters() if value.requires_grad}

    def with_frozen_output(self, inputs: Inputs) -> Inputs:
        """The inputs with the frozen layers' output; unchanged if there is no such layer or too little memory."""
        size = int(self.model.config.hidden_size)
        if self._parts is None or int(inputs.lengths.sum()) * size * 4 > _MOST_HELD:
            return inputs
        states: list[torch.Tensor] = [torch.empty(0)] * len(inputs)
        with torch.no_grad():
            for rows in pretrained.similar_lengths(
                inputs.lengths, _TOKENS_AT_ONCE.get(self.base.device.type, 2_048)
            ):
                arguments = self.base.batch(inputs, rows)
                segments = {"token_type_ids": arguments["types"]} if "types" in arguments else {}
                mask = arguments["mask"].long()
                output = self._parts[0](
                    input_ids=arguments["ids"], attention_mask=mask, **segments
                ).last_hidden_state
                for at, row in enumerate(rows.tolist()):
                    states[row] = output[at, : inputs.lengths[row]].cpu().clone()
        return replace(inputs, states=tuple(states))

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """A copy of everything that was learned."""
        return {name: value.detach().cpu().numpy().copy() for name, value in self.trained.items()}

    def take(self, weights: Weights) -> None:
        """Load learned weights; EvaluatorError if names or shapes are not those of this network."""
        trained = self.trained
        if {name: tuple(value.shape) for name, value in trained.items()} != {
            name: array.shape for name, array in weights.items()
        }:
            raise EvaluatorError(
                "a cross-encoder's weights do not fit its settings and model; copy or train it again"
            )
        with torch.no_grad():
            for name, array in weights.items():
                trained[name].copy_(torch.from_numpy(np.ascontiguousarray(array)))

    def rescale(self, slope: float, offset: float) -> None:
        """Replace every logit z by slope · z + offset."""
        with torch.no_grad():
            for value in (self.slope, self.outer.weight, self.outer.bias):
                value.mul_(slope)
            self.outer.bias.add_(offset)


def logits(net: CrossNet, inputs: Inputs) -> Floats:
    """Logits of all inputs, float64 (n,), computed in float32; batches are of about one length."""
    output = np.zeros(len(inputs))
    net.eval()
    with torch.inference_mode():
        if not net.outer.weight.any():  # the logit is the prior alone
            return inputs.prior.astype(np.float64) * float(net.slope) + float(net.outer.bias)
        for rows in pretrained.similar_lengths(
            inputs.lengths, _TOKENS_AT_ONCE.get(net.base.device.type, 2_048)
        ):
            output[rows] = net(**net.base.batch(inputs, rows)).double().cpu().numpy()
    if not np.isfinite(output).all():
        raise EvaluatorError("a cross-encoder gives scores that are not finite; its weights are broken")
    return output


def sigmoid(values: Floats) -> Floats:
    """1 / (1 + exp(-x)), without overflow."""
    result: Floats = 0.5 * (1 + np.tanh(0.5 * values))
    return result
