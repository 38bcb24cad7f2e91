"""Prompts of a judge: files with front matter, and placeholders for the texts of a sample as JSON. Also reads the score
from the answer.

    ---
    criterion: relevance
    scale: 1-5
    version: 1
    ---
    Rate the response … {context} … {response} …

A prompt with {reference} compares the response with the true one. With `orders: both` it is rendered twice, the second
time with response and reference in each other's place, and the second score is mirrored on the scale.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssrem.errors import EvaluatorError, one_line
from ssrem.files import expanded, read_text
from ssrem.registry import did_you_mean
from ssrem.samples import Sample

FOLDER = Path(__file__).parent / "prompts"

_PLACEHOLDER = re.compile(r"\{(context|response|reference)\}")
_FIELDS = {"criterion", "scale", "version"}
_MARKS = re.compile(r"<|\[(?=/?[A-Z_]+\])")
"""Beginnings of what chat templates may take for the end of a message, such as <|im_end|> and [/INST]."""

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_OF_TOP = r"\s{0,9}(?:/|out of|of)\s{0,9}(?P<top>\d+)"
_ALONE = re.compile(
    rf"^[^\w\n-]*(?:[A-Za-z ]{{1,30}}[:=][^\w-]{{0,9}})?{_NUMBER}(?:{_OF_TOP})?[^\w\n]*$", re.MULTILINE
)
"""A number that has a line to itself, but for a label such as `Score:` and a highest score such as `/5`."""
_ANY = re.compile(rf"(?<![\w.]){_NUMBER}(?![\w]|\.\d)(?:{_OF_TOP}\b)?")
_THOUGHT = re.compile(r"^.*</think(?:ing)?>", re.DOTALL)


@dataclass(frozen=True)
class Prompt:
    """A prompt. source: what `load_prompt` takes to load it again, the name of a packaged prompt or a file's text; low,
    high: ends of its scale, whole numbers; both_orders: whether the file says `orders: both`, see the module."""

    source: str
    text: str
    criterion: str
    low: int
    high: int
    version: str
    both_orders: bool

    @property
    def digest(self) -> str:
        """12 hex digits of the hash of all its content."""
        content = [self.text, self.criterion, self.low, self.high, self.version, self.both_orders]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]

    @property
    def compares(self) -> bool:
        """Whether it shows the true response."""
        return "{reference}" in self.text

    def rendered(self, sample: Sample) -> list[str]:
        """The messages to send about the sample: one, or one for each order.

        What a text says is data: its quotes and line breaks are escaped, and so are marks of chat templates, so that it
        can neither end the string it stands in nor the message. A placeholder within a text stays as it is.
        """
        context, reference = list(sample.context), sample.reference or ""
        orders = [(sample.response, reference), (reference, sample.response)][: 1 + self.both_orders]
        return [
            _filled(self.text, {"context": context, "response": own, "reference": other})
            for own, other in orders
        ]

    @property
    def response_format(self) -> dict[str, Any]:
        """The schema, for OpenAI's interface, of an answer that is a JSON object with a score on the scale."""
        steps = {"enum": list(range(self.low, self.high + 1))} if self.high - self.low <= 100 else {}
        answer = {
            "type": "object",
            "properties": {"score": {"type": "integer", **steps}},
            "required": ["score"],
            "additionalProperties": False,
        }
        return {"type": "json_schema", "json_schema": {"name": "judgment", "strict": True, "schema": answer}}

    def read(self, reply: Any) -> dict[str, Any] | None:
        """What a chat completion says: answer, score on the prompt's scale or None, reason for None, and method; None
        for a reply of another form.

        If the reply has log-probabilities, the score is the mean of the scale's steps, weighted by their tokens'
        probabilities (method "expected": Liu et al. 2023, G-Eval, section 2), or else the answer's number ("number").
        """
        try:
            choice = reply["choices"][0]
            message, ended = choice["message"], choice.get("finish_reason")
            text, refusal = message.get("content") or "", message.get("refusal")
        except (TypeError, KeyError, IndexError, AttributeError):
            return None
        if not isinstance(text, str):
            return None
        start = match.end() if (match := _THOUGHT.match(text)) else 0
        number = _number(text[start:])
        top = int(number.groupdict().get("top") or 0) if number else 0  # as in 4/10
        score, reason, method = None, None, "number"
        if refusal or ended == "content_filter":
            text, reason = refusal if isinstance(refusal, str) else text, "refused"
        elif ended == "length":  # its number may not be the final one
            reason = "cut off by max_tokens"
        elif number is None:
            reason = "no number"
        elif not self.low <= float(number[1]) <= self.high or top not in (0, self.high):
            reason = "outside the scale"
        else:
            score = float(number[1])
            if (
                number[1].isdecimal() and self.high <= 9
            ):  # so that a step is one token; "4" is not the token of 4.5
                # There may be no log-probabilities, or malformed ones.
                with suppress(AttributeError, KeyError, TypeError, OverflowError):
                    score = self._expected(choice["logprobs"]["content"], number[1], start + number.start(1))
                    method = "expected"
        return {"answer": text, "score": score, "reason": reason, "method": method}

    def _expected(self, tokens: Any, number: str, place: int) -> float:
        """The mean of the scale's steps, weighted by their probabilities as the token of the number at the character
        `place`.

        KeyError if that token is not the number alone, as where the tokens are also those of a thought that the text
        leaves out; another error if the log-probabilities are malformed or lack all steps.
        """
        weights = dict.fromkeys(range(self.low, self.high + 1), 0.0)
        end = 0
        for token in tokens:
            end += len(token["token"])
            if end > place:
                break
        else:
            raise KeyError(place)
        if token["token"].strip() != number:
            raise KeyError(number)
        for option in token["top_logprobs"]:
            step = option["token"].strip()
            if re.fullmatch(r"\d", step) and int(step) in weights:
                weights[int(step)] += math.exp(option["logprob"])
        total = sum(weights.values())
        mean = sum(step * weight for step, weight in weights.items()) / (total or math.nan)
        if not math.isfinite(mean):
            raise OverflowError(mean)
        return mean


def load_prompt(spec: str) -> Prompt:
    """The packaged prompt of that name, the prompt in a file, or `spec` itself if it has several lines.

    EvaluatorError for a prompt that does not exist, cannot be read, lacks a placeholder or has no scale of whole
    numbers.
    """
    where = "the prompt" if "\n" in spec else f"prompt {spec}"
    packaged = {file.stem: file for file in FOLDER.glob("*.md")}
    if spec in packaged or "\n" in spec:
        source, content = spec, packaged[spec].read_text(encoding="utf-8") if spec in packaged else spec
    else:
        path = expanded(spec)
        try:
            if not path.is_file():
                near = (
                    did_you_mean(spec, packaged)
                    or f"; the packaged prompts are {', '.join(sorted(packaged))}"
                )
                raise EvaluatorError(f"no prompt or file {spec!r}{near}")
            source = content = read_text(path)
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or one_line(error)
            raise EvaluatorError(
                f"{where}: cannot be read ({why}); give a file of UTF-8 text that you may read"
            ) from None
    parts = re.split(r"^---[ \t]*\n", content.replace("\r\n", "\n"), maxsplit=2, flags=re.MULTILINE)
    if len(parts) != 3 or parts[0].strip():
        raise EvaluatorError(
            f"{where}: it must begin with front matter between lines of ---: criterion, scale and version"
        )
    lines = [line.partition(":") for line in parts[1].splitlines() if line.strip()]
    fields, text = {key.strip(): value.strip() for key, _, value in lines}, parts[2].strip()
    both = fields.pop("orders", "one")
    missing = ", ".join(sorted(name for name in _FIELDS if not fields.get(name)))
    unknown = ", ".join(sorted(fields.keys() - _FIELDS))
    scale = re.fullmatch(r"(\d{1,9})\s*-\s*(\d{1,9})", fields.get("scale", ""))
    low, high = map(int, scale.groups()) if scale else (0, 0)
    absent = [field for field in ("{context}", "{response}") if field not in text]
    for fault, wrong in (
        (f"its front matter lacks {missing}", missing),
        (f"its front matter has unknown fields: {unknown}", unknown),
        (f"scale {fields.get('scale')!r} has no two steps; write whole numbers such as 1-5", low >= high),
        (f"the placeholder {' '.join(absent)} is missing from its text", absent),
        (
            "orders is one, or both where it has {reference}",
            both != "one" and (both != "both" or "{reference}" not in text),
        ),
    ):
        if wrong:
            raise EvaluatorError(f"{where}: {fault}")
    return Prompt(source, text, fields["criterion"], low, high, fields["version"], both == "both")


def _number(text: str) -> re.Match[str] | None:
    """The number that the answer gives: the only one alone in a line, the value in a JSON object, or the only one."""
    of_object = rf'(?i)"(?:score|rating)"\s*:\s*"?{_NUMBER}'
    alone, any_ = ([*pattern.finditer(text)] for pattern in (_ALONE, _ANY))
    for numbers in (alone, [*re.finditer(of_object, text)][:1], any_):
        if len({match[1] for match in numbers}) == 1:
            return numbers[0]
    return None


def _filled(text: str, values: Mapping[str, object]) -> str:
    """The text with its placeholders replaced by JSON, in one pass."""
    return _PLACEHOLDER.sub(lambda field: _json(values[field[1]]), text)


def _json(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    encoded = json.dumps(value, ensure_ascii=False)
    return _MARKS.sub(lambda mark: f"\\u{ord(mark[0]):04x}", encoded)
