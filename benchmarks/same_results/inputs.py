"""Inputs of the small home: two dumps, an annotated set, responses to score, and raters' answers."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

TOPICS = (
    "pizza bread cheese apple soup dinner cook eat taste kitchen",
    "guitar song band piano concert sing drum album listen melody",
    "football goal team coach match player score league win stadium",
    "plane beach hotel city train island trip passport ticket map",
)
COMMON = "i you really like the a of my do think yes no very great today was with"


def write_inputs(folder: Path) -> None:
    """Two dumps of conversations about a topic each, an annotated set of 48 responses, and responses to score."""
    topics, common = [topic.split() for topic in TOPICS], COMMON.split()
    draw = random.Random(0)

    def sentence(topic: list[str]) -> str:
        return " ".join(draw.choices(topic, k=4) + draw.choices(common, k=4))

    for name, conversations in (("talk", 60), ("more", 30)):
        lines = []
        for number in range(conversations):
            pair, topic = draw.sample(range(12), 2), draw.choice(topics)
            row = {"conversation_id": f"{name}{number}"}
            for turn in range(10):
                row |= {"utterance_id": f"{name}{number}-{turn}", "speaker": f"p{pair[turn % 2]}"}
                lines.append(json.dumps({**row, "text": sentence(topic)}))
        lines.append("{broken")
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    rated = []
    for number in range(48):
        topic = topics[number // 6 % 4]
        of_raters = [draw.randint(1, 5) for _ in range(4)]
        row_of_set = {
            "dialogue_id": str(number // 6),
            "context": [sentence(topic), sentence(topic)],
            "response": sentence(draw.choice(topics))[: draw.randint(10, 60)],
            "reference": sentence(topic),
            "model": ("a", "b", "c", "d", "e", "ground-truth")[number % 6],
            "annotations": {"overall": of_raters, "relevance": of_raters[::-1]},
        }
        rated.append(row_of_set)
    (folder / "people_eval.json").write_text(json.dumps(rated))
    fields = ("context", "response", "reference")
    (folder / "responses.json").write_text(json.dumps([{k: row[k] for k in fields} for row in rated[:12]]))


def fill_in(folder: Path) -> None:
    """Fill in the raters' tables of the batch that was exported."""
    for number in (1, 2, 3):
        rows = list(csv.DictReader((folder / f"batch/raters/rater-{number}.csv").open(newline="")))
        with (folder / f"rater-{number}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows({**row, "score": 1 + (len(row["response"]) + number // 2) % 5} for row in rows)
