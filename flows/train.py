"""Flow `train`: train evaluators, score their test splits, and promote those that are not worse."""

from __future__ import annotations

from ssrem.errors import say
from ssrem.evaluators import DEFAULT_EVALUATORS, evaluator_class, route
from ssrem.flows.decide import decide
from ssrem.flows.orchestration.artifacts import stage_artifacts
from ssrem.flows.orchestration.options import RunnerOptions, TableOptions, TrainingOptions
from ssrem.flows.orchestration.workers import on_workers
from ssrem.flows.tables import tables
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.scoring.test_split import score_corpus
from ssrem.tasks.speaker_tables.build import without_tables
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.training.dry_run import too_small
from ssrem.tasks.training.promotion import challenges
from ssrem.tasks.training.settings import Margins
from ssrem.tasks.training.train import register
from ssrem.tasks.training.train import train as train_evaluator
from ssrem.tasks.warehouse.corpora import corpora_to_learn_from
from ssrem.tasks.warehouse.home import Warehouse


@on_workers
def train(
    home: str = "warehouse",
    evaluators: list[str] | None = None,
    corpora: list[str] | None = None,
    training: TrainingOptions = TrainingOptions(),
    margins: Margins = Margins(),
    resources: Resources = Resources(),
    runner: RunnerOptions = RunnerOptions(),
) -> dict[str, tuple[int, bool]]:
    """Train evaluators and score their test splits; returns each evaluator's version and whether it is new.

    Speaker tables that are missing are built first, with default settings. Evaluators that learn nothing are
    registered, and need no corpus, nor does learning from human scores alone. A version that is not an evaluator's
    first is compared with the one in use, and promoted if it is not worse.

    Args:
        evaluators: Names of evaluators; by default ssrem and rsrem
        corpora: Names of corpora to learn from; by default all that have landed
    """
    names = evaluators or list(DEFAULT_EVALUATORS)
    repair(home)
    settings = route(names, training.config)
    for name in names:
        if training.encoder and "encoder" in evaluator_class(name).setting_names():
            settings[name].setdefault("encoder", training.encoder)
    trained = {
        name: register(name, home, settings=settings[name], resources=resources)
        for name in names
        if not evaluator_class(name).learns_from
    }
    if len(trained) == len(names):
        return trained
    alone = training.labels is not None and training.labels.alone
    learned_from = corpora_to_learn_from(Warehouse.at(home), corpora, labels_alone=alone)
    if missing := without_tables(home, learned_from):
        tables(home, missing, TableOptions(encoder=training.encoder), resources)
    if not alone and (warning := too_small(Warehouse.at(home), learned_from)):
        say(warning)
    with stage_artifacts(home, "train", ["evaluators", "identification"]):
        for name in names:
            if name in trained:
                continue
            version, new = train_evaluator(
                name,
                learned_from,
                home,
                encoder=training.encoder,
                config=settings[name],
                labels=training.labels,
                resources=resources,
            )
            for corpus in learned_from if "f" in evaluator_class(name).parts else ():
                score_corpus(name, version, corpus, home, resources=resources)
            trained[name] = (version, new)
    if challenges(Warehouse.at(home), names):
        decide(home, names, margins, resources)
    return trained
