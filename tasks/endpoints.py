"""Evaluators that ask an endpoint, within a home folder: where answers are kept, which texts must not be sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ssrem.errors import say
from ssrem.evaluators import evaluator_class, route
from ssrem.evaluators.base import Evaluator
from ssrem.evaluators.judge.request_options import OPTIONS, RequestOptions, request_options
from ssrem.samples import Sample
from ssrem.tasks.stage.stage import last_parameters
from ssrem.tasks.warehouse.home import Warehouse

MARK = ".private"
"""Ending of a file beside an annotated set, such as eval.json.private, that marks its texts as private."""


def request_options_in(home: Warehouse, **changes: Any) -> AbstractContextManager[None]:
    """`request_options` that also store answers in the home folder and print where texts are sent."""
    return request_options(journal=home.judgments, say=say, **changes)


def asks(home: Warehouse, name: str, version: int) -> bool:
    """Whether a version of an evaluator asks an endpoint."""
    return evaluator_class(name).asks_from(home.models / name / str(version))


def split_settings(
    names: Sequence[str], settings: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The values of `--set` for evaluators that learn nothing, as evaluator → settings of a version, and as options for
    asking endpoints in this run. EvaluatorError for an unknown setting or a value that it cannot have."""
    may_ask = any(evaluator_class(name).asks for name in names)
    options = {name: value for name, value in settings.items() if name in OPTIONS and may_ask}
    # Checked before they are stored as flow parameters: a key may stand in place of its variable.
    RequestOptions(**options)
    versions = {name: value for name, value in settings.items() if name not in options}
    return (route(names, versions) if versions else {}), options


def why_private(home: Warehouse, *datasets: str) -> str | None:
    """Why texts of landed corpora or annotated sets must not be sent anywhere; None if they may be."""
    query = (
        "SELECT 1 FROM runs WHERE stage = 'correlate' AND parameters->>'$.dataset' = ? "
        "AND (parameters->>'$.private')::BOOLEAN"
    )
    for name in datasets:
        if last_parameters(home, name, "ingest").get("pseudonym_key"):
            return f"corpus {name} has pseudonyms"
        if home.query(query, [name]):
            return marked_private(name)
    return None


def marked_private(name: str) -> str:
    """Why texts of an annotated set that is marked private must not be sent."""
    return f"annotated set {name} is marked private"


def why_marked(file: Path | str, name: str) -> str | None:
    """Why texts of a file or folder of responses, called `name`, must not be sent; None if it is not marked private."""
    return marked_private(name) if Path(f"{str(file).rstrip('/')}{MARK}").exists() else None


def mark_private(file: Path) -> None:
    """Mark a file of responses as private."""
    Path(f"{file}{MARK}").touch()


def bill_row(name: str, evaluator: Evaluator, samples: Sequence[Sample], dataset: str) -> dict[str, Any]:
    """What scoring the samples would send to an endpoint, as a row of a table; nothing is sent."""
    bill = asdict(evaluator.bill(samples))
    asked = {"requests": bill.pop("requests"), "answered_before": bill.pop("answered")}
    return {"evaluator": name, "of": dataset, "responses": len(samples), **asked, **bill}
