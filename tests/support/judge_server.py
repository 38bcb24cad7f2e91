"""An OpenAI-compatible server of a few lines that answers as a test wants, also wrongly."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-very-secret"


@dataclass
class Reply:
    """What the server sends. body: JSON, or bytes as they are; None cuts the connection. wait: seconds before it;
    pause: seconds between its bytes."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait: float = 0.0
    pause: float = 0.0


def completion(text: str | None, logprobs: dict[str, float] | None = None, **more: Any) -> dict[str, Any]:
    """A chat completion. logprobs: token → log-probability of what could stand in place of the first token."""
    choice: dict[str, Any] = {
        "index": 0,
        "finish_reason": more.pop("finish_reason", "stop"),
        "message": {"role": "assistant", "content": text, **more},
        "logprobs": None,
    }
    if logprobs is not None:
        top = [{"token": token, "logprob": value, "bytes": None} for token, value in logprobs.items()]
        choice["logprobs"] = {
            "content": [{"token": text, "logprob": 0.0, "bytes": None, "top_logprobs": top}]
        }
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "tiny-2026",
        "system_fingerprint": "fp_1",
        "choices": [choice],
        "usage": {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101},
    }


def failure(status: int, message: str, **headers: str) -> Reply:
    """An error as OpenAI words it."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply({"error": {"message": message, "code": None}}, status, headers)


Answer = Callable[[dict[str, Any], int], Any]
"""A request's body and its number, from 0, to a `Reply` or the body of one."""


@dataclass
class JudgeServer:
    """A running server. asked: bodies of the chat requests so far; keys: their Authorization headers."""

    url: str
    answer: Answer
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def messages(self) -> list[str]:
        """The messages that were sent."""
        return [body["messages"][0]["content"] for body in self.asked]


@contextmanager
def judge_server(answer: Answer) -> Iterator[JudgeServer]:
    """A server on a free port of this machine until the block ends."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(server.asked)
                server.asked.append(body)
                server.keys.append(self.headers.get("Authorization", ""))
            reply = server.answer(body, number)
            self._send(reply if isinstance(reply, Reply) else Reply(reply))

        def _send(self, reply: Reply) -> None:
            time.sleep(reply.wait)
            if reply.body is None:
                self.connection.close()
                return
            content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            try:
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                for byte in content if reply.pause else ():
                    self.wfile.write(bytes([byte]))
                    time.sleep(reply.pause)
                self.wfile.write(content[len(content) if reply.pause else 0 :])
            except OSError:  # the client has gone
                pass

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = JudgeServer(f"http://127.0.0.1:{http.server_port}/v1", answer)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
