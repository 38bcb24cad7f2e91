"""Evaluators leave a home folder as one file and come into another."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssrem.errors import EvaluatorError, HomeError
from ssrem.evaluators import load_evaluator
from ssrem.samples import Sample
from tasks.training.transfer import export_evaluator, import_evaluator
from tasks.training.versions import promoted, versions
from tasks.warehouse.home import Warehouse

SAMPLES = [
    Sample(("i like pizza",), "the cheese was great"),
    Sample(("i like pizza",), "my team lost the match"),
]


@pytest.fixture
def other(tmp_path: Path) -> Warehouse:
    return Warehouse.at(str(tmp_path / "other"))


def test_an_evaluator_scores_the_same_elsewhere(copy: Warehouse, other: Warehouse, tmp_path: Path) -> None:
    file = export_evaluator(copy, "ssrem", None, tmp_path / "x.ssrem")
    assert import_evaluator(str(file), str(other.root)) == ("ssrem", 1, True)
    assert promoted(other, ["ssrem"]) == [("ssrem", 1)]
    original, imported = (load_evaluator(home.models / "ssrem" / "1") for home in (copy, other))
    assert original.score(SAMPLES).tolist() == imported.score(SAMPLES).tolist()
    old, new = versions(copy, "ssrem")[0], versions(other, "ssrem")[0]
    for column in ("signature", "encoder", "config", "corpora", "train_responses", "valid_loss"):
        assert old[column] == new[column], column


def test_the_same_evaluator_is_taken_in_once(copy: Warehouse, other: Warehouse, tmp_path: Path) -> None:
    file = str(export_evaluator(copy, "ssrem", 1, tmp_path / "x.ssrem"))
    import_evaluator(file, str(other.root))
    before = other.partitions()
    assert import_evaluator(file, str(other.root)) == ("ssrem", 1, False)
    assert other.partitions() == before


def test_another_one_is_a_new_version(copy: Warehouse, tmp_path: Path) -> None:
    from ssrem.evaluators import PACKAGED
    from ssrem.evaluators.core.archive import pack

    pack(PACKAGED / "ssrem", tmp_path / "x.ssrem")
    assert import_evaluator(str(tmp_path / "x.ssrem"), str(copy.root)) == ("ssrem", 2, True)
    assert promoted(copy, ["ssrem"]) == [("ssrem", 2)]


def test_a_changed_model_is_not_taken_in(copy: Warehouse, other: Warehouse, tmp_path: Path) -> None:
    from ssrem.evaluators.core.archive import pack, unpack

    unpack(export_evaluator(copy, "ssrem", 1, tmp_path / "x.ssrem"), tmp_path / "open")
    weights = tmp_path / "open" / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    pack(tmp_path / "open", tmp_path / "y.ssrem")
    with pytest.raises(EvaluatorError, match=r"weights\.safetensors"):
        import_evaluator(str(tmp_path / "y.ssrem"), str(other.root))
    assert other.partitions() == []


def test_what_is_not_there_is_not_exported(copy: Warehouse, tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"ssrem has no version 9 .*versions: 1"):
        export_evaluator(copy, "ssrem", 9, tmp_path / "x.ssrem")
    with pytest.raises((EvaluatorError, HomeError), match="ruber"):
        export_evaluator(copy, "ruber", None, tmp_path / "x.ssrem")
    assert not (tmp_path / "x.ssrem").exists()
