"""Votes on pairs of responses, as MT-Bench and Chatbot Arena publish them (Zheng et al., NeurIPS 2023)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ssrem.annotated_sets.base import Content, Response, Row, counted
from ssrem.annotated_sets.columns import listed_in
from ssrem.annotated_sets.tables import TableLayout
from ssrem.errors import AnnotationError, short_repr
from ssrem.readers.fields import SILENT_ROLES, turn_text

CRITERION = "preference"
"""1 for the response that a rater prefers, 0 for the other, and 0.5 for both of a tie."""

NO_WINNER = "vote without a winner"
AGAIN = "further vote of a rater on a pair, averaged with those before"
OTHER_ANSWERS = "earlier answer of a system to which the other's differs"
_PREFERENCE = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5, "tie (bothbad)": 0.5, "tie (both bad)": 0.5}
_NOBODY = ("", "none", "null", "error")


class PairwiseLayout(TableLayout):
    """The two responses of a pair are rated responses of one dialogue, named after the pair; votes are its ratings."""

    name: ClassVar[str] = "pairwise"
    takes_mapping: ClassVar[bool] = False

    @classmethod
    def looks_like(cls, content: Content) -> bool:
        return {"winner", "model_a", "model_b", "conversation_a", "conversation_b"} <= content.first.keys()

    def responses(self) -> Iterator[Response]:
        yield from super().responses()
        self.columns = f"{counted(self._votes, 'vote')} on {counted(self._pairs, 'pair')} of responses"

    def rows(self) -> tuple[Sequence[str], list[Row]]:
        """A row for each response of a pair and each rater. A pair is the same whichever response came first."""
        self.mapping = {name: name for name in ("dialogue", "context", "response", "model", "rater")}
        self.mapping["score"] = CRITERION
        pairs: dict[
            Any, tuple[str, dict[str, list[float]]]
        ] = {}  # its first place, and the votes of each rater
        self._votes = 0
        for where, row in self.objects("model_a, model_b, winner, conversation_a and conversation_b"):
            winner = str(row.get("winner") or "").strip().lower()
            if winner in _NOBODY:
                self.left_out[NO_WINNER] += 1
                continue
            if winner not in _PREFERENCE:
                known = ", ".join(_PREFERENCE)
                raise AnnotationError(
                    f"{where}: the winner is {short_repr(row['winner'])}, not one of {known}"
                )
            context, answers = self._judged(where, row)
            sides = [
                (str(row.get(f"model_{side}")), answer) for side, answer in zip("ab", answers, strict=True)
            ]
            key = (str(row.get("question_id")), str(row.get("turn", "")), context, *sorted(sides))
            _, votes = pairs.setdefault(key, (where, {}))
            rater = str(row.get("judge") or f"vote {len(votes) + 1}")
            self.left_out[AGAIN] += rater in votes
            self._votes += 1
            preference = _PREFERENCE[winner]
            votes.setdefault(rater, []).append(preference if sides[0] == key[3] else 1 - preference)
        self._pairs = len(pairs)
        return [*self.mapping.values()], list(_rows(pairs))

    def _judged(self, where: str, row: Mapping[str, Any]) -> tuple[tuple[str, ...], list[str]]:
        """The context that both conversations share, and the answer of each that was judged: the one of `turn`, or the
        last. Earlier answers are no context where the conversations differ in them."""
        answers, before = [], []
        for side in "ab":
            said = _messages(where, f"conversation_{side}", row.get(f"conversation_{side}"))
            own = [at for at, (role, _) in enumerate(said) if role != "user"]
            turn = int(row["turn"]) if str(row.get("turn") or "").isdigit() else len(own)
            if not 0 < turn <= len(own):
                raise AnnotationError(f"{where}: conversation_{side} has no answer {turn or 1}")
            answers.append(said[own[turn - 1]][1])
            before.append(said[: own[turn - 1]])
        if [one for one in before[0] if one[0] == "user"] != [one for one in before[1] if one[0] == "user"]:
            raise AnnotationError(f"{where}: the two conversations differ in what the user says")
        shared = [one for one in before[0] if one[0] == "user" or one in before[1]]
        self.left_out[OTHER_ANSWERS] += len(before[0]) + len(before[1]) - 2 * len(shared)
        return tuple(text for _, text in shared), answers


def _messages(where: str, name: str, value: Any) -> list[tuple[str, str]]:
    """(role, text) of each message of a conversation, or of a cell that holds one."""
    messages = (listed_in(value) or value) if isinstance(value, str) else value
    if not isinstance(messages, list) or not all(isinstance(one, dict) and "role" in one for one in messages):
        raise AnnotationError(f"{where}: {name} is no list of messages with role and content")
    said = [(str(one["role"]), turn_text(one)) for one in messages if one["role"] not in SILENT_ROLES]
    if not all(isinstance(text, str) for _, text in said):
        raise AnnotationError(f"{where}: a message of {name} is not text")
    return [(role, text.strip()) for role, text in said]


def _rows(pairs: Mapping[Any, tuple[str, Mapping[str, Sequence[float]]]]) -> Iterator[Row]:
    for number, ((question, _, context, *sides), (where, votes)) in enumerate(pairs.items(), 1):
        dialogue = f"{number}: {question}, {sides[0][0]} / {sides[1][0]}"
        for place, (model, text) in enumerate(sides):
            for rater, given in votes.items():
                first = sum(given) / len(given)
                about = {"dialogue": dialogue, "context": list(context), "response": text, "model": model}
                yield where, {**about, "rater": rater, CRITERION: 1 - first if place else first}
