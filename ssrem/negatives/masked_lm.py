"""A masked language model as mask-and-fill uses it: pieces of a text, and what stands behind a mask."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssrem.encoders import hub
from ssrem.errors import EvaluatorError

if TYPE_CHECKING:
    import torch

_TOKENS_AT_ONCE = 8192
_UNUSED = re.compile(r"\[unused\d+\]|<unused\d+>")
_SPACE_MARKS = ("\u0120", "\u2581")
# Where the head is a module of its own it is applied to the masked positions alone: elsewhere it would cost
# as much as the layers below it.
_HEADS = {"bert": "cls", "roberta": "lm_head", "xlm-roberta": "lm_head", "camembert": "lm_head"}


@dataclass(frozen=True)
class Pieces:
    """A text as the model reads it. ids: its tokens. spans: where each lies in the text, without blanks.

    usable: whether the token is known and has characters that it shares with no other: those can be replaced.
    """

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    usable: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Vocabulary:
    """What each token looks like in a text: its characters, and whether a word starts with it.

    writable (v,): whether it may be written: no special token, nothing blank or half a character.
    """

    texts: tuple[str, ...]
    starts_word: tuple[bool, ...]
    writable: NDArray[np.bool_]


class MaskedLM:
    """Log-probabilities of tokens behind masks.

    A forward pass holds rows of one response only, all of one length and without padding, so that no neighbour
    and no batch size can show in a probability.
    """

    def __init__(self, tokenizer: Any, model: Any) -> None:
        if not getattr(tokenizer, "is_fast", False) or tokenizer.mask_token_id is None:
            raise EvaluatorError(
                f"{type(model).__name__}: its tokenizer has no mask token or cannot say where tokens lie in a text; "
                "name a BERT or RoBERTa model with tokenizer.json"
            )
        self.tokenizer, self.model = tokenizer, model
        self.mask: int = tokenizer.mask_token_id
        self.start: int = tokenizer.cls_token_id
        self.end: int = tokenizer.sep_token_id
        self.longest: int = hub.max_tokens(tokenizer, model) or hub.USUAL_TOKENS

    @classmethod
    def load(cls, spec: str, device: str | None = None) -> MaskedLM:
        """The model that `spec` names; EvaluatorError where it is none with a masked language model's head."""
        return cls(*hub.load(spec, "AutoModelForMaskedLM", device=device))

    @cached_property
    def weights(self) -> str:
        """Hash of the weights and the tokenizer."""
        return f"{hub.weights_hash(self.model)}-{hub.tokenizer_hash(self.tokenizer)}"

    @cached_property
    def lower_cased(self) -> bool:
        """Whether the model reads every text in lower case."""
        return self.pieces("A").ids == self.pieces("a").ids

    def pieces(self, text: str) -> Pieces:
        """`text` cut into tokens, none of them special, whatever is written in it."""
        found = self.tokenizer(
            text,
            add_special_tokens=False,
            return_offsets_mapping=True,
            split_special_tokens=True,
            verbose=False,
        )
        ids = tuple(found["input_ids"])
        spans = tuple(_trim(text, start, stop) for start, stop in found["offset_mapping"])
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
    def _twins(self) -> dict[str, list[int]]:
        twins: dict[str, list[int]] = {}
        for id_, text in enumerate(self.vocabulary.texts):
            twins.setdefault(text.casefold(), []).append(id_)
        return twins

    def twins(self, id_: int) -> list[int]:
        """All tokens with the characters of `id_`, itself among them, case aside."""
        return self._twins[self.vocabulary.texts[id_].casefold()]

    def log_p(self, ids: Sequence[int], at: Sequence[int]) -> NDArray[np.float64]:
        """log p(ids[i] | ids with position i masked) for every i of `at`, each masked on its own; (len(at),)."""
        import torch

        values: list[float] = []
        rows = max(1, _TOKENS_AT_ONCE // len(ids))
        for first in range(0, len(at), rows):
            part = torch.tensor(at[first : first + rows])
            masked = torch.tensor(ids).repeat(len(part), 1)
            truth = masked[0, part]
            masked[torch.arange(len(part)), part] = self.mask
            logs = self._logits(masked, torch.arange(len(part)), part).log_softmax(-1)
            values += logs.cpu()[torch.arange(len(part)), truth].tolist()
        return np.array(values)

    def behind(self, ids: Sequence[int], masks: Sequence[int]) -> NDArray[np.float32]:
        """Logits of every token at the positions `masks`, all of them masked at once; (len(masks), v)."""
        import torch

        masked = torch.tensor([list(ids)])
        position = torch.tensor(masks)
        masked[0, position] = self.mask
        logits = self._logits(masked, torch.zeros(len(masks), dtype=torch.long), position)
        found: NDArray[np.float32] = logits.cpu().numpy()
        return found

    def _logits(self, ids: torch.Tensor, row: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        """float32 logits (m, v) at the m places (row, position) of `ids` (b, t)."""
        import torch

        device = self.model.device
        given = {"input_ids": ids.to(device), "attention_mask": torch.ones_like(ids).to(device)}
        row, position = row.to(device), position.to(device)
        head = _HEADS.get(self.model.config.model_type)
        with torch.inference_mode():
            if head is None:
                logits: torch.Tensor = self.model(**given).logits[row, position]
            else:
                hidden = self.model.base_model(**given).last_hidden_state[row, position]
                logits = getattr(self.model, head)(hidden)
        return logits.float()


def _trim(text: str, start: int, stop: int) -> tuple[int, int]:
    """The span without the blanks at its ends."""
    while start < stop and text[start].isspace():
        start += 1
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    return start, stop
