"""The batch as files for raters without the page: a table for each, and the items as JSON lines."""

from __future__ import annotations

import csv
import io
import json

from ssrem.annotation.items import Batch

COLUMNS = ("batch", "rater", "item", "conversation", "response", "score")


def as_csv(batch: Batch, rater: str) -> str:
    """The sheet of a rater, whose last column is theirs to fill in."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    items = batch.by_id
    for one in batch.sheets[rater]:
        item = items[one]
        conversation = "\n".join(f"{seat}: {said}" for seat, said in item.context.turns)
        writer.writerow([batch.id, rater, one, conversation, _cell(item.response), ""])
    return text.getvalue()


def as_jsonl(batch: Batch) -> str:
    """The items without what raters must not know, one a line."""
    rows = (
        {"item": item.id, "context": item.context.texts, "response": item.response} for item in batch.items
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def contexts_jsonl(batch: Batch) -> str:
    """Every context once, one a line: what a system has to answer to be in a batch of the same seed."""
    contexts = {item.context.response_id: item.context for item in batch.items}
    rows = ({"context": contexts[one].texts} for one in sorted(contexts))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _cell(text: str) -> str:
    """What somebody wrote is no formula, whatever it begins with."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
