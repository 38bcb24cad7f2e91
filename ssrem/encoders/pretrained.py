"""Loads transformer models with their tokenizers, and identifies their weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders.hub import BF16, INT8, local_folder, quiet, without_form
from ssrem.errors import EvaluatorError, one_line

USUAL_TOKENS = 512
"""How many tokens of a text are read if neither the model nor its tokenizer has a limit."""

# transformers writes 1e30 for a tokenizer without a limit.
_UNLIMITED = 1e9


def load(
    spec: str, auto_class: str | type[Any], *, device: str | None = None, new_weights: bool = False
) -> tuple[Any, Any]:
    """Load the tokenizer and the model of `spec`; the model is in eval mode and float32.

    device: as for `pick_device`; for "map", accelerate spreads the layers over all GPUs.
    auto_class: a class with `from_pretrained`, or the name of one in transformers, such as "AutoModel".
    new_weights: whether parameters that the checkpoint lacks are drawn at random, as for a head that will be trained
    (by torch's generator: seed it first); otherwise missing parameters raise EvaluatorError, except those of a pooler.
    Only safetensors are read, and code that comes with the model does not run. Every failure to load raises an
    EvaluatorError of one line.
    """
    import transformers
    from torch import float32

    from ssrem.encoders.layers import use_onednn

    mapped = device == "map"
    target = pick_device(None if mapped else device)
    options = {"dtype": float32} | ({"device_map": "auto"} if mapped else {})
    folder = local_folder(spec)
    model_class: Any = getattr(transformers, auto_class) if isinstance(auto_class, str) else auto_class
    try:
        with quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
            model, report = model_class.from_pretrained(
                folder, use_safetensors=True, trust_remote_code=False, output_loading_info=True, **options
            )
    except Exception as error:  # a damaged model raises any of a dozen types
        raise EvaluatorError(
            f"model {spec!r}: {folder} cannot be loaded ({one_line(error)}); "
            "it needs config.json, the tokenizer's files and complete *.safetensors"
        ) from error
    missing = sorted(key for key in report["missing_keys"] if "pooler." not in key)
    if missing and not new_weights:
        raise EvaluatorError(
            f"model {spec!r}: its weights lack {len(missing)} parameters of {type(model).__name__} "
            f"({', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}); name a model that was trained for this"
        )
    if len(missing) < len(report["missing_keys"]) and hasattr(model, "pooler"):
        model.pooler = None  # its random weights would change the hash of the weights
    size = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > size:
        raise EvaluatorError(
            f"model {spec!r}: the tokenizer knows {len(tokenizer)} tokens, the weights {size}; "
            "they belong to different models, copy both from one"
        )
    used = set(map(str, getattr(model, "hf_device_map", {}).values()))
    if len(used) > 1 and used & {"cpu", "disk"}:
        raise EvaluatorError(
            f"model {spec!r}: does not fit the GPUs; name a smaller model, or use device=cpu"
        )
    use_onednn(model)
    return tokenizer, (model if mapped else model.to(target)).eval()


def pick_device(name: str | None = None) -> Any:
    """The torch.device of that name; for None or "auto" the first available of cuda, mps and cpu."""
    import torch

    if name is None or name == "auto":
        mps = "mps" if torch.backends.mps.is_available() else "cpu"
        return torch.device("cuda" if torch.cuda.is_available() else mps)
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise EvaluatorError(
            f"device {name!r} cannot be used ({one_line(error)}); use auto, cpu, cuda or mps"
        ) from error
    return device


def max_tokens(tokenizer: Any, model: Any) -> int | None:
    """The most tokens that the model takes, including those that the tokenizer adds; None if neither has a limit."""
    limits = [tokenizer.model_max_length]
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is not None and positions > 0:
        # RoBERTa and its relatives number positions from the one after the padding index.
        tables = (part for name, part in model.named_modules() if name.endswith("position_embeddings"))
        padding = next((getattr(table, "padding_idx", None) for table in tables), None)
        limits.append(positions if padding is None else positions - padding - 1)
    return min((int(limit) for limit in limits if limit is not None and limit < _UNLIMITED), default=None)


def token_ids(tokenizer: Any, texts: Sequence[str], max_length: int | None = None) -> list[list[int]]:
    """Each text's token ids, with the tokens that the tokenizer adds, cut to `max_length` if it is not None."""
    with quiet():
        ids: list[list[int]] = tokenizer(
            _utf8(texts), truncation=max_length is not None, max_length=max_length, padding=False
        )["input_ids"]
    return ids


def plain_tokens(tokenizer: Any, text: str | Sequence[str], **options: Any) -> Any:
    """The tokenizer's output for `text` without special tokens: none is added, and text that looks like one, such as
    "[MASK]", is read as plain characters."""
    clean = _utf8([text])[0] if isinstance(text, str) else _utf8(text)
    return tokenizer(clean, add_special_tokens=False, split_special_tokens=True, verbose=False, **options)


def _utf8(texts: Sequence[str]) -> list[str]:
    """The texts with "?" in place of unpaired surrogates, which UTF-8 and therefore the tokenizer cannot represent."""
    return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]


def equal_lengths(ids: Sequence[Sequence[int]], tokens: int) -> Iterator[NDArray[np.int64]]:
    """Positions of texts with equally many token ids, in batches of at most `tokens` tokens, short texts first.

    Without padding, a text's vectors do not depend on the other texts of its batch. A text without tokens is skipped.
    """
    lengths = np.array([len(text) for text in ids], dtype=np.int64)
    for length in np.unique(lengths[lengths > 0]):
        rows, step = np.flatnonzero(lengths == length), max(1, tokens // int(length))
        yield from (rows[start : start + step] for start in range(0, len(rows), step))


def similar_lengths(
    lengths: NDArray[np.int64], tokens: int, texts: int | None = None
) -> Iterator[NDArray[np.int64]]:
    """Batches of positions of texts of similar length, longest texts first. A batch has at most `tokens` tokens with
    padding and at most `texts` texts, but at least one text. A text without tokens is skipped."""
    order = np.argsort(-lengths, kind="stable")[: np.count_nonzero(lengths)]
    start = 0
    while start < len(order):
        size = max(1, tokens // int(lengths[order[start]]))
        stop = start + min(size, texts or size)
        yield order[start:stop]
        start = stop


def weights_hash(model: Any) -> str:
    """12 hex digits of the sha256 over the names, types, shapes and bytes of the state dict, sorted by name."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:12]


def tokenizer_hash(tokenizer: Any) -> str:
    """8 hex digits of the sha256 over what determines a text's tokens: vocabulary, rules and special tokens."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        content: Any = [type(tokenizer).__name__, sorted(tokenizer.get_vocab().items())]
    else:
        content = json.loads(backend.to_str())
        for setting in ("truncation", "padding"):  # of the last call, not properties of the tokenizer
            content.pop(setting, None)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]


class Pretrained:
    """A tokenizer and a model, as `load` returns them. name: for messages. mixed: whether products are in bfloat16."""

    auto_class: ClassVar[str]
    """The name of the transformers class that loads the model."""
    _in_use: ClassVar[WeakValueDictionary[tuple[Any, ...], Any]] = WeakValueDictionary()

    def __init__(self, name: str, tokenizer: Any, model: Any, *, mixed: bool = False) -> None:
        self.name, self.tokenizer, self.model, self.mixed = name, tokenizer, model, mixed
        self.longest = max_tokens(tokenizer, model) or USUAL_TOKENS

    @classmethod
    def shared(cls, spec: str, device: str | None = None, *, name: str = "") -> Self:
        """The model that `spec` names, loaded once for all that use it at the same time, and again if its files change.

        A spec may end with `BF16` or `INT8`.
        """
        bare, form = without_form(spec)
        files = [(file.name, file.stat()) for file in sorted(Path(bare).glob("*"))]
        key = (cls, spec, device, *((name, stat.st_size, stat.st_mtime_ns) for name, stat in files))
        held: Self | None = cls._in_use.get(key)
        if held is None:
            loaded = load(bare, cls.auto_class, device=device)
            held = cls._in_use[key] = cls(name or spec, *loaded, mixed=form == BF16)
            if form == INT8 and not held.model.config.is_encoder_decoder:  # which encoders refuse
                from ssrem.encoders.layers import use_int8

                use_int8(held.model)
        return held

    def precision(self) -> Any:
        """A context for calls of the model, in which products are in bfloat16 if `mixed`."""
        import torch

        return torch.autocast(self.model.device.type, torch.bfloat16, enabled=self.mixed)

    def round_weights(self) -> None:
        """Round the weights of all linear maps to bfloat16 once. `precision` would round them in every call, which for
        a large vocabulary takes as long as the product. A matrix that is also an embedding stays unrounded there."""
        import torch
        from transformers.pytorch_utils import Conv1D

        _ = self.hashes  # computed now, from the weights as they were loaded
        for part in self.model.modules():
            if isinstance(part, torch.nn.Linear | Conv1D):
                for name, value in part.named_parameters(recurse=False):
                    setattr(part, name, torch.nn.Parameter(value.detach().bfloat16(), requires_grad=False))

    @cached_property
    def hashes(self) -> tuple[str, str]:
        """The hashes of the weights and of the tokenizer."""
        return weights_hash(self.model), tokenizer_hash(self.tokenizer)
