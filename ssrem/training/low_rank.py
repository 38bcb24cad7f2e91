"""Low-rank adapters beside the linear maps of a transformer (Hu et al. 2022, section 4.1)."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import linear

from ssrem.errors import EvaluatorError


class LowRank(torch.nn.Module):
    """W x + b + B A x, where A (r, i) and B (o, r) learn and B starts as zero."""

    def __init__(self, layer: torch.nn.Linear, rank: int) -> None:
        super().__init__()
        self.layer = layer
        device = layer.weight.device
        down = torch.randn(rank, layer.in_features) / layer.in_features**0.5
        self.down = torch.nn.Parameter(down.to(device))
        self.up = torch.nn.Parameter(torch.zeros(layer.out_features, rank, device=device))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layer(x) + linear(linear(x, self.down), self.up)
        return result


def add_adapters(path: str, layers: Any, *, rank: int, freeze: int, seed: int) -> dict[str, LowRank]:
    """Put an adapter beside every linear map of the layers from `freeze` on; by the names of their weights.

    path, layers: the name of a model's list of layers, and the list.
    """
    if freeze >= len(layers):
        raise EvaluatorError(f"freeze is {freeze}; the model has {len(layers)} layers, and one must learn")
    adapters = {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for number in range(freeze, len(layers)):
            for name, part in list(layers[number].named_modules()):
                if isinstance(part, torch.nn.Linear):
                    adapter = LowRank(part, rank)
                    _replace(layers[number], name, adapter)
                    adapters[f"{path}.{number}.{name}.weight"] = adapter
    return adapters


@torch.no_grad()
def merge_adapters(model: Any) -> None:
    """Add what the adapters learned to the weights beside them, and take the adapters out."""
    for name, part in list(model.named_modules()):
        if isinstance(part, LowRank):
            part.layer.weight.add_((part.up @ part.down).to(part.layer.weight.dtype))
            _replace(model, name, part.layer)


def _replace(model: Any, name: str, part: torch.nn.Module) -> None:
    outer, _, last = name.rpartition(".")
    setattr(model.get_submodule(outer), last, part)
