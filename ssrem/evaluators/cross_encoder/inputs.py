"""The transformer of a cross-encoder before training, and what it reads of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssrem.encoders import hub, pretrained
from ssrem.errors import EvaluatorError
from ssrem.evaluators.baselines import Cosine
from ssrem.evaluators.cross_encoder.config import CrossEncoderConfig
from ssrem.samples import Rows, Sample


@dataclass(frozen=True)
class Inputs:
    """n samples as the network reads them.

    ids: tokens. first (n,): number of tokens before the response. prior, float32 (n,): cosines, 0 without a prior.
    truncated (n,): whether tokens were left out. states: the frozen layers' output for each sample, float32 (tokens, d)
    on the CPU; None: it is computed whenever it is needed.
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
        """Tokens of each sample, int64 (n,)."""
        return np.array([len(row) for row in self.ids], dtype=np.int64)

    def part(self, rows: Rows) -> Inputs:
        """The samples at `rows`."""
        ids = tuple(self.ids[row] for row in rows.tolist())
        states = self.states and tuple(self.states[row] for row in rows.tolist())
        return Inputs(ids, self.first[rows], self.prior[rows], self.truncated[rows], states)


class Base:
    """A transformer before training: tokenizer, weights, and the cosine of its sentence vectors.

    folder: its folder; None: as `config.model` says. named: whether it can be loaded again by name. Training does not
    change it.
    """

    def __init__(self, name: str, config: CrossEncoderConfig, folder: Path | None = None) -> None:
        spec = str(folder) if folder else config.model
        plain = spec.removeprefix("hf:")
        self.folder = hub.local_folder(spec)
        self.named = folder is None and (plain == hub.MINILM or not Path(hub.model_folder(spec)).is_dir())
        self.cosine: Cosine | None = None
        if config.prior == "cosine":
            self.cosine = Cosine(encoder=plain if plain == hub.MINILM else f"hf:{plain}")
            encoder: Any = self.cosine.encoder
            self.tokenizer, self.model = encoder.tokenizer, encoder.model
            self.model.to(pretrained.pick_device(config.device))
        else:
            self.tokenizer, self.model = pretrained.load(spec, "AutoModel", device=config.device)
        self.turns, self.max_tokens = config.context_turns, config.max_tokens
        self.frame = _frame(name, config.model, self.tokenizer)
        longest = pretrained.max_tokens(self.tokenizer, self.model) or pretrained.USUAL_TOKENS
        least = sum(map(len, self.frame)) + 1
        if not least <= config.max_tokens <= longest:
            raise EvaluatorError(
                f"{name}: max_tokens is {config.max_tokens}; {config.model} takes from {least} to {longest}"
            )
        self.typed = getattr(self.model.config, "type_vocab_size", 0) > 1

    @property
    def device(self) -> torch.device:
        """The device that the transformer is on."""
        device: torch.device = self.model.device
        return device

    @cached_property
    def fingerprint(self) -> str:
        """Hashes of the weights and of the tokenizer."""
        return f"{pretrained.weights_hash(self.model)}+{pretrained.tokenizer_hash(self.tokenizer)}"

    def read(self, samples: Sequence[Sample]) -> Inputs:
        """[CLS] turn [SEP] … turn [SEP] response [SEP] with the last turns that are not blank.

        Of a sample that is too long, the oldest tokens of the context are dropped first, then the response's last ones.
        """
        before, between, after = self.frame
        room = self.max_tokens - len(before) - len(between) - len(after)
        ids = self._ids(samples)
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
            output = self.cosine.compute(samples)
            prior, truncated = output.f.astype(np.float32), truncated | output.truncated
        return Inputs(tuple(rows), first, prior, truncated)

    def batch(self, inputs: Inputs, rows: Rows) -> dict[str, torch.Tensor]:
        """The arguments of `CrossNet`, padded at the right to the longest of `rows`."""
        width = int(inputs.lengths[rows].max())
        place = np.arange(width)
        mask = place < inputs.lengths[rows, None]
        ids = np.full((len(rows), width), self.tokenizer.pad_token_id or 0, dtype=np.int64)
        for at, row in enumerate(rows.tolist()):
            ids[at, : inputs.lengths[row]] = inputs.ids[row]
        arrays: dict[str, NDArray[Any]] = {"ids": ids, "mask": mask, "prior": inputs.prior[rows]}
        if self.typed:
            arrays["types"] = (mask & (place >= inputs.first[rows, None])).astype(np.int64)
        output = {name: torch.from_numpy(array) for name, array in arrays.items()}
        if inputs.states is not None:
            held = [inputs.states[row] for row in rows.tolist()]
            output["states"] = torch.nn.utils.rnn.pad_sequence(held, batch_first=True)
        return {name: tensor.to(self.device) for name, tensor in output.items()}

    def _ids(self, samples: Sequence[Sample]) -> dict[str, list[int]]:
        """Text → its tokens; a special token written in a text is read as plain characters."""
        texts = list(dict.fromkeys(t for s in samples for t in (*s.last_turns(self.turns), s.response)))
        if not texts:
            return {}
        # The tokenizer works on UTF-8, which cannot express half a surrogate pair.
        known = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        with hub.quiet():
            output = self.tokenizer(
                known, add_special_tokens=False, split_special_tokens=True, padding=False, truncation=False,
                verbose=False,
            )["input_ids"]  # fmt: skip
        return dict(zip(texts, output, strict=True))


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
