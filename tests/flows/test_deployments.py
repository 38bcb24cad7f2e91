"""prefect.yaml and automations.yaml: Prefect ignores what it does not know, so every key is held against its models."""

from __future__ import annotations

import inspect
import subprocess
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import uuid4

import pytest
import yaml

from ssrem.errors import SsremError
from ssrem.settings import seconds
from ssrem.tasks.warehouse.home import VARIABLE
from support.paths import ROOT

pytestmark = pytest.mark.xdist_group("prefect")  # one worker imports it

FILE = ROOT / "prefect.yaml"
DEPLOYMENTS = {d["name"]: d for d in yaml.safe_load(FILE.read_text())["deployments"]}


@cache
def loaded(entrypoint: str) -> Any:
    """The flow, as a worker loads it."""
    from prefect.flows import load_flow_from_entrypoint

    return load_flow_from_entrypoint(str(FILE.parent / entrypoint))


def unknown_keys(model: Any, data: Any, where: str = "") -> list[str]:
    """Keys of the data, however deep, that the parsed model has no field for."""
    from pydantic import BaseModel, RootModel

    if isinstance(model, list):
        return [u for i, one in enumerate(model) for u in unknown_keys(one, data[i], f"{where}[{i}]")]
    if not isinstance(model, BaseModel) or isinstance(model, RootModel):
        return []
    known = {f.alias or name: name for name, f in type(model).model_fields.items()}
    unknown = [f"{where}.{key}" for key in data if key not in known]
    for key in data.keys() & known.keys():
        unknown += unknown_keys(getattr(model, known[key]), data[key], f"{where}.{key}")
    return unknown


def parsed(data: dict[str, Any]) -> Any:
    from prefect.cli.deploy._models import PrefectYamlModel

    return PrefectYamlModel.model_validate(data)


def test_prefect_knows_every_key() -> None:
    data = yaml.safe_load(FILE.read_text())
    del data["definitions"]  # anchors for the rest, which Prefect passes over
    assert unknown_keys(parsed(data), data) == []
    assert set(Counter(d["name"] for d in data["deployments"]).values()) == {1}


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_entrypoint_is_a_flow_that_has_the_parameters(name: str) -> None:
    """Nested settings too: their models refuse what they do not know. Prefect's page shows each with its meaning."""
    from prefect import Flow
    from prefect.utilities.callables import parameter_schema

    deployment = DEPLOYMENTS[name]
    flow = loaded(deployment["entrypoint"])
    assert isinstance(flow, Flow)
    assert flow.name == deployment["entrypoint"].partition(":")[2].replace("_", "-")
    taken = inspect.signature(flow.fn).parameters
    required = {p.name for p in taken.values() if p.default is p.empty}
    assert required <= set(deployment["parameters"]) <= set(taken)
    flow.validate_parameters(dict(deployment["parameters"]))
    for model in parameter_schema(flow).model_dump()["definitions"].values():
        assert model["additionalProperties"] is False
        assert model["description"]
        assert all(field["description"] for field in model["properties"].values())


@pytest.mark.parametrize(
    ("name", "parameters", "named"),
    [
        ("nightly", {"resources": {"threads": 0}}, "threads"),
        ("nightly", {"options": {"margin": {"rho": 0.1}}}, "rho"),
        ("tables", {"tables": {"context_turns": 1}}, "tables"),
        ("prune", {"keep_versions": 0}, "keep_versions"),
        ("prune", {"keep_runs": -1}, "keep_runs"),
        ("drop-folder", {"folder": "inbox", "settle": -1}, "settle"),
    ],
)
def test_wrong_settings_are_refused(name: str, parameters: dict[str, Any], named: str) -> None:
    from prefect.exceptions import ParameterTypeError, SignatureMismatchError

    with pytest.raises((SsremError, ParameterTypeError, SignatureMismatchError), match=named):
        loaded(DEPLOYMENTS[name]["entrypoint"]).validate_parameters(parameters)


def test_every_flow_is_deployed_to_the_pool_and_whoever_writes_waits_for_the_one_before() -> None:
    from prefect.client.schemas.objects import ConcurrencyLimitStrategy

    files = (FILE.parent / "flows").glob("*.py")
    with_flow = {f"flows/{path.name}:{path.stem}" for path in files if "@flow" in path.read_text()}
    assert with_flow == {deployment["entrypoint"] for deployment in DEPLOYMENTS.values()}
    for name, deployment in DEPLOYMENTS.items():
        assert "ssrem" in deployment["tags"]
        assert deployment["work_pool"]["name"] == "ssrem"
        assert float(str(seconds(deployment["work_pool"]["job_variables"]["env"][VARIABLE]))) >= 3600
        limit = parsed({"deployments": [deployment]}).deployments[0].concurrency_limit
        if name == "report":  # it writes one file, and replaces it in one step
            assert limit is None
            continue
        strategy = ConcurrencyLimitStrategy(limit.collision_strategy).name
        assert (limit.limit, strategy) == (1, "CANCEL_NEW" if name == "drop-folder" else "ENQUEUE")


def test_schedules() -> None:
    from prefect.client.schemas.schedules import CronSchedule

    schedules = {name: one["schedules"][0] for name, one in DEPLOYMENTS.items() if "schedules" in one}
    assert schedules.pop("drop-folder")["active"] is False  # until there is a folder to look into
    assert set(schedules) == {"nightly", "prune"}
    assert all(CronSchedule(cron=one["cron"], timezone=one["timezone"]) for one in schedules.values())


def test_a_landed_corpus_starts_a_retraining() -> None:
    from prefect.cli.deploy._triggers import DeploymentTriggerAdapter
    from prefect.server.utilities.user_templates import render_user_template_sync

    (spec,) = DEPLOYMENTS["retrain"]["triggers"]
    trigger = DeploymentTriggerAdapter.validate_python({"name": "t", **spec})
    assert unknown_keys(trigger, spec) == []
    assert trigger.expect == {"corpus.landed"}
    assert trigger.match.matches({"prefect.resource.id": "corpus.chitchat"})
    assert not trigger.match.matches({"prefect.resource.id": "report.chitchat"})
    taken = inspect.signature(loaded(DEPLOYMENTS["retrain"]["entrypoint"]).fn).parameters
    assert set(spec["parameters"]) <= set(taken)
    event = {"payload": {"name": "chitchat", "home": '/data/a "home"'}}
    assert render_user_template_sync(spec["parameters"]["home"], {"event": event}) == event["payload"]["home"]


def test_who_waits_for_the_nightly_run_in_vain_is_told() -> None:
    """By the server: also if no worker runs. Its trigger waits for the run of the deployment that has the schedule."""
    from prefect.events.schemas.automations import AutomationCore, Posture
    from prefect.server.events.schemas.automations import EventTrigger
    from prefect.server.events.schemas.events import ReceivedEvent

    (spec,) = yaml.safe_load((ROOT / "automations.yaml").read_text())["automations"]
    automation = AutomationCore.model_validate(spec)
    assert unknown_keys(automation, spec) == []
    trigger = EventTrigger.model_validate(spec["trigger"])
    assert trigger.posture.name == Posture.Proactive.name
    # A run that takes hours longer than the last is no alarm.
    assert 24 < trigger.within.total_seconds() / 3600 <= 48
    (action,) = automation.actions
    assert action.type == "send-notification"
    about: dict[str, Any] = {
        "event": "prefect.flow-run.Completed",
        "id": uuid4(),
        "occurred": datetime.now(UTC),
    }
    about["resource"] = {"prefect.resource.id": "prefect.flow-run.2"}
    deployment = {"prefect.resource.id": "prefect.deployment.1", "prefect.resource.role": "deployment"}
    for name, expected in (("nightly", True), ("prune", False)):
        event = ReceivedEvent(**about, related=[{**deployment, "prefect.resource.name": name}])
        assert trigger.covers(event) is expected


def test_the_image_runs_what_a_shell_can_read_and_gets_what_it_copies() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    commands = [line.removeprefix("RUN ") for line in lines if line.startswith("RUN ")]
    assert commands
    for command in commands:
        subprocess.run(["sh", "-n", "-c", command], check=True)
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    in_context = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"]
    assert sorted(f"!{name}" for name in copied) == sorted(in_context)
    assert all((ROOT / name).exists() for name in copied)
