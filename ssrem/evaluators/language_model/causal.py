"""Log-likelihood of a response under a causal language model, which reads from left to right."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ssrem.errors import EvaluatorError
from ssrem.evaluators.language_model.language_model import LanguageModel, Tokens, batches
from ssrem.samples import Floats


class CausalModel(LanguageModel):
    """log p(token | all tokens before it).

    Every text starts with the tokenizer's begin-of-text token, or its end-of-text token if it has no other (GPT-2).
    """

    auto_class: ClassVar[str] = "AutoModelForCausalLM"
    kind: ClassVar[str] = "causal"
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
        result[single] = self._whole([items[row] for row in single], batch_size)
        return result

    def _after(
        self, context: tuple[int, ...], responses: Sequence[tuple[int, ...]], batch_size: int
    ) -> Floats | None:
        """Log-likelihoods of responses to one context, which is read once; None if the model cannot reuse its cache."""
        import torch

        prefix = (*self.frame[0], *context)
        result = np.zeros(len(responses))
        read = self.model(input_ids=torch.tensor([prefix], device=self.device), use_cache=True, **self._last)
        cache: Any = getattr(read, "past_key_values", None)
        if not hasattr(cache, "batch_repeat_interleave"):
            return None
        first = read.logits[0, -1].double().log_softmax(dim=0).cpu().numpy()
        for batch in batches([len(response) for response in responses], batch_size):
            batched = [responses[row] for row in batch]
            result[batch] = first[[response[0] for response in batched]]
            if len(batched[0]) > 1:  # the longest comes first
                copied = copy.deepcopy(cache)
                copied.batch_repeat_interleave(len(batched))
                inputs = [response[:-1] or response for response in batched]
                rest = [response[1:] for response in batched]
                options = {"before": len(prefix), "past_key_values": copied}
                result[batch] += self._log_p(inputs, [0] * len(batch), rest, **options)
        return result

    @cached_property
    def _last(self) -> dict[str, Any]:
        """The option by which the model computes the last position's logits only, if it has it."""
        known = inspect.signature(self.model.forward).parameters
        return {"logits_to_keep": 1} if "logits_to_keep" in known else {}

    def _whole(self, items: Sequence[Tokens], batch_size: int) -> Floats:
        """Log-likelihoods of items whose context and response the model reads in one pass."""
        result = np.zeros(len(items))
        rows = [(*self.frame[0], *item.context, *item.response) for item in items]
        lengths = [len(row) if item.response else 0 for row, item in zip(rows, items, strict=True)]
        for batch in batches(lengths, batch_size):
            targets = [items[row].response for row in batch]
            starts = [lengths[row] - len(wanted) - 1 for row, wanted in zip(batch, targets, strict=True)]
            result[batch] = self._log_p([rows[row] for row in batch], starts, targets, use_cache=False)
        return result

    def _check(self) -> None:
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
        self.frame = ((int(begin),), (), ())
