"""The client through which judges query an OpenAI-compatible endpoint, and the journal that stores the answers."""

from __future__ import annotations

import fcntl
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import TimeoutError as LateError
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from ssrem.errors import EvaluatorError
from ssrem.evaluators.base import EvaluatorSettings
from ssrem.evaluators.judge.prompt import load_prompt
from ssrem.samples import Progress
from ssrem.settings import Count, Natural, Positive

if TYPE_CHECKING:
    from ssrem.encoders.store import Hashes

LIMIT, OTHER_LIMIT = "max_tokens", "max_completion_tokens"
GO_ON = "what was answered is kept; run the same command again to go on"

_REFUSED = {
    LIMIT: rf"{OTHER_LIMIT}|(?=.*{LIMIT}).*(?:unsupported|not (?:supported|permitted|allowed)|"
    "un(?:known|expected|recogni[sz]ed))",
    "logprobs": "logprobs",
    "response_format": "response_format|json_schema|grammar",
    "temperature": "temperature",
}
"""Parameter → pattern of the error by which an endpoint says that it does not know it or take its value."""
_LONGEST = 200
_RUN = 8
"""So many consecutive characters of the key, or more, are hidden in stored texts and messages."""


def _variable(name: str) -> str:
    if not name.isidentifier():  # the message does not repeat the name, which may be the key
        raise ValueError("it is the name of an environment variable, not the key itself")
    return name


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
        raise ValueError(
            "it must be an address such as http://localhost:8000/v1, without a password or a query"
        )
    return url.rstrip("/")


class RequestOptions(EvaluatorSettings):
    """How a judge sends its requests. No score depends on it, so it is neither saved nor part of the signature."""

    key_env: Annotated[str, AfterValidator(_variable)] = Field("OPENAI_API_KEY", exclude=True)
    """environment variable with the key"""
    concurrency: Count = Field(8, exclude=True)
    """requests at a time"""
    timeout: Positive = Field(60.0, exclude=True)
    """seconds for a try, until its whole answer has arrived"""
    retries: Natural = Field(6, exclude=True)
    """further tries after 429, 5xx, a lost connection or no answer in time"""


class JudgeSettings(RequestOptions):
    """Settings of a judge: what is asked of which model."""

    base_url: Annotated[str, AfterValidator(_address)] = "https://api.openai.com/v1"
    """address of the endpoint"""
    model: str = ""
    """model at the endpoint"""
    prompt: Annotated[str, AfterValidator(lambda spec: load_prompt(spec).source)] = "overall"
    """name of a packaged prompt, or a file with one; the text of a file is saved with the judge"""
    temperature: Annotated[int | float, Field(ge=0, le=2)] = 0
    """temperature of the answers"""
    max_tokens: Count = 32
    """tokens of an answer at most, more for a model that thinks first"""
    context_turns: Count = 20
    """turns before the response at most"""
    max_characters: Count = 12_000
    """characters of all texts of a sample at most: the oldest turns are dropped first, then the response's end; the
    true response is never cut"""
    compares: ClassVar[bool] = False
    """Whether the prompt must show the true response; if not, it must not show it."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model:
            raise EvaluatorError(
                "a judge needs a model: --set model=NAME, and base_url=URL unless it is OpenAI's"
            )
        prompt = load_prompt(self.prompt)
        if prompt.compares != self.compares:
            other = "shows the true response; use judge-ref" if prompt.compares else "does not; use judge"
            raise EvaluatorError(f"prompt {prompt.criterion} {other}")
        return self


class JudgeRefSettings(JudgeSettings):
    """Settings of a judge that is shown the true response."""

    prompt: Annotated[str, AfterValidator(lambda spec: load_prompt(spec).source)] = "pairwise"
    """as for `judge`"""
    compares: ClassVar[bool] = True


@dataclass
class Client:
    """How the judges of a run, which share it, reach their endpoints.

    max_requests: limit of the requests of the run. options: settings that are not saved, in place of the judges' own.
    journal: folder in which answers are kept; None: they are kept in memory. advance: called with the number of
    requests done and in all. say: called with a sentence for the user. requests: number of requests so far. said: what
    `say_once` was called about so far.
    """

    max_requests: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    journal: Path | None = None
    advance: Progress = lambda *_: None
    say: Callable[[str], None] = lambda _: None
    requests: int = 0
    said: set[str] = field(default_factory=set)

    def say_once(self, sentence: str, about: str = "") -> None:
        """Say the sentence, unless it was said before or, if `about` is given, another sentence about that."""
        if (about or sentence) not in self.said:
            self.said.add(about or sentence)
            self.say(sentence)


class RefusedError(Exception):
    """The endpoint does not take this request; the message says why."""


class Endpoint:
    """A model behind an endpoint. settings: those of the judge; response_format: form of the answers; say: called with
    a sentence for each parameter that the endpoint does not take, which is left out from then on.

    EvaluatorError, in one line, if OpenAI's client is not installed or there is no key.
    """

    def __init__(
        self, settings: JudgeSettings, response_format: dict[str, Any], say: Callable[[str], None]
    ) -> None:
        try:
            import openai
        except ImportError:
            raise EvaluatorError(
                "judge needs the client of OpenAI; install it with pip install 'ssrem[judge]'"
            ) from None
        self._openai, self._say, self._settings, self.where = openai, say, settings, settings.base_url
        key, usual = os.environ.get(settings.key_env, ""), RequestOptions().key_env
        if not key and (urlsplit(self.where).scheme == "https" or settings.key_env != usual):
            raise EvaluatorError(
                f"judge: no key for {self.where}: set {settings.key_env}, or name another environment variable with "
                "--set key_env=NAME"
            )
        size = min(_RUN, len(key))
        runs = "|".join(re.escape(key[at : at + size]) for at in range(len(key) - size + 1))
        # Matches overlapping runs at once: all characters at which a run begins, and the last run.
        self._of_key = re.compile(f"(?:(?={runs}).)*(?:{runs})", re.DOTALL) if key else None
        self._parameters: dict[str, dict[str, Any]] = {
            LIMIT: {LIMIT: settings.max_tokens},
            "temperature": {"temperature": settings.temperature},
            "logprobs": {"logprobs": True, "top_logprobs": 20},
            "response_format": {"response_format": response_format},
        }
        self._lock = threading.Lock()
        self._pool = pool = ThreadPool(settings.concurrency * (1 + settings.retries))

        class WithDeadline(openai.DefaultHttpxClient):
            """Ends a try after `timeout` seconds in all; the library's own timeout applies to each read."""

            def send(self, request: Any, **more: Any) -> Any:
                try:
                    return pool.apply_async(super().send, (request,), more).get(settings.timeout)
                except LateError:
                    # The error of httpx2, or of httpx with an older client, after which the client tries again.
                    http = import_module(type(request).__module__.partition(".")[0])
                    raise http.ReadTimeout("no whole answer in time", request=request) from None

        self._client = openai.OpenAI(
            api_key=key or "none",
            base_url=self.where,
            max_retries=settings.retries,
            # Texts go to the address that the user was told, and to no other.
            http_client=WithDeadline(timeout=settings.timeout, follow_redirects=False),
        )

    def close(self) -> None:
        """End all requests in flight."""
        self._client.close()
        self._pool.terminate()

    def ask(self, message: str) -> Any:
        """The JSON of the reply to a message; None if no try gives JSON.

        A parameter that the endpoint does not take is left out from then on, or given by its other name, and the user
        is told. RefusedError if the endpoint does not take this message; EvaluatorError if it cannot be used at all.
        """
        while True:
            parameters = self._parameters
            try:
                return self._reply(message, parameters)
            except RefusedError as error:
                with self._lock:
                    if self._parameters is not parameters:  # another thread has adapted meanwhile
                        continue
                    words = str(error)
                    refused = [
                        name for name in parameters if re.search(_REFUSED.get(name, "^$"), words, re.I)
                    ]
                    if not refused:
                        raise
                    name = refused[0]
                    self._parameters = {k: own for k, own in parameters.items() if k != name}
                    instead = "asked without it"
                    if name == LIMIT:
                        self._parameters[OTHER_LIMIT] = {OTHER_LIMIT: self._settings.max_tokens}
                        instead = f"asked with {OTHER_LIMIT}"
                    self._say(f"judge: {self.where} does not take {name}; {instead}")

    def _reply(self, message: str, parameters: Mapping[str, Mapping[str, Any]]) -> Any:
        settings, where, tries = self._settings, self.where, 1 + self._settings.retries
        messages = [{"role": "user", "content": message}]
        options = {name: value for own in parameters.values() for name, value in own.items()}
        create: Any = self._client.chat.completions.with_raw_response.create
        try:
            for _ in range(tries):
                with suppress(ValueError, RecursionError):  # no JSON, or nested too deep
                    return json.loads(create(model=settings.model, messages=messages, **options).text)
            return None
        except self._openai.APIError as failed:
            error: Any = failed
            status = getattr(error, "status_code", None)  # None: no connection, or no answer in time
            said = error.body.get("message") if isinstance(error.body, dict) else None
            text = self.kept(said) or self.kept(str(error.__cause__ or error)) or ""
            why = (f"{status}: " if status else "") + " ".join(text.split())[:_LONGEST]
            if status is None or status == 429 or status >= 500:
                fault = f"no answer from {where} in {tries} tries ({why}); {GO_ON}"
            elif status in (401, 403):
                name = settings.key_env
                refuses = f"refuses the key in {name}" if self._of_key else f"wants a key; set {name}"
                fault = f"{where} {refuses} ({status})"
            elif status == 404:
                fault = f"{where} does not know the model {settings.model!r} or the path ({why})"
            elif 300 <= status < 400:
                to = self.kept(error.response.headers.get("location")) or "another address"
                fault = (
                    f"{where} sends requests on to {to[:_LONGEST]}; nothing was sent there. Give that address as "
                    "base_url if the texts may go there"
                )
            else:
                raise RefusedError(why) from None
            raise EvaluatorError(f"judge: {fault}") from None

    def kept(self, value: object) -> str | None:
        """A text of a reply as it may be stored; None for what is no text. Unpaired surrogates, which no file can hold,
        are replaced, and so are parts of the key (from _RUN characters on), which an endpoint may quote."""
        if not isinstance(value, str):
            return None
        text = value.encode("utf-8", "replace").decode()
        return self._of_key.sub("…", text) if self._of_key else text


class Journal:
    """Stores answers by the hash of all that was asked, so that nothing is asked twice. file: JSON lines, read once and
    then appended to; other processes may append at the same time. None: answers are kept in memory alone.

    An answer is a mapping with `key`, that hash, and `texts`, hashes of the texts of the sample that it is about.
    """

    def __init__(self, file: Path | None) -> None:
        self._file, self._lock = file, threading.Lock()
        lines: list[bytes] = []
        if file and file.exists():
            with _locked(file, "rb") as stream:  # `retain` may be rewriting it
                lines = stream.read().splitlines()
        self._answers = {answer["key"]: answer for line in lines if (answer := _parsed(line))}

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The answer stored under `key`; None if there is none."""
        return self._answers.get(key)

    def add(self, answer: dict[str, Any]) -> None:
        """Keep an answer: when this returns, the operating system has it."""
        with self._lock:
            self._answers[answer["key"]] = answer
            if self._file:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                with _locked(self._file, "ab") as stream:  # on a new line: the last may be cut off
                    stream.write(b"\n" + json.dumps(answer).encode())


def retain(folder: Path, held: Hashes) -> int:
    """Delete from the journals in a folder the answers about a text whose hash is not in `held`; returns how many."""
    deleted, hashes = 0, set(held.tolist())
    for file in sorted(folder.glob("*.jsonl")):
        with _locked(file, "rb+") as stream:
            answers = [(line, answer) for line in stream if (answer := _parsed(line))]
            kept = [line for line, answer in answers if hashes.issuperset(answer["texts"])]
            deleted += len(answers) - len(kept)
            stream.seek(0)
            stream.truncate()
            stream.writelines(kept)
    return deleted


@contextmanager
def _locked(file: Path, mode: str) -> Iterator[IO[bytes]]:
    with file.open(mode) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield stream


def _parsed(line: bytes) -> dict[str, Any] | None:
    """The answer in a line; None for a line that was cut off by a kill."""
    with suppress(ValueError):
        answer = json.loads(line)
        if isinstance(answer, dict) and {"key", "texts"} <= answer.keys():
            return answer
    return None
