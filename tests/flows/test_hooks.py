"""Hooks: whoever runs the pipeline hears of a failure, through what Apprise can reach, and only once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ssrem.errors import GateError
from ssrem.flows.hooks import VARIABLE, notify, send

MESSAGE = {
    "flow": "tables",
    "run": "calm-otter",
    "run_id": "0-1",
    "state": "Failed",
    "home": "/data/home",
    "message": "gate of tables: table turns: expected turn to be at least 0",
}


def failed(error: Exception, parent: str | None = None) -> dict[str, Any]:
    """The arguments as Prefect names them when a run crashed."""
    run = SimpleNamespace(
        id="0-1", name="calm-otter", parameters={"home": "/data/home"}, parent_task_run_id=parent
    )
    state = SimpleNamespace(name="Failed", message="failed", result=lambda raise_on_failure: error)
    return {"flow": SimpleNamespace(name="tables"), "flow_run": run, "state": state}


def test_the_web_hears_which_gate_which_rows_and_which_run(
    web: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, posted = web
    monkeypatch.setenv(VARIABLE, f"{url}/one {url}/two")
    notify(**failed(GateError("gate of tables: table turns: expected turn to be at least 0", Path("x"))))
    assert posted == [MESSAGE, MESSAGE]
    notify(**failed(ValueError("of a flow that another one called"), parent="0-2"))
    notify(**failed(ValueError("of another library")))
    assert [message["message"] for message in posted[2:]] == ["ValueError: of another library"] * 2


def test_any_address_of_apprise(web: tuple[str, list[Any]]) -> None:
    url, posted = web
    send(url.replace("http:", "json:"), MESSAGE)
    (letter,) = posted
    assert letter["title"] == "ssrem: tables failed (calm-otter)"
    assert letter["message"] == f"{MESSAGE['message']}\n\nrun 0-1 on home folder /data/home"


def test_who_cannot_be_told_hides_nothing(
    web: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url, posted = web
    monkeypatch.setenv(VARIABLE, f"{url}/broken http://user:secret@127.0.0.1:1/ {url}")
    notify(**failed(ValueError("x")))
    assert len(posted) == 2
    said = capsys.readouterr().err
    assert said.count("could not be notified") == 2
    assert "secret" not in said
