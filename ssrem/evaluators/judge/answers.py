"""From an endpoint's reply to a score: the expected score over the scale's tokens, or else the number of the answer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ssrem.evaluators.judge.prompt import Prompt

LOGPROBS, SCHEMA = "logprobs", "response_format"
WAYS = {"auto": {LOGPROBS, SCHEMA}, "logprobs": {LOGPROBS}, "structured": {SCHEMA}, "plain": set[str]()}
"""Way of asking → what is requested besides the text of the answer: log-probabilities of its tokens, and a JSON object
of a schema."""

REFUSED, NO_NUMBER, OUTSIDE, CUT_OFF = "refused", "no number", "outside the scale", "cut off by max_tokens"
"""Reasons why an answer gives no score."""

EXPECTED, NUMBER = "expected", "number"
"""How a score was read: as the mean over the scale's tokens, or as a number."""

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_ALONE = re.compile(rf"[^\w-]*(?:[A-Za-z ]{{1,30}}[:=][^\w-]*)?{_NUMBER}(?:\s*/\s*\d+)?\W*")
"""A number with at most a label such as `Score:` before it, and a highest score such as `/5` after it."""

_ANY = re.compile(rf"(?<![\w.]){_NUMBER}(?![\w]|\.\d)")
_THOUGHT = re.compile(r"^.*</think(?:ing)?>", re.DOTALL)
_LARGEST_DIGIT = 9
_MOST_TOKENS = 10**9


@dataclass(frozen=True)
class Reading:
    """What an answer says. score: on the prompt's scale, None with a reason; method: EXPECTED or NUMBER."""

    text: str
    score: float | None = None
    reason: str = ""
    method: str = NUMBER


def schema(prompt: Prompt) -> dict[str, Any]:
    """The `response_format` of an answer that is a JSON object with a score of the scale."""
    score = {"type": "integer", "enum": list(range(prompt.low, prompt.high + 1))}
    if prompt.high - prompt.low > 100:
        score = {"type": "integer"}
    of_answer = {
        "type": "object",
        "properties": {"score": score},
        "required": ["score"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "json_schema": {"name": "judgment", "strict": True, "schema": of_answer}}


def read_reply(reply: Any, prompt: Prompt) -> Reading | None:
    """What the reply to the prompt says; None for a reply that is no chat completion."""
    try:
        choice = reply["choices"][0]
        message, ended = choice["message"], choice.get("finish_reason")
        text = message.get("content") or ""
        refusal = message.get("refusal")
    except (TypeError, KeyError, IndexError, AttributeError):
        return None
    if not isinstance(text, str):
        return None
    if refusal or ended == "content_filter":
        return Reading(refusal if isinstance(refusal, str) else text, reason=REFUSED)
    if ended == "length":  # a number in it may not be the one that was to come
        return Reading(text, reason=CUT_OFF)
    start = match.end() if (match := _THOUGHT.match(text)) else 0
    number = _number(text[start:])
    if number is None:
        return Reading(text, reason=NO_NUMBER)
    value, place = float(number[1]), start + number.start(1)
    if not prompt.low <= value <= prompt.high:
        return Reading(text, reason=OUTSIDE)
    whole = number[1].isdecimal()  # the probabilities of "4" say nothing on 4.5
    try:
        expected = _expected(choice.get("logprobs"), place, prompt) if whole else None
    except (AttributeError, TypeError, OverflowError):  # malformed log-probabilities
        expected = None
    return Reading(text, value) if expected is None else Reading(text, expected, method=EXPECTED)


def token_count(value: Any) -> int | None:
    """A number of tokens as an endpoint states it; None for what can be none."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def _number(text: str) -> re.Match[str] | None:
    """The number that the answer gives: one that stands alone, as the value of a JSON object, or the only one."""
    if match := _ALONE.fullmatch(text) or re.search(rf'"score"\s*:\s*"?{_NUMBER}', text):
        return match
    numbers = list(_ANY.finditer(text))
    return numbers[0] if len({match[1] for match in numbers}) == 1 else None


def _expected(logprobs: Any, place: int, prompt: Prompt) -> float | None:
    """The mean of the scale's steps weighted by the probabilities of their tokens, where the answer's number begins
    (Liu et al. 2023, G-Eval, section 2); None without them, or where a step may be more than one token."""
    if not isinstance(logprobs, Mapping) or prompt.high > _LARGEST_DIGIT:
        return None
    end = 0
    for token in logprobs.get("content") or ():
        end += len(token.get("token", ""))
        if end > place:
            break
    else:
        return None
    weights: dict[int, float] = {}
    for option in token.get("top_logprobs") or ():
        step, logprob = str(option.get("token", "")).strip(), option.get("logprob")
        if step.isdecimal() and len(step) == 1 and isinstance(logprob, int | float):
            weights[int(step)] = weights.get(int(step), 0.0) + math.exp(logprob)
    weights = {step: weight for step, weight in weights.items() if prompt.low <= step <= prompt.high}
    total = sum(weights.values())
    mean = sum(step * weight for step, weight in weights.items()) / total if total > 0 else math.nan
    return mean if math.isfinite(mean) else None
