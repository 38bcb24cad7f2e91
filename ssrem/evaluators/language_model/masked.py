"""Log-likelihood of a response under a masked language model, which reads both sides of a token."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar

import numpy as np

from ssrem.errors import EvaluatorError
from ssrem.evaluators.language_model.language_model import LanguageModel, Tokens, batches
from ssrem.samples import Floats


class MaskedModel(LanguageModel):
    """log p(token | all other tokens): each response token is masked in turn (Salazar et al. 2020).

    Context and response are framed as the tokenizer frames a pair of texts.
    """

    auto_class: ClassVar[str] = "AutoModelForMaskedLM"
    kind: ClassVar[str] = "masked"
    ends_turns: ClassVar[bool] = False

    def _log_likelihoods(self, items: Sequence[Tokens], batch_size: int) -> Floats:
        result = np.zeros(len(items))
        before, between, after = self.frame
        lengths = [sum(map(len, self.frame)) + len(item.context) + len(item.response) for item in items]
        copies = [(at, token) for at, item in enumerate(items) for token in range(len(item.response))]
        log_p = np.zeros(len(copies))
        segments = "token_type_ids" in self.tokenizer.model_input_names  # 0: the context, 1: the response
        for batch in batches([lengths[at] for at, _ in copies], batch_size):
            rows, types, starts, targets = [], [], [], []
            for at, token in (copies[copy] for copy in batch):
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
