"""prefect.yaml: Prefect ignores what it does not know, so every key is held against its models here."""

from __future__ import annotations

import inspect
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

FILE = Path(__file__).resolve().parents[2] / "prefect.yaml"
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
    found = [f"{where}.{key}" for key in data if key not in known]
    for key in data.keys() & known.keys():
        found += unknown_keys(getattr(model, known[key]), data[key], f"{where}.{key}")
    return found


def parsed(data: dict[str, Any]) -> Any:
    from prefect.cli.deploy._models import PrefectYamlModel

    return PrefectYamlModel.model_validate(data)


def test_prefect_knows_every_key() -> None:
    data = yaml.safe_load(FILE.read_text())
    assert unknown_keys(parsed(data), data) == []


@pytest.mark.parametrize("key", ["entry_point", "concurency_limit"])
def test_a_typo_would_be_seen(key: str) -> None:
    data = {"deployments": [{"name": "x", key: 1}]}
    assert unknown_keys(parsed(data), data) == [f".deployments[0].{key}"]


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_entrypoint_is_a_flow_that_has_the_parameters(name: str) -> None:
    from prefect import Flow

    deployment = DEPLOYMENTS[name]
    flow = flow_of(deployment)
    assert isinstance(flow, Flow)
    taken = inspect.signature(flow.fn).parameters
    assert set(deployment["parameters"]) <= set(taken)
    required = {p.name for p in taken.values() if p.default is p.empty}
    assert required <= set(deployment["parameters"])
    flow.validate_parameters(dict(deployment["parameters"]))


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_work_goes_to_the_pool(name: str) -> None:
    assert DEPLOYMENTS[name]["work_pool"] == {"name": "ssrem"}


def test_every_flow_is_deployed() -> None:
    flows = {p.stem for p in (FILE.parent / "flows").glob("*.py")}
    files = {Path(d["entrypoint"].partition(":")[0]).stem for d in DEPLOYMENTS.values()}
    assert files == {"ingest", "tables", "train", "agree", "report", "pipeline"} <= flows


def test_one_nightly_run_at_a_time() -> None:
    from prefect.client.schemas.objects import ConcurrencyLimitStrategy
    from prefect.client.schemas.schedules import CronSchedule

    nightly = parsed(yaml.safe_load(FILE.read_text())).deployments[0]
    assert nightly.concurrency_limit.limit == 1
    assert ConcurrencyLimitStrategy(nightly.concurrency_limit.collision_strategy).name == "ENQUEUE"
    assert CronSchedule(cron=nightly.schedules[0].cron, timezone=nightly.schedules[0].timezone)


def test_a_landed_corpus_starts_its_training() -> None:
    from prefect.cli.deploy._triggers import DeploymentTriggerAdapter
    from prefect.server.utilities.user_templates import render_user_template_sync

    (spec,) = DEPLOYMENTS["train"]["triggers"]
    trigger = DeploymentTriggerAdapter.validate_python({"name": "t", **spec})
    assert unknown_keys(trigger, spec) == []
    assert trigger.expect == {"corpus.landed"}
    assert trigger.match.matches({"prefect.resource.id": "corpus.chitchat"})
    assert not trigger.match.matches({"prefect.resource.id": "report.chitchat"})
    (parameter, wrapped) = next(iter(spec["parameters"].items()))
    assert parameter in inspect.signature(flow_of(DEPLOYMENTS["train"]).fn).parameters
    assert wrapped["__prefect_kind"] == "json"
    event = {"payload": {"name": 'a "corpus"'}}
    rendered = render_user_template_sync(wrapped["value"]["template"], {"event": event})
    assert json.loads(rendered) == ['a "corpus"']
