"""The endpoint of a judge: the official client of OpenAI, which any compatible server understands."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ssrem.errors import EvaluatorError
from ssrem.evaluators.judge.answers import LOGPROBS, SCHEMA, WAYS
from ssrem.evaluators.judge.request_options import RequestOptions
from ssrem.registry import nearest

TOP_LOGPROBS = 20
_LONGEST = 200

LIMIT, OTHER_LIMIT, TEMPERATURE = "max_tokens", "max_completion_tokens", "temperature"

_REFUSED = {
    LOGPROBS: ("logprobs",),
    SCHEMA: ("response_format", "json_schema", "grammar"),
    TEMPERATURE: (TEMPERATURE,),
}
"""What an error says of a parameter that the endpoint does not know, or whose value it does not take."""

_NOT_KNOWN = re.compile(
    r"unsupported|not (?:supported|permitted|allowed)|un(?:known|expected|recogni[sz]ed)", re.I
)

_RUN = 8
"""So many characters of a key in a row are hidden."""

GO_ON = "what was answered is kept; run the same command again to go on"


class RefusedError(Exception):
    """The endpoint does not take this request; the message says why."""


class Endpoint:
    """A model behind an endpoint. way: one of WAYS; where it is "auto", what the endpoint refuses is left out.

    EvaluatorError, in one line, where the client is not installed or there is no key.
    """

    def __init__(self, base_url: str, model: str, options: RequestOptions, way: str) -> None:
        try:
            import openai
        except ImportError:
            raise EvaluatorError(
                "judge needs the client of OpenAI; install it with pip install 'ssrem[judge]'"
            ) from None
        self.model, self._wanted = model, frozenset({LIMIT, TEMPERATURE, *WAYS[way]})
        self._fixed = frozenset() if way == "auto" else frozenset(WAYS[way])
        self._where, self._options = base_url, options
        self._key = os.environ.get(options.key_env, "")
        if not self._key and (
            urlsplit(base_url).scheme == "https" or options.key_env != RequestOptions.key_env
        ):
            raise EvaluatorError(
                f"judge: no key for {base_url}: set {options.key_env}, or name another environment variable with "
                "--set key_env=NAME"
            )
        self._openai = openai
        self._client = openai.OpenAI(
            api_key=self._key or "none",
            base_url=base_url,
            timeout=options.timeout,
            max_retries=options.retries,
            http_client=_http_client(openai, options.timeout),
        )
        self._lock = threading.Lock()

    def close(self) -> None:
        """End all requests in flight."""
        self._client.close()

    def check(self) -> None:
        """EvaluatorError where there is no server, the key is refused, or the model is not among those it lists."""
        try:
            listed = self._call(self._client.models.with_raw_response.list, listing=True)
        except RefusedError:
            return  # an endpoint need not list its models
        ids = [] if Path(self.model).is_dir() else _ids(listed)  # a folder is served without being listed
        if ids and not any(id == self.model or id.startswith(f"{self.model}:") for id in ids):
            has = self.hidden(nearest(self.model, ids))[:_LONGEST]
            raise EvaluatorError(f"judge: {self._where} has no model {self.model!r}; it has {has}")

    def ask(
        self, message: str, temperature: float, max_tokens: int, response_format: object
    ) -> tuple[Any, float]:
        """The reply to a message and the seconds that it took; None for one that is no JSON.

        RefusedError where the endpoint does not take this message, EvaluatorError where it does not answer at all.
        """
        started = time.monotonic()
        while True:
            wanted = self._wanted
            more: dict[str, Any] = {LIMIT if LIMIT in wanted else OTHER_LIMIT: max_tokens}
            if TEMPERATURE in wanted:
                more[TEMPERATURE] = temperature
            if LOGPROBS in wanted:
                more |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
            if SCHEMA in wanted:
                more[SCHEMA] = response_format
            create = partial(
                self._client.chat.completions.with_raw_response.create,
                model=self.model,
                messages=[{"role": "user", "content": message}],
                **more,
            )
            try:
                reply = self._call(create)
            except RefusedError as error:
                if not self._adapt(str(error), wanted):
                    raise
                continue
            return reply, time.monotonic() - started

    def _adapt(self, error: str, wanted: frozenset[str]) -> bool:
        """Whether there is another way to ask an endpoint that does not take one of the parameters; it is said."""
        with self._lock:
            if self._wanted != wanted:  # another thread has adapted meanwhile
                return True
            if OTHER_LIMIT in error or (LIMIT in error and _NOT_KNOWN.search(error)):
                refused = {LIMIT}
            else:
                refused = {name for name, words in _REFUSED.items() if any(word in error for word in words)}
            refused = (refused & wanted) - self._fixed
            self._wanted = wanted - refused
            for name in sorted(refused):
                instead = f"asked with {OTHER_LIMIT}" if name == LIMIT else "asked without it"
                note = f"judge: {self._where} does not take {name}; {instead}"
                if note not in self._options.spending.announced:
                    self._options.spending.announced.add(note)
                    self._options.say(note)
            return bool(refused)

    def _call(self, request: Callable[[], Any], listing: bool = False) -> Any:
        """The JSON of a reply; None if no try gives JSON. listing: whether the request is for the list of models."""
        library, where = self._openai, self._where
        try:
            for _ in range(1 + self._options.retries):
                try:
                    return json.loads(request().text)
                except (ValueError, RecursionError):  # no JSON, or nested too deep
                    continue
            return None
        except (library.AuthenticationError, library.PermissionDeniedError) as error:
            raise EvaluatorError(
                f"judge: {where} refuses the key in {self._options.key_env} ({error.status_code})"
                if self._key
                else f"judge: {where} wants a key ({error.status_code}); set {self._options.key_env}"
            ) from None
        except library.NotFoundError as error:
            if listing:
                raise RefusedError("no list of models") from None
            raise EvaluatorError(
                f"judge: {where} does not know the model {self.model!r} or the path (404: {self._reason(error)})"
            ) from None
        except (library.APIConnectionError, library.RateLimitError, library.InternalServerError) as error:
            status = getattr(error, "status_code", None)
            why = f"{status}: {self._reason(error)}" if status else self._reason(error)
            tries = 1 + self._options.retries
            raise EvaluatorError(f"judge: no answer from {where} in {tries} tries ({why}); {GO_ON}") from None
        except library.APIStatusError as error:
            if 300 <= error.status_code < 400:
                to = self.hidden(error.response.headers.get("location", "another address"))[:_LONGEST]
                raise EvaluatorError(
                    f"judge: {where} sends requests on to {to}; nothing was sent there. Give that address as "
                    "base_url if the texts may go there"
                ) from None
            raise RefusedError(f"{error.status_code}: {self._reason(error)}") from None

    def _reason(self, error: Any) -> str:
        """What the error says, in short, without the key."""
        body = getattr(error, "body", None)
        message = body.get("message") if isinstance(body, dict) else None
        text = message if isinstance(message, str) and message else str(error)
        return self.hidden(" ".join(text.split()))[:_LONGEST]

    def hidden(self, text: str) -> str:
        """The text with … for every part of the key: an endpoint may quote it, also cut or within an answer."""
        if not self._key:
            return text
        size = min(_RUN, len(self._key))
        runs = {self._key[at : at + size] for at in range(len(self._key) - size + 1)}
        kept, at, end = [], 0, 0  # end: of the part of the key that is being left out
        while at < len(text):
            if text[at : at + size] in runs:
                kept += ["…"] if at >= end else []
                end = at + size
            elif at >= end:
                kept.append(text[at])
            at += 1
        return "".join(kept)


def _http_client(library: Any, timeout: float) -> Any:
    """A client that ends each try after `timeout` seconds in all, where the library's timeout is for each read, and
    that follows no redirect: texts go to the address that the user was told."""

    class Client(library.DefaultHttpxClient):  # type: ignore[misc]
        def send(self, request: Any, **more: Any) -> Any:
            answer: Future[Any] = Future()
            send = super().send

            def work() -> None:
                try:
                    answer.set_result(send(request, **more))
                except BaseException as error:
                    answer.set_exception(error)

            threading.Thread(target=work, daemon=True).start()  # ends at the latest when the client is closed
            try:
                return answer.result(timeout)
            except TimeoutError:
                http = import_module(
                    type(request).__module__.partition(".")[0]
                )  # httpx2, or httpx in an older client
                raise http.ReadTimeout("no whole answer in time", request=request) from None

    return Client(timeout=timeout, follow_redirects=False)


def _ids(listed: Any) -> list[str]:
    """Names of the models in a reply that lists them."""
    rows = listed.get("data") if isinstance(listed, dict) else None
    return (
        [str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row]
        if isinstance(rows, list)
        else []
    )
