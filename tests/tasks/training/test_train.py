"""Train: versions, what is recorded of them, and models that load and score the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ssrem.errors import EvaluatorError, GateError, HomeError
from ssrem.evaluators import load_evaluator
from ssrem.samples import TEST, TRAIN, VALID, Sample
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.speaker_tables.build import without_tables
from ssrem.tasks.training.train import train
from ssrem.tasks.training.versions import promoted
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import Made

SHORT = {"epochs": 1, "seed": 7, "reference": "embedding-average"}


def versions(home: Warehouse) -> list[Any]:
    with home.reader() as reader:
        return reader.execute(
            "SELECT version, promoted, why FROM evaluators WHERE evaluator = 'ssrem' ORDER BY version"
        ).fetchall()


def test_what_is_recorded(made: Made) -> None:
    with made.home.reader() as reader:
        cursor = reader.execute("SELECT * FROM evaluators WHERE evaluator = 'ssrem'")
        names = [column[0] for column in cursor.description or []]
        (row,) = (dict(zip(names, values, strict=True)) for values in cursor.fetchall())
        candidates = load_candidates(reader, ["tiny"])
        digests = dict(reader.execute("SELECT corpus, sha256 FROM corpora").fetchall())
        curve = dict(
            reader.execute(
                "SELECT epoch, loss FROM learning_curves WHERE evaluator = 'ssrem' AND split = 'valid'"
            ).fetchall()
        )
    sizes = [len(candidates.rows(split)) for split in (TRAIN, VALID, TEST)]
    assert all(sizes)
    assert [row["train_responses"], row["valid_responses"], row["test_responses"]] == sizes
    assert json.loads(row["corpora"]) == digests
    assert row["valid_loss"] == pytest.approx(min(curve.values()))
    assert curve[row["best_epoch"]] == min(curve.values())
    assert len(curve) == row["epochs"]
    assert (row["version"], row["promoted"], row["why"]) == (1, True, "first version")


def test_the_model_folder_is_of_the_row(made: Made) -> None:
    folder = made.home.models / "ssrem" / "1"
    card = json.loads((folder / "card.json").read_text())
    with made.home.reader() as reader:
        (signature, config) = reader.execute(
            "SELECT signature, config FROM evaluators WHERE evaluator = 'ssrem'"
        ).fetchall()[0]
    assert load_evaluator(folder).signature == signature == card["signature"]
    assert card["config"] == json.loads(config)
    assert set(card["corpora"]) == {"tiny"}
    assert {p.suffix for p in folder.rglob("*") if p.is_file()} <= {".json", ".safetensors"}


def test_a_loaded_model_scores_the_same_in_any_batch(made: Made) -> None:
    folder = made.home.models / "ssrem" / "1"
    samples = [Sample(("do you like music",), "i play the guitar"), Sample(("hello", "pizza"), "no")]
    together = load_evaluator(folder).score(samples)
    alone = np.concatenate([load_evaluator(folder).score([sample]) for sample in samples])
    assert np.array_equal(together, alone)
    assert together[0] != together[1]


def test_versions_one_at_a_time(copy: Warehouse) -> None:
    assert train("ssrem", ["tiny"], str(copy.root)) == (1, False)  # as it was trained before
    assert train("ssrem", ["tiny"], str(copy.root), config=SHORT) == (2, True)
    assert versions(copy) == [
        (1, True, "first version"),
        (2, False, "waits for comparison with version 1"),
    ]
    after = copy.partitions()
    assert train("ssrem", ["tiny"], str(copy.root), config=SHORT) == (2, False)
    assert copy.partitions() == after
    assert train("ssrem", ["tiny"], str(copy.root)) == (1, False)
    assert promoted(copy, ["ssrem", "rsrem"]) == [("rsrem", 1), ("ssrem", 1)]
    first, second = (load_evaluator(copy.models / "ssrem" / v) for v in "12")
    assert first.signature != second.signature
    assert "seed:7" in second.signature


def test_a_checkpoint_that_a_kill_after_publishing_left_is_deleted(copy: Warehouse) -> None:
    keys = [
        key for (key,) in copy.query("SELECT key FROM runs WHERE stage = 'train' AND outputs LIKE '%ssrem%'")
    ]
    left = [copy.root / "checkpoints" / key[:16] for key in keys]
    for folder in left:
        folder.mkdir(parents=True)
    train("ssrem", ["tiny"], str(copy.root))
    assert [folder.exists() for folder in left] == [False]


def test_the_same_seed_gives_the_same_model(copy: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssrem.tasks.training.train.published_keys", lambda *_: [])
    assert train("ssrem", ["tiny"], str(copy.root)) == (2, True)
    signatures = [load_evaluator(copy.models / "ssrem" / v).signature for v in "12"]
    assert signatures[0] == signatures[1]


def test_a_loss_that_is_no_number_is_not_published(copy: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    from ssrem.evaluators.bilinear.bilinear import Bilinear

    sound = Bilinear.fit

    def broken(self: Bilinear, *arguments: Any, **options: Any) -> Any:
        training = sound(self, *arguments, **options)
        history = tuple({**epoch, "valid_loss": float("nan")} for epoch in training.history)
        return dataclasses.replace(training, history=history)

    monkeypatch.setattr(Bilinear, "fit", broken)
    before = copy.partitions()
    with pytest.raises(GateError, match=r"learning_curves: expected \(loss\) to be finite"):
        train("ssrem", ["tiny"], str(copy.root), config=SHORT)
    assert copy.partitions() == before
    assert not (copy.models / "ssrem" / "2").exists()


def test_what_cannot_be_trained(made: Made, tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match="did you mean ssrem"):
        train("ssremm", ["tiny"], str(made.home.root))
    with pytest.raises(HomeError, match="landed: tiny"):
        train("ssrem", ["tinny"], str(made.home.root))
    with pytest.raises(EvaluatorError, match="no setting epoch"):
        train("ssrem", ["tiny"], str(made.home.root), config={"epoch": 1})


def test_corpora_without_tables(made: Made) -> None:
    assert without_tables(str(made.home.root), ["tiny", "other"]) == ["other"]
