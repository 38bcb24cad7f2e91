"""Sends the questions of a judge to its endpoint, several at a time, and keeps every answer in the journal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ssrem.errors import EvaluatorError
from ssrem.evaluators.judge.answers import Reading, read_reply, schema, token_count
from ssrem.evaluators.judge.client import GO_ON, Endpoint, RefusedError
from ssrem.evaluators.judge.journal import Journal
from ssrem.evaluators.judge.prompt import Prompt
from ssrem.evaluators.judge.request_options import Prices, RequestOptions, prices_of

MALFORMED = "malformed answer"
NOT_TAKEN = "not taken by the endpoint"

_OF_ONE_TEXT = re.compile(r"content|context|length|long|tokens|filter|policy", re.IGNORECASE)
"""What an endpoint says that refuses one message for what it contains, rather than all for how they are asked."""

_CHARACTERS_A_TOKEN = 4
_TOKENS_AROUND = 8


@dataclass(frozen=True)
class Question:
    """A message to send. key: hash of all that the answer may depend on; texts: hashes of the sample's texts; order,
    nth: which order of the responses and which sample of the answer it is for."""

    key: str
    message: str
    texts: tuple[int, ...]
    order: int
    nth: int

    @property
    def tokens(self) -> int:
        """About how many tokens it has."""
        return len(self.message) // _CHARACTERS_A_TOKEN + _TOKENS_AROUND


class Sender:
    """Sends questions. name, settings: of the judge; unanswered: question's key → why the endpoint gave no answer."""

    def __init__(
        self,
        name: str,
        settings: Mapping[str, Any],
        prompt: Prompt,
        journal: Journal,
        options: RequestOptions,
        unanswered: dict[str, str],
    ) -> None:
        self.name, self.settings, self.prompt = name, settings, prompt
        self.journal, self.options, self.unanswered = journal, options, unanswered
        self.prices: Prices | None = prices_of(options.prices, settings["model"])

    def send(self, questions: Sequence[Question], responses: int) -> None:
        """Ask the questions about a number of responses; each answer goes into the journal as it comes.

        EvaluatorError if the requests must stop before all questions are asked, PrivacyError if the texts must not be
        sent.
        """
        options, where = self.options, self.settings["base_url"]
        options.check_privacy(where)
        with closing(Endpoint(where, self.settings["model"], options, self.settings["answers"])) as endpoint:
            endpoint.check()
            if where not in options.spending.announced:
                options.spending.announced.add(where)
                options.say(
                    f"{self.name} sends {responses:,} responses with their contexts to {where}, model "
                    f"{self.settings['model']}: {len(questions):,} requests"
                )
            # The first one alone: it shows what the endpoint can do.
            stopped, done = self._ask(endpoint, questions[0], first=True), 1
            options.advance(done, len(questions), options.spending.note(self.prices))
            pool = ThreadPoolExecutor(options.concurrency)
            try:
                rest = [] if stopped else questions[1:]
                futures = [pool.submit(self._ask, endpoint, question) for question in rest]
                for future in as_completed(futures):
                    stopped = stopped or future.result()
                    done += 1
                    options.advance(done, len(questions), options.spending.note(self.prices))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        if stopped:
            left = sum(self.journal.get(q.key) is None and q.key not in self.unanswered for q in questions)
            raise EvaluatorError(
                f"{self.name}: stopped at {stopped} with {left:,} of {len(questions):,} requests left; {GO_ON}"
            )

    def _ask(self, endpoint: Endpoint, question: Question, first: bool = False) -> str | None:
        """None after the question was asked, or the limit that forbids to ask it."""
        spending, longest = self.options.spending, self.settings["max_tokens"]
        most = self._cost(len(question.message.encode()) + 64, longest)
        if stopped := spending.reserve(self.options, most):
            return stopped
        tokens, cost = 0, 0.0
        try:
            reply, seconds = endpoint.ask(
                question.message, self.settings["temperature"], longest, schema(self.prompt)
            )
            reading = read_reply(reply, self.prompt)
            usage = _usage(reply)
            sent, answered = (
                usage.get("prompt_tokens") or question.tokens,
                usage.get("completion_tokens") or 1,
            )
            tokens, cost = sent + answered, self._cost(sent, answered)
            if reading is None:
                self.unanswered[question.key] = MALFORMED
            else:
                self._keep(endpoint, question, reading, reply, seconds, cost)
        except RefusedError as error:
            if first and not _OF_ONE_TEXT.search(str(error)):
                where = self.settings["base_url"]
                raise EvaluatorError(f"{self.name}: {where} refuses the request ({error})") from None
            self.unanswered[question.key] = f"{NOT_TAKEN}: {error}"
        finally:
            spending.settle(most, tokens, cost)
        return None

    def _cost(self, sent: int, answered: int) -> float:
        """What these numbers of tokens cost; 0 without prices."""
        return self.prices.of(sent, answered) if self.prices else 0.0

    def _keep(
        self,
        endpoint: Endpoint,
        question: Question,
        reading: Reading,
        reply: Mapping[str, Any],
        seconds: float,
        cost: float,
    ) -> None:
        usage = _usage(reply)

        def text(value: Any) -> str | None:
            # Without what no file can hold, such as half of a pair of surrogates.
            return (
                endpoint.hidden(value.encode("utf-8", "replace").decode()) if isinstance(value, str) else None
            )

        self.journal.add(
            {
                "key": question.key,
                "texts": question.texts,
                "answer": text(reading.text),
                "score": reading.score,
                "reason": reading.reason or None,
                "method": reading.method,
                "prompt_tokens": usage.get("prompt_tokens"),
                "completion_tokens": usage.get("completion_tokens"),
                "seconds": seconds,
                "cost": cost if self.prices else None,
                "currency": self.prices.currency if self.prices else None,
                "model": text(reply.get("model")) or self.settings["model"],
                "fingerprint": text(reply.get("system_fingerprint")),
                "asked_at": f"{datetime.now(UTC):%F %T}",
            }
        )


def _usage(reply: Any) -> dict[str, int | None]:
    usage = reply.get("usage") if isinstance(reply, dict) else None
    return {name: token_count(n) for name, n in usage.items()} if isinstance(usage, dict) else {}
