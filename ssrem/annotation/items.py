"""What people rate: items of a batch, and the sheets on which raters find them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ssrem.errors import AnnotationError

FORMAT = "ssrem-annotation-batch-1"

TRUE_SYSTEM = "ground-truth"
"""The system that gives the true responses, under the name by which annotated sets know it."""


@dataclass(frozen=True)
class Context:
    """Turns, oldest first, each with the seat of who speaks: A, B, … in order of first appearance; and who responds.

    response_id: of the true response in its corpus; truth: its text.
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
    """A response to rate. systems: all that gave this text; none where it is an attention check, of which `expected`
    is the lowest and the highest score that passes it."""

    id: str
    context: Context
    response: str
    systems: tuple[str, ...]
    expected: tuple[int, int] | None = None


@dataclass(frozen=True)
class Plan:
    """How a batch is drawn and asked about. Scores are whole numbers from 1 to `scale`."""

    contexts: int = 24
    raters: int = 3
    redundancy: int = 3
    checks: int = 4
    seed: int = 0
    criterion: str = "overall"
    question: str = "How well does the response fit the conversation?"
    scale: int = 5

    def __post_init__(self) -> None:
        if self.redundancy > self.raters:
            raise AnnotationError(
                f"{self.raters} raters cannot give {self.redundancy} ratings of a response; "
                "give more --raters or less --redundancy"
            )


@dataclass(frozen=True)
class Batch:
    """Items and who rates them: sheets are raters to item ids, in the order in which they are shown."""

    corpus: str
    split: str
    plan: Plan
    items: tuple[Item, ...]
    sheets: Mapping[str, tuple[str, ...]]

    @property
    def id(self) -> str:
        """12 hexadecimal digits: the same content has the same."""
        return hashlib.sha256(json.dumps(self._content, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def by_id(self) -> dict[str, Item]:
        """Items by id."""
        return {item.id: item for item in self.items}

    @property
    def _content(self) -> dict[str, Any]:
        return asdict(self)

    def as_json(self) -> str:
        """The whole batch, with what raters must not see."""
        return json.dumps({"format": FORMAT, "batch": self.id, **self._content}, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, where: str) -> Batch:
        """What `as_json` wrote. AnnotationError, naming `where`, for anything else, or if it was changed since."""
        try:
            found = json.loads(text)
            if found["format"] != FORMAT:
                raise ValueError("of another format")
            items = (
                Item(
                    row["id"],
                    Context(
                        row["context"]["response_id"],
                        tuple((seat, said) for seat, said in row["context"]["turns"]),
                        row["context"]["responder"],
                        row["context"]["truth"],
                    ),
                    row["response"],
                    tuple(row["systems"]),
                    row["expected"] and (row["expected"][0], row["expected"][1]),
                )
                for row in found["items"]
            )
            sheets = {rater: tuple(ids) for rater, ids in found["sheets"].items()}
            batch = cls(found["corpus"], found["split"], Plan(**found["plan"]), tuple(items), sheets)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise AnnotationError(f"{where} is no key of a batch; ssrem annotate export writes one") from None
        if batch.id != found["batch"]:
            raise AnnotationError(f"{where} was changed after the batch was made; take the original")
        return batch
