"""Flow `pipeline`: everything, in order; what is done already is passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import flow

from flows.agree import agree
from flows.ingest import ingest
from flows.report import report
from flows.tables import tables
from flows.train import train
from ssrem.agreement.annotated import read_annotated
from ssrem.encoders import DEFAULT_ENCODER


@flow(name="pipeline")
def pipeline(
    source: str = "chitchat",
    home: str = "warehouse",
    annotations: list[str] | None = None,
    format: str | None = None,
    mapping: dict[str, str] | None = None,
    name: str | None = None,
    speakers: str = "auto",
    evaluators: list[str] | None = None,
    encoder: str | None = None,
    seed: int = 0,
    context_turns: int = 5,
    memory_limit: str | None = None,
    threads: int | None = None,
) -> str:
    """Land the dump, build its speaker tables, train, score, correlate and report; returns the report's path."""
    for file in annotations or ():  # a slip in the last stage's input is told before the first one starts
        read_annotated(Path(file))
    room: dict[str, Any] = {"memory_limit": memory_limit, "threads": threads}
    # Not announced: what listens for landed corpora would train beside us, and one home has one writer.
    landing: dict[str, Any] = {"format": format, "mapping": mapping, "name": name, "speakers": speakers}
    corpus, _ = ingest(source, home, announce=False, **landing, **room)
    tables(home, [corpus], seed=seed, context_turns=context_turns, encoder=encoder or DEFAULT_ENCODER, **room)
    train(home, evaluators, [corpus], encoder=encoder, config={"seed": seed}, **room)
    if annotations:
        agree(annotations, home, evaluators, **room)
    return report(home)
