"""`judge` and `judge-ref`: the score that a language model gives when it is asked how good a response is."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

import numpy as np

from ssrem import trusted_sources
from ssrem.encoders.store import text_hashes
from ssrem.errors import EvaluatorError
from ssrem.evaluators import MANIFEST, evaluator_class
from ssrem.evaluators.base import Evaluator
from ssrem.evaluators.judge.endpoint import (
    GO_ON,
    Client,
    Endpoint,
    Journal,
    JudgeRefSettings,
    JudgeSettings,
    RefusedError,
)
from ssrem.evaluators.judge.prompt import load_prompt
from ssrem.evaluators.metric import Metric, MetricScores
from ssrem.files import read_json
from ssrem.samples import Sample

_MALFORMED = "malformed answer"
_OF_ONE_TEXT = re.compile(r"content|context|length|long|tokens|filter|policy", re.IGNORECASE)
"""Words by which an endpoint refuses a single message for its content, not every message for its form."""
_MOST_TOKENS = 10**9
_KEPT = (
    *("answer", "score", "reason", "method", "prompt_tokens", "completion_tokens"),
    *("seconds", "model", "fingerprint", "asked_at"),
)


@dataclass(frozen=True)
class Question:
    """A message to send. key: hash of all that the answer may depend on; texts: hashes of the sample's texts."""

    key: str
    message: str
    texts: tuple[int, ...]


class Judge(Metric):
    """Score by a language model behind an OpenAI-compatible endpoint, from its answer to a prompt with the sample.

    Where the endpoint gives the probabilities of tokens, the score is the mean of the steps of the prompt's scale,
    weighted by these, as in G-Eval; otherwise it is the number in the answer. client: shared by the judges of a run;
    set another to keep answers in a journal or to limit the requests.
    """

    name: ClassVar[str] = "judge"
    source: ClassVar[str] = "Liu et al. 2023 (G-Eval), section 2; Zheng et al. 2023 (LLM-as-a-judge)"
    settings_model: ClassVar[type[JudgeSettings]] = JudgeSettings
    in_engine: ClassVar[frozenset[str]] = frozenset({"prompt"})

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        trusted_sources.check(self.settings.base_url)
        self.prompt = load_prompt(self.settings.prompt)
        self.client = Client()
        self._journals: dict[Path | None, Journal] = {}
        self._unanswered: dict[str, str] = {}

    @property
    def range(self) -> tuple[float, float]:  # type: ignore[override]
        """The prompt's scale."""
        return float(self.prompt.low), float(self.prompt.high)

    @property
    def engine(self) -> str:
        return f"prompt:{self.prompt.criterion}@{self.prompt.digest}"

    @property
    def journal(self) -> Journal:
        """The journal with the answers of this judge alone, in the client's folder."""
        folder = self.client.journal
        if folder not in self._journals:
            name = hashlib.sha256(self.signature.encode()).hexdigest()[:16]
            self._journals[folder] = Journal(folder / f"{name}.jsonl" if folder else None)
        return self._journals[folder]

    def values(self, samples: Sequence[Sample]) -> MetricScores:
        questions = [self._questions(sample) for sample in samples]
        self._send(self._missing(questions), len(samples))
        values, reasons = zip(*map(self._read, questions), strict=True)
        whole = [(tuple(sample.last_turns(len(sample.context))), sample.response) for sample in samples]
        truncated = [self._visible(one) != text for one, text in zip(samples, whole, strict=True)]
        return MetricScores(np.array(values, dtype=np.float64), np.array(truncated), reasons)

    def asked(self, samples: Sequence[Sample]) -> dict[str, int]:
        """Counts of what scoring the samples would ask; nothing is sent. requests: those still to be sent;
        answered_before: those whose answers are stored; prompt_tokens: tokens to be sent, estimated as one for four
        characters; completion_tokens: tokens that come back at most."""
        questions = [self._questions(sample) for sample in samples if not self.lacks(sample)]
        missing, keys = self._missing(questions), {one.key for own in questions for one in own}
        return {
            "requests": len(missing),
            "answered_before": len(keys) - len(missing),
            "prompt_tokens": sum(len(question.message) // 4 + 8 for question in missing),
            "completion_tokens": len(missing) * self.settings.max_tokens,
        }

    def judgments(self, samples: Sequence[Sample]) -> Iterator[dict[str, Any]]:
        """Every answer that the scores of the samples come from, as a row of the table `judgments`. Its `row` is the
        position of the sample."""
        for row, sample in enumerate(samples):
            for order, question in enumerate(() if self.lacks(sample) else self._questions(sample)):
                if answer := self.journal.get(question.key):
                    yield {
                        **{name: answer.get(name) for name in _KEPT},
                        "row": row,
                        "order_no": order,
                        "prompt": f"{self.prompt.criterion}@{self.prompt.digest}",
                        "request": question.key,
                    }

    def _visible(self, sample: Sample) -> tuple[tuple[str, ...], str]:
        """The parts of a sample's context and response that are sent."""
        reference = sample.reference if self.prompt.compares else None
        room = max(self.settings.max_characters - len(reference or ""), 1)
        response = sample.response[:room]
        room -= len(response)
        context: list[str] = []
        for turn in reversed(sample.last_turns(self.settings.context_turns)):
            if len(turn) > room and context:
                break
            context.insert(0, turn[-room:] if room else "")
            room -= len(context[0])
        return tuple(context), response

    def _questions(self, sample: Sample) -> list[Question]:
        """The questions about a sample: one, or one for each order of response and reference."""
        context, response = self._visible(sample)
        own = self.settings.model_dump(exclude={"prompt"})
        texts = [*context, response]
        if self.prompt.compares and sample.reference:
            texts.append(sample.reference)
        hashes = tuple(text_hashes(texts).tolist())
        questions = []
        for message in self.prompt.rendered(Sample(context, response, sample.reference)):
            depends_on = json.dumps([own, self.prompt.digest, message], sort_keys=True)
            questions.append(Question(hashlib.sha256(depends_on.encode()).hexdigest(), message, hashes))
        return questions

    def _missing(self, questions: Sequence[Sequence[Question]]) -> list[Question]:
        """The questions that have no stored answer, each once."""
        found = {one.key: one for own in questions for one in own if self.journal.get(one.key) is None}
        return list(found.values())

    def _read(self, questions: Sequence[Question]) -> tuple[float, str]:
        """The mean score of the answers to a sample's questions, and ""; NaN and the reason if one has no score."""
        scores = []
        for order, question in enumerate(questions):
            answer = self.journal.get(question.key)
            if answer is None or answer["score"] is None:
                reason = answer["reason"] if answer else self._unanswered.get(question.key, _MALFORMED)
                return np.nan, reason
            scores.append(self.prompt.low + self.prompt.high - answer["score"] if order else answer["score"])
        return sum(scores) / len(scores), ""

    def _send(self, questions: Sequence[Question], responses: int) -> None:
        """Send the questions; each answer goes into the journal as it comes. responses: number that they are about.

        EvaluatorError if the endpoint cannot be used, or the client's limit does not allow all questions.
        """
        if not questions:
            return
        client, total, done = self.client, len(questions), 0
        limit = total if client.max_requests is None else client.max_requests - client.requests
        asked = questions[: max(limit, 0)]
        client.requests += len(asked)
        settings = self.settings_of_run(client.options)
        with closing(Endpoint(settings, self.prompt.response_format, client.say_once)) as endpoint:
            client.say_once(
                f"{self.name} sends {responses:,} responses with their contexts to {endpoint.where}, model "
                f"{settings.model}: {total:,} requests",
                about=endpoint.where,
            )
            # Threads of this pool, unlike those of concurrent.futures, do not keep an interrupted process alive.
            with ThreadPool(settings.concurrency) as pool:
                for first in (True, False):  # the first alone shows what the endpoint takes
                    some = asked[:1] if first else asked[1:]
                    for _ in pool.imap_unordered(partial(self._ask, endpoint, first=first), some):
                        done += 1
                        client.advance(done, total)
        if left := total - len(asked):
            raise EvaluatorError(
                f"{self.name}: stopped at max_requests={client.max_requests} with {left:,} of {total:,} requests left; "
                f"{GO_ON}"
            )

    def _ask(self, endpoint: Endpoint, question: Question, *, first: bool) -> None:
        """Ask a question, and store what a file and a table can hold of the answer, or why there is none."""
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
        usage = reply.get("usage") if isinstance(reply.get("usage"), dict) else {}
        counts = {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens")}
        self.journal.add(
            {
                "key": question.key,
                "texts": question.texts,
                **read,
                **{
                    name: n if type(n) is int and 0 <= n <= _MOST_TOKENS else None
                    for name, n in counts.items()
                },
                "answer": endpoint.kept(read["answer"]),
                "seconds": monotonic() - started,
                "model": endpoint.kept(reply.get("model")) or self.settings.model,
                "fingerprint": endpoint.kept(reply.get("system_fingerprint")),
                "asked_at": f"{datetime.now(UTC):%F %T}",
            }
        )


class JudgeRef(Judge):
    """A judge whose prompt shows the true response; by default it asks which of the two is better, in both orders."""

    name: ClassVar[str] = "judge-ref"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "reference"})
    settings_model: ClassVar[type[JudgeSettings]] = JudgeRefSettings


def judges(evaluator: Evaluator) -> list[Judge]:
    """The judges in an evaluator: itself, or those among the parts of a blend."""
    members: dict[str, Evaluator] = getattr(evaluator, "members", {"": evaluator})
    return [one for one in members.values() if isinstance(one, Judge)]


def asks(folder: Path) -> bool:
    """Whether the evaluator saved in a folder is a judge, or a blend with one. Nothing is loaded."""
    names = set()
    for file in folder.rglob(MANIFEST):
        about = read_json(file, ("name",))
        names |= {about["name"], *(part["evaluator"] for part in about.get("config", {}).get("parts", ()))}
    return any(issubclass(evaluator_class(name), Judge) for name in names)


def judgments(evaluator: Evaluator, samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Every answer of a judge that the evaluator's scores of the samples come from, as `Judge.judgments` gives them."""
    return [row for judge in judges(evaluator) for row in judge.judgments(samples)]


def asked(evaluator: Evaluator, samples: Sequence[Sample]) -> dict[str, int]:
    """Requests and tokens that scoring the samples would take, as `Judge.asked` counts them; 0 without a judge."""
    total = dict.fromkeys(("requests", "answered_before", "prompt_tokens", "completion_tokens"), 0)
    usable = [sample for sample in samples if not evaluator.lacks(sample)]
    for judge in judges(evaluator):
        total = {name: total[name] + count for name, count in judge.asked(usable).items()}
    return total
