"""What raters get: a page that works offline or a CSV sheet each; neither reveals systems or attention checks."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from ssrem.annotation.items import Batch

ANSWERS_FORMAT = "ssrem-answers-1"
COLUMNS = ("batch", "rater", "item", "conversation", "response", "score")


def render(batch: Batch) -> str:
    """The batch as a self-contained HTML document; equal batches give equal text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ssrem.annotation", "."), autoescape=True, undefined=StrictUndefined
    )
    script = _resource("page.js")
    return environment.get_template("page.html").render(
        plan=batch.plan,
        style=_resource("page.css"),
        script=script,
        # The content security policy allows this script only, and no network access.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=_in_script(raters_view(batch)),
    )


def raters_view(batch: Batch) -> dict[str, Any]:
    """The part of the batch that raters may see."""
    return {
        "format": ANSWERS_FORMAT,
        "batch": batch.id,
        "scale": batch.plan.scale,
        "criteria": list(batch.plan.questions),
        "items": {
            item.id: {
                "turns": item.context.turns,
                "responder": item.context.responder,
                "response": item.response,
            }
            for item in batch.items
        },
        "sheets": batch.sheets,
    }


def as_csv(batch: Batch, rater: str) -> str:
    """A rater's sheet; they fill in its last column, the score, or the last two."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    more = list(batch.plan.questions)[1:]
    writer.writerow([*COLUMNS, *more])
    items = batch.by_id
    for one in batch.sheets[rater]:
        item = items[one]
        conversation = "\n".join(f"{seat}: {text}" for seat, text in item.context.turns)
        writer.writerow([batch.id, rater, one, conversation, _cell(item.response), "", *([""] * len(more))])
    return text.getvalue()


def as_jsonl(batch: Batch) -> str:
    """The items, one a line, without what raters must not know."""
    return _json_lines(
        {"item": item.id, "context": item.context.texts, "response": item.response} for item in batch.items
    )


def contexts_jsonl(batch: Batch) -> str:
    """The distinct contexts, one a line, to which a system has to respond to take part in a batch of this seed."""
    contexts = {item.context.response_id: item.context for item in batch.items}
    return _json_lines({"context": contexts[one].texts} for one in sorted(contexts))


def _json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _in_script(value: Any) -> str:
    """JSON that cannot end the script element, whatever the texts hold."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _resource(name: str) -> str:
    return files("ssrem.annotation").joinpath(name).read_text(encoding="utf-8")


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
