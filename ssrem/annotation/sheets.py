"""The batch as files instead of the page: a CSV sheet for each rater, and the items as JSON lines."""

from __future__ import annotations

import csv
import io
import json

from ssrem.annotation.items import Batch

COLUMNS = ("batch", "rater", "item", "conversation", "response", "score")


def as_csv(batch: Batch, rater: str) -> str:
    """A rater's sheet; they fill in its last column, the score."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    items = batch.by_id
    for one in batch.sheets[rater]:
        item = items[one]
        conversation = "\n".join(f"{seat}: {text}" for seat, text in item.context.turns)
        writer.writerow([batch.id, rater, one, conversation, _cell(item.response), ""])
    return text.getvalue()


def as_jsonl(batch: Batch) -> str:
    """The items, one a line, without what raters must not know."""
    rows = (
        {"item": item.id, "context": item.context.texts, "response": item.response} for item in batch.items
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def contexts_jsonl(batch: Batch) -> str:
    """The distinct contexts, one a line, to which a system has to respond to take part in a batch of this seed."""
    contexts = {item.context.response_id: item.context for item in batch.items}
    rows = ({"context": contexts[one].texts} for one in sorted(contexts))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
