"""Inputs of the attacked commands, and a digest of the tables that come out."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path

from ssrem.annotation.items import Batch
from ssrem.annotation.page import ANSWERS_FORMAT
from ssrem.schemas import TABLES
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.snapshot import Snapshot

WORDS = """
pizza bread cheese soup dinner cook guitar song band piano concert sing football goal team coach match beach hotel city
train island trip i you really like the a of my do think yes no very great today was with
""".split()  # noqa: SIM905
SALTED = {"key", "parameters"}
"""Columns of the ledger that hold digests of forgotten people, under a salt that each home folder draws."""

VOLATILE = {
    *("run_id", "started", "ended", "landed_at", "trained_at", "decided_at", "promoted_at", "seconds", "run"),
}
"""Columns that hold times and run ids."""


def content(home: Warehouse, snapshot: Snapshot | None = None) -> dict[str, str]:
    """Table to a digest of its rows in any order, without columns of times and run ids."""
    digests = {}
    with home.reader(snapshot=snapshot) as connection:
        for table in TABLES.values():
            left_out = VOLATILE | (SALTED if table.name == "runs" else set())
            names = ", ".join(f'"{c}"' for c in table.column_names if c not in left_out)
            rows = connection.execute(f"SELECT DISTINCT {names} FROM {table.name} ORDER BY ALL").fetchall()
            digests[table.name] = hashlib.sha256(repr(rows).encode()).hexdigest()[:12] if rows else ""
    return digests


def write_dump(path: Path, seed: int, conversations: int, people: int = 10) -> None:
    """A corpus of ten messages a conversation, some of which cannot land."""
    draw = random.Random(seed)
    with path.open("w") as dump:
        for number in range(conversations):
            pair = draw.sample(range(people), 2)
            for turn in range(10):
                row = {
                    "conversation_id": f"{path.stem}{number}",
                    "utterance_id": f"{path.stem}{number}-{turn}",
                    "speaker": f"p{pair[turn % 2]}",
                    "text": " ".join(draw.choices(WORDS, k=7)) if draw.random() > 0.03 else "",
                }
                dump.write(json.dumps(row) + "\n")


def write_rated(path: Path, responses: int = 20) -> None:
    """An annotated set of responses of five systems, each rated by three people."""
    draw = random.Random(0)
    rated = [
        {
            "dialogue_id": str(number),
            "context": [" ".join(draw.choices(WORDS, k=5)) for _ in range(2)],
            "response": " ".join(draw.choices(WORDS, k=5)),
            "reference": " ".join(draw.choices(WORDS, k=5)),
            "model": "abcde"[number % 5],
            "annotations": {"overall": [draw.randint(1, 5) for _ in range(3)]},
        }
        for number in range(responses)
    ]
    path.write_text(json.dumps(rated))


def write_answers(inputs: Path) -> None:
    """A file of each rater of the batch, who all pass the attention checks."""
    batch = Batch.from_json((inputs / "batch" / "key.json").read_text(), "key.json")
    draw = random.Random(0)
    for number, (rater, sheet) in enumerate(batch.sheets.items()):
        passed = {name: batch.by_id[name].expected or [draw.randint(1, 5)] for name in sheet}
        answers = [{"item": name, "score": scores[0]} for name, scores in passed.items()]
        saved = {"format": ANSWERS_FORMAT, "batch": batch.id, "rater": rater, "answers": answers}
        (inputs / f"answers-{number}.json").write_text(json.dumps(saved))
