"""The hook of a failed flow: sends the stage or gate, the rows and the run to the addresses to notify."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from ssrem.errors import SsremError, say

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.objects import FlowRun, State

VARIABLE = "SSREM_NOTIFY"
"""Environment variable with the addresses to notify, separated by blanks. An http(s) URL gets a POST of JSON; another
URL, such as mailto://user:password@host?to=ops@example.org, goes through Apprise; TYPE/NAME is a Prefect notification
block, and secret/NAME a Prefect secret that holds a URL of either sort."""

TIMEOUT = 10
"""Seconds that an http(s) address has to answer."""


def notify(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Send the failure to every address of VARIABLE; one that cannot be reached is reported on stderr."""
    message = _message(flow, flow_run, state)
    for address in os.environ.get(VARIABLE, "").split():
        try:
            send(address, message)
        except Exception as error:
            say(f"{_without_password(address)} could not be notified: {error}")


def send(address: str, message: dict[str, str]) -> None:
    """Send the message to one address, as described at VARIABLE. Raises an error if it is not accepted."""
    if address.startswith("secret/"):
        from prefect.blocks.system import Secret

        secret: Any = Secret.load(address.removeprefix("secret/"))
        address = str(secret.get())
    scheme = urlsplit(address).scheme
    if scheme in ("http", "https"):
        body = json.dumps(message).encode()
        request = Request(address, data=body, headers={"Content-Type": "application/json"})
        with urlopen(request, timeout=TIMEOUT):
            return
    subject, text = _letter(message)
    if scheme:
        from apprise import Apprise

        mailer = Apprise()
        if not mailer.add(address) or not mailer.notify(body=text, title=subject):
            raise SsremError("it was not accepted")
        return
    from prefect.blocks.abstract import NotificationBlock
    from prefect.blocks.core import Block

    block = Block.load(address)
    if not isinstance(block, NotificationBlock):
        raise SsremError("it is not a notification block")
    send_notification: Any = block.notify
    send_notification(text, subject)


def _message(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> dict[str, str]:
    error = state.result(raise_on_failure=False)
    text = str(error) if isinstance(error, SsremError) else f"{type(error).__name__}: {error}"
    return {
        "flow": flow.name,
        "run": flow_run.name,
        "run_id": str(flow_run.id),
        "state": state.name or state.type.value,
        "home": str(flow_run.parameters.get("home", "")),
        "message": text if isinstance(error, BaseException) else state.message or "",
    }


def _letter(message: dict[str, str]) -> tuple[str, str]:
    subject = f"ssrem: {message['flow']} {message['state'].lower()} ({message['run']})"
    return subject, f"{message['message']}\n\nrun {message['run_id']} on home folder {message['home']}"


def _without_password(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.hostname}" if parts.scheme else address
