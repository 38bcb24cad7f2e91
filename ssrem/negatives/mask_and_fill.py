"""Negatives made by masking the words of a response that depend on its context, and filling them without it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from ssrem.encoders.hub import BF16
from ssrem.errors import EvaluatorError
from ssrem.negatives.base import Case, Generator, GeneratorSettings, Negative, share_of
from ssrem.negatives.masked_lm import MaskedLM, Pieces, joined_turns
from ssrem.samples import Candidates, Floats
from ssrem.settings import Count, Share

_CLOSING = frozenset(".,?!;:)]}%\u2026'\u2019")
_SENTENCE_END = frozenset(".?!\u2026\n")


class MaskAndFillSettings(GeneratorSettings):
    """Settings of mask-and-fill and its variants."""

    model: str = ""
    """the masked language model's name or folder, with ":bf16" after it for products of bfloat16"""
    device: str | None = None
    """where it runs; None for the best available"""
    select: Literal["context", "without-history", "random"] = "context"
    """which tokens to replace: "context" takes those whose score (eq. 1) is `threshold` or more, "without-history"
    those whose -log p(token | response) is, and "random" draws the share `share` of the usable tokens"""
    fill: Literal["without-history", "with-history"] = "without-history"
    """whether the model that fills the masks sees the context"""
    threshold: float = Field(default=0.5, allow_inf_nan=False)
    """lowest score of a token that is replaced; .5 is the paper's"""
    share: Share = 0.2728
    """share of the usable tokens that "random" draws; the default is the share that the paper reports for its scores"""
    context_turns: Count = 5
    """how many of the last turns are the context"""
    max_tokens: Count = 256
    """tokens of context and response together; the context's oldest are dropped first"""
    response_tokens: Count = 64
    """how many of a response's first tokens are read and can be replaced; the cost grows with their square"""
    min_words: Count = 3
    """a response of fewer words, split at blanks, gets no negative"""


class MaskAndFill(Generator):
    """The response with its context-dependent words replaced by words that fit without the context.

    Each token is masked, once with the context before the response and once without (eq. 1). Then the selected
    tokens are masked together, and each is filled with the likeliest token that differs from the original in more than
    case. The model's input is [CLS] turn [SEP] … [SEP] response [SEP]. Unreplaced text keeps its case and blanks.

    The authors' code differs: while it scores, it never removes a mask, so that all tokens before are masked too; its
    context is only the dialogue's first utterance, joined by a blank; and it lower-cases everything.
    """

    name = "mask-and-fill"
    source: ClassVar[str] = "Park et al. 2021, section 3; its variants section 4.2.2"
    settings_class: ClassVar[type[GeneratorSettings]] = MaskAndFillSettings
    fixed: ClassVar[Mapping[str, str]] = {}
    """Values of the settings that define a variant."""

    def __init__(self, settings: MaskAndFillSettings | None = None) -> None:
        super().__init__(settings)
        chosen = self.settings
        if not chosen.model:
            raise EvaluatorError(
                f"{self.name} needs a masked language model: set model to a name or folder; "
                "ssrem train masked-lm makes one from the packaged encoder"
            )
        if chosen.max_tokens < chosen.response_tokens + 3:
            raise EvaluatorError(
                f"max_tokens is {chosen.max_tokens}; expected {chosen.response_tokens + 3} or more, "
                "the response and three special tokens"
            )
        if chosen.count > 1 and chosen.select != "random":
            raise EvaluatorError(
                f"count is {chosen.count}, but mask-and-fill draws nothing: a response has one negative "
                "(several with select='random')"
            )

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        for key, value in cls.fixed.items():
            if settings.get(key, value) != value:
                raise EvaluatorError(f"{cls.name} is mask-and-fill with {key}={value!r}; leave {key} out")
        return super().of({**settings, **cls.fixed})

    @cached_property
    def lm(self) -> MaskedLM:
        """The model, loaded on first use and shared by the generators that use it at the same time."""
        return MaskedLM.shared(self.settings.model, self.settings.device)

    def _determinants(self) -> dict[str, Any]:
        """All settings without the device, which changes only rounding, and with the model's hashes for its name."""
        determinants = {**super()._determinants(), "model": "-".join(self.lm.hashes) + BF16 * self.lm.mixed}
        del determinants["device"]
        return determinants

    def check(self, candidates: Candidates) -> None:
        longest = self.lm.longest
        if self.settings.max_tokens > longest:
            raise EvaluatorError(
                f"max_tokens is {self.settings.max_tokens}, but the model reads {longest} tokens at most"
            )

    def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
        if len(case.response.split()) < self.settings.min_words:
            return
        pieces, history, truncated = self._read(case.context, case.response)
        for k in range(self.settings.count):
            selected = self._select(pieces, history, case, seed, k)
            if len(selected) == 0:
                return
            text = self._fill(case.response, pieces, history, selected)
            yield Negative(case.row, self.name, k, text, len(selected), len(pieces), truncated)

    def _read(self, context: Sequence[str], response: str) -> tuple[Pieces, list[int], bool]:
        """The first tokens of the response, the last tokens of the context that fit, with [SEP] after each turn, and
        whether any token was dropped."""
        whole, n = self.lm.pieces(response), self.settings.response_tokens
        pieces = Pieces(whole.ids[:n], whole.spans[:n], whole.usable[:n])
        turns = (self.lm.pieces(turn).ids for turn in context[-self.settings.context_turns :])
        history, cut = joined_turns(turns, self.lm.end, self.settings.max_tokens - len(pieces) - 2)
        return pieces, history, cut or len(whole) > n

    def _select(self, pieces: Pieces, history: list[int], case: Case, seed: int, k: int) -> list[int]:
        """Positions in `pieces` of the tokens to replace, in order."""
        usable = np.flatnonzero(pieces.usable)
        if self.settings.select != "random":
            selected = np.flatnonzero(self._scores(pieces, history) >= self.settings.threshold)
        elif usable.size:
            count = share_of(self.settings.share, len(usable))
            selected = np.sort(case.random(seed, self.name, k).choice(usable, count, replace=False))
        else:
            selected = usable
        return selected.tolist()

    def _scores(self, pieces: Pieces, history: list[int]) -> Floats:
        """The score of each token (t,), equation 1 or only its second term; -inf for one that cannot be replaced."""
        scores = np.full(len(pieces), -np.inf)
        usable = np.flatnonzero(pieces.usable)

        def log_p(before: list[int]) -> Floats:
            ids = [self.lm.start, *before, *pieces.ids, self.lm.end]
            return self.lm.log_p(ids, usable + 1 + len(before))

        scores[usable] = -log_p([])
        if self.settings.select == "context":
            scores[usable] += log_p(history)
        return scores

    def _fill(self, response: str, pieces: Pieces, history: list[int], selected: Sequence[int]) -> str:
        """The response with the selected tokens replaced."""
        before = history if self.settings.fill == "with-history" else []
        ids, vocabulary = [self.lm.start, *before, *pieces.ids, self.lm.end], self.lm.vocabulary
        logits = self.lm.logits_at(ids, [1 + len(before) + i for i in selected])
        logits[:, ~vocabulary.writable] = -np.inf
        replacements: dict[int, tuple[str, bool]] = {}
        for row, i in zip(logits, selected, strict=True):
            row[self.lm.twins[vocabulary.texts[pieces.ids[i]].casefold()]] = -np.inf
            best = int(row.argmax())
            replacements[i] = vocabulary.texts[best], vocabulary.starts_word[best]
        starts = [vocabulary.starts_word[id_] for id_ in pieces.ids]
        return rewrite(response, pieces.spans, starts, replacements, capitals=self.lm.lower_cased)


class ScoreWithoutHistory(MaskAndFill):
    """Mask-and-fill that selects the words that are unlikely within the response."""

    name = "score-without-history"
    fixed: ClassVar[Mapping[str, str]] = {"select": "without-history"}


class SelectRandom(MaskAndFill):
    """Mask-and-fill that selects words at random."""

    name = "select-random"
    fixed: ClassVar[Mapping[str, str]] = {"select": "random"}


class ReplaceWithHistory(MaskAndFill):
    """Mask-and-fill that replaces words by words that fit the context."""

    name = "replace-with-history"
    fixed: ClassVar[Mapping[str, str]] = {"fill": "with-history"}


def rewrite(
    text: str,
    spans: Sequence[tuple[int, int]],
    starts_word: Sequence[bool],
    replacements: Mapping[int, tuple[str, bool]],
    *,
    capitals: bool,
) -> str:
    """`text` with the tokens at `replacements` replaced; everything else, including case and blanks, is unchanged.

    spans, starts_word: each token's span, and whether it starts a word. replacements: by the token's position, the new
    text and whether it starts a word. A continuation is joined to the token before it, a word is separated from words
    beside it by a blank, and a closing mark loses the blank before it. capitals: whether the replacement of a token
    that opened the text or a sentence with a capital gets a capital, too.
    """
    parts: list[str] = []
    end = 0
    for i, (start, stop) in enumerate(spans):
        gap, new = text[end:start], i in replacements
        word, starts = replacements.get(i, (text[start:stop], starts_word[i]))
        if new and capitals and starts and text[start].isupper():
            before = text[:start].rstrip(" \t\"'\u201c\u2018(")
            if not before or before[-1] in _SENTENCE_END:
                word = word[:1].upper() + word[1:]
        if i > 0 and (new or i - 1 in replacements):
            left, right = "".join(parts)[-1:], word[:1]
            if new and (not starts or right in _CLOSING):
                gap = ""
            elif not gap and starts and left.isalnum() and right.isalnum():
                gap = " "
        parts += [gap, word]
        end = stop
    return "".join(parts) + text[end:]
