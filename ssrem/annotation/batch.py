"""A batch for raters: contexts balanced by length, systems' responses, attention checks, and who rates which items."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import zip_longest
from random import Random
from typing import Any

from pydantic import Field, TypeAdapter, model_validator

from ssrem.errors import AnnotationError, SsremError
from ssrem.samples import context_key
from ssrem.settings import Count, Natural, Seed, Settings
from ssrem.tokenize import words

FORMAT = "ssrem-annotation-batch-1"

ON_TOPIC = "on-topic"
ON_TOPIC_QUESTION = "How on-topic is the response?"
"""The second question of Lowe et al. 2017 and of Bak and Oh 2020, section 4; its criterion is ON_TOPIC."""

TRUE_SYSTEM = "ground-truth"
"""Name of the system whose responses are the true ones, as annotated sets write it."""
BM25 = "bm25"
"""Name of the baseline system that `Bm25` implements."""

EDGES = (4, 8, 16)
"""Bands of lengths: the most words that the true response has in each band but the last, which has no limit."""

INSTRUCTION = "This response checks that each one is read: please choose {}."
_LEAST_LETTERS = 12
"""Fewest letters of an attention check of meaningless words."""

Responses = Mapping[str, Sequence[str]]
"""System → its response to each context."""


@dataclass(frozen=True)
class Context:
    """A context and its true response. turns: (seat, text) of each turn, oldest first.

    Seats stand for the speakers: A, B, … in order of first appearance. response_id: id of the true response in its
    corpus. responder: seat of the true response's speaker. truth: text of the true response.
    """

    response_id: int
    turns: tuple[tuple[str, str], ...]
    responder: str
    truth: str

    @property
    def texts(self) -> tuple[str, ...]:
        """The turns without the seats."""
        return tuple(text for _, text in self.turns)


@dataclass(frozen=True)
class Item:
    """A response to rate. systems: all that gave this text, none for an attention check. expected: the lowest and
    highest score that pass the attention check, None for other items."""

    id: str
    context: Context
    response: str
    systems: tuple[str, ...]
    expected: tuple[int, int] | None = None


class BatchPlan(Settings):
    """Settings of a batch."""

    contexts: Count = Field(24, description="contexts, each rated with every system's response")
    raters: Count = Field(3, description="raters, each with a sheet")
    redundancy: Count = Field(3, description="raters of each response")
    checks: Natural = Field(4, description="attention checks of each rater")
    seed: Seed = Field(0, description="seed of every draw")
    criterion: str = Field("overall", description="what is rated")
    question: str = Field(
        "How well does the response fit the conversation?", description="question to the raters"
    )
    scale: int = Field(5, ge=2, le=9, description="highest score, 2 to 9; 1 is the lowest")
    on_topic: bool = Field(
        False,
        description=f'ask a second question, "{ON_TOPIC_QUESTION}", whose answers are the criterion {ON_TOPIC}',
    )

    @property
    def questions(self) -> dict[str, str]:
        """Criterion to its question, in the order in which they are asked."""
        return {self.criterion: self.question} | ({ON_TOPIC: ON_TOPIC_QUESTION} if self.on_topic else {})

    @model_validator(mode="after")
    def _check(self) -> BatchPlan:
        if self.on_topic and self.criterion == ON_TOPIC:
            raise AnnotationError(
                f"--criterion {ON_TOPIC} is what --on-topic asks about; leave one of them out"
            )
        if self.redundancy > self.raters:
            raise AnnotationError(
                f"{self.raters} raters cannot give {self.redundancy} ratings of a response; "
                "give more --raters or less --redundancy"
            )
        return self


@dataclass(frozen=True)
class Batch:
    """The items of a batch and who rates them. sheets: rater → ids of the rater's items, in the order shown."""

    corpus: str
    split: str
    plan: BatchPlan
    items: tuple[Item, ...]
    sheets: Mapping[str, tuple[str, ...]]

    @cached_property
    def id(self) -> str:
        """12 characters of a hash of the content, which no spreadsheet takes for a number such as 1e5."""
        digits = hashlib.sha256(json.dumps(self._content(), sort_keys=True).encode()).hexdigest()[:12]
        return f"b{digits[1:]}" if re.fullmatch(r"\d+(e\d+)?", digits) else digits

    @cached_property
    def by_id(self) -> dict[str, Item]:
        """Items by id."""
        return {item.id: item for item in self.items}

    def as_json(self) -> str:
        """The whole batch, including the systems and checks that raters must not see."""
        return json.dumps(
            {"format": FORMAT, "batch": self.id, **self._content()}, indent=1, ensure_ascii=False
        )

    def _content(self) -> dict[str, Any]:
        return {**asdict(self), "plan": self.plan.model_dump()}

    @classmethod
    def from_json(cls, text: str, where: str) -> Batch:
        """Read what `as_json` wrote. AnnotationError, naming `where`, for anything else, or if it was changed since."""
        try:
            written = json.loads(text)
            if written["format"] != FORMAT:
                raise ValueError("of another format")
            batch_id = written["batch"]
            batch = TypeAdapter(cls).validate_json(text, strict=True)
        except (ValueError, TypeError, LookupError, RecursionError, SsremError):
            raise AnnotationError(f"{where} is no key of a batch; ssrem ratings collect writes one") from None
        if batch.id != batch_id:
            raise AnnotationError(f"{where} was changed after the batch was made; take the original")
        return batch


def length_balanced(
    candidates: Iterable[Context], count: int, *, within: Collection[str] | None = None
) -> list[Context]:
    """Choose `count` distinct contexts, equally many of each band of lengths as far as the candidates allow.

    Raters' scores depend on length, so short and long responses should be equally frequent. candidates: in random
    order; the first of each band are chosen. within: keys of the contexts that may be chosen; None: all. The same
    candidates give the same list, and every prefix of it is balanced, too. AnnotationError if there are too few.
    """
    bands: list[list[Context]] = [[] for _ in range(len(EDGES) + 1)]
    seen: set[str] = set()
    for context in candidates:
        key = context_key(context.texts)
        if key in seen or (within is not None and key not in within):
            continue
        seen.add(key)
        band = bands[bisect_left(EDGES, len(context.truth.split()))]
        if len(band) < count:
            band.append(context)
    chosen = [context for row in zip_longest(*bands) for context in row if context is not None]
    if len(chosen) < count:
        answered = " that every file of responses answers" if within is not None else ""
        raise AnnotationError(
            f"{count} contexts are needed, attention checks included, and there are {len(chosen)}{answered}; "
            "ask for fewer with --contexts"
        )
    return chosen[:count]


def contexts_needed(plan: BatchPlan) -> int:
    """Number of contexts to draw: first those to be rated, then one for each attention check.

    Each check is on several sheets; each sheet has `plan.checks` of them, or one more.
    """
    return plan.contexts + -(-plan.checks * plan.raters // plan.redundancy)


def draw_batch(
    corpus: str, split: str, plan: BatchPlan, contexts: Sequence[Context], systems: Responses
) -> Batch:
    """Draw a batch from `contexts_needed` contexts and the systems' responses to the first `plan.contexts` of them.

    The other contexts become attention checks. The true responses count as a system. Equal responses to a context are
    rated once, for all systems that gave them. Each response and each check is on the sheets of `plan.redundancy`
    raters, so that neither number nor place of the checks gives them away. The same arguments give the same batch.
    """
    draw = Random(f"ssrem annotate {plan.seed}")
    rated, spare = contexts[: plan.contexts], contexts[plan.contexts :]
    by_system = {TRUE_SYSTEM: [context.truth for context in rated], **systems}
    groups: list[list[Item]] = []
    for at, context in enumerate(rated):
        systems_by_text: dict[str, list[str]] = {}
        for system, responses in by_system.items():
            systems_by_text.setdefault(responses[at], []).append(system)
        texts = enumerate(systems_by_text.items())
        groups.append([Item(f"{at} {n}", context, text, tuple(names)) for n, (text, names) in texts])
    checks = []
    for at, context in enumerate(spare):
        check = instructed(draw, plan.scale) if at % 2 else gibberish(draw, context.truth, plan.scale)
        checks.append(Item(f"check {at}", context, check[0], (), check[1]))
    items = [item for group in groups for item in group] + checks
    order = list(range(len(items)))
    draw.shuffle(order)
    width = len(str(len(items)))
    names = {items[old].id: f"i{new:0{width}}" for new, old in enumerate(order, 1)}
    of_groups = _assigned(draw, len(groups), plan)
    of_checks = _assigned(draw, len(checks), plan)
    sheets = {}
    for rater in range(plan.raters):
        sheet = [item.id for at in of_groups[rater] for item in groups[at]]
        draw.shuffle(sheet)
        own = [checks[at].id for at in of_checks[rater]]
        draw.shuffle(own)
        order_shown = [names[one] for one in _spread(draw, sheet, own)]
        sheets[f"rater-{rater + 1:0{len(str(plan.raters))}}"] = tuple(order_shown)
    renamed = tuple(replace(items[old], id=names[items[old].id]) for old in order)
    return Batch(corpus, split, plan, renamed, sheets)


def _assigned(draw: Random, units: int, plan: BatchPlan) -> list[list[int]]:
    """The indices of each rater's units: each unit goes to `plan.redundancy` raters, and all get about equally many."""
    of: list[list[int]] = [[] for _ in range(plan.raters)]
    order = list(range(units))
    draw.shuffle(order)
    for unit in order:
        least_busy = sorted(range(plan.raters), key=lambda rater: (len(of[rater]), draw.random()))
        for rater in least_busy[: plan.redundancy]:
            of[rater].append(unit)
    return of


def _spread(draw: Random, sheet: Sequence[str], checks: Sequence[str]) -> list[str]:
    """The sheet's items with the checks among them: one check in each of equally long stretches, at a random place."""
    shown = list(sheet)
    for number in reversed(range(len(checks))):
        low, high = (len(sheet) * edge // len(checks) for edge in (number, number + 1))
        shown.insert(draw.randint(low, max(low, high - 1)), checks[number])
    return shown


def instructed(draw: Random, scale: int) -> tuple[str, tuple[int, int]]:
    """An attention check that asks for a certain score above the middle, so that always choosing a low score fails.

    Returns its text, and the lowest and highest score that pass.
    """
    score = draw.randint((scale + 1) // 2 + 1, scale)
    return INSTRUCTION.format(score), (score, score)


def gibberish(draw: Random, text: str, scale: int) -> tuple[str, tuple[int, int]]:
    """An attention check of meaningless words as long as those of `text`; only scores of the lower half pass it.

    Its letters are those of the text, shuffled, plus consonants if there are too few. Returns as `instructed` does.
    """
    letters = [letter for letter in text.lower() if letter.isalpha()]
    letters += draw.choices("bdfgklmprtvz", k=max(0, _LEAST_LETTERS - len(letters)))
    draw.shuffle(letters)
    lengths = [len(word) for word in text.split()]
    nonsense: list[str] = []
    at = 0
    while at < len(letters):
        size = lengths[len(nonsense)] if len(nonsense) < len(lengths) else 5
        nonsense.append("".join(letters[at : at + size]))
        at += size
    return " ".join(nonsense), (1, max(1, scale // 2))


class Bm25:
    """A baseline system that gives the true response to the most similar context in a pool of context-response pairs.
    Similarity is BM25 in Lucene's form with k1 = 1.5 and b = 0.75 (Robertson and Zaragoza 2009)."""

    def __init__(self, contexts: Sequence[str], responses: Sequence[str]) -> None:
        """contexts, responses: the pairs of the pool; ValueError if there are none, or their numbers differ."""
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # by default it logs every step
        if not responses or len(contexts) != len(responses):
            raise ValueError(f"{len(contexts)} contexts and {len(responses)} responses are no pairs")
        self._responses = list(responses)
        self._index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
        # bm25s needs a token in each document: a context without a word gets one that no other context has.
        tokens = [words(text) or ["\0"] for text in contexts]
        self._index.index(tokens, show_progress=False)

    def respond(self, context: str) -> str | None:
        """The response to the most similar context, the first of the pool if several are equally similar; None if no
        context shares a word with it."""
        known = [word for word in words(context) if word in self._index.vocab_dict]
        return self._responses[int(self._index.get_scores(known).argmax())] if known else None
