"""`judge` and `judge-ref`: the score that a language model gives when it is asked how good a response is."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar
from urllib.parse import urlsplit

import numpy as np

from ssrem import trusted_sources
from ssrem.encoders.store import text_hashes
from ssrem.errors import EvaluatorError, SsremError
from ssrem.evaluators import MANIFEST, evaluator_class, source_hash
from ssrem.evaluators.base import Evaluator
from ssrem.evaluators.core.metric import Metric, Scored
from ssrem.evaluators.judge.endpoint import (
    GO_ON,
    Client,
    Endpoint,
    Journal,
    JudgeSettings,
    RefusedError,
    RequestOptions,
)
from ssrem.evaluators.judge.prompt import load_prompt
from ssrem.files import read_json
from ssrem.samples import Sample

OPTIONS = tuple(RequestOptions.model_fields)
"""Settings that change no score, so that they are neither saved nor part of the signature."""

_MALFORMED = "malformed answer"
_OF_ONE_TEXT = re.compile(r"content|context|length|long|tokens|filter|policy", re.IGNORECASE)
"""What an endpoint says that refuses one message for what it contains, rather than all for how they are asked."""
_MOST_TOKENS = 10**9
_KEPT = (
    *("answer", "score", "reason", "method", "prompt_tokens", "completion_tokens"),
    *("seconds", "model", "fingerprint", "asked_at"),
)


@dataclass(frozen=True)
class Question:
    """A message to send. key: hash of all that the answer may depend on; texts: hashes of the sample's texts; order,
    nth: which order of the responses and which sample of the answer it is for."""

    key: str
    message: str
    texts: tuple[int, ...]
    order: int
    nth: int


class Judge(Metric):
    """The answer of a language model, behind an OpenAI-compatible endpoint, to a prompt with context and response.

    The score is the expected step of the prompt's scale over the probabilities of its tokens, where the endpoint gives
    them, as in G-Eval; else the number that it answers. Settings: see `JudgeSettings`. client: what the judges of a run
    share; set another to keep answers in a journal or to limit the requests.
    """

    name: ClassVar[str] = "judge"
    source: ClassVar[str] = "Liu et al. 2023 (G-Eval), section 2; Zheng et al. 2023 (LLM-as-a-judge)"
    defaults: ClassVar[Mapping[str, Any]] = JudgeSettings().model_dump()

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.options = {name: self.settings.pop(name) for name in OPTIONS}
        self.prompt = load_prompt(self.settings["prompt"])
        self.settings["prompt"] = self.prompt.source  # all of a file, so that a saved judge needs none
        self.settings["base_url"] = self.settings["base_url"].rstrip("/")
        trusted_sources.check(self.settings["base_url"])
        self.client = Client()
        self._journals: dict[Path | None, Journal] = {}
        self._unanswered: dict[str, str] = {}

    @classmethod
    def check_settings(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        try:
            chosen = JudgeSettings(**{"prompt": cls.defaults["prompt"], **settings})
        except SsremError as error:
            raise EvaluatorError(f"{cls.name}: {error}") from None
        if not chosen.model:
            raise EvaluatorError(
                f"{cls.name} needs a model: --set model=NAME, and base_url=URL unless it is OpenAI's"
            )
        url = urlsplit(chosen.base_url)
        if url.scheme not in ("http", "https") or not url.hostname or url.username or url.query:
            raise EvaluatorError(
                f"{cls.name}: base_url must be an address such as http://localhost:8000/v1, without a password or a "
                "query"
            )
        prompt = load_prompt(chosen.prompt)
        if prompt.compares != ("reference" in cls.needs):
            other = "shows the true response; use judge-ref" if prompt.compares else "does not; use judge"
            raise EvaluatorError(f"{cls.name}: prompt {prompt.criterion} {other}")
        return chosen.model_dump()

    @property
    def range(self) -> tuple[float, float]:  # type: ignore[override]
        """The prompt's scale."""
        return float(self.prompt.low), float(self.prompt.high)

    @property
    def engine(self) -> str:
        return f"prompt:{self.prompt.criterion}@{self.prompt.digest}"

    @property
    def signature(self) -> str:
        shown = {name: value for name, value in self.settings.items() if name != "prompt"}
        settings = "".join(f"|{name}:{value}" for name, value in sorted(shown.items()))
        return f"{self.name}{settings}|{self.engine}{source_hash(type(self))}"

    @property
    def journal(self) -> Journal:
        """The answers of this judge alone, in the folder of the client."""
        folder = self.client.journal
        if folder not in self._journals:
            name = hashlib.sha256(self.signature.encode()).hexdigest()[:16]
            self._journals[folder] = Journal(folder / f"{name}.jsonl" if folder else None)
        return self._journals[folder]

    def values(self, samples: Sequence[Sample]) -> Scored:
        questions = [self._questions(sample) for sample in samples]
        self._send(self._missing(questions), len(samples))
        values, reasons = zip(*map(self._read, questions), strict=True)
        truncated = [
            visible != (_spoken(sample), sample.response)
            for visible, sample in zip(map(self._visible, samples), samples, strict=True)
        ]
        return Scored(np.array(values, dtype=np.float64), np.array(truncated), reasons)

    def asked(self, samples: Sequence[Sample]) -> dict[str, int]:
        """What scoring the samples would ask; nothing is sent. requests: still to be sent; answered_before: those whose
        answers are stored; prompt_tokens: about how many are sent, one for four characters; completion_tokens: how many
        come back at most."""
        questions = [self._questions(sample) for sample in samples if not self.lacks(sample)]
        missing, all_keys = self._missing(questions), {one.key for own in questions for one in own}
        return {
            "requests": len(missing),
            "answered_before": len(all_keys) - len(missing),
            "prompt_tokens": sum(len(question.message) // 4 + 8 for question in missing),
            "completion_tokens": len(missing) * self.settings["max_tokens"],
        }

    def judgments(self, samples: Sequence[Sample]) -> Iterator[dict[str, Any]]:
        """Every answer that the scores of the samples come from, as rows of the table `judgments`, with the position of
        the sample as `row`."""
        for row, sample in enumerate(samples):
            for question in self._questions(sample) if not self.lacks(sample) else ():
                if answer := self.journal.get(question.key):
                    yield {
                        **{name: answer.get(name) for name in _KEPT},
                        "row": row,
                        "order_no": question.order,
                        "sample_no": question.nth,
                        "prompt": f"{self.prompt.criterion}@{self.prompt.digest}",
                        "request": question.key,
                        "response_hash": hashlib.sha256(
                            sample.response.encode("utf-8", "replace")
                        ).hexdigest()[:16],
                    }

    def _visible(self, sample: Sample) -> tuple[tuple[str, ...], str]:
        """What is sent of a sample's context and response."""
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
        return tuple(context), response

    def _questions(self, sample: Sample) -> list[Question]:
        context, response = self._visible(sample)
        own = {name: value for name, value in self.settings.items() if name != "prompt"}
        texts = [*context, response]
        if self.prompt.compares and sample.reference:
            texts.append(sample.reference)
        hashes = tuple(text_hashes(texts).tolist())
        questions = []
        for order, message in enumerate(self.prompt.rendered(Sample(context, response, sample.reference))):
            for nth in range(self.settings["samples"]):
                depends_on = [own, self.prompt.digest, message, nth]
                key = hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()
                questions.append(Question(key, message, hashes, order, nth))
        return questions

    def _missing(self, questions: Sequence[Sequence[Question]]) -> list[Question]:
        """Those of the questions that were not answered, each once."""
        journal = self.journal
        return list(
            {one.key: one for own in questions for one in own if journal.get(one.key) is None}.values()
        )

    def _read(self, questions: Sequence[Question]) -> tuple[float, str]:
        """The mean of the answers of each order, and of the orders; NaN, and why, where an order has no score."""
        of_orders = []
        for order in range(1 + self.prompt.both_orders):
            own = [question for question in questions if question.order == order]
            answers = [self.journal.get(question.key) for question in own]
            scores = [answer["score"] for answer in answers if answer and answer["score"] is not None]
            if not scores:
                reason = next((answer["reason"] for answer in answers if answer), "")
                return np.nan, reason or self._unanswered.get(own[0].key, _MALFORMED)
            mean = sum(scores) / len(scores)
            of_orders.append(self.prompt.low + self.prompt.high - mean if order else mean)
        return sum(of_orders) / len(of_orders), ""

    def _send(self, questions: Sequence[Question], responses: int) -> None:
        """Ask the questions about a number of responses; each answer goes into the journal as it comes.

        EvaluatorError if the endpoint cannot be asked, or the client's limit does not allow all questions.
        """
        if not questions:
            return
        client, total, done = self.client, len(questions), 0
        limit = total if client.max_requests is None else client.max_requests - client.requests
        asked = questions[: max(limit, 0)]
        client.requests += len(asked)
        settings = JudgeSettings(**{**self.settings, **self.options, **client.options})
        with closing(Endpoint(settings, self.prompt.response_format, client.say_once)) as endpoint:
            client.say_once(
                f"{self.name} sends {responses:,} responses with their contexts to {endpoint.where}, model "
                f"{settings.model}: {total:,} requests",
                about=endpoint.where,
            )
            pool = ThreadPoolExecutor(settings.concurrency)
            try:
                for first in (True, False):  # the first one alone: it shows what the endpoint can do
                    some = asked[:1] if first else asked[1:]
                    for future in as_completed([pool.submit(self._ask, endpoint, q, first) for q in some]):
                        future.result()
                        done += 1
                        client.advance(done, total)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        if len(asked) < total:
            raise EvaluatorError(
                f"{self.name}: stopped at max_requests={client.max_requests} with {total - len(asked):,} of {total:,} "
                f"requests left; {GO_ON}"
            )

    def _ask(self, endpoint: Endpoint, question: Question, first: bool) -> None:
        """Keep the answer to a question, as far as a file and a table can hold it, or why there is none."""
        started = monotonic()
        try:
            reply = endpoint.ask(question.message)
        except RefusedError as error:
            if first and not _OF_ONE_TEXT.search(str(error)):
                raise EvaluatorError(f"{self.name}: {endpoint.where} refuses the request ({error})") from None
            self._unanswered[question.key] = f"not taken by the endpoint: {error}"
            return
        read = self.prompt.read(reply)
        if read is None:
            self._unanswered[question.key] = _MALFORMED
            return

        def text(value: Any) -> str | None:
            # Without what no file can hold, such as half of a pair of surrogates.
            return (
                endpoint.hidden(value.encode("utf-8", "replace").decode()) if isinstance(value, str) else None
            )

        def count(name: str) -> int | None:
            usage = reply.get("usage")
            value = usage.get(name) if isinstance(usage, dict) else None
            return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None

        self.journal.add(
            {
                "key": question.key,
                "texts": question.texts,
                **read,
                "answer": text(read["answer"]),
                "prompt_tokens": count("prompt_tokens"),
                "completion_tokens": count("completion_tokens"),
                "seconds": monotonic() - started,
                "model": text(reply.get("model")) or self.settings["model"],
                "fingerprint": text(reply.get("system_fingerprint")),
                "asked_at": f"{datetime.now(UTC):%F %T}",
            }
        )


class JudgeRef(Judge):
    """A judge whose prompt shows the true response; by default it asks which of the two is better, in both orders."""

    name: ClassVar[str] = "judge-ref"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "reference"})
    defaults: ClassVar[Mapping[str, Any]] = {**Judge.defaults, "prompt": "pairwise"}


def judges(evaluator: Evaluator) -> list[Judge]:
    """The judges in an evaluator: itself, or those among the parts of a blend."""
    members = getattr(evaluator, "members", None)
    of = members.evaluators.values() if members else [evaluator]
    return [one for one in of if isinstance(one, Judge)]


def asks(folder: Path) -> bool:
    """Whether the evaluator saved in a folder is a judge, or a blend with one. Nothing is loaded."""
    names = {read_json(file, ("name",))["name"] for file in folder.rglob(MANIFEST)}
    return any(issubclass(evaluator_class(name), Judge) for name in names)


def judgments(evaluator: Evaluator, samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Every answer of a judge that the evaluator's scores of the samples come from; see `Judge.judgments`."""
    return [row for judge in judges(evaluator) for row in judge.judgments(samples)]


def asked(evaluator: Evaluator, samples: Sequence[Sample]) -> dict[str, int]:
    """What scoring the samples would ask of endpoints, as `Judge.asked` counts it; zeros if it asks nothing."""
    total = dict.fromkeys(("requests", "answered_before", "prompt_tokens", "completion_tokens"), 0)
    usable = [sample for sample in samples if not evaluator.lacks(sample)]
    for judge in judges(evaluator):
        total = {name: total[name] + count for name, count in judge.asked(usable).items()}
    return total


def _spoken(sample: Sample) -> tuple[str, ...]:
    """The turns of the context that are not blank."""
    return tuple(turn for turn in sample.context if turn.strip())
