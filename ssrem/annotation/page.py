"""The rating page: one HTML file with all sheets that works offline and reveals neither systems nor checks."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from ssrem.annotation.items import Batch

ANSWERS_FORMAT = "ssrem-answers-1"


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
        data=_in_script(shown(batch)),
    )


def shown(batch: Batch) -> dict[str, Any]:
    """The part of the batch that raters may see."""
    return {
        "format": ANSWERS_FORMAT,
        "batch": batch.id,
        "scale": batch.plan.scale,
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


def _in_script(value: Any) -> str:
    """JSON that cannot end the script element, whatever the texts hold."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _resource(name: str) -> str:
    return files("ssrem.annotation").joinpath(name).read_text(encoding="utf-8")
