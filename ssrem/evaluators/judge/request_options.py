"""Options of the requests to endpoints in a run, and what the run has spent; none of them changes a score.

`request_options` sets them for a block of code, so that they reach every judge: in a blend, a study or a saved version.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ssrem.errors import EvaluatorError, PrivacyError
from ssrem.files import expanded, read_text


class Spending:
    """What a run has spent, counted by several threads."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.requests = self.tokens = 0
        self.cost = self.reserved = 0.0
        self.announced: set[str] = set()
        self._in_flight = 0
        self._settled = threading.Condition()

    def reserve(self, options: RequestOptions, most: float) -> str | None:
        """Count a request that costs `most` at most before it is sent; or why it must not be sent.

        Before it refuses a request because of what those in flight might cost, it waits for their actual cost.
        """
        with self._settled:
            if options.max_cost is not None:
                while self.cost + self.reserved + most > options.max_cost:
                    if not self._in_flight:
                        return f"max_cost={options.max_cost:g} ({self.cost:.4g} spent)"
                    self._settled.wait()
            if options.max_requests is not None and self.requests >= options.max_requests:
                return f"max_requests={options.max_requests}"
            self.requests += 1
            self._in_flight += 1
            self.reserved += most
            return None

    def settle(self, most: float, tokens: int, cost: float) -> None:
        """Replace what was reserved by what was spent."""
        with self._settled:
            self._in_flight -= 1
            self._settled.notify_all()
            self.reserved -= most
            self.tokens += tokens
            self.cost += cost

    def note(self, prices: Prices | None) -> str:
        """Tokens a second, and money so far."""
        rate = self.tokens / max(time.monotonic() - self.started, 1e-3)
        return f"{rate:,.0f} tokens/s" + (f", {self.cost:.4g} {prices.currency}" if prices else "")


@dataclass(frozen=True)
class RequestOptions:
    """Options of the requests of a run.

    key_env: environment variable with the key. concurrency: requests at a time. timeout: seconds for a try; retries:
    further tries after 429, 5xx, a lost connection or no answer in time. max_requests, max_cost: where to stop; prices:
    file of prices. send_texts: send also texts of `private`, a corpus with pseudonyms or a private annotated set.
    journal: folder in which answers are kept; None keeps them in memory. advance: called with requests done, requests
    in all, and a note; say: called with a sentence for the user.
    """

    key_env: str = "OPENAI_API_KEY"
    concurrency: int = 8
    timeout: float = 60.0
    retries: int = 6
    max_requests: int | None = None
    max_cost: float | None = None
    prices: str | None = None
    send_texts: bool = False
    private: str | None = None
    journal: Path | None = None
    advance: Callable[[float, float, str], None] = lambda *_: None
    say: Callable[[str], None] = lambda _: None
    spending: Spending = field(default_factory=Spending)

    def __post_init__(self) -> None:
        for name, least in (("concurrency", 1), ("retries", 0), ("max_requests", 1)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < least):
                raise EvaluatorError(f"judge: {name} is {value!r}; expected a whole number from {least}")
        for name in ("timeout", "max_cost"):
            value = getattr(self, name)
            if value is not None and (type(value) not in (int, float) or not value > 0):
                raise EvaluatorError(f"judge: {name} is {value!r}; expected a number above 0")
        if not isinstance(self.key_env, str) or not self.key_env.isidentifier():
            raise EvaluatorError("judge: key_env is the name of an environment variable, not the key itself")
        if self.max_cost is not None and self.prices is None:
            raise EvaluatorError("judge: max_cost needs prices=FILE, see docs/judge.md")

    def check_privacy(self, endpoint: str) -> None:
        """PrivacyError where the texts must not be sent."""
        if self.private and not self.send_texts:
            raise PrivacyError(f"{self.private}: its texts would go to {endpoint}; --send-texts allows it")


OPTIONS = (
    *("key_env", "concurrency", "timeout", "retries"),
    *("max_requests", "max_cost", "prices", "send_texts"),
)
"""The settings of `RequestOptions` that a user gives, with --set or an option."""

_changes: ContextVar[Mapping[str, Any] | None] = ContextVar("how endpoints are asked", default=None)


@contextmanager
def request_options(**changes: Any) -> Iterator[None]:
    """Set these fields of `RequestOptions` until the block ends; other fields stay as in an outer block. Spending is
    counted together within the outermost block."""
    before = _changes.get() or {"spending": Spending()}
    token = _changes.set({**before, **changes})
    try:
        yield
    finally:
        _changes.reset(token)


def current(**settings: Any) -> RequestOptions:
    """The options in force: those of a judge, overridden by those of the blocks of `request_options` around."""
    return RequestOptions(**{**settings, **(_changes.get() or {})})


@dataclass(frozen=True)
class Prices:
    """Prices of a model, each for a million tokens."""

    input: float
    output: float
    currency: str

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """What these tokens cost."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


def prices_of(file: str | None, model: str) -> Prices | None:
    """The model's prices in a file: {"currency": "EUR", "MODEL": {"input": 0.15, "output": 0.6}}, for a million tokens
    each; None without a file. EvaluatorError for a file without them."""
    if file is None:
        return None
    try:
        content = json.loads(read_text(expanded(file)))
        price = content[model]
        prices = Prices(float(price["input"]), float(price["output"]), str(content.get("currency", "USD")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        prices = None
    if prices is None or not (0 <= prices.input < 1e9 and 0 <= prices.output < 1e9):
        raise EvaluatorError(
            f'prices {file}: expected {{"currency": "EUR", "{model}": {{"input": 0.15, "output": 0.6}}}}, for a '
            "million tokens each"
        )
    return prices
