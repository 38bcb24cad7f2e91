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
from tasks.encoding import cached_encode, encoder_for, training_texts
from tasks.home import Home, utc_now
from tasks.progress import progress
from tasks.stage import Output, Resources, already_done, open_stage
from tasks.tables import landed_corpus

if TYPE_CHECKING:
    from ssrem.evaluators.base import Candidates, Evaluator, Training


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
    from ssrem.evaluators.config import BilinearConfig

    place = Home.at(home)
    settings = BilinearConfig.of(config or {})
    kind: Any = evaluator_class(name)
    digests = {corpus: landed_corpus(place, corpus)[0] for corpus in corpora}
    inputs = {**digests, "tables": _table_runs(place, corpora)}
    parameters = {"evaluator": name, "encoder": encoder, "config": asdict(settings)}
    if already_done(place, "train", parameters, inputs):
        return _versions(place, name)[-1]["version"], False
    with open_stage(place, "train", parameters, inputs, resources) as stage:
        versions = _versions(place, name)  # under the lock: a number is given once
        candidates = load_candidates(stage.connection, corpora)
        if len(candidates) == 0:
            raise EvaluatorError(f"{', '.join(corpora)}: no response to learn from; run ssrem tables first")
        words = encoder_for(
            place, encoder, settings.seed, digests, lambda: training_texts(stage.connection, list(corpora))
        )
        evaluator: Evaluator = kind(words, settings)
        with progress(f"training {name}") as advance:
            training = evaluator.fit(  # type: ignore[call-arg]
                candidates,
                progress=lambda done, total: advance(done),
                encode=cached_encode(place, words),
            )
        version = versions[-1]["version"] + 1 if versions else 1
        row = _row(name, version, evaluator, words.signature, training, candidates, digests)
        retired = [
            {**old, "promoted": False, "why": f"replaced by version {version}"}
            for old in versions
            if old["promoted"]
        ]
        row["why"] = f"newest; replaces version {retired[-1]['version']}" if retired else "first version"
        stage.create_from_rows("evaluators", [*retired, row])
        stage.create_from_rows("learning_curves", _curves(name, version, training))
        stage.gate()
        evaluator.save(stage.scratch / "model", card=_card(row, training))
        outputs = [
            Output("evaluators", f"{name}@{r['version']}", f"version = {r['version']}")
            for r in [*retired, row]
        ]
        stage.publish(
            [*outputs, Output("learning_curves", f"{name}@{version}")],
            folders={stage.scratch / "model": place.models / name / str(version)},
        )
    return version, True


def without_tables(home: str, corpora: Sequence[str]) -> list[str]:
    """Those of the corpora whose speaker tables were never built."""
    built = {part.key for part in Home.at(home).parts() if part.table == "candidates"}
    return [corpus for corpus in corpora if corpus not in built]


def _versions(home: Home, name: str) -> list[dict[str, Any]]:
    with home.reader() as connection:
        cursor = connection.execute("SELECT * FROM evaluators WHERE evaluator = ? ORDER BY version", [name])
        columns = [d[0] for d in cursor.description or []]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def _table_runs(home: Home, corpora: Sequence[str]) -> list[str]:
    return sorted(p.path for p in home.parts() if p.table == "candidates" and p.key in corpora)


def _row(
    name: str,
    version: int,
    evaluator: Evaluator,
    encoder: str,
    training: Training,
    candidates: Candidates,
    digests: Mapping[str, str],
) -> dict[str, Any]:
    config: Any = evaluator
    return {
        "evaluator": name,
        "version": version,
        "signature": evaluator.signature,
        "encoder": encoder,
        "config": json.dumps(asdict(config.config), sort_keys=True),
        "corpora": json.dumps(digests, sort_keys=True),
        "train_responses": int(training.rows.get("train", len(candidates.rows(0)))),
        "valid_responses": int(training.rows.get("valid", len(candidates.rows(1)))),
        "test_responses": len(candidates.rows(2)),
        "valid_loss": min(epoch["valid_loss"] for epoch in training.history),
        "best_epoch": training.best_epoch,
        "epochs": len(training.history),
        "seconds": training.seconds,
        "promoted": True,
        "trained_at": utc_now(),
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
