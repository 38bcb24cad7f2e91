"""How likely a causal or a masked language model finds a response's tokens after its context."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import groupby
from typing import Any, ClassVar

import numpy as np

from ssrem.encoders.hub import USUAL_TOKENS, max_tokens, tokenizer_hash, weights_hash
from ssrem.errors import EvaluatorError
from ssrem.samples import Floats

# A batch holds at most so many padded tokens a sample: the logits, tokens × vocabulary, are most of the memory.
_TOKENS = 64
_REMEMBERED = 200_000


@dataclass(frozen=True)
class Tokens:
    """A response's tokens and those before it; truncated: whether some did not fit.

    opening: the last of the context's, which stand before the response whatever was said: its speaker's name.
    """

    context: tuple[int, ...]
    response: tuple[int, ...]
    truncated: bool = False
    opening: tuple[int, ...] = ()


class LanguageModel(ABC):
    """A tokenizer and a model, as `ssrem.encoders.hub.load` gives them, that say how likely a response is.

    A turn's tokens and a response's depend on that text alone, not on what stands beside it; what looks
    like a special token in a text ("[MASK]") is read as plain characters. name: for messages.
    """

    frame: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    """Special tokens before the context, between context and response, after the response."""
    ends_turns: ClassVar[bool]
    """Whether the separator also stands after the last turn, before the response."""

    def __init__(self, name: str, tokenizer: Any, model: Any) -> None:
        self.name = name
        self.tokenizer = tokenizer
        self.model = model
        self.device = model.device
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        self.longest = max_tokens(tokenizer, model) or USUAL_TOKENS
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        self._check()

    @cached_property
    def fingerprint(self) -> str:
        """Hashes of the weights and of the tokenizer."""
        return f"{weights_hash(self.model)}+{tokenizer_hash(self.tokenizer)}"

    def length(self, wanted: int | None) -> int:
        """How many tokens a sample may take; EvaluatorError for more than the model holds."""
        if wanted is None:
            return min(self.longest, USUAL_TOKENS)
        least = sum(map(len, self.frame)) + 1
        if not least <= wanted <= self.longest:
            raise EvaluatorError(
                f"max_length is {wanted}; {self.name} takes from {least} to {self.longest} tokens"
            )
        return wanted

    def tokens(
        self,
        samples: Sequence[tuple[Sequence[str], str]],
        *,
        separator: str,
        max_length: int | None,
        speakers: Sequence[str] = (),
    ) -> list[Tokens]:
        """Of (turns, response) pairs. Blank turns are left out, and blanks around a text.

        speakers: names that take turns before what is said ("A: hello"), the first of them at the response.
        Where all does not fit, the oldest tokens of the context are dropped first, then the response's last.
        """
        ids = cache(self._ids)
        opening = ids(f"{speakers[0]}:") if speakers else ()
        room = self.length(max_length) - sum(map(len, self.frame)) - len(opening)
        if room < 1:
            raise EvaluatorError(f"max_length is {max_length}: no room beside the speaker's name; give more")
        special = separator in self.tokenizer.all_special_tokens
        mark = (int(self.tokenizer.convert_tokens_to_ids(separator)),) if special else ()
        found = []
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
            bare = response.strip()
            said = ids(f" {bare}" if speakers and bare else bare)
            kept = said[:room]
            first = max(len(context) + len(kept) - room, 0)
            truncated = first > 0 or len(kept) < len(said)
            found.append(Tokens((*context[first:], *opening), kept, truncated, opening))
        return found

    def log_likelihoods(self, items: Sequence[Tokens], batch_size: int) -> Floats:
        """Sum of the log-probabilities (natural) of each response's tokens, float64 (n,); 0 for no token.

        The latest are remembered: evaluators that share a model, and folds that share samples, pay once.
        """
        keys = [(item.context, item.response) for item in items]
        if len(self._known) > _REMEMBERED:
            self.forget()
        new = {key: item for key, item in zip(keys, items, strict=True) if key not in self._known}
        found = self._log_likelihoods(list(new.values()), batch_size)
        self._known.update(zip(new, found.tolist(), strict=True))
        return np.array([self._known[key] for key in keys], dtype=np.float64)

    def forget(self) -> None:
        """Compute anew what has been asked before."""
        self._known.clear()

    @abstractmethod
    def _log_likelihoods(self, items: Sequence[Tokens], batch_size: int) -> Floats:
        """The same, computed."""

    @abstractmethod
    def _check(self) -> None:
        """Set `frame`; EvaluatorError where the model or its tokenizer is not of the right kind."""

    def _ids(self, text: str) -> tuple[int, ...]:
        encoded = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)
        return tuple(encoded["input_ids"])

    def _forward(self, rows: Sequence[Sequence[int]], *, before: int = 0, **options: Any) -> Any:
        """Logits of padded rows. Padding stands at the right and is masked, so positions count from the left.

        before: how many tokens the model has read already.
        """
        import torch

        pad = self.tokenizer.pad_token_id or 0
        width = max(map(len, rows))
        ids = torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows], device=self.device)
        seen = [[1] * (before + len(row)) + [0] * (width - len(row)) for row in rows]
        mask = torch.tensor(seen, device=self.device)
        with torch.inference_mode():
            return self.model(input_ids=ids, attention_mask=mask, **options).logits


class CausalModel(LanguageModel):
    """log p(token | all before it). The first token stands after the tokenizer's begin-of-text token, or,
    where it has none (GPT-2), its end-of-text token, which then begins every text."""

    ends_turns: ClassVar[bool] = True

    def _log_likelihoods(self, items: Sequence[Tokens], batch_size: int) -> Floats:
        result = np.zeros(len(items))
        groups: dict[tuple[int, ...], list[int]] = {}
        for at, item in enumerate(items):
            groups.setdefault(item.context, []).append(at)
        alone = []
        for context, rows in groups.items():
            if not context or len(rows) == 1:
                alone += rows
                continue
            found = self._after(context, [items[row].response for row in rows], batch_size)
            if found is None:
                alone += rows
            else:
                result[rows] = found
        result[alone] = self._whole([items[row] for row in alone], batch_size)
        return result

    def _after(
        self, context: tuple[int, ...], responses: Sequence[tuple[int, ...]], batch_size: int
    ) -> Floats | None:
        """Of responses to one context, which the model reads once; None for a model that cannot go on from it."""
        import copy

        import torch

        prefix = (*self.frame[0], *context)
        options = {"logits_to_keep": 1} if self._keeps else {}
        with torch.inference_mode():
            read = self.model(input_ids=torch.tensor([prefix], device=self.device), use_cache=True, **options)
        cache: Any = getattr(read, "past_key_values", None)
        if not hasattr(cache, "batch_repeat_interleave"):
            return None
        result = np.zeros(len(responses))
        for batch in batches([len(response) for response in responses], batch_size):
            said = [responses[row] for row in batch]
            firsts = read.logits[0, -1:].expand(len(said), -1)
            rest = None
            if len(said[0]) > 1:  # the longest comes first
                again = copy.deepcopy(cache)
                again.batch_repeat_interleave(len(said))
                rest = self._forward(
                    [response[:-1] or response for response in said],
                    before=len(prefix),
                    past_key_values=again,
                )
            for at, (row, response) in enumerate(zip(batch, said, strict=True)):
                result[row] = _log_p(firsts[at : at + 1], response[:1]).sum()
                if rest is not None and len(response) > 1:
                    result[row] += _log_p(rest[at, : len(response) - 1], response[1:]).sum()
        return result

    @cached_property
    def _keeps(self) -> bool:
        """Whether the model can be asked for some of the logits alone."""
        return "logits_to_keep" in inspect.signature(self.model.forward).parameters

    def _whole(self, items: Sequence[Tokens], batch_size: int) -> Floats:
        """Context and response in one pass."""
        import torch

        result = np.zeros(len(items))
        rows = [(*self.frame[0], *item.context, *item.response) for item in items]
        starts = [len(row) - len(item.response) for row, item in zip(rows, items, strict=True)]
        lengths = [len(row) if item.response else 0 for row, item in zip(rows, items, strict=True)]
        for batch in batches(lengths, batch_size):
            first, last = min(starts[row] for row in batch) - 1, max(lengths[row] for row in batch) - 1
            # Logits over a large vocabulary are dear: only where some row of the batch has its response.
            kept = torch.arange(first, last, device=self.device)
            options: dict[str, Any] = {"logits_to_keep": kept} if self._keeps else {}
            logits = self._forward([rows[row] for row in batch], use_cache=False, **options)
            logits = logits if self._keeps else logits[:, first:last]
            for at, row in enumerate(batch):
                response = items[row].response
                there = starts[row] - 1 - first
                result[row] = _log_p(logits[at, there : there + len(response)], response).sum()
        return result

    def _check(self) -> None:
        # An encoder loads as a causal model without complaint, and then sees the tokens it is to predict.
        one, other = self._forward([[0, 1], [0, 2]])[:, 0].double().cpu().numpy()
        if not np.allclose(one, other, atol=1e-4):
            raise EvaluatorError(
                f"{self.name} is no causal language model, it sees later tokens; name one such as gpt2"
            )
        begin = self.tokenizer.bos_token_id
        begin = self.tokenizer.eos_token_id if begin is None else begin
        if begin is None:
            raise EvaluatorError(
                f"{self.name}: its tokenizer has neither a begin- nor an end-of-text token, so a first word has "
                "no probability; name another causal model"
            )
        self.frame = ((int(begin),), (), ())


class MaskedModel(LanguageModel):
    """log p(token | all others): each response token masked in turn (Salazar et al. 2020), context and
    response framed as the tokenizer frames a pair."""

    ends_turns: ClassVar[bool] = False

    def _log_likelihoods(self, items: Sequence[Tokens], batch_size: int) -> Floats:
        result = np.zeros(len(items))
        before, between, after = self.frame
        lengths = [sum(map(len, self.frame)) + len(item.context) + len(item.response) for item in items]
        copies = [(at, token) for at, item in enumerate(items) for token in range(len(item.response))]
        log_p = np.zeros(len(copies))
        for batch in batches([lengths[at] for at, _ in copies], batch_size):
            rows, types, places, targets = [], [], [], []
            for at, token in (copies[copy] for copy in batch):
                context, response = items[at].context, items[at].response
                head = (*before, *context, *between)
                masked = (*response[:token], self.tokenizer.mask_token_id, *response[token + 1 :])
                rows.append((*head, *masked, *after))
                types.append([0] * len(head) + [1] * (len(masked) + len(after)))
                places.append(len(head) + token)
                targets.append(response[token])
            logits = self._forward(rows, **self._token_types(types))
            log_p[batch] = _log_p(logits[range(len(batch)), places], targets)
        np.add.at(result, [at for at, _ in copies], log_p)
        return result

    def _check(self) -> None:
        if self.tokenizer.mask_token_id is None:
            raise EvaluatorError(
                f"{self.name}: its tokenizer has no mask token; name a masked language model "
                "such as bert-base-uncased"
            )
        pair = self.tokenizer("a", "b", return_special_tokens_mask=True)
        runs = [
            (bool(special), tuple(token for _, token in run))
            for special, run in groupby(
                zip(pair["special_tokens_mask"], pair["input_ids"], strict=True), key=lambda at: at[0]
            )
        ]
        if [special for special, _ in runs] != [True, False, True, False, True]:
            raise EvaluatorError(
                f"{self.name}: its tokenizer does not frame a pair of texts; name a masked language model "
                "such as bert-base-uncased"
            )
        self.frame = (runs[0][1], runs[2][1], runs[4][1])

    def _token_types(self, types: list[list[int]]) -> dict[str, Any]:
        """Segment 0 for the context and 1 for the response, where the model tells them apart."""
        if "token_type_ids" not in self.tokenizer.model_input_names:
            return {}
        import torch

        width = max(map(len, types))
        padded = [[*row, *[0] * (width - len(row))] for row in types]
        return {"token_type_ids": torch.tensor(padded, device=self.device)}


def batches(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Positions of what has a length, the longest first, at most `batch_size` at once and fewer where long."""
    batch: list[int] = []
    for at in sorted(range(len(lengths)), key=lambda at: (-lengths[at], at)):
        if not lengths[at]:
            continue
        if batch and (
            len(batch) == batch_size or lengths[batch[0]] * (len(batch) + 1) > batch_size * _TOKENS
        ):
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def uniform(vocabulary: int) -> float:
    """log-probability of a token under no knowledge at all."""
    return -math.log(vocabulary)


def _log_p(logits: Any, targets: Sequence[int]) -> Floats:
    """log-probability of targets (k,) under logits (k, vocabulary), float64 (k,)."""
    import torch

    logits = logits.float()
    wanted = torch.tensor(targets, device=logits.device)[:, None]
    log_p = logits.gather(1, wanted)[:, 0].double() - logits.logsumexp(dim=1).double()
    found: Floats = log_p.cpu().numpy()
    return found
