"""The layers of a transformer: listed, frozen, run in two parts, with low-rank adapters, by oneDNN or in int8."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import linear

from ssrem.encoders.base import padded
from ssrem.errors import EvaluatorError

# Model types whose layers can be called in two parts, the output of one being the input of the other.
_DIVIDED = ("bert", "roberta", "xlm-roberta", "camembert", "electra", "mpnet")


def layers(model: Any) -> tuple[str, Any]:
    """The name of the model's list of layers and the list itself: its longest one; ("", ()) if it has none."""
    lists = [(name, part) for name, part in model.named_modules() if isinstance(part, torch.nn.ModuleList)]
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
            # All of MPNet's layers share one bias, on which the states of the lower layers depend.
            value.requires_grad = not any(part in full for part in ("embedding", "relative_attention_bias"))
    outer = path.rpartition(".")[0].rpartition(".")[0]
    beside = model.get_submodule(outer) if outer else model
    return [*(part for full, part in beside.named_children() if "embedding" in full), *lowest[:count]]


class _PassThrough(torch.nn.Module):
    """Replaces the embeddings: returns its input."""

    def forward(self, inputs_embeds: torch.Tensor, **_: Any) -> torch.Tensor:
        return inputs_embeds


def divided(model: Any, count: int) -> tuple[Any, Any] | None:
    """The model up to layer `count` and the model from there on, sharing weights; None if it cannot be divided.

    The second takes the first one's last hidden states as `inputs_embeds`. Neither has a pooler.
    """

    def part(chosen: Any, embeddings: Any) -> Any:
        some, encoder = copy.copy(model), copy.copy(model.encoder)
        encoder._modules = {**model.encoder._modules, "layer": torch.nn.ModuleList(chosen)}
        some._modules = {**model._modules, "encoder": encoder, "embeddings": embeddings, "pooler": None}
        return some.eval()

    if model.config.model_type not in _DIVIDED or count == 0:
        return None
    all_layers = model.encoder.layer
    return part(all_layers[:count], model.embeddings), part(all_layers[count:], _PassThrough())


class LowerStates:
    """The token states of texts after the lowest layers, which do not learn: computed when a text is first asked for,
    float16 in `folder`, read from there afterwards, also by the training that continues an interrupted one.

    below: those layers, as `divided` gives them. tokens: the ids of each text. key: names the model and the texts; what
    `folder` holds under another key is written over. EvaluatorError if the states of all texts might not fit the disk.
    """

    # After so many new texts the disk gets their states, and then the list of what it has.
    _UNSAVED = 4_096

    def __init__(
        self, below: Any, tokens: Sequence[Sequence[int]], dimensions: int, folder: Path, key: str
    ) -> None:
        self.below, self.tokens = below, tokens
        self.lengths = np.array([len(ids) for ids in tokens], dtype=np.int64)
        self.start = np.cumsum(self.lengths) - self.lengths
        self.known, self.unsaved = np.zeros(len(tokens), dtype=bool), 0
        shape = (max(1, int(self.lengths.sum())), dimensions)
        states, self._list = folder / "states.f16", folder / f"known-{key}.npy"
        again = self._list.is_file() and states.is_file() and states.stat().st_size == 2 * shape[0] * shape[1]
        if again:
            self.known = np.load(self._list)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            needed, free = 2 * shape[0] * shape[1], shutil.disk_usage(folder).free
            if needed > free:
                raise EvaluatorError(
                    f"{folder}: the states of {len(tokens):,} texts may take {needed / 1e9:.1f} GB, and "
                    f"{free / 1e9:.1f} GB are free; make room, or set max_tokens or responses lower"
                )
        self.states = np.memmap(states, dtype=np.float16, mode="r+" if again else "w+", shape=shape)

    def padded(self, texts: NDArray[np.int64], mask: NDArray[np.bool_]) -> torch.Tensor:
        """The states of the texts (b,), float32 (b, t, d), zero where `mask` (b, t) is False, after a text's end."""
        new = np.unique(texts[~self.known[texts]])
        if len(new):
            self._compute(new)
        result = np.zeros((*mask.shape, self.states.shape[1]), dtype=np.float16)
        result[mask] = self.states[self._places(texts, mask)]
        return torch.from_numpy(result).float()

    def _places(self, texts: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The rows of `states` with the tokens of the texts (b,), in the order in which `mask` (b, t) has them."""
        places: NDArray[np.int64] = (self.start[texts][:, None] + np.arange(mask.shape[1]))[mask]
        return places

    @torch.no_grad()
    def _compute(self, texts: NDArray[np.int64]) -> None:
        device = next(self.below.parameters()).device
        mask = np.arange(self.lengths[texts].max()) < self.lengths[texts, None]
        ids = padded([self.tokens[text] for text in texts.tolist()])
        inputs, present = torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)
        states = self.below(input_ids=inputs, attention_mask=present.long()).last_hidden_state
        self.states[self._places(texts, mask)] = states.float().cpu().numpy()[mask].astype(np.float16)
        self.known[texts] = True
        self.unsaved += len(texts)
        if self.unsaved >= self._UNSAVED:
            self.states.flush()
            np.save(self._list, self.known)
            self.unsaved = 0


class LowRank(torch.nn.Module):
    """W x + b + B A x, where A (r, i) and B (o, r) learn and B starts as zero (Hu et al. 2022, section 4.1)."""

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
                    adapter = adapters[f"{path}.{number}.{name}.weight"] = LowRank(part, rank)
                    layers[number].set_submodule(name, adapter)
    return adapters


@torch.no_grad()
def merge_adapters(model: Any) -> None:
    """Add what the adapters learned to the weights beside them, and take the adapters out."""
    for name, part in list(model.named_modules()):
        if isinstance(part, LowRank):
            part.layer.weight.add_((part.up @ part.down).to(part.layer.weight.dtype))
            model.set_submodule(name, part.layer)


class OneDnnLinear(torch.nn.Linear):
    """A linear map that is computed by oneDNN where that is possible: on the CPU, in float32, without gradients.

    Torch would leave it to another library; on AMD's processors oneDNN is twice as fast. The results differ from those
    of torch.nn.Linear by rounding.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        plain = input.dtype == self.weight.dtype == torch.float32 and input.device.type == "cpu"
        if not plain or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
            return super().forward(input)
        product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            input, self.weight, self.bias, "none", [], ""
        )
        return product


def use_onednn(model: torch.nn.Module) -> None:
    """Let oneDNN compute the linear maps of `model`, if this build of torch has it."""
    for part in model.modules() if hasattr(torch.ops.mkldnn, "_linear_pointwise") else ():
        if type(part) is torch.nn.Linear:
            part.__class__ = OneDnnLinear


class Int8Linear(torch.nn.Linear):
    """A linear map by whole numbers, on the CPU without gradients: 8 bits of each token's input, 7 of the weights.

    Each token and each output has a scale of its own, so that a token's result depends on no other. With 8 bits of the
    weights, pairs of products could exceed 16 bits, at which processors without VNNI cut them off.
    """

    whole: torch.Tensor
    steps: torch.Tensor

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if torch.is_grad_enabled() or input.device.type != "cpu":
            return super().forward(input)
        scale = input.abs().amax(dim=-1, keepdim=True).clamp_min(1e-30) / 127
        rows = (input / scale).round_().to(torch.int8).flatten(0, -2)
        sums = torch._int_mm(rows, self.whole.t()).view(*input.shape[:-1], -1)
        product: torch.Tensor = sums.float().mul_(self.steps).mul_(scale)
        return product if self.bias is None else product.add_(self.bias)


@torch.no_grad()
def use_int8(model: torch.nn.Module) -> None:
    """Compute the linear maps of `model` by whole numbers, rounded from the weights as they are now; these stay, for
    the hash and for learning."""
    for part in model.modules():
        if isinstance(part, torch.nn.Linear):
            part.__class__ = Int8Linear
            steps = part.weight.abs().amax(dim=1).clamp_min(1e-30) / 63
            whole = (part.weight / steps[:, None]).round().to(torch.int8)
            part.register_buffer("whole", whole, persistent=False)
            part.register_buffer("steps", steps, persistent=False)
