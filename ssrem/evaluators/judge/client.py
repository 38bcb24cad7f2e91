"""The endpoint of a judge: the official client of OpenAI, which any compatible server understands."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ssrem.errors import EvaluatorError
from ssrem.evaluators.judge.answers import LOGPROBS, SCHEMA, WAYS
from ssrem.evaluators.judge.request_options import RequestOptions
from ssrem.registry import nearest

TOP_LOGPROBS = 20
_LONGEST = 200

_REFUSED = {LOGPROBS: ("logprobs",), SCHEMA: ("response_format", "json_schema", "grammar")}
"""What an error says of a parameter that the endpoint does not know."""

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
        self.model, self._wanted, self._fixed = model, frozenset(WAYS[way]), way != "auto"
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
        )
        self._limit = "max_tokens"
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
            raise EvaluatorError(
                f"judge: {self._where} has no model {self.model!r}; it has {nearest(self.model, ids)}"
            )

    def ask(
        self, message: str, temperature: float, max_tokens: int, response_format: object
    ) -> tuple[Any, float]:
        """The reply to a message and the seconds that it took; None for one that is no JSON.

        RefusedError where the endpoint does not take this message, EvaluatorError where it does not answer at all.
        """
        started = time.monotonic()
        while True:
            wanted, limit = self._wanted, self._limit
            more: dict[str, Any] = {limit: max_tokens}
            if LOGPROBS in wanted:
                more |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
            if SCHEMA in wanted:
                more[SCHEMA] = response_format
            create = partial(
                self._client.chat.completions.with_raw_response.create,
                model=self.model,
                messages=[{"role": "user", "content": message}],
                temperature=temperature,
                **more,
            )
            try:
                reply = self._call(create)
            except RefusedError as error:
                if not self._adapt(str(error), wanted, limit):
                    raise
                continue
            return reply, time.monotonic() - started

    def _adapt(self, error: str, wanted: frozenset[str], limit: str) -> bool:
        """Whether there is another way to ask an endpoint that does not know one of the parameters."""
        with self._lock:
            if (self._wanted, self._limit) != (wanted, limit):  # another thread has adapted meanwhile
                return True
            if "max_completion_tokens" in error and limit == "max_tokens":
                self._limit = "max_completion_tokens"
                return True
            refused = {name for name, words in _REFUSED.items() if any(word in error for word in words)}
            if self._fixed or not refused & wanted:
                return False
            self._wanted = wanted - refused
            return True

    def _call(self, request: Callable[[], Any], listing: bool = False) -> Any:
        """The JSON of a reply; None if no try gives JSON. listing: whether the request is for the list of models."""
        library, where = self._openai, self._where
        try:
            for _ in range(1 + self._options.retries):
                try:
                    return json.loads(request().text)
                except ValueError:
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
            raise RefusedError(f"{error.status_code}: {self._reason(error)}") from None

    def _reason(self, error: Any) -> str:
        """What the error says, in short, without the key."""
        body = getattr(error, "body", None)
        text = str(body.get("message") if isinstance(body, dict) and body.get("message") else error)
        text = " ".join(text.split())
        return (text.replace(self._key, "…") if self._key else text)[:_LONGEST]


def _ids(listed: Any) -> list[str]:
    """Names of the models in a reply that lists them."""
    rows = listed.get("data") if isinstance(listed, dict) else None
    return (
        [str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row]
        if isinstance(rows, list)
        else []
    )
