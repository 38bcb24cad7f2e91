"""`judge` and `judge-ref`: the score that a language model gives when it is asked how good a response is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from ssrem import trusted_sources
from ssrem.encoders.store import text_hashes
from ssrem.errors import EvaluatorError
from ssrem.evaluators import source_hash
from ssrem.evaluators.base import Bill
from ssrem.evaluators.core.metric import Metric, Scored, check_text, check_whole
from ssrem.evaluators.judge.answers import WAYS, token_count
from ssrem.evaluators.judge.journal import Journal
from ssrem.evaluators.judge.prompt import load_prompt
from ssrem.evaluators.judge.request_options import OPTIONS, RequestOptions, current, prices_of
from ssrem.evaluators.judge.sender import MALFORMED, Question, Sender
from ssrem.samples import Sample


class Judge(Metric):
    """The answer of a language model, behind an OpenAI-compatible endpoint, to a prompt with context and response.

    The score is the expected step of the prompt's scale over the probabilities of its tokens, where the endpoint gives
    them, as in G-Eval; else the number that it answers.

    Settings. base_url, model: the endpoint. prompt: a packaged prompt or a file (see `prompt`). samples: answers to
    average. temperature: of the answers. answers: what is asked for beside the text: logprobs, structured (JSON by a
    schema), plain (neither), or auto: both, as far as the endpoint has them. max_tokens: of an answer, more for a model
    that thinks first.
    context_turns: turns before the response at most; max_characters: of all texts of a sample: the oldest turns are
    dropped first, then the response's end. The other settings are those of `RequestOptions`, which change no score.
    """

    name: ClassVar[str] = "judge"
    source: ClassVar[str] = "Liu et al. 2023 (G-Eval), section 2; Zheng et al. 2023 (LLM-as-a-judge)"
    range: ClassVar[tuple[float, float]] = (1.0, 5.0)
    asks: ClassVar[bool] = True
    defaults: ClassVar[Mapping[str, Any]] = {
        "base_url": "https://api.openai.com/v1",
        "model": None,
        "prompt": "overall",
        "samples": 1,
        "temperature": 0,
        "answers": "auto",
        "max_tokens": 32,
        "context_turns": 20,
        "max_characters": 12_000,
        **{name: getattr(RequestOptions, name) for name in OPTIONS},
    }

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.options = {name: self.settings.pop(name) for name in OPTIONS}
        self.prompt = load_prompt(self.settings["prompt"])
        self.settings["prompt"] = self.prompt.source  # all of a file, so that a saved judge needs none
        self.settings["base_url"] = self.settings["base_url"].rstrip("/")
        trusted_sources.check(self.settings["base_url"])
        self.range = (float(self.prompt.low), float(self.prompt.high))  # type: ignore[misc]
        self._journals: dict[Path | None, Journal] = {}
        self._unanswered: dict[str, str] = {}

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        chosen = super().check_settings(settings)
        if chosen["model"] is None:
            raise EvaluatorError(
                f"{cls.name} needs a model: --set model=NAME, and base_url=URL unless it is OpenAI's"
            )
        for name in ("model", "base_url", "prompt"):
            check_text(cls.name, name, chosen[name])
        for name in ("samples", "max_tokens", "context_turns", "max_characters"):
            check_whole(cls.name, name, chosen[name])
        temperature = chosen["temperature"]
        if type(temperature) not in (int, float) or not 0 <= temperature <= 2:
            raise EvaluatorError(f"{cls.name}: temperature is {temperature!r}; expected a number from 0 to 2")
        if chosen["answers"] not in WAYS:
            raise EvaluatorError(
                f"{cls.name}: answers is {chosen['answers']!r}; expected one of {', '.join(WAYS)}"
            )
        url = urlsplit(chosen["base_url"])
        if url.scheme not in ("http", "https") or not url.hostname or url.username or url.query:
            raise EvaluatorError(
                f"{cls.name}: base_url must be an address such as http://localhost:8000/v1, without a password or a "
                "query"
            )
        prompt = load_prompt(chosen["prompt"])
        if prompt.compares != ("reference" in cls.needs):
            other = "shows the true response; use judge-ref" if prompt.compares else "does not; use judge"
            raise EvaluatorError(f"{cls.name}: prompt {prompt.criterion} {other}")
        prices_of(RequestOptions(**{name: chosen[name] for name in OPTIONS}).prices, chosen["model"])
        return chosen

    @property
    def engine(self) -> str:
        return f"prompt:{self.prompt.criterion}@{self.prompt.digest}"

    @property
    def signature(self) -> str:
        shown = {name: value for name, value in self.settings.items() if name != "prompt"}
        settings = "".join(f"|{name}:{value}" for name, value in sorted(shown.items()))
        return f"{self.name}{settings}|{self.engine}{source_hash(type(self))}"

    def values(self, samples: Sequence[Sample]) -> Scored:
        options = current(**self.options)
        journal = self._journal(options.journal)
        visible = [self._visible(sample) for sample in samples]
        questions = [self._questions(sample) for sample in visible]
        missing = {
            question.key: question
            for of_sample in questions
            for question in of_sample
            if journal.get(question.key) is None
        }
        if missing:
            sender = Sender(self.name, self.settings, self.prompt, journal, options, self._unanswered)
            sender.send(list(missing.values()), len(samples))
        read = [self._read(of_sample, journal) for of_sample in questions]
        whole = [replace(sample, context=_spoken(sample)) for sample in samples]
        truncated = [seen != sample for seen, sample in zip(visible, whole, strict=True)]
        values, reasons = zip(*read, strict=True)
        return Scored(np.array(values, dtype=np.float64), np.array(truncated), reasons)

    def bill(self, samples: Sequence[Sample]) -> Bill:
        options = current(**self.options)
        journal, prices = self._journal(options.journal), prices_of(options.prices, self.settings["model"])
        usable = [sample for sample in samples if self.lacks(sample) is None]
        questions = {q.key: q for sample in usable for q in self._questions(self._visible(sample))}
        missing = [question for key, question in questions.items() if journal.get(key) is None]
        sent, answered = sum(q.tokens for q in missing), len(missing) * self.settings["max_tokens"]
        cost = prices.of(sent, answered) if prices else None
        return Bill(len(missing), len(questions) - len(missing), sent, answered, cost)

    def judgments(self, samples: Sequence[Sample]) -> Iterator[dict[str, Any]]:
        journal = self._journal(current(**self.options).journal)
        for row, sample in enumerate(samples):
            for question in self._questions(self._visible(sample)) if self.lacks(sample) is None else ():
                if entry := journal.get(question.key):
                    yield {
                        **{name: value for name, value in entry.items() if name not in ("key", "texts")},
                        # a journal of before these were checked may hold any number
                        **{
                            name: token_count(entry.get(name))
                            for name in ("prompt_tokens", "completion_tokens")
                        },
                        "row": row,
                        "order_no": question.order,
                        "sample_no": question.nth,
                        "prompt": f"{self.prompt.criterion}@{self.prompt.digest}",
                        "request": question.key,
                        "response_hash": hashlib.sha256(
                            sample.response.encode("utf-8", "replace")
                        ).hexdigest()[:16],
                    }

    def _journal(self, folder: Path | None) -> Journal:
        """The journal in the folder, of this judge alone."""
        if folder not in self._journals:
            name = hashlib.sha256(self.signature.encode()).hexdigest()[:16]
            self._journals[folder] = Journal(folder / f"{name}.jsonl" if folder else None)
        return self._journals[folder]

    def _visible(self, sample: Sample) -> Sample:
        """What is sent of a sample."""
        reference = sample.reference if self.prompt.compares else None
        room = max(self.settings["max_characters"] - len(reference or ""), 1)
        response = sample.response[:room]
        room -= len(response)
        context: list[str] = []
        for turn in reversed(_spoken(sample)[-self.settings["context_turns"] :]):
            if len(turn) > room and context:
                break
            context.insert(0, turn[-room:] if room else "")
            room -= len(context[0])
        return replace(sample, context=tuple(context), response=response)

    def _questions(self, sample: Sample) -> list[Question]:
        own = {name: value for name, value in self.settings.items() if name != "prompt"}
        texts = [*sample.context, sample.response]
        if self.prompt.compares and sample.reference:
            texts.append(sample.reference)
        hashes = tuple(text_hashes(texts).tolist())
        questions = []
        for order, message in enumerate(self.prompt.rendered(sample)):
            for nth in range(self.settings["samples"]):
                depends_on = [own, self.prompt.digest, message, nth]
                key = hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()
                questions.append(Question(key, message, hashes, order, nth))
        return questions

    def _read(self, questions: Sequence[Question], journal: Journal) -> tuple[float, str]:
        """The mean of the answers of each order, and of the orders; NaN, and why, where an order has no score."""
        of_orders = []
        for order in range(1 + self.prompt.both_orders):
            own = [question for question in questions if question.order == order]
            entries = [journal.get(question.key) for question in own]
            scores = [entry["score"] for entry in entries if entry and entry["score"] is not None]
            if not scores:
                reason = next((entry["reason"] for entry in entries if entry), "")
                return np.nan, reason or self._unanswered.get(own[0].key, MALFORMED)
            of_orders.append(self.prompt.score(order, sum(scores) / len(scores)))
        return sum(of_orders) / len(of_orders), ""


class JudgeRef(Judge):
    """A judge whose prompt shows the true response; by default it asks which of the two is better, in both orders."""

    name: ClassVar[str] = "judge-ref"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "reference"})
    defaults: ClassVar[Mapping[str, Any]] = {**Judge.defaults, "prompt": "pairwise"}


def _spoken(sample: Sample) -> tuple[str, ...]:
    """The turns of the context that are not blank."""
    return tuple(turn for turn in sample.context if turn.strip())
