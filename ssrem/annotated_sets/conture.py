"""ConTurE as published (Ghazarian et al., Findings of ACL 2022): dialogues with a chatbot, whose answers are rated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from ssrem.annotated_sets.base import NO_RESPONSE, Content, Layout, Response, text_of
from ssrem.errors import AnnotationError
from ssrem.readers.fields import normalise

WHOLE_DIALOGUE = "rating of a whole dialogue"

_SAID = ("user", "chatbot")
_NUMBERS = ("id", "turn", "turn_id", "index")
_SPEAKER = re.compile(r"\s*(?:User|Chatbot)\s*:\s*", re.IGNORECASE)


class ContureLayout(Layout):
    """Dialogues with `turns`: what the user said, what the chatbot answered, and the ratings of the answer."""

    name: ClassVar[str] = "conture"

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        turns = content.first.get("turns")
        first = turns[0] if isinstance(turns, list) and turns else None
        return content.is_json and isinstance(first, dict) and set(_SAID) <= first.keys()

    def responses(self) -> Iterator[Response]:
        """Each answer of the chatbot with the turns before it; ratings of whole dialogues are counted and left out."""
        for number, (where, dialogue) in enumerate(self.objects("turns")):
            turns = dialogue.get("turns")
            if not isinstance(turns, list):
                raise AnnotationError(f"{where}: no list of turns")
            self.left_out[WHOLE_DIALOGUE] += bool(dialogue.get("dialog_ratings"))
            context: list[str] = []
            name = str(dialogue.get("dialog_id", number))
            for at, turn in enumerate(turns, 1):
                place = f"{where}, turn {at}"
                if not isinstance(turn, dict):
                    raise AnnotationError(f"{place}: expected an object with user, chatbot and ratings")
                user, answer = (
                    _SPEAKER.sub("", text_of(place, turn, of), count=1).strip() if turn.get(of) else ""
                    for of in _SAID
                )
                scores = {
                    of: value if isinstance(value, list) else [value]
                    for of, value in turn.items()
                    if of not in _SAID and normalise(of) not in _NUMBERS
                }
                if answer and not scores:
                    raise AnnotationError(f"{place}: no rating of the answer, such as 'overall impression'")
                context += [user] if user else []
                if answer:
                    yield Response(place, name, tuple(context), answer, scores, dialogue.get("model"))
                self.left_out[NO_RESPONSE] += not answer
                context += [answer] if answer else []
