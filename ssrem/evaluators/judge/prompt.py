"""Prompts of a judge: files with front matter, and placeholders that take the texts of a sample as JSON.

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
import re
from dataclasses import dataclass
from pathlib import Path

from ssrem.errors import EvaluatorError, one_line
from ssrem.files import expanded, read_text
from ssrem.registry import nearest
from ssrem.samples import Sample

FOLDER = Path(__file__).parent / "prompts"

_NEEDED = ("context", "response")
_PLACEHOLDER = re.compile(r"\{(context|response|reference)\}")
_SCALE = re.compile(r"(\d+)\s*-\s*(\d+)")
_KEYS = {"criterion", "scale", "version", "orders"}
_MARKS = re.compile(r"<|\[(?=/?[A-Z_]+\])")
"""Beginnings of what chat templates may take for the end of a message, such as <|im_end|> and [/INST]."""


@dataclass(frozen=True)
class Prompt:
    """A prompt. source: what `load_prompt` takes to give it again: the name of a packaged prompt, all of a file; low,
    high: ends of its scale, whole numbers; both_orders: see the module."""

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
        """The messages to send about the sample: one, or one for each order."""
        reference = sample.reference or ""
        orders = [(sample.response, reference), (reference, sample.response)]
        return [
            _filled(self.text, {"context": list(sample.context), "response": own, "reference": other})
            for own, other in orders[: 1 + self.both_orders]
        ]

    def score(self, order: int, value: float) -> float:
        """The score of the response that an answer of `value` to the message of that order means."""
        return self.low + self.high - value if order else value


def load_prompt(spec: str) -> Prompt:
    """The packaged prompt of that name, the prompt in a file, or `spec` itself if it has several lines.

    EvaluatorError for a prompt that does not exist, cannot be read, lacks a placeholder or has no scale of whole
    numbers.
    """
    if "\n" in spec:
        return _parsed("the prompt", spec, spec)
    packaged = {file.stem: file for file in FOLDER.glob("*.md")}
    if spec in packaged:
        return _parsed(f"prompt {spec}", spec, packaged[spec].read_text(encoding="utf-8"))
    path = expanded(spec)
    try:
        if not path.is_file():
            raise EvaluatorError(
                f"no prompt or file {spec!r}; the packaged prompts: {nearest(spec, sorted(packaged))}"
            )
        content = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or one_line(error)
        raise EvaluatorError(
            f"prompt {spec}: cannot be read ({reason}); give a file of UTF-8 text that you may read"
        ) from None
    return _parsed(f"prompt {spec}", content, content)


def _parsed(where: str, source: str, content: str) -> Prompt:
    parts = re.split(r"^---[ \t]*\n", content.replace("\r\n", "\n"), maxsplit=2, flags=re.MULTILINE)
    if len(parts) != 3 or parts[0].strip():
        raise EvaluatorError(
            f"{where}: it must begin with front matter between lines of ---: criterion, scale and version"
        )
    lines = [line.partition(":") for line in parts[1].splitlines() if line.strip()]
    fields = {key.strip(): value.strip() for key, _, value in lines}
    if missing := [key for key in ("criterion", "scale", "version") if not fields.get(key)]:
        raise EvaluatorError(f"{where}: its front matter lacks {', '.join(missing)}")
    if unknown := sorted(fields.keys() - _KEYS):
        raise EvaluatorError(f"{where}: its front matter has unknown fields: {', '.join(unknown)}")
    scale = _SCALE.fullmatch(fields["scale"])
    low, high = map(int, scale.groups()) if scale else (0, 0)
    if low >= high:
        raise EvaluatorError(
            f"{where}: scale {fields['scale']!r} has no two steps; write whole numbers such as 1-5"
        )
    text = parts[2].strip()
    if absent := [field for field in _NEEDED if f"{{{field}}}" not in text]:
        raise EvaluatorError(f"{where}: the placeholder {{{absent[0]}}} is missing from its text")
    both = fields.get("orders", "one")
    if both not in ("one", "both") or (both == "both" and "{reference}" not in text):
        raise EvaluatorError(f"{where}: orders is one, or both where it has {{reference}}")
    return Prompt(source, text, fields["criterion"], low, high, fields["version"], both == "both")


def _filled(text: str, values: dict[str, object]) -> str:
    """The text with its placeholders replaced by JSON, in one pass: a placeholder within a value stays as it is.

    What a text says is data: its quotes and line breaks are escaped, and so are marks of chat templates, so that it can
    neither end the string it stands in nor the message.
    """
    return _PLACEHOLDER.sub(lambda field: _json(values[field[1]]), text)


def _json(value: object) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    encoded = json.dumps(value, ensure_ascii=False)
    return _MARKS.sub(lambda mark: f"\\u{ord(mark[0]):04x}", encoded)
