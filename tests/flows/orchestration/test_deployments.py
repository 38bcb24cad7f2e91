"""prefect.yaml: Prefect ignores what it does not know, so every key is held against its models here."""

from __future__ import annotations

import inspect
from collections import Counter
from importlib import import_module
from typing import Any

import pytest
import yaml

from ssrem.tasks.warehouse import lock
from support.paths import ROOT

pytestmark = pytest.mark.xdist_group("prefect")  # one worker imports it

FILE = ROOT / "prefect.yaml"
DEPLOYMENTS = {d["name"]: d for d in yaml.safe_load(FILE.read_text())["deployments"]}


def flow_of(deployment: dict[str, Any]) -> Any:
    path, _, name = deployment["entrypoint"].partition(":")
    assert (FILE.parent / path).is_file()
    return getattr(import_module(path.removesuffix(".py").replace("/", ".")), name)


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


@pytest.mark.parametrize("key", ["entry_point", "concurency_limit"])
def test_a_typo_would_be_seen(key: str) -> None:
    data = {"deployments": [{"name": "x", key: 1}]}
    assert unknown_keys(parsed(data), data) == [f".deployments[0].{key}"]


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_entrypoint_is_a_flow_that_has_the_parameters(name: str) -> None:
    """Nested settings too: their models refuse what they do not know."""
    from prefect import Flow

    deployment = DEPLOYMENTS[name]
    flow = flow_of(deployment)
    assert isinstance(flow, Flow)
    assert flow.name == deployment["entrypoint"].partition(":")[2]
    taken = inspect.signature(flow.fn).parameters
    assert len(taken) <= 8
    assert set(deployment["parameters"]) <= set(taken)
    required = {p.name for p in taken.values() if p.default is p.empty}
    assert required <= set(deployment["parameters"])
    flow.validate_parameters(dict(deployment["parameters"]))


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_the_form_describes_every_setting(name: str) -> None:
    """Prefect's page shows a field for each of them, and what it means."""
    from prefect.utilities.callables import parameter_schema

    schema = parameter_schema(flow_of(DEPLOYMENTS[name])).model_dump()
    for model in schema["definitions"].values():
        assert model["additionalProperties"] is False
        assert model["description"]
        for field in model["properties"].values():
            assert field["description"], field


@pytest.mark.parametrize(
    ("flow", "parameters", "named"),
    [
        ("nightly", {"resources": {"thread": 4}}, "resources.thread"),
        ("nightly", {"runner": {"name": "spark"}}, "runner.name"),
        ("nightly", {"options": {"margins": {"rho": 0.1}}}, "options.margins.rho"),
        ("train", {"training": {"labels": {"criterion": "overall"}}}, "training.labels.files"),
        ("tables", {"table": {"context_turns": 0}}, "table.context_turns"),
    ],
)
def test_wrong_nested_settings_are_refused(flow: str, parameters: dict[str, Any], named: str) -> None:
    from prefect.exceptions import ParameterTypeError

    with pytest.raises(ParameterTypeError, match=named):
        flow_of(DEPLOYMENTS[flow]).validate_parameters(parameters)


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_work_goes_to_the_pool(name: str) -> None:
    pool = DEPLOYMENTS[name]["work_pool"]
    assert pool["name"] == "ssrem"
    assert lock.seconds(pool["job_variables"]["env"][lock.VARIABLE]) >= 3600


def test_every_flow_is_deployed() -> None:
    names = {d["entrypoint"].partition(":")[2] for d in DEPLOYMENTS.values()}
    alone = {"__init__", "compare"}  # a person names the two runs to compare
    assert names == {p.stem for p in (FILE.parent / "flows").glob("*.py")} - alone


def test_whoever_writes_waits_for_the_one_before() -> None:
    from prefect.client.schemas.objects import ConcurrencyLimitStrategy

    for name, deployment in DEPLOYMENTS.items():
        limit = parsed({"deployments": [deployment]}).deployments[0].concurrency_limit
        if name == "report":  # it writes one file, and replaces it in one step
            assert limit is None
            continue
        assert limit.limit == 1
        strategy = ConcurrencyLimitStrategy(limit.collision_strategy)
        assert strategy.name == ("CANCEL_NEW" if name == "drop_folder" else "ENQUEUE")


@pytest.mark.parametrize("name", [n for n, d in DEPLOYMENTS.items() if "schedules" in d])
def test_schedules(name: str) -> None:
    from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule

    (schedule,) = parsed({"deployments": [DEPLOYMENTS[name]]}).deployments[0].schedules
    if schedule.cron:
        assert CronSchedule(cron=schedule.cron, timezone=schedule.timezone)
    else:
        assert IntervalSchedule(interval=schedule.interval)
        assert schedule.active is False  # until there is a folder to look into


def test_a_landed_corpus_starts_a_retraining() -> None:
    from prefect.cli.deploy._triggers import DeploymentTriggerAdapter
    from prefect.server.utilities.user_templates import render_user_template_sync

    (spec,) = DEPLOYMENTS["retrain"]["triggers"]
    trigger = DeploymentTriggerAdapter.validate_python({"name": "t", **spec})
    assert unknown_keys(trigger, spec) == []
    assert trigger.expect == {"corpus.landed"}
    assert trigger.match.matches({"prefect.resource.id": "corpus.chitchat"})
    assert not trigger.match.matches({"prefect.resource.id": "report.chitchat"})
    taken = inspect.signature(flow_of(DEPLOYMENTS["retrain"]).fn).parameters
    assert set(spec["parameters"]) <= set(taken)
    event = {"payload": {"name": "chitchat", "home": '/data/a "home"'}}
    assert render_user_template_sync(spec["parameters"]["home"], {"event": event}) == event["payload"]["home"]


def test_the_image_gets_what_it_copies() -> None:
    lines = (FILE.parent / "Dockerfile").read_text().splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    in_context = [
        line[1:] for line in (FILE.parent / ".dockerignore").read_text().splitlines() if line[0] == "!"
    ]
    assert sorted(copied) == sorted(in_context)
    assert all((FILE.parent / name).exists() for name in copied)
