"""The network of a cross-encoder: how a sample is turned into tokens, the layers, and the logits."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.encoders import hub, pretrained
from ssrem.encoders.base import padded
from ssrem.encoders.layers import add_adapters, divided, freeze, layers, merge_adapters, use_int8
from ssrem.encoders.transformer import DOWN, UP, SentenceModel, pool
from ssrem.errors import EvaluatorError
from ssrem.evaluators.baselines import Cosine
from ssrem.samples import Floats, Progress, Rows, Sample

_MOST_HELD = 1 << 30
"""Limit in bytes of the frozen layers' output that is kept in memory; above it, the layers are run for every batch."""
_COSINES = 1_024
"""Samples whose cosines are computed between two calls of `progress`."""
_TOKENS_AT_ONCE = {"cpu": 2_048, "mps": 8_192, "cuda": 65_536}


@dataclass(frozen=True)
class Inputs:
    """n samples as the network reads them.

    ids: token ids. first (n,): number of tokens before the response. prior, float32 (n,): cosines, 0 without a prior.
    truncated (n,): whether tokens were left out. states: the frozen layers' output for each sample, float32 (tokens, d)
    on the CPU; None: it is computed for every batch.
    """

    ids: tuple[tuple[int, ...], ...]
    first: Rows
    prior: NDArray[np.float32]
    truncated: NDArray[np.bool_]
    states: tuple[torch.Tensor, ...] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def lengths(self) -> Rows:
        """Number of tokens of each sample, int64 (n,)."""
        return np.array([len(row) for row in self.ids], dtype=np.int64)

    def part(self, rows: Rows) -> Inputs:
        """The samples at `rows`."""
        ids = tuple(self.ids[row] for row in rows.tolist())
        states = self.states and tuple(self.states[row] for row in rows.tolist())
        return Inputs(ids, self.first[rows], self.prior[rows], self.truncated[rows], states)


class Base:
    """A transformer before training: tokenizer, weights, and the cosine of its sentence vectors.

    folder: its folder; None: `settings.model` names it. named: whether it can be loaded again by name. Training leaves
    it unchanged.
    """

    def __init__(self, name: str, settings: Any, folder: Path | None = None) -> None:
        spec = str(folder) if folder else settings.model
        plain = spec.removeprefix("hf:")
        self.folder = hub.local_folder(spec)
        self.named = folder is None and (plain in hub.NAMED or not Path(hub.model_folder(spec)).is_dir())
        self.cosine: Cosine | None = None
        if settings.prior == "cosine":
            self.cosine = Cosine(encoder=plain if plain in hub.NAMED else f"hf:{plain}")
            encoder: Any = self.cosine.encoder
            self.tokenizer, self.model = encoder.tokenizer, encoder.model
            self.model.to(pretrained.pick_device(settings.device))
        else:
            # Kept, because `shared` loads the model again once nothing holds it.
            self._held = SentenceModel.shared(
                str(self.folder), None if settings.device == "auto" else settings.device
            )
            self.tokenizer, self.model = self._held.tokenizer, self._held.model
        self.turns, self.max_tokens = settings.context_turns, settings.max_tokens
        self.frame = _frame(name, settings.model, self.tokenizer)
        longest = pretrained.max_tokens(self.tokenizer, self.model) or pretrained.USUAL_TOKENS
        least = sum(map(len, self.frame)) + 1
        if not least <= settings.max_tokens <= longest:
            raise EvaluatorError(
                f"{name}: max_tokens is {settings.max_tokens}; {settings.model} takes from {least} to {longest}"
            )
        self.typed = getattr(self.model.config, "type_vocab_size", 0) > 1

    @property
    def device(self) -> torch.device:
        """The device that the transformer is on."""
        device: torch.device = self.model.device
        return device

    @property
    def budget(self) -> int:
        """Tokens that are read at once."""
        return _TOKENS_AT_ONCE.get(self.device.type, _TOKENS_AT_ONCE["cpu"])

    @cached_property
    def fingerprint(self) -> str:
        """Hashes of the weights and of the tokenizer."""
        return f"{pretrained.weights_hash(self.model)}+{pretrained.tokenizer_hash(self.tokenizer)}"

    def read(self, samples: Sequence[Sample], progress: Progress | None = None) -> Inputs:
        """Turn each sample into [CLS] turn [SEP] … turn [SEP] response [SEP], with the last turns that are not blank.

        If a sample is too long, the oldest tokens of the context are dropped first, then the response's last ones.
        progress: called with the number of cosines that are computed so far, and in all.
        """
        before, between, after = self.frame
        room = self.max_tokens - len(before) - len(between) - len(after)
        texts = list(dict.fromkeys(t for s in samples for t in (*s.last_turns(self.turns), s.response)))
        tokens = pretrained.plain_tokens(self.tokenizer, texts)["input_ids"] if texts else []
        ids: dict[str, list[int]] = dict(zip(texts, tokens, strict=True))
        rows, first = [], np.zeros(len(samples), dtype=np.int64)
        prior = np.zeros(len(samples), dtype=np.float32)
        truncated = np.zeros(len(samples), dtype=bool)
        for at, sample in enumerate(samples):
            context: list[int] = []
            for turn in sample.last_turns(self.turns):
                context += [*(between if context else ()), *ids[turn]]
            all_ids = ids[sample.response]
            response_ids = all_ids[:room]
            context_ids = context[max(len(context) + len(response_ids) - room, 0) :]
            rows.append((*before, *context_ids, *between, *response_ids, *after))
            first[at] = len(before) + len(context_ids) + len(between)
            truncated[at] = len(context_ids) < len(context) or len(response_ids) < len(all_ids)
        if self.cosine is not None:
            for start in range(0, len(samples), _COSINES):
                part = slice(start, start + _COSINES)
                output = self.cosine.compute(samples[part])
                prior[part], truncated[part] = output.f, truncated[part] | output.truncated
                if progress is not None:
                    progress(min(part.stop, len(samples)), len(samples))
        return Inputs(tuple(rows), first, prior, truncated)

    def batch(self, inputs: Inputs, rows: Rows) -> dict[str, torch.Tensor]:
        """The arguments of `CrossNet`, padded at the right to the longest of `rows`."""
        ids = padded([inputs.ids[row] for row in rows.tolist()], self.tokenizer.pad_token_id or 0)
        place = np.arange(ids.shape[1])
        mask = place < inputs.lengths[rows, None]
        arrays: dict[str, NDArray[Any]] = {"ids": ids, "mask": mask, "prior": inputs.prior[rows]}
        if self.typed:
            arrays["types"] = (mask & (place >= inputs.first[rows, None])).astype(np.int64)
        output = {name: torch.from_numpy(array) for name, array in arrays.items()}
        if inputs.states is not None:
            held = [inputs.states[row] for row in rows.tolist()]
            output["states"] = torch.nn.utils.rnn.pad_sequence(held, batch_first=True)
        return {name: tensor.to(self.device) for name, tensor in output.items()}


def _frame(name: str, spec: str, tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Special tokens before the context, between context and response, after the response."""
    start, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    if start is None or end is None:
        raise EvaluatorError(
            f"{name}: the tokenizer of {spec} has no tokens that frame a pair of texts; "
            "name an encoder such as bert-base-uncased"
        )
    pair = tokenizer("a", "a", add_special_tokens=True)["input_ids"]
    # RoBERTa and its relatives put two separators between the texts.
    between = (end, end) if any(pair[at : at + 2] == [end, end] for at in range(len(pair))) else (end,)
    return (start,), between, (end,)


class CrossNet(torch.nn.Module):
    """logit = slope · cos + head(pooled states of context and response, read together).

    head: 'linear', or 'mlp': dropout, linear, tanh, dropout, linear. With a prior the head's last layer starts as zero,
    so that training starts from the prior, and `calibrate` sets the slope and the offset.
    """

    def __init__(self, base: Base, settings: Any, head: str) -> None:
        super().__init__()
        self.base, self.settings = base, settings
        self.model = copy.deepcopy(base.model)
        if getattr(self.model, "pooler", None) is not None:
            self.model.pooler = None
        self._frozen = freeze(self.model, settings.freeze, settings.model)
        if settings.rank:
            self.model.requires_grad_(False)
            add_adapters(*layers(self.model), rank=settings.rank, freeze=settings.freeze, seed=settings.seed)
        self._parts = divided(self.model, settings.freeze)
        self._int8 = False
        size = int(self.model.config.hidden_size)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            inner = (torch.nn.Dropout(settings.dropout), torch.nn.Linear(size, size), torch.nn.Tanh())
            self.inner = torch.nn.Sequential(*(inner if head == "mlp" else ()))
            self.dropout = torch.nn.Dropout(settings.dropout)
            self.outer = torch.nn.Linear(size, 1)
        prior = settings.prior == "cosine"
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

        states: the frozen layers' output, float32 (b, t, d), which replaces tokens and segments.
        """
        if states is None or self._parts is None:
            arguments = {"input_ids": ids} if types is None else {"input_ids": ids, "token_type_ids": types}
            states = self.model(**arguments, attention_mask=mask.long()).last_hidden_state
        else:
            states = self._parts[1](inputs_embeds=states, attention_mask=mask.long()).last_hidden_state
        pooled = pool(states, self.settings.pooling, mask.to(states.dtype))
        added: torch.Tensor = self.outer(self.dropout(self.inner(pooled)))[:, 0]
        return added.float() + self.slope * prior

    @property
    def trained(self) -> dict[str, torch.nn.Parameter]:
        """The parameters that learn, by name."""
        return {name: value for name, value in self.named_parameters() if value.requires_grad}

    def with_frozen_output(self, inputs: Inputs) -> Inputs:
        """The inputs with the frozen layers' output; unchanged if it cannot be computed apart or exceeds _MOST_HELD."""
        size = int(self.model.config.hidden_size)
        if self._parts is None or int(inputs.lengths.sum()) * size * 4 > _MOST_HELD:
            return inputs
        states: list[torch.Tensor] = [torch.empty(0)] * len(inputs)
        with torch.no_grad():
            for rows in pretrained.similar_lengths(inputs.lengths, self.base.budget):
                arguments = self.base.batch(inputs, rows)
                segments = {"token_type_ids": arguments["types"]} if "types" in arguments else {}
                mask = arguments["mask"].long()
                output = self._parts[0](
                    input_ids=arguments["ids"], attention_mask=mask, **segments
                ).last_hidden_state
                for at, row in enumerate(rows.tolist()):
                    states[row] = output[at, : inputs.lengths[row]].cpu().clone()
        return replace(inputs, states=tuple(states))

    def weights(self) -> dict[str, NDArray[Any]]:
        """A copy of everything that was learned, as it is saved: adapters in float16, the rest in float32."""
        return {
            name: value.detach().cpu().numpy().astype(np.float16 if name.endswith((UP, DOWN)) else np.float32)
            for name, value in self.trained.items()
        }

    def take(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Load learned weights; EvaluatorError if their names or shapes are not those of this network."""
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

    def use_int8(self) -> None:
        """On the CPU, multiply whole numbers from now on (`layers.use_int8`). Adapters are merged into the weights, so
        that this network can then score, but not learn."""
        if not self._int8 and self.base.device.type == "cpu":
            self._int8 = True
            merge_adapters(self.model)
            use_int8(self.model)

    def rescale(self, slope: float, offset: float) -> None:
        """Replace every logit z by slope · z + offset."""
        with torch.no_grad():
            for value in (self.slope, self.outer.weight, self.outer.bias):
                value.mul_(slope)
            self.outer.bias.add_(offset)


def logits(net: CrossNet, inputs: Inputs) -> Floats:
    """Logits of all inputs, float64 (n,), computed in float32, in batches of inputs of similar length."""
    output = np.zeros(len(inputs))
    net.eval()
    with torch.inference_mode():
        if not net.outer.weight.any():  # the logit is the prior alone
            return inputs.prior.astype(np.float64) * float(net.slope) + float(net.outer.bias)
        for rows in pretrained.similar_lengths(inputs.lengths, net.base.budget):
            output[rows] = net(**net.base.batch(inputs, rows)).double().cpu().numpy()
    if not np.isfinite(output).all():
        raise EvaluatorError("a cross-encoder gives scores that are not finite; its weights are broken")
    return output


def sigmoid(values: Floats) -> Floats:
    """1 / (1 + exp(-x)), without overflow."""
    result: Floats = 0.5 * (1 + np.tanh(0.5 * values))
    return result
