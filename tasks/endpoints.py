"""Evaluators that query an endpoint: which they are, how they are set up for a run, and what a run would request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ssrem.errors import say
from ssrem.evaluators import evaluator_class, route
from ssrem.evaluators.base import Evaluator
from ssrem.evaluators.judge import judge as judging
from ssrem.evaluators.judge.endpoint import Client, RequestOptions
from ssrem.evaluators.metric import Metric
from ssrem.samples import Progress, Sample
from ssrem.tasks.settings import AskingSettings
from ssrem.tasks.warehouse.home import Warehouse


def asks(home: Warehouse, name: str, version: int) -> bool:
    """Whether a version of an evaluator queries an endpoint; it then never scores all candidates of a test split, and
    the answers are published."""
    return judging.asks(home.models / name / str(version))


def may_ask(name: str) -> bool:
    """Whether the evaluator of that name is a judge, or a blend, which may have a judge among its parts."""
    from ssrem.evaluators.blend import Blend

    return issubclass(evaluator_class(name), judging.Judge | Blend)


def connected(
    evaluator: Evaluator, home: Warehouse, client: Client | None = None, advance: Progress = lambda *_: None
) -> Evaluator:
    """The evaluator, whose judges get the client of the run: with it they keep answers in the home folder, print where
    texts are sent, and report the requests done and in all to `advance`."""
    client = client or Client()
    if isinstance(evaluator, Metric):
        evaluator.settings = evaluator.settings_of_run(client.options)
    client.journal, client.say, client.advance = home.judgments, say, advance
    for judge in judging.judges(evaluator):
        judge.client = client
    return evaluator


def split_settings(names: Sequence[str], asking: AskingSettings) -> tuple[dict[str, dict[str, Any]], Client]:
    """Divide the settings of evaluators that learn nothing into evaluator → the settings that are saved with a version,
    and the client of this run, which applies those that are not saved. SsremError for an unknown setting or an invalid
    value."""
    requests = {
        name: value
        for name, value in asking.set.items()
        if name in RequestOptions.model_fields and any(map(may_ask, names))
    }
    # Checked before they are stored as flow parameters: key_env may hold a key instead of the name of its variable.
    RequestOptions(**requests)
    versions = {name: value for name, value in asking.set.items() if name not in requests}
    routed = route(names, versions) if versions else {}
    return routed, Client(asking.max_requests, asking.set)


def dry_run_row(name: str, evaluator: Evaluator, samples: Sequence[Sample], dataset: str) -> dict[str, Any]:
    """What scoring the samples would request from an endpoint, as a row of a table; nothing is sent."""
    return {"evaluator": name, "of": dataset, "responses": len(samples), **judging.asked(evaluator, samples)}
