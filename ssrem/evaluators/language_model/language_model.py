"""Log-likelihood of a response after its context under a causal or a masked language model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from ssrem.encoders.pretrained import USUAL_TOKENS, Pretrained, plain_tokens
from ssrem.errors import EvaluatorError
from ssrem.samples import Floats

# Padded tokens in a batch for each of `batch_size`, which bound the logits (tokens × vocabulary); and samples in it,
# which bound the copies of a context's cache.
_TOKENS, _ROWS = 64, 4
# Rows of logits whose sum of exponentials is computed at once: few, so that the memory is reused, not mapped anew.
_CHUNK = 8
_REMEMBERED = 200_000


@dataclass(frozen=True)
class Tokens:
    """A response's tokens and the context's. truncated: whether some were dropped because they did not fit.

    opening: the context's last tokens, the name of the response's speaker, which are never dropped.
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

    kind: ClassVar[str]
    """What such a model is called in messages."""
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
            self._check()

    def length(self, wanted: int | None) -> int:
        """How many tokens a sample may have; EvaluatorError for more than the model takes."""
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
        """The tokens of (turns, response) pairs, without blank turns and without blanks around a text.

        speakers: names that alternate before the turns ("A: hello"), counted back from the response, which gets the
        first name. If a sample is too long, the context's oldest tokens are dropped first, then the response's last.
        """
        ids = cache(self._ids)
        opening = ids(f"{speakers[0]}:") if speakers else ()
        room = self.length(max_length) - sum(map(len, self.frame)) - len(opening)
        if room < 1:
            raise EvaluatorError(
                f"max_length is {max_length}: there is no room beside the speaker's name; increase it"
            )
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
            bare = response.strip()
            spoken_ids = ids(f" {bare}" if speakers and bare else bare)
            fitting = spoken_ids[:room]
            first = max(len(context) + len(fitting) - room, 0)
            truncated = first > 0 or len(fitting) < len(spoken_ids)
            result.append(Tokens((*context[first:], *opening), fitting, truncated, opening))
        return result

    def log_likelihoods(self, items: Sequence[Tokens], batch_size: int) -> Floats:
        """Sum of the natural log-probabilities of each response's tokens, float64 (n,); 0 for a response without one.

        Recent results are cached, for evaluators that share a model and folds that share samples.
        """
        import torch

        keys = [(item.context, item.response) for item in items]
        if len(self._known) > _REMEMBERED:
            self.forget()
        new = {key: item for key, item in zip(keys, items, strict=True) if key not in self._known}
        with torch.inference_mode(), self.precision():
            sums = self._log_likelihoods(list(new.values()), batch_size)
        self._known.update(zip(new, sums.tolist(), strict=True))
        return np.array([self._known[key] for key in keys], dtype=np.float64)

    def forget(self) -> None:
        """Drop the cached results."""
        self._known.clear()

    @abstractmethod
    def _log_likelihoods(self, items: Sequence[Tokens], batch_size: int) -> Floats:
        """`log_likelihoods` without the cache."""

    @abstractmethod
    def _check(self) -> None:
        """Set `frame`; EvaluatorError if the model or its tokenizer is of the wrong kind."""

    def _ids(self, text: str) -> tuple[int, ...]:
        return tuple(plain_tokens(self.tokenizer, text)["input_ids"])

    def _padded(self, rows: Sequence[Sequence[int]], value: int = 0) -> Any:
        """The rows as one tensor, padded at the right."""
        import torch

        width = max(map(len, rows))
        return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows], device=self.device)

    def _log_p(
        self,
        rows: Sequence[Sequence[int]],
        starts: Sequence[int],
        targets: Sequence[Sequence[int]],
        **options: Any,
    ) -> Floats:
        """Sum over each row's targets of their log-probabilities at its positions from `starts` on, float64 (rows,)."""
        counts = [len(wanted) for wanted in targets]
        places = [(at, start + i) for at, start in enumerate(starts) for i in range(counts[at])]
        log_p = _log_p(
            self.logits(rows, places, **options), [token for wanted in targets for token in wanted]
        )
        sums = np.zeros(len(rows))
        np.add.at(sums, np.repeat(np.arange(len(rows)), counts), log_p)
        return sums

    def logits(
        self,
        rows: Sequence[Sequence[int]],
        places: Sequence[tuple[int, int]],
        *,
        before: int = 0,
        **options: Any,
    ) -> Any:
        """Logits (places, vocabulary) at these places, a row and a position in it, of rows that are padded and masked.

        before: how many tokens the model already read. Over a large vocabulary the model's last layer costs more than
        all others, so it gets the hidden states of those places only.
        """
        import torch

        ids = self._padded(rows, self.tokenizer.pad_token_id or 0)
        mask = self._padded([[1] * (before + len(row)) for row in rows])
        at = tuple(torch.tensor(places, device=self.device).T)
        chosen: list[Any] = []

        def choose(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            chosen.append(inputs[0][at][None])
            return (chosen[0], *inputs[1:])

        hook = self.model.get_output_embeddings().register_forward_pre_hook(choose)
        try:
            logits = self.model(input_ids=ids, attention_mask=mask, **options).logits
        finally:
            hook.remove()
        # Some models multiply by the last layer's weights themselves: then the layer was not called.
        return logits[0] if chosen else logits[at]


def batches(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """Positions of items with a length above 0, longest first, in batches of similar lengths.

    A batch is one item, or has at most `batch_size` × 64 tokens with padding and `batch_size` × 4 items.
    """
    batch: list[int] = []
    for at in sorted(range(len(lengths)), key=lambda at: (-lengths[at], at)):
        if not lengths[at]:
            continue
        if batch and (
            len(batch) == batch_size * _ROWS or lengths[batch[0]] * (len(batch) + 1) > batch_size * _TOKENS
        ):
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def _log_p(logits: Any, targets: Sequence[int]) -> Floats:
    """Log-probabilities of targets (k,) under logits (k, vocabulary), float64 (k,)."""
    import torch

    chosen = logits.gather(1, torch.tensor(targets, device=logits.device)[:, None])[:, 0]
    totals = torch.cat([chunk.float().logsumexp(dim=1) for chunk in logits.split(_CHUNK)])
    log_p = chosen.double() - totals.double()
    return np.asarray(log_p.cpu().numpy())
