"""FED as published (Mehri and Eskenazi, SIGDIAL 2020): rated responses, and rated whole dialogues."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from ssrem.annotated_sets.base import Content, Layout, Response, text_of
from ssrem.errors import AnnotationError

WHOLE_DIALOGUE = "row about a whole dialogue, without a response"

_SPEAKER = re.compile(r"(?:User|System):\s*", re.IGNORECASE)


class FedLayout(Layout):
    """A JSON list whose turns begin with their speaker, `User:` or `System:`."""

    name: ClassVar[str] = "fed"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        row = content.first
        context = row.get("context")
        first = context[0] if isinstance(context, list) and context else context
        return isinstance(first, str) and "annotations" in row and _SPEAKER.match(first) is not None

    def responses(self) -> Iterator[Response]:
        """Speakers are removed from the turns; rows without a response are counted and left out."""
        for number, (where, row) in enumerate(self.objects("context and annotations")):
            listed = row.get("context")
            if isinstance(listed, list) and all(isinstance(turn, str) for turn in listed):
                context = _turns("\n".join(listed))
            else:
                context = _turns(text_of(where, row, "context"))
            scores = row.get("annotations")
            if not isinstance(scores, dict) or not scores:
                raise AnnotationError(f"{where}: no annotations")
            if row.get("response") is None:
                self.left_out[WHOLE_DIALOGUE] += 1
                continue
            text = _SPEAKER.sub("", text_of(where, row, "response"), count=1).strip()
            yield Response(where, str(number), context, text, scores, row.get("system"))


def _turns(context: str) -> tuple[str, ...]:
    """The turns without speakers; a line that names no speaker continues the turn before it."""
    lines: list[str] = []
    for line in context.split("\n"):
        if (speaker := _SPEAKER.match(line)) or not lines:
            lines.append(line[speaker.end() :] if speaker else line)
        else:
            lines[-1] += f"\n{line}"
    return tuple(turn.strip() for turn in lines if turn.strip())
