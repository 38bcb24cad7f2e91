"""Options that all flows have: their runs are named by what they work on, and somebody is told when one fails."""

import atexit
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from prefect import Flow
from prefect.client.schemas.objects import FlowRun, State
from prefect.runtime import flow_run

from ssrem.errors import SsremError, say

# Otherwise DuckDB prints a list of leaked objects when the process of a flow run exits.
atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))

VARIABLE = "SSREM_NOTIFY"
"""Environment variable with the addresses to notify, separated by blanks. An http(s) URL gets a POST of JSON; any other
address, such as mailto://user:password@host?to=ops@example.org, is notified through Apprise."""


def flow_options(parameter: str, default: str = "all") -> dict[str, Any]:
    """Options of a flow whose runs are named after a parameter, such as `train-ssrem+rsrem`, and which notifies.

    default: takes its place in the name if the parameter is not given.
    """

    def name() -> str:
        value = flow_run.parameters.get(parameter) or default
        names = [value] if isinstance(value, str) else value
        return f"{flow_run.flow_name}-{'+'.join(Path(one).name or one for one in names)}"[:100]

    # log_prints: notes for the user stand in the run's log, too.
    return {"flow_run_name": name, "on_failure": [notify], "on_crashed": [notify], "log_prints": True}


def notify(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Send the failure to every address of VARIABLE; an address that cannot be reached is reported on stderr.

    A flow that another flow called sends nothing: the caller fails as well and sends the only message.
    """
    if flow_run.parent_task_run_id:
        return
    error = state.result(raise_on_failure=False)
    text = str(error) if isinstance(error, SsremError) else f"{type(error).__name__}: {error}"
    message = {
        "flow": flow.name,
        "run": flow_run.name,
        "run_id": str(flow_run.id),
        "state": state.name or state.type.value,
        "home": str(flow_run.parameters.get("home", "")),
        "message": text if isinstance(error, BaseException) else state.message or "",
    }
    for address in os.environ.get(VARIABLE, "").split():
        try:
            send(address, message)
        except Exception as problem:
            parts = urlsplit(address)
            where = f"{parts.scheme}://{parts.hostname}" if parts.scheme else address  # without a password
            say(f"{where} could not be notified: {problem}")


def send(address: str, message: dict[str, str]) -> None:
    """Send the message to one address, as described at VARIABLE. Raises an error if it is not accepted."""
    if address.startswith(("http://", "https://")):
        request = Request(address, json.dumps(message).encode(), {"Content-Type": "application/json"})
        urlopen(request, timeout=10).close()
        return
    from apprise import Apprise

    subject = f"ssrem: {message['flow']} {message['state'].lower()} ({message['run']})"
    text = f"{message['message']}\n\nrun {message['run_id']} on home folder {message['home']}"
    mailer = Apprise()
    if not mailer.add(address) or not mailer.notify(body=text, title=subject):
        raise SsremError("it was not accepted")
