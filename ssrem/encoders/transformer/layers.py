"""The layers of a transformer: listed, frozen, and run in two parts."""

from __future__ import annotations

import copy
from typing import Any

from ssrem.errors import EvaluatorError

# Model types whose layers can be called in two parts, the output of one being the input of the other.
_DIVIDED = ("bert", "roberta", "xlm-roberta", "camembert", "electra")


def layers(model: Any) -> tuple[str, Any]:
    """The name of the model's list of layers and the list itself: its longest one; ("", ()) if it has none."""
    from torch.nn import ModuleList

    lists = [(name, part) for name, part in model.named_modules() if isinstance(part, ModuleList)]
    return max(lists, key=lambda entry: len(entry[1]), default=("", ()))


def freeze(model: Any, count: int, name: str) -> list[Any]:
    """Let only layers from `count` on learn, all for 0; returns the modules that do not, embeddings included.

    name: of the model, for the EvaluatorError where it has fewer layers.
    """
    if count == 0:
        return []
    path, lowest = layers(model)
    if count > len(lowest):
        raise EvaluatorError(f"freeze is {count}; {name} has {len(lowest)} layers")
    for full, value in model.named_parameters():
        if full.startswith(f"{path}."):
            value.requires_grad = int(full[len(path) + 1 :].split(".")[0]) >= count
        else:
            value.requires_grad = "embedding" not in full
    outer = path.rpartition(".")[0].rpartition(".")[0]
    beside = model.get_submodule(outer) if outer else model
    return [*(part for full, part in beside.named_children() if "embedding" in full), *lowest[:count]]


def divided(model: Any, count: int) -> tuple[Any, Any] | None:
    """The model up to layer `count` and the model from there on, sharing weights; None if it cannot be divided.

    The second takes the first one's last hidden states as `inputs_embeds`. Neither has a pooler.
    """
    import torch

    class PassThrough(torch.nn.Module):
        """Replaces the embeddings: returns its input."""

        def forward(self, inputs_embeds: torch.Tensor, **_: Any) -> torch.Tensor:
            return inputs_embeds

    def part(chosen: Any, embeddings: Any) -> Any:
        some, encoder = copy.copy(model), copy.copy(model.encoder)
        encoder._modules = {**model.encoder._modules, "layer": torch.nn.ModuleList(chosen)}
        some._modules = {**model._modules, "encoder": encoder, "embeddings": embeddings, "pooler": None}
        return some

    if model.config.model_type not in _DIVIDED or count == 0:
        return None
    all_layers = model.encoder.layer
    return part(all_layers[:count], model.embeddings).eval(), part(all_layers[count:], PassThrough()).eval()
