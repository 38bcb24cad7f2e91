"""Stage `train`: evaluators learn from the candidates of landed corpora; each training makes a new version."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ssrem.encoders.base import parts_of
from ssrem.errors import EvaluatorError, say
from ssrem.evaluators import DEFAULT_EVALUATORS, evaluator_class, route, source_hash
from ssrem.evaluators.base import Evaluator
from ssrem.files import expanded, sha256, write_json
from ssrem.samples import SPLIT_CODES, Candidates, Labels
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.annotated import annotated_files, human_scores
from ssrem.tasks.caches import cached_vectors, encoder_for, masked_lm_for, training_texts
from ssrem.tasks.distil import judge_in_use, judged
from ssrem.tasks.endpoints import connected
from ssrem.tasks.promote import challenges, decide_all
from ssrem.tasks.score import score_test_splits
from ssrem.tasks.settings import Margins, Resources, TrainSettings
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.stage import Built, Output, Recipe, Stage, candidate_sources, run_stage
from ssrem.tasks.tables import build, build_missing, without_tables
from ssrem.tasks.versions import (
    DECIDED,
    any_trained,
    context_hashes,
    created,
    outdated,
    promoted,
    published_keys,
    register,
    stage_version,
    unregistered,
    version_status,
)
from ssrem.tasks.warehouse.catalog import PartitionKey
from ssrem.tasks.warehouse.files import model_damage
from ssrem.tasks.warehouse.home import Warehouse, landed_corpora, landed_corpus
from ssrem.training import Training
from ssrem.trusted_sources import without_prefix

ENOUGH = 100
"""Fewest responses of the validation and of the test split by which a training can be judged: the 95% interval of a
share of n responses is ± 0.98 / √n at most, which is ± 10 percentage points for 100 responses and ± 31 for 10."""

RESPONSES = "SELECT count(*) FROM responses WHERE split = ? AND list_contains(?, corpus)"

Outcome = tuple[int, bool]
"""A version, and whether it is new."""


def train(
    name: str,
    corpora: Sequence[str],
    home: str,
    settings: TrainSettings = TrainSettings(),
    *,
    resources: Resources = Resources(),
) -> Outcome:
    """Train the evaluator `name` on the corpora; returns its version and whether it is new.

    The first version is in use at once; a later one waits until `decide` compares it with the one in use.
    The same settings on the same corpora and labels are trained once; an interrupted training is resumed.

    Raises EvaluatorError if the name or a setting is unknown or there is nothing to learn from, HomeError if a corpus
    has not landed, AnnotationError for labels that cannot be read.
    """
    warehouse = Warehouse.at(home)
    # What learns from human scores alone learns from no corpus.
    corpora = () if settings.labels_only and not settings.labels_from else corpora
    kind: Any = evaluator_class(name)
    given = route([name], settings.config)[name]
    config = kind.settings_model(**given).model_dump(mode="json")
    check_labels(kind, len(settings.labels) + bool(settings.labels_from), settings.labels_only)
    labelled = {
        **human_scores(annotated_files(warehouse, settings.labels, mapping=settings.map), settings.criterion),
        **judged(name, corpora, warehouse, settings),
    }
    human = {dataset: own for dataset, (_, own) in labelled.items()}
    labels = {"labels": "+".join(sorted(digest for digest, _ in labelled.values()))} if labelled else {}
    spec = kind.default_encoder and (settings.encoder or kind.default_encoder)
    criteria = sorted({one.criterion for one in human.values()})
    parameters: dict[str, Any] = {
        "evaluator": name,
        "encoder": spec,
        "config": config,
        **({"labels": [*criteria, settings.labels_only]} if labelled else {}),
        **_built_on(warehouse, kind, spec, config),
    }

    def digests() -> dict[str, str]:
        return {corpus: landed_corpus(warehouse, corpus)[0] for corpus in corpora}

    def recipe() -> Recipe:
        return Recipe(parameters, {**digests(), "tables": candidate_sources(warehouse, corpora), **labels})

    def checkpoint(recipe: Recipe) -> Path:
        """The folder of the unfinished training."""
        return warehouse.root / "checkpoints" / recipe.key("train")[:16]

    def trained_before(recipe: Recipe) -> Outcome | None:
        """The version that an earlier run with this recipe trained, if its model is intact; else None. It is found by
        its learning curve, since its row in `evaluators` changes with each promotion."""
        curves = {p.key for p in warehouse.partitions() if p.table == "learning_curves"}
        query = "SELECT outputs FROM runs WHERE key = ? ORDER BY started DESC"
        for key, *_ in published_keys(warehouse.query(query, [recipe.key("train")]), "learning_curves"):
            if key in curves and not model_damage(warehouse.models, name, key.version):
                shutil.rmtree(checkpoint(recipe), ignore_errors=True)  # left by a killed process
                return key.version, False
        return None

    def build(stage: Stage) -> Built[Outcome]:
        missing = without_tables(home, corpora)  # another run may have replaced a corpus meanwhile
        candidates = load_candidates(stage.connection, corpora)
        if missing or (len(candidates) == 0 and not settings.labels_only):
            what = ", ".join(missing or corpora)
            why = "run ssrem tables first" if missing else "no conversation has two speakers"
            raise EvaluatorError(f"{what}: no response to learn from; {why}")
        content, unfinished = digests(), checkpoint(stage.recipe)
        provider = SimpleNamespace(  # see ssrem.evaluators.base.Provider
            encoder=lambda: encoder_for(
                warehouse, spec, config["seed"], content, partial(training_texts, stage.connection, corpora)
            ),
            evaluator=partial(created, warehouse),
            masked_lm=lambda: masked_lm_for(warehouse, candidates, content),
        )
        # `given` adds settings that the config leaves out, such as a device.
        evaluator = kind.create({**config, **given}, provider)
        connected(evaluator, warehouse)
        with progress(f"training {name}") as advance:
            if not settings.labels_only:
                with cached_vectors(warehouse, evaluator):
                    training = evaluator.fit(candidates, checkpoint=unfinished, progress=advance)
                _tell(name, training, warning=not human)
            if human:
                evaluator = evaluator.tuned_on(human, progress=advance)
                training = evaluator.training
                _tell(name, training)
        rated = [sample.context for one in human.values() for sample in one.samples]
        learned = {
            "corpora": json.dumps(content, sort_keys=True),
            "labels": labels.get("labels"),
            "labelled": sorted(context_hashes(rated)) or None,
        }
        row, built = stage_version(
            stage,
            evaluator,
            evaluator.settings.model_dump(mode="json"),
            learned | _measured(training, candidates),
            challenges=True,
        )
        key = PartitionKey(evaluator=name, version=row["version"])
        curves = [
            {**key.values(), "epoch": int(epoch["epoch"]), "split": split, "loss": epoch[f"{split}_loss"]}
            for epoch in training.history
            for split in ("train", "valid")
            if epoch.get(f"{split}_loss") is not None  # epoch 0 has no training loss
        ]
        stage.create_from_rows("learning_curves", curves)
        return replace(
            built,
            outputs=[*built.outputs, Output("learning_curves", key)],
            save=partial(_save, stage.scratch / "model", evaluator, _card(row, training, human)),
            after=lambda: shutil.rmtree(unfinished, ignore_errors=True),
        )

    return run_stage(warehouse, "train", recipe, build, done=trained_before, resources=resources)


def _built_on(
    home: Warehouse, kind: type[Evaluator], spec: str | None, config: Mapping[str, Any]
) -> dict[str, Any]:
    """What an evaluator is built on that its settings only name, for the recipe; empty if there is nothing of it.

    source: the hash of its code, unless it comes with ssrem. files: local file or folder of an encoder or a model →
    digest of its content. parts: (name, version) of each part of a blend that was trained here.
    """
    named = filter(None, (spec, config.get("model"), config.get("negatives_model")))
    every = (part for one in named for part in parts_of(one))
    files = {part: _digest(path) for part in every if (path := _local(part))}
    parts = {part["evaluator"] for part in config.get("parts", ())}
    in_use = home.in_use() if parts else []
    trained = [one for one in in_use if one[0] in parts and evaluator_class(one[0]).learns_from]
    known = {"source": source_hash(kind), "files": files, "parts": trained}
    return {what: value for what, value in known.items() if value}


def _local(spec: str) -> Path | None:
    """The local file or folder that a spec of an encoder or a model names, also before a suffix such as `:uniform`."""
    names = map(without_prefix, (spec, spec.rpartition(":")[0]))
    return next(filter(Path.exists, map(expanded, filter(None, names))), None)


def _digest(path: Path) -> str:
    """Hex digest of the names and contents of a folder's files, or of a single file."""
    files = sorted(filter(Path.is_file, path.rglob("*") if path.is_dir() else [path]))
    content = [f"{file.relative_to(path)} {sha256(file)}" for file in files]
    return hashlib.sha256("\n".join(content).encode()).hexdigest()


def _tell(name: str, training: Training, *, warning: bool = True) -> None:
    """Say the notes of a training. warning: also that it learned nothing, which human scores may still change."""
    for note in training.notes:
        if warning or note != training.warning:
            say(f"{name}: {note}")


def _measured(training: Training, candidates: Candidates) -> dict[str, Any]:
    """The columns of `evaluators` that tell how the training went."""
    sizes = {split: len(candidates.rows(code)) for split, code in SPLIT_CODES.items()}
    sizes |= {**training.rows, "test": sizes["test"]}
    epochs = int(training.history[-1]["epoch"])
    if an_epoch := sizes.get("train_an_epoch"):  # of which each epoch reads others
        sizes["train"] = min(sizes["train"], epochs * an_epoch)
    return {
        **{f"{split}_responses": int(sizes[split]) for split in SPLIT_CODES},
        "valid_loss": next(e["valid_loss"] for e in training.history if e["epoch"] == training.best_epoch),
        "best_epoch": training.best_epoch,
        "epochs": epochs,
        "seconds": training.seconds,
    }


def _save(folder: Path, evaluator: Evaluator, card: Mapping[str, Any]) -> None:
    evaluator.save(folder)
    write_json(folder / "card.json", card)


def _card(row: Mapping[str, Any], training: Training, human: Mapping[str, Labels]) -> dict[str, Any]:
    """The content of card.json: the version's row, what was measured, and the human scores that it learned from."""
    card = {key: value for key, value in row.items() if key not in DECIDED}
    card |= {key: json.loads(row[key]) for key in ("config", "corpora")}
    if human:
        card["human_scores"] = {
            name: {"criterion": labels.criterion, "responses": len(labels.pairs), "scale": list(labels.scale)}
            for name, labels in human.items()
        }
    about = {"figures": dict(training.figures), "notes": list(training.notes)}
    return {**card, "trained_at": f"{row['trained_at']:%F %T}", **about}


def train_all(
    names: Sequence[str] | None,
    corpora: Sequence[str] | None,
    home: str,
    settings: TrainSettings = TrainSettings(),
    margins: Margins = Margins(),
    *,
    resources: Resources = Resources(),
    build: Callable[..., bool] = build,
    train: Callable[..., Outcome] = train,
    score: Callable[..., object] = score_test_splits,
    decide_all: Callable[..., object] = decide_all,
) -> dict[str, Outcome]:
    """Train evaluators, by default `ssrem` and `rsrem`, on the corpora, by default on all that have landed, and score
    the test splits; returns each evaluator's version and whether it is new.

    Missing speaker tables are built first; evaluators that learn nothing are only registered. A version that is not an
    evaluator's first is compared with the one in use, and promoted if it is not worse. build, train, score, decide_all:
    functions to call, or tasks of a flow that do the same. Raises as `checked` does, before anything is trained.
    """
    warehouse = Warehouse.at(home)
    warehouse.check_writable()
    names = names or DEFAULT_EVALUATORS
    own = checked(names, settings, warehouse)
    learners = [name for name in names if evaluator_class(name).learns_from]
    alone = settings.labels_only
    even_none = alone and not settings.labels_from
    sources = landed_corpora(home, corpora, even_none=even_none) if learners else []
    build_missing(home, sources, resources=resources, build=build)
    if sources and not alone and (warning := too_small(warehouse, sources)):
        say(warning)
    others = [name for name in names if name not in learners]
    trained = {name: register(name, home, own[name].set, resources=resources) for name in others}
    for name in learners:
        trained[name] = train(name, sources, home, own[name], resources=resources)
        if "f" in evaluator_class(name).parts:
            score(name, trained[name][0], sources, home, resources=resources)
    if learners and challenges(warehouse, names):
        decide_all(home, names, margins, resources=resources)
    return trained


def retrain(
    home: str,
    evaluators: Sequence[str] | None = None,
    margins: Margins = Margins(),
    *,
    resources: Resources = Resources(),
    train: Callable[..., dict[str, Outcome]] = train_all,
) -> dict[str, str]:
    """Retrain the evaluators, of those named or of all in use, that have not learned from all landed corpora; returns
    evaluator → outcome.

    The ledger says which these are, so that a second or late call retrains nothing again. A version that waits for a
    decision, since its training was stopped, is decided on first: its key is `NAME VERSION`. In a home folder in which
    no evaluator was trained, the evaluators named, or else the default ones, are trained. train: `train_all`, or a
    function that does the same with tasks of a flow.
    """
    warehouse, outcome = Warehouse.at(home), dict[str, str]()
    more: dict[str, Any] = {"margins": margins, "resources": resources}
    if challenges(warehouse, evaluators or ()):  # of a training that was stopped before its decision
        outcome = decide_all(home, evaluators, margins, resources=resources)
    if not any_trained(warehouse):
        first = train(evaluators, None, home, **more)
        return {name: version_status(warehouse, name, version) for name, (version, _) in first.items()}
    new = unregistered(warehouse, evaluators or ())
    outcome |= {name: f"no version of it was trained here; ssrem train {name} makes one" for name in new}
    # Called for its error about a name that was never trained.
    promoted(warehouse, [name for name in evaluators or () if name not in new])
    for name, settings in outdated(warehouse, evaluators or ()).items():
        if settings:
            ((version, _),) = train([name], None, home, settings, **more).values()
            outcome[name] = version_status(warehouse, name, version)
        else:
            why = "it learned from labels or was imported"
            outcome[name] = f"not retrained: {why}; train it again by ssrem train, with its labels or encoder"
    return outcome


def checked(names: Sequence[str], settings: TrainSettings, home: Warehouse) -> dict[str, TrainSettings]:
    """Evaluator → those of the settings that it has; prints how annotated sets are read, and what was left out.

    Raises EvaluatorError for an evaluator or a setting that does not exist or labels that an evaluator does not learn
    from, AnnotationError for labels that cannot be read.
    """
    has = {setting for name in names for setting in evaluator_class(name).settings_model.model_fields}
    for option, setting in {"negatives": "negatives", "init": "model", "device": "device"}.items():
        if getattr(settings, option) is not None and setting not in has:
            raise EvaluatorError(f"--{option} does not apply to {', '.join(names)}; leave it out")
    routed = route(names, settings.config)
    sets = annotated_files(home, settings.labels, mapping=settings.map)
    for name in names:
        kind = evaluator_class(name)
        if settings.encoder and "encoder" in kind.settings_model.model_fields:
            routed[name].setdefault("encoder", settings.encoder)
        elif settings.encoder and not kind.default_encoder:
            say(f"{name} takes no encoder, so that --encoder {settings.encoder} does not change it")
        check_labels(kind, len(sets) + bool(settings.labels_from), settings.labels_only)
    human_scores(sets, settings.criterion)
    if settings.labels_from:
        judge_in_use(home, settings)
    for one in sets:
        one.say_how_read()
    shortcuts = dict.fromkeys(("negatives", "init", "device"))
    return {name: settings.model_copy(update={"set": own, **shortcuts}) for name, own in routed.items()}


def check_labels(kind: type[Evaluator], labels: int, alone: bool) -> None:
    """Raise EvaluatorError if an evaluator cannot learn from what the user gives.

    labels: number of annotated sets and judges. alone: whether it is to learn from their scores only.
    """
    name, learns = kind.name, kind.learns_from
    if labels and not learns:
        raise EvaluatorError(f"{name} learns nothing, so it cannot learn from labels; leave one of them out")
    if labels and not learns - {"candidates"}:
        raise EvaluatorError(f"{name} does not learn from human scores; leave --labels and --labels-from out")
    if labels > 1 and "sets" not in learns:
        raise EvaluatorError(
            f"{name} learns from one annotated set at a time; give one, or train a blend, which takes several"
        )
    if labels and alone and "labels" not in learns:
        raise EvaluatorError(
            f"{name} learns human scores after it has learned from corpora; leave --labels-only out"
        )
    if learns and "candidates" not in learns and not (labels and alone):
        missing = "add --labels-only" if labels else "give an annotated set, --labels FILE --labels-only"
        raise EvaluatorError(f"{name} learns from human scores alone; {missing}")


def too_small(home: Warehouse, corpora: Sequence[str]) -> str | None:
    """A sentence if the corpora are too small to judge a training by; None if they are large enough.

    Their speaker tables must have been built.
    """
    held_out = {split: home.query(RESPONSES, [split, list(corpora)])[0][0] for split in ("valid", "test")}
    fewest = min(held_out.values())
    if fewest >= ENOUGH:
        return None
    points = f"± {98 / fewest**0.5:.0f} percentage points" if fewest else "no figure at all"
    return (
        f"{', '.join(corpora)}: too small to judge a training by: {held_out['valid']:,} validation and "
        f"{held_out['test']:,} test responses, at least {ENOUGH} of each are needed (this few give {points}); land "
        "more conversations, or use an evaluator that comes trained, as ssrem score does"
    )
