"""A masked language model as mask-and-fill uses it: tokens of a text, and predictions at masks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders import pretrained
from ssrem.errors import EvaluatorError
from ssrem.samples import Floats

if TYPE_CHECKING:
    import torch

_TOKENS_AT_ONCE = 8192
_UNUSED = re.compile(r"\[unused\d+\]|<unused\d+>")
_SPACE_MARKS = ("\u0120", "\u2581")
# Maps each model type whose head can be applied to the masked positions alone to the name of the head: applied to all
# positions, it costs as much as the layers below it.
_HEADS = {"bert": "cls", "roberta": "lm_head", "xlm-roberta": "lm_head", "camembert": "lm_head"}


@dataclass(frozen=True)
class Pieces:
    """A text as the model reads it. ids: its token ids. spans: each token's start and stop in the text, without blanks.

    usable: whether the token can be replaced: it is known and shares no character with another token.
    """

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    usable: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Vocabulary:
    """How each token is written in a text: its characters, and whether it starts a word.

    writable (v,): whether it may be written into a text: no special token, not blank, no half of a character.
    """

    texts: tuple[str, ...]
    starts_word: tuple[bool, ...]
    writable: NDArray[np.bool_]


class MaskedLM(pretrained.Pretrained):
    """Predicts masked tokens: their log-probabilities and logits.

    A forward pass holds rows of one response only, all of equal length and without padding, so that a probability
    depends neither on other responses nor on the batch size.
    """

    auto_class: ClassVar[str] = "AutoModelForMaskedLM"

    def __init__(self, name: str, tokenizer: Any, model: Any, *, mixed: bool = False) -> None:
        if not getattr(tokenizer, "is_fast", False) or tokenizer.mask_token_id is None:
            raise EvaluatorError(
                f"{name}: its tokenizer has no mask token or gives no positions of tokens in a text; "
                "name a BERT or RoBERTa model with tokenizer.json"
            )
        super().__init__(name, tokenizer, model, mixed=mixed)
        if mixed:
            self.round_weights()
        self.mask: int = tokenizer.mask_token_id
        self.start: int = tokenizer.cls_token_id
        self.end: int = tokenizer.sep_token_id

    @cached_property
    def lower_cased(self) -> bool:
        """Whether the model reads every text in lower case."""
        return self.pieces("A").ids == self.pieces("a").ids

    def pieces(self, text: str) -> Pieces:
        """The tokens of `text`."""
        encoded = pretrained.plain_tokens(self.tokenizer, text, return_offsets_mapping=True)
        ids = tuple(encoded["input_ids"])
        spans = tuple(_trim(text, start, stop) for start, stop in encoded["offset_mapping"])
        special = set(self.tokenizer.all_special_ids)
        usable = tuple(
            id_ not in special
            and stop > start
            and (i == 0 or spans[i - 1][1] <= start)
            and (i + 1 == len(spans) or stop <= spans[i + 1][0])
            for i, (id_, (start, stop)) in enumerate(zip(ids, spans, strict=True))
        )
        return Pieces(ids, spans, usable)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """All tokens of the model, in order of id."""
        size = int(self.model.get_input_embeddings().weight.shape[0])
        known = self.tokenizer.convert_ids_to_tokens(list(range(len(self.tokenizer))))
        tokens: list[str] = [token or "" for token in known]
        tokens += [""] * (size - len(tokens))
        marks = [mark for mark in _SPACE_MARKS if any(token.startswith(mark) for token in tokens)]
        if marks:
            texts = [self.tokenizer.convert_tokens_to_string([t]).strip() if t else "" for t in tokens]
            starts = [token.startswith(marks[0]) for token in tokens]
        else:
            texts = [token.removeprefix("##") if len(token) > 2 else token for token in tokens]
            starts = [not (token.startswith("##") and len(token) > 2) for token in tokens]
        special = set(self.tokenizer.all_special_tokens)
        writable = np.array(
            [
                bool(text) and text.isprintable() and "\ufffd" not in text and token not in special
                and not _UNUSED.fullmatch(token) and not any(c.isspace() for c in text)
                for token, text in zip(tokens, texts, strict=True)
            ]
        )  # fmt: skip
        return Vocabulary(tuple(texts), tuple(starts), writable)

    @cached_property
    def twins(self) -> dict[str, list[int]]:
        """The ids of all tokens with the same characters in any case, by these characters after `casefold`."""
        twins: dict[str, list[int]] = {}
        for id_, text in enumerate(self.vocabulary.texts):
            twins.setdefault(text.casefold(), []).append(id_)
        return twins

    def log_p(self, ids: Sequence[int], at: NDArray[np.int64]) -> Floats:
        """log p(ids[i] | ids with position i alone masked) for every i of `at`; (len(at),)."""
        import torch

        values: list[float] = []
        rows, places = max(1, _TOKENS_AT_ONCE // len(ids)), torch.from_numpy(at)
        for first in range(0, len(at), rows):
            part = places[first : first + rows]
            each = torch.arange(len(part))
            logs = self._logits(torch.tensor(ids).repeat(len(part), 1), each, part).log_softmax(-1)
            hidden = torch.tensor(ids)[part].to(logs.device)
            values += logs.gather(1, hidden[:, None])[:, 0].tolist()
        return np.array(values)

    def logits_at(self, ids: Sequence[int], masks: Sequence[int]) -> NDArray[np.float32]:
        """Logits of every token at the positions `masks`, all of them masked at once; (len(masks), v)."""
        import torch

        first_row = torch.zeros(len(masks), dtype=torch.long)
        logits = self._logits(torch.tensor([list(ids)]), first_row, torch.tensor(masks))
        return np.asarray(logits.cpu().numpy())

    def _logits(self, ids: torch.Tensor, row: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        """float32 logits (m, v) at the m places (row, position) of `ids` (b, t), which are first masked in place."""
        import torch

        ids[row, position] = self.mask
        inputs = (tensor.to(self.model.device) for tensor in (ids, torch.ones_like(ids), row, position))
        with torch.inference_mode(), self.precision():
            return masked_logits(self.model, *inputs).float()


def masked_logits(
    model: Any, ids: torch.Tensor, attention: torch.Tensor, row: torch.Tensor, position: torch.Tensor
) -> torch.Tensor:
    """Logits (m, v) of a masked language model at the m places (row, position) of `ids` and `attention` (b, t)."""
    head = _HEADS.get(model.config.model_type)
    if head is None:
        logits: torch.Tensor = model(input_ids=ids, attention_mask=attention).logits[row, position]
    else:
        hidden = model.base_model(input_ids=ids, attention_mask=attention).last_hidden_state
        logits = getattr(model, head)(hidden[row, position])
    return logits


def joined_turns(turns: Iterable[Sequence[int]], end: int, room: int) -> tuple[list[int], bool]:
    """The last `room` tokens of the turns, with `end` after each turn, and whether any token was dropped."""
    ids = [id_ for turn in turns for id_ in (*turn, end)]
    return ids[max(0, len(ids) - room) :], len(ids) > room


def _trim(text: str, start: int, stop: int) -> tuple[int, int]:
    """The span of `text` without blanks at its ends; an empty span at `stop` if it has nothing but blanks."""
    token = text[start:stop]
    start = stop - len(token.lstrip())
    return start, start + len(token.strip())
