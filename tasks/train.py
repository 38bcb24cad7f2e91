"""Train: evaluators learn from the candidates of landed corpora; every training is a version that stays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from prefect import task

from ssrem.encoders import DEFAULT_ENCODER
from ssrem.errors import EvaluatorError
from ssrem.evaluators import evaluator_class
from tasks.candidates import load_candidates
from tasks.encoding import encode_option, encoder_for, training_texts
from tasks.home import Home
from tasks.progress import progress
from tasks.stage import Output, Resources, already_done, open_stage
from tasks.tables import landed_corpus
from tasks.versions import stage_version, versions

if TYPE_CHECKING:
    from ssrem.evaluators.base import Candidates, TrainedEvaluator, Training


@task(name="train evaluator")
def train(
    name: str,
    corpora: Sequence[str],
    home: str,
    *,
    encoder: str = DEFAULT_ENCODER,
    config: Mapping[str, Any] | None = None,
    resources: Resources | None = None,
) -> tuple[int, bool]:
    """Train the evaluator `name` on the corpora and promote it; returns its version and whether it is new.

    The same settings on the same corpora are trained once. Raises EvaluatorError where the name or a setting is
    unknown or the corpora give nothing to learn from, HomeError where a corpus has not landed.
    """
    place = Home.at(home)
    kind: Any = evaluator_class(name)
    settings = kind.config_class.of(config or {})
    digests = {corpus: landed_corpus(place, corpus)[0] for corpus in corpora}
    inputs = {**digests, "tables": _table_runs(place, corpora)}
    parameters = {
        "evaluator": name,
        "encoder": encoder if kind.takes_encoder else None,
        "config": asdict(settings),
    }
    if already_done(place, "train", parameters, inputs):
        return versions(place, name)[-1]["version"], False
    with open_stage(place, "train", parameters, inputs, resources) as stage:
        candidates = load_candidates(stage.connection, corpora)
        if len(candidates) == 0:
            raise EvaluatorError(f"{', '.join(corpora)}: no response to learn from; run ssrem tables first")
        words = None
        if kind.takes_encoder:
            words = encoder_for(
                place,
                encoder,
                settings.seed,
                digests,
                lambda: training_texts(stage.connection, list(corpora)),
            )
        evaluator: TrainedEvaluator = kind(words, settings)
        with progress(f"training {name}") as advance:
            training = evaluator.fit(
                candidates,
                progress=lambda done, total: advance(done),
                **encode_option(place, evaluator),
            )
        learned = {**_learned(training, candidates, digests), "test_sample": kind.test_sample}
        row, outputs = stage_version(stage, evaluator, asdict(settings), learned)
        version = int(row["version"])
        stage.create_from_rows("learning_curves", _curves(name, version, training))
        stage.gate()
        evaluator.save(stage.scratch / "model", card=_card(row, training))
        stage.publish(
            [*outputs, Output("learning_curves", f"{name}@{version}")],
            folders={stage.scratch / "model": place.models / name / str(version)},
        )
    return version, True


def without_tables(home: str, corpora: Sequence[str]) -> list[str]:
    """Those of the corpora whose speaker tables were never built."""
    built = {part.key for part in Home.at(home).parts() if part.table == "candidates"}
    return [corpus for corpus in corpora if corpus not in built]


def _table_runs(home: Home, corpora: Sequence[str]) -> list[str]:
    return sorted(p.path for p in home.parts() if p.table == "candidates" and p.key in corpora)


def _learned(training: Training, candidates: Candidates, digests: Mapping[str, str]) -> dict[str, Any]:
    return {
        "corpora": json.dumps(digests, sort_keys=True),
        "train_responses": int(training.rows.get("train", len(candidates.rows(0)))),
        "valid_responses": int(training.rows.get("valid", len(candidates.rows(1)))),
        "test_responses": len(candidates.rows(2)),
        "valid_loss": min(epoch["valid_loss"] for epoch in training.history),
        "best_epoch": training.best_epoch,
        "epochs": len(training.history),
        "seconds": training.seconds,
    }


def _curves(name: str, version: int, training: Training) -> list[dict[str, Any]]:
    return [
        {
            "evaluator": name,
            "version": version,
            "epoch": int(epoch["epoch"]),
            "split": split,
            "loss": float(epoch[f"{split}_loss"]),
        }
        for epoch in training.history
        for split in ("train", "valid")
    ]


def _card(row: Mapping[str, Any], training: Training) -> dict[str, Any]:
    card = {key: row[key] for key in row if key not in ("promoted", "why")}
    card |= {key: json.loads(row[key]) for key in ("config", "corpora")}
    return {
        **card,
        "trained_at": f"{row['trained_at']:%F %T}",
        "figures": dict(training.figures),
        "notes": list(training.notes),
    }
