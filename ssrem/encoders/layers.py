"""Changes to the layers of a transformer: freezing, division into two parts, low-rank adapters, oneDNN and int8."""

from __future__ import annotations

import copy
import platform
import shutil
from collections.abc import Sequence
from functools import cached_property
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
    """The name of the model's list of layers and the list, which is its longest ModuleList; ("", ()) if it has none."""
    lists = [(name, part) for name, part in model.named_modules() if isinstance(part, torch.nn.ModuleList)]
    return max(lists, key=lambda entry: len(entry[1]), default=("", ()))


def freeze(model: Any, count: int, name: str) -> list[Any]:
    """Freeze the lowest `count` layers and the embeddings, and return these modules; 0 freezes nothing.

    name: of the model, for the EvaluatorError that is raised if it has fewer layers.
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
    """Takes the place of the embeddings in the upper part of a divided model: returns its input."""

    def forward(self, inputs_embeds: torch.Tensor, **_: Any) -> torch.Tensor:
        return inputs_embeds


def divided(model: Any, count: int) -> tuple[Any, Any] | None:
    """Divide the model into its lowest `count` layers and the others, which share its weights; None if impossible.

    The second part takes the last hidden states of the first part as `inputs_embeds`. Neither has a pooler.
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
    """The hidden states of texts' tokens after the lowest layers, which do not learn, stored as float16 in `folder`.

    The states of a text are computed when they are first asked for and read from `folder` afterwards, also by a
    training that continues an interrupted one. below: the lowest layers, as `divided` returns them. tokens: the token
    ids of each text. key: identifies the model and the texts; files of another key in `folder` are deleted. Raises
    EvaluatorError if the states of all texts might not fit on the disk.
    """

    # Number of new texts after which their states, and then the list of known texts, are written to disk.
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
        """The states of the texts (b,), float32 (b, t, d); zero where `mask` (b, t) is False, after a text's end."""
        new = np.unique(texts[~self.known[texts]])
        if len(new):
            self._compute(new)
        result = np.zeros((*mask.shape, self.states.shape[1]), dtype=np.float16)
        result[mask] = self.states[self._places(texts, mask)]
        return torch.from_numpy(result).float()

    def _places(self, texts: NDArray[np.int64], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The rows of `states` with the tokens of the texts (b,), in the order of the True values of `mask` (b, t)."""
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
            aside = self._list.with_suffix(".tmp.npy")
            np.save(aside, self.known)
            aside.replace(self._list)
            self.unsaved = 0


class LowRank(torch.nn.Module):
    """A linear map with a low-rank adapter: W x + b + B A x (Hu et al. 2022, section 4.1).

    A (r, i), called `down`, and B (o, r), called `up`, learn; B starts as zero.
    """

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
    """Add an adapter to every linear map of the layers from `freeze` on; returns them by the names of the weights.

    path, layers: the name of a model's list of layers, and the list. Raises EvaluatorError if no layer would learn.
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
    """Add the products of the adapters to the weights of their linear maps, and remove the adapters."""
    for name, part in list(model.named_modules()):
        if isinstance(part, LowRank):
            part.layer.weight.add_((part.up @ part.down).to(part.layer.weight.dtype))
            model.set_submodule(name, part.layer)


class OneDnnLinear(torch.nn.Linear):
    """A linear map that is computed by oneDNN where that is possible: on the CPU, in float32, without gradients.

    Torch itself would use another library; on AMD's processors oneDNN is twice as fast. The results differ from those
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
    """A linear map that multiplies integers, on the CPU without gradients: inputs of 8 bits by weights of 7 bits.

    Each token and each output has its own scale, so that the result of a token does not depend on other tokens. With
    weights of 8 bits, the sum of two products could exceed 16 bits, where processors without VNNI cut it off. factors
    (i,): before rounding, inputs are multiplied and weights divided by them. offset (o,): the bias, plus what rounding
    the weights takes away from the outputs on average.
    """

    whole: torch.Tensor
    steps: torch.Tensor
    factors: torch.Tensor
    offset: torch.Tensor
    scaled: bool
    """Whether inputs are multiplied by `factors`; if not, all factors are 1."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if torch.is_grad_enabled() or input.device.type != "cpu":
            return super().forward(input)
        rows = input * self.factors if self.scaled else input
        scale = rows.abs().amax(dim=-1, keepdim=True).clamp_min_(1e-30).div_(127)
        rows = (rows * scale.reciprocal()).round_().flatten(0, -2)
        if _FAST_INT8:
            packed, ones, zeros = self.packed
            # Shifted by 128 to unsigned numbers, which processors without VNNI multiply faster than signed ones.
            unsigned = rows.to(torch.int8).view(torch.uint8).bitwise_xor_(128)
            sums = torch.ops.onednn.qlinear_pointwise(
                unsigned, 1.0, 128, packed, ones, zeros, None, 1.0, 0, torch.float32, "none", [], ""
            )
        else:  # gives the same sums, since float32 holds every integer up to 2^24
            sums = rows @ self.whole.t().float()
        return torch.addcmul(self.offset, sums.view(*input.shape[:-1], -1).mul_(scale), self.steps)

    @cached_property
    def packed(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """`whole` in oneDNN's format, scales of 1 and zero points of 0; these two leave the sums unchanged."""
        ones, zeros = torch.ones(len(self.whole)), torch.zeros(len(self.whole), dtype=torch.int64)
        return torch.ops.onednn.qlinear_prepack(self.whole, None), ones, zeros

    def __getstate__(self) -> dict[str, Any]:
        """The state to copy or pickle: all attributes but `packed`, which cannot be copied."""
        return {name: value for name, value in self.__dict__.items() if name != "packed"}


_FAST_INT8 = (
    platform.machine().lower() in ("x86_64", "amd64")
    and hasattr(torch.ops.onednn, "qlinear_pointwise")
    and torch.backends.cpu.get_cpu_capability() != "DEFAULT"
)
"""Whether oneDNN multiplies integers faster than torch multiplies float32, as it does from AVX2 on. `torch._int_mm` is
no alternative: it uses oneDNN only with VNNI, and without VNNI it takes 40 times as long as float32."""


@torch.no_grad()
def use_int8(model: Any) -> None:
    """Make the linear maps of `model` multiply integers (`Int8Linear`), which are rounded from their present weights.

    The unrounded weights are kept for the hash and for learning. In the output of a layer normalisation a few features
    are far larger than the others, which would make the rounding coarse, so part of their size moves into the weights
    (Xiao et al. 2023, section 4, with α = .6), by powers of two, which cause no rounding. What rounding changes on
    average is added to the bias (Nagel et al. 2019, section 4.2). The sizes and means of the inputs are measured on
    1,024 tokens, evenly spaced over the vocabulary.
    """
    normalised: dict[int, torch.Tensor] = {}
    inputs: dict[Any, tuple[torch.Tensor, torch.Tensor, bool]] = {}

    def normalises(_: object, __: object, output: torch.Tensor) -> None:
        normalised[output.data_ptr()] = output  # kept, so that its address is not used again

    def reads(part: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        rows = given[0].flatten(0, -2)
        inputs[part] = rows.abs().amax(dim=0), rows.mean(dim=0), given[0].data_ptr() in normalised

    hooks = []
    for part in model.modules():
        if isinstance(part, torch.nn.LayerNorm):
            hooks.append(part.register_forward_hook(normalises))
        elif isinstance(part, torch.nn.Linear):
            part.__class__ = torch.nn.Linear  # a copied model may have the integers of the original
            hooks.append(part.register_forward_pre_hook(reads))
    use_onednn(model)
    last = model.get_input_embeddings().num_embeddings - 1
    tokens = torch.linspace(0, last, 1_024, device=model.device).long().view(-1, 8)
    model(input_ids=tokens, attention_mask=torch.ones_like(tokens))
    for hook in hooks:
        hook.remove()
    for part, (largest, mean, scaled) in inputs.items():
        part.__class__ = Int8Linear
        weights = part.weight.detach()
        factors = torch.ones_like(largest)
        if scaled:
            size = weights.abs().amax(dim=0).clamp_min(1e-5) ** 0.4 / largest.clamp_min(1e-5) ** 0.6
            factors = torch.exp2(torch.log2(size).round())
            weights = weights / factors
        steps = weights.abs().amax(dim=1).clamp_min(1e-30) / 63
        whole = (weights / steps[:, None]).round()
        offset = (weights - whole * steps[:, None]) @ (mean * factors)
        if part.bias is not None:
            offset = offset + part.bias.detach()
        held = {"whole": whole.to(torch.int8), "steps": steps, "factors": factors, "offset": offset}
        for name, tensor in held.items():
            part.register_buffer(name, tensor, persistent=False)
        part.scaled = scaled
        part.__dict__.pop("packed", None)
