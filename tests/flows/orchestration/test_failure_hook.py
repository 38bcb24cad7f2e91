"""Hooks: whoever runs the pipeline hears of a failure, by web and by mail, and only once."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ssrem.errors import GateError
from ssrem.flows.orchestration.failure_hook import VARIABLE, notify, send

MESSAGE = {
    "flow": "tables",
    "run": "calm-otter",
    "run_id": "0-1",
    "state": "Failed",
    "home": "/data/home",
    "message": "gate of tables: table turns: expected turn to be at least 0",
}


@pytest.fixture
def mail() -> Iterator[tuple[int, list[str]]]:
    """A mail server that takes what it is given, and the letters."""
    letters: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while line := self.rfile.readline():
                verb = line[:4].upper()
                if verb == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    body = []
                    while (part := self.rfile.readline()) != b".\r\n":
                        body.append(part)
                    letters.append(b"".join(body).decode())
                self.wfile.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 ok\r\n")
                if verb == b"QUIT":
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], letters
        server.shutdown()


def failed(error: Exception) -> tuple[Any, Any, Any]:
    run = SimpleNamespace(id="0-1", name="calm-otter", parameters={"home": "/data/home"})
    state = SimpleNamespace(name="Failed", message="failed", result=lambda raise_on_failure: error)
    return SimpleNamespace(name="tables"), run, state


def test_the_web_hears_which_gate_which_rows_and_which_run(
    web: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, posted = web
    monkeypatch.setenv(VARIABLE, f"{url}/one {url}/two")
    notify(*failed(GateError("gate of tables: table turns: expected turn to be at least 0", Path("x"))))
    assert posted == [MESSAGE, MESSAGE]


def test_an_error_that_is_not_ours(web: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    url, posted = web
    monkeypatch.setenv(VARIABLE, url)
    notify(*failed(ValueError("x")))
    assert posted[0]["message"] == "ValueError: x"


def test_mail(mail: tuple[int, list[str]]) -> None:
    port, letters = mail
    send(f"mailto://127.0.0.1:{port}?from=ssrem@example.org&to=ops@example.org&format=text", MESSAGE)
    (letter,) = letters
    assert "Subject: ssrem: tables failed (calm-otter)" in letter
    assert "gate of tables: table turns" in letter
    assert "run 0-1 on home folder /data/home" in letter


def test_who_cannot_be_told_hides_nothing(
    web: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, posted = web
    monkeypatch.setenv(VARIABLE, f"{url}/broken http://user:secret@127.0.0.1:1/ {url}")
    notify(*failed(ValueError("x")))
    assert len(posted) == 2
    said = capsys.readouterr().err
    assert said.count("could not be notified") == 2
    assert "secret" not in said
