"""A batch for raters: its items (responses to rate) and each rater's sheet, the items in the order shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import Field, TypeAdapter, model_validator

from ssrem.errors import AnnotationError, SsremError
from ssrem.settings import Count, Natural, Seed, Settings

FORMAT = "ssrem-annotation-batch-1"

ON_TOPIC = "on-topic"
ON_TOPIC_QUESTION = "How on-topic is the response?"
"""The second question of Lowe et al. 2017 and of Bak and Oh 2020, section 4, and its criterion."""

TRUE_SYSTEM = "ground-truth"
"""Name of the system whose responses are the true ones, as annotated sets write it."""


@dataclass(frozen=True)
class Context:
    """A context: (seat, text) of each turn, oldest first; seats are A, B, … in order of first appearance.

    response_id: of the true response in its corpus. responder: seat of its speaker. truth: its text.
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
    highest score that pass the attention check."""

    id: str
    context: Context
    response: str
    systems: tuple[str, ...]
    expected: tuple[int, int] | None = None


class Plan(Settings):
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
    def _check(self) -> Plan:
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
    """Items and who rates them. sheets: rater → ids of their items, in the order shown."""

    corpus: str
    split: str
    plan: Plan
    items: tuple[Item, ...]
    sheets: Mapping[str, tuple[str, ...]]

    @property
    def id(self) -> str:
        """12 hexadecimal digits of a hash of the content."""
        return hashlib.sha256(json.dumps(self._content(), sort_keys=True).encode()).hexdigest()[:12]

    @property
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
