"""Votes on pairs of responses, as MT-Bench and Chatbot Arena publish them (Zheng et al., NeurIPS 2023)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ssrem.annotated_sets.base import Layout, Row, Source, counted
from ssrem.annotated_sets.columns import Values, listed
from ssrem.errors import AnnotationError, short_repr
from ssrem.readers.fields import SILENT_ROLES, turn_text

CRITERION = "preference"
"""1 for the response that a rater prefers, 0 for the other, and 0.5 for both of a tie."""

NO_WINNER = "vote without a winner"
AGAIN = "further vote of a rater on a pair, averaged with those before"
OTHER_ANSWERS = "earlier answer of a system to which the other's differs"
_PREFERENCE = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5, "tie (bothbad)": 0.5, "tie (both bad)": 0.5}
_NOBODY = ("", "none", "null", "error")
_FIELDS = {"winner", "model_a", "model_b", "conversation_a", "conversation_b"}


@Layout(lambda source: source.first.keys() >= _FIELDS)
def pairwise(source: Source) -> Iterator[Row]:
    """A row for each response of a pair and each rater: the two are rated responses of one dialogue, named after the
    pair, which is the same whichever response came first."""
    pairs: dict[Any, tuple[str, dict[str, list[float]]]] = {}  # its first place, and the votes of each rater
    number = 0
    for where, row in source.objects():
        winner = str(row.get("winner") or "").strip().lower()
        if winner in _NOBODY:
            source.left_out[NO_WINNER] += 1
            continue
        if winner not in _PREFERENCE:
            known = ", ".join(_PREFERENCE)
            raise AnnotationError(f"{where}: the winner is {short_repr(row['winner'])}, not one of {known}")
        context, answers = _judged(source, where, row)
        sides = [(str(row.get(f"model_{side}")), answer) for side, answer in zip("ab", answers, strict=True)]
        key = (str(row.get("question_id")), str(row.get("turn", "")), context, *sorted(sides))
        _, votes = pairs.setdefault(key, (where, {}))
        rater = str(row.get("judge") or f"vote {len(votes) + 1}")
        source.left_out[AGAIN] += rater in votes
        number += 1
        preference = _PREFERENCE[winner]
        votes.setdefault(rater, []).append(preference if sides[0] == key[3] else 1 - preference)
    source.columns = f"{counted(number, 'vote')} on {counted(len(pairs), 'pair')} of responses"
    for number, ((question, _, context, *sides), (where, votes)) in enumerate(pairs.items(), 1):
        dialogue = f"{number}: {question}, {sides[0][0]} / {sides[1][0]}"
        for first, (model, text) in zip((True, False), sides, strict=True):
            for rater, given in votes.items():
                won = sum(given) / len(given)
                scores = {CRITERION: won if first else 1 - won}
                yield Row(where, context, text, scores, model, None, dialogue, rater, joined=True)


def _judged(source: Source, where: str, row: Values) -> tuple[tuple[str, ...], list[str]]:
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
    source.left_out[OTHER_ANSWERS] += len(before[0]) + len(before[1]) - 2 * len(shared)
    return tuple(text for _, text in shared), answers


def _messages(where: str, name: str, value: Any) -> list[tuple[str, str]]:
    """(role, text) of each message of a conversation, or of a cell that holds one."""
    messages = listed(value) if isinstance(value, str) else value
    if not isinstance(messages, list) or not all(isinstance(one, dict) and "role" in one for one in messages):
        raise AnnotationError(f"{where}: {name} is no list of messages with role and content")
    said = [(str(one["role"]), turn_text(one)) for one in messages if one["role"] not in SILENT_ROLES]
    if not all(isinstance(text, str) for _, text in said):
        raise AnnotationError(f"{where}: a message of {name} is not text")
    return [(role, text.strip()) for role, text in said]
