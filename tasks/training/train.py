"""Stage `train`: evaluators learn from the candidates of landed corpora; each training makes a version, which is
kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from ssrem.agreement.annotated import Labels
from ssrem.errors import EvaluatorError, say
from ssrem.evaluators import evaluator_class
from ssrem.samples import TEST, TRAIN, VALID
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.agreement.annotated_sets import LabelledFile, annotated_file, human_scores
from ssrem.tasks.scoring.endpoint_requests import request_options_in, why_private
from ssrem.tasks.speaker_tables.build import candidate_sources, without_tables
from ssrem.tasks.speaker_tables.language_models import masked_lm_for
from ssrem.tasks.speaker_tables.vectors import encode_option, encoder_for, training_texts
from ssrem.tasks.stage.ledger import Recipe, already_done
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.protocol import Built, run_stage
from ssrem.tasks.stage.stage import Output, Resources, Stage
from ssrem.tasks.stage.steps import step
from ssrem.tasks.training.settings import LabelOptions
from ssrem.tasks.training.versions import DECIDED, in_use, published_keys, stage_version, versions
from ssrem.tasks.warehouse.corpora import landed_corpus
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.integrity import model_damage
from ssrem.tasks.warehouse.partition import PartitionKey

if TYPE_CHECKING:
    from ssrem.encoders import Encoder
    from ssrem.evaluators.base import Evaluator
    from ssrem.samples import Candidates
    from ssrem.training import Training


@step("train evaluator")
def train(
    name: str,
    corpora: Sequence[str],
    home: str,
    *,
    encoder: str | None = None,
    config: Mapping[str, Any] | None = None,
    labels: LabelOptions | None = None,
    resources: Resources | None = None,
) -> tuple[int, bool]:
    """Train the evaluator `name` on the corpora; returns its version and whether it is new.

    The first version is in use at once; a later one waits until `decide` compares it with that one.
    The same settings on the same corpora and labels are trained once; an interrupted training is resumed.

    Raises EvaluatorError if the name or a setting is unknown or there is nothing to learn from, HomeError if a corpus
    has not landed, AnnotationError for labels that cannot be read.
    """
    warehouse = Warehouse.at(home)
    kind: Any = evaluator_class(name)
    settings = kind.check_settings(config or {})
    kind.check_labels(len(labels.files) if labels else 0, labels is not None and labels.alone)
    labelled = {}
    if labels:
        sets = (annotated_file(warehouse, file, mapping=labels.mapping) for file in labels.files)
        labelled = human_scores(sets, labels.criterion)
    spec = kind.encoder_spec(encoder)
    parameters: dict[str, Any] = {"evaluator": name, "encoder": spec, "config": settings}
    if labels:
        parameters["labels"] = [labels.criterion, labels.alone]
    job = _Job(warehouse, kind, corpora, parameters, labelled, labels is not None and labels.alone)
    return run_stage(warehouse, "train", job.recipe, job.build, done=job.trained_before, resources=resources)


@dataclass(frozen=True)
class _Job:
    """A training.

    kind: the evaluator's class. parameters: of its recipe. labelled: annotated sets by name. alone: whether it learns
    from nothing but their human scores.
    """

    home: Warehouse
    kind: Any
    corpora: Sequence[str]
    parameters: Mapping[str, Any]
    labelled: Mapping[str, LabelledFile]
    alone: bool

    def digests(self) -> dict[str, str]:
        """Corpus → digest of its content."""
        return {corpus: landed_corpus(self.home, corpus)[0] for corpus in self.corpora}

    @property
    def human(self) -> dict[str, Labels]:
        """The human scores of each annotated set."""
        return {dataset: one.labels for dataset, one in self.labelled.items()}

    @property
    def labels(self) -> dict[str, str]:
        """The digests of the annotated sets, if there are some: a promotion does not compare versions on sets that they
        learned from."""
        digests = "+".join(sorted(one.digest for one in self.labelled.values()))
        return {"labels": digests} if digests else {}

    def recipe(self) -> Recipe:
        """What determines the version: settings, corpora with their tables, and annotated sets."""
        tables = candidate_sources(self.home, self.corpora)
        return Recipe(self.parameters, {**self.digests(), "tables": tables, **self.labels})

    def checkpoint(self, recipe: Recipe) -> Path:
        """The folder of the unfinished training."""
        return self.home.root / "checkpoints" / recipe.key("train")[:16]

    def trained_before(self, recipe: Recipe) -> tuple[int, bool] | None:
        """The version that an earlier run with this recipe trained, if its model is intact.

        Identified by its learning curve, since its row in `evaluators` changes with each promotion. Its checkpoint is
        deleted: the run may have been killed before it did so.
        """
        curves = {p.key for p in self.home.partitions() if p.table == "learning_curves"}
        query = "SELECT outputs FROM runs WHERE key = ? ORDER BY started DESC"
        trained = published_keys(self.home.query(query, [recipe.key("train")]), "learning_curves")
        for key, *_ in trained:
            if key in curves and not model_damage(self.home.models, self.kind.name, key.version):
                shutil.rmtree(self.checkpoint(recipe), ignore_errors=True)
                return key.version, False
        return None

    def build(self, stage: Stage) -> Built[tuple[int, bool]]:
        """Train the evaluator, and stage its version and learning curve."""
        # Another run may have replaced a corpus meanwhile.
        missing = without_tables(str(self.home.root), self.corpora)
        candidates = load_candidates(stage.connection, self.corpora)
        if missing or (len(candidates) == 0 and not self.alone):
            names = ", ".join(missing or self.corpora)
            raise EvaluatorError(f"{names}: no response to learn from; run ssrem tables first")
        learned_from = self.digests()
        evaluator, training = self._trained(stage, candidates, learned_from)
        learned = {
            **_learned(training, candidates, learned_from),
            "test_sample": self.kind.test_sample,
            "labels": self.labels.get("labels"),
        }
        row, built = stage_version(stage, evaluator, asdict(evaluator.config), learned, challenges=True)
        key = PartitionKey(evaluator=self.kind.name, version=row["version"])
        stage.create_from_rows("learning_curves", _curves(key, training))
        card = _card(row, training, self.human)
        return replace(
            built,
            outputs=[*built.outputs, Output("learning_curves", key)],
            save=lambda: evaluator.save(stage.scratch / "model", card=card),
            after=lambda: shutil.rmtree(self.checkpoint(stage.recipe), ignore_errors=True),
        )

    def _trained(
        self, stage: Stage, candidates: Candidates, digests: Mapping[str, str]
    ) -> tuple[Any, Training]:
        """The evaluator when it has learned from the candidates, the human scores or both, and the last training."""
        name, spec, settings = (self.parameters[key] for key in ("evaluator", "encoder", "config"))
        provider = _Provider(self.home, spec, settings["seed"], digests, stage.connection, candidates)
        evaluator: Any = self.kind.create(settings, provider)
        private = next(filter(None, (why_private(self.home, corpus) for corpus in self.corpora)), None)
        with progress(f"training {name}") as advance, request_options_in(self.home, private=private):
            if not self.alone:
                encode = encode_option(self.home, evaluator, stage.scratch)
                checkpoint = self.checkpoint(stage.recipe)
                training = evaluator.fit(candidates, checkpoint=checkpoint, progress=advance, **encode)
                if training.warning and not self.human:
                    say(f"{name}: {training.warning}")
            if self.human:
                evaluator = evaluator.fine_tuned_on(self.human, progress=advance)
                training = evaluator.training
        return evaluator, training


@step("register evaluator")
def register(
    name: str, home: str, *, settings: Mapping[str, Any] | None = None, resources: Resources | None = None
) -> tuple[int, bool]:
    """Publish the evaluator `name` with these settings as a version; returns the version and whether it is new.

    Raises EvaluatorError if the name or a setting is unknown, or a package that it needs is missing.
    """
    warehouse = Warehouse.at(home)
    kind: Any = evaluator_class(name)
    if kind.learns_from:
        raise EvaluatorError(f"{name} learns from conversations; run ssrem train {name}")
    with progress(f"loading {name}"):
        evaluator = kind(**(settings or {}))
        recipe = Recipe({"evaluator": name, "signature": evaluator.signature}, {})

    def registered(_: Recipe) -> tuple[int, bool] | None:
        if not already_done(warehouse, "train", recipe):
            return None
        newest = int(versions(warehouse, name)[-1]["version"])
        return None if model_damage(warehouse.models, name, newest) else (newest, False)

    def build(stage: Stage) -> Built[tuple[int, bool]]:
        row, built = stage_version(stage, evaluator, evaluator.settings)
        card = {column: row[column] for column in ("evaluator", "version", "signature", "config")}
        return replace(built, save=lambda: evaluator.save(stage.scratch / "model", card=card))

    return run_stage(warehouse, "train", lambda: recipe, build, done=registered, resources=resources)


@dataclass(frozen=True)
class _Provider:
    """What an evaluator is created with: see ssrem.evaluators.base.Provider."""

    home: Warehouse
    spec: str | None
    seed: int
    digests: Mapping[str, str]
    connection: duckdb.DuckDBPyConnection
    candidates: Candidates

    def encoder(self) -> Encoder:
        texts = partial(training_texts, self.connection, list(self.digests))
        assert self.spec is not None, "only an evaluator with an encoder asks for one"
        return encoder_for(self.home, self.spec, self.seed, dict(self.digests), texts)

    def evaluator(self, name: str) -> Evaluator:
        return in_use(self.home, name)

    def masked_lm(self) -> Path:
        return Path(masked_lm_for(self.home, self.candidates, self.digests))


def _learned(training: Training, candidates: Candidates, digests: Mapping[str, str]) -> dict[str, Any]:
    return {
        "corpora": json.dumps(digests, sort_keys=True),
        "train_responses": int(training.rows.get("train", len(candidates.rows(TRAIN)))),
        "valid_responses": int(training.rows.get("valid", len(candidates.rows(VALID)))),
        "test_responses": len(candidates.rows(TEST)),
        "valid_loss": next(e["valid_loss"] for e in training.history if e["epoch"] == training.best_epoch),
        "best_epoch": training.best_epoch,
        "epochs": len(training.history),
        "seconds": training.seconds,
    }


def _curves(key: PartitionKey, training: Training) -> list[dict[str, Any]]:
    return [
        {**key.values(), "epoch": int(epoch["epoch"]), "split": split, "loss": float(epoch[f"{split}_loss"])}
        for epoch in training.history
        for split in ("train", "valid")
        if epoch.get(f"{split}_loss") is not None  # epoch 0, before training, has no training loss
    ]


def _card(row: Mapping[str, Any], training: Training, human: Mapping[str, Labels]) -> dict[str, Any]:
    card = {key: row[key] for key in row if key not in DECIDED}
    card |= {key: json.loads(row[key]) for key in ("config", "corpora")}
    if human:
        card["human_scores"] = {
            name: {"criterion": labels.criterion, "responses": len(labels.pairs), "scale": list(labels.scale)}
            for name, labels in human.items()
        }
    return {
        **card,
        "trained_at": f"{row['trained_at']:%F %T}",
        "figures": dict(training.figures),
        "notes": list(training.notes),
    }
