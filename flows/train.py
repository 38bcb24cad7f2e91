"""Flow `train`: evaluators learn, and the test split shows what they learned."""

from __future__ import annotations

from typing import Any

from prefect import flow

from flows.decide import decide
from flows.orchestration.artifacts import shown
from flows.orchestration.failure_hook import tell
from flows.orchestration.task_runners import Runner, on_workers
from flows.tables import tables
from ssrem.encoders import DEFAULT_ENCODER
from ssrem.evaluators import DEFAULT_EVALUATORS, evaluator_class
from ssrem.evaluators.core.routing import names_of, route
from tasks.maintenance.repair import repair
from tasks.scoring.test_split import score_corpus
from tasks.stage.stage import Resources
from tasks.training.labels import HumanScores
from tasks.training.noninferiority_margins import Margins
from tasks.training.promotion import challenges
from tasks.training.register import register
from tasks.training.train import train as train_evaluator
from tasks.training.train import without_tables
from tasks.warehouse.home import Warehouse, landed_corpora


@flow(name="train", on_failure=[tell], on_crashed=[tell])
@on_workers
def train(
    home: str = "warehouse",
    evaluators: list[str] | None = None,
    corpora: list[str] | None = None,
    encoder: str | None = None,
    config: dict[str, Any] | None = None,
    labels: str | None = None,
    criterion: str | None = None,
    labels_only: bool = False,
    margins: dict[str, float] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    runner: Runner | None = None,
    runner_address: str | None = None,
    workers: int = 2,
) -> dict[str, tuple[int, bool]]:
    """Train the evaluators on the corpora and score their test splits; evaluator to (version, whether it is new).

    Speaker tables that were never built are built first, with default settings. Evaluators that learn nothing are
    registered and need no corpus. encoder: of those that take one; None for each one's default. config: settings;
    each evaluator gets those that it has. labels: an annotated set to learn from after the corpora, or, with
    labels_only, instead of them; criterion: which of its scores. A version that is not an evaluator's first is
    compared with the one in use, and promoted if it is not worse; margins: see flow `decide`.
    """
    Margins.of(margins or {})  # a slip is told before hours of training
    names = evaluators or list(DEFAULT_EVALUATORS)
    human = HumanScores(labels, criterion, labels_only) if labels else None
    resources = Resources(memory_limit, threads)
    repair(home)
    settings = route(names, config or {})
    for name in names:
        if encoder and "encoder" in names_of(name):
            settings[name].setdefault("encoder", encoder)
    trained = {
        name: register(name, home, settings=settings[name], resources=resources)
        for name in names
        if not evaluator_class(name).trained
    }
    if len(trained) == len(names):
        return trained
    learned_from = corpora or landed_corpora(home)
    if missing := without_tables(home, learned_from):
        tables(home, missing, encoder=encoder or DEFAULT_ENCODER, memory_limit=memory_limit, threads=threads)
    with shown(home, "train", ["evaluators", "identification"]):
        for name in names:
            if name in trained:
                continue
            version, new = train_evaluator(
                name,
                learned_from,
                home,
                encoder=encoder or DEFAULT_ENCODER,
                config=settings[name],
                labels=human,
                resources=resources,
            )
            for corpus in learned_from if "f" in evaluator_class(name).parts else ():
                score_corpus(name, version, corpus, home, resources=resources)
            trained[name] = (version, new)
    if challenges(Warehouse.at(home), names):
        decide(home, names, margins, memory_limit, threads)
    return trained
