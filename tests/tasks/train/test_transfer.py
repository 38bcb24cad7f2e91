"""Evaluators leave a home folder as one file and come into another."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from ssrem.errors import EvaluatorError, HomeError
from ssrem.evaluators import PACKAGED, best_packaged, comes_packaged, load_evaluator
from ssrem.evaluators.reference_based.overlap import Bleu2
from ssrem.files import write_json
from ssrem.samples import Sample
from ssrem.tasks.settings import TrainSettings
from ssrem.tasks.train import train
from ssrem.tasks.transfer import export_evaluator, import_evaluator, pack, unpack
from ssrem.tasks.versions import (
    any_trained,
    outdated,
    promoted,
    read_card,
    register,
    to_correlate,
    unregistered,
    versions,
)
from ssrem.tasks.warehouse.home import Warehouse

SAMPLES = [
    Sample(("i like pizza",), "the cheese was great"),
    Sample(("i like pizza",), "my team lost the match"),
]


@pytest.fixture
def other(tmp_path: Path) -> Warehouse:
    return Warehouse.at(str(tmp_path / "other"))


def test_an_evaluator_scores_the_same_elsewhere_and_is_taken_in_once(
    copy: Warehouse, other: Warehouse, tmp_path: Path
) -> None:
    file = export_evaluator(copy, "ssrem", None, tmp_path / "x.ssrem")
    assert import_evaluator(str(file), str(other.root)) == ("ssrem", 1, True)
    assert promoted(other, ["ssrem"]) == [("ssrem", 1)]
    original, imported = (load_evaluator(home.models / "ssrem" / "1") for home in (copy, other))
    assert original.score(SAMPLES).tolist() == imported.score(SAMPLES).tolist()
    old, new = versions(copy, "ssrem")[0], versions(other, "ssrem")[0]
    for column in ("signature", "encoder", "config", "corpora", "train_responses", "valid_loss"):
        assert old[column] == new[column], column
    before = other.partitions()
    assert import_evaluator(str(file), str(other.root)) == ("ssrem", 1, False)
    assert other.partitions() == before
    next((other.models / "ssrem" / "1").rglob("*.safetensors")).unlink()
    with pytest.raises(
        EvaluatorError, match=r"ssrem version 1 cannot be exported: .* is missing; restore it"
    ):
        export_evaluator(other, "ssrem", None, tmp_path / "y.ssrem")
    with pytest.raises(EvaluatorError, match=r"ssrem has no version 9 .*versions: 1"):
        export_evaluator(copy, "ssrem", 9, tmp_path / "y.ssrem")
    with pytest.raises((EvaluatorError, HomeError), match="ruber"):
        export_evaluator(copy, "ruber", None, tmp_path / "y.ssrem")
    assert not (tmp_path / "y.ssrem").exists()
    assert import_evaluator(str(file), str(other.root)) == ("ssrem", 2, True), "in place of what is damaged"


def test_a_card_with_odd_values_is_refused_in_one_line(other: Warehouse, tmp_path: Path) -> None:
    shutil.copytree(PACKAGED / "ssrem", tmp_path / "open")
    card, file = tmp_path / "open" / "card.json", tmp_path / "x.ssrem"
    for content, says in (
        ('{"seconds": 1e999}', "seconds: input should be a finite number, not inf"),
        ('{"epochs": 1e3}', "epochs: input should be a valid integer, not 1000.0"),
        (f'{{"epochs": {"9" * 9000}}}', "cannot be read as JSON"),
        ('{"test_responses": -1}', "test_responses: input should be greater than or equal to 0, not -1"),
        ('{"labels": "../x"}', "labels: .*, not '../x'"),
        ('{"config": {"epochs": NaN}}', "config: .*finite number"),
        ('{"config": [1]}', r"config: .*dictionary, not \[1\]"),
        ('{"corpora": {"tiny": 10}}', "corpora: input should be a valid string, not 10"),
        (r'{"corpora": {"a\u001b[2J": "digest"}}', "a character that cannot be printed"),
        ('{"corpora": {"../a": "digest"}}', "the name is a path; export the evaluator again"),
        (f'{{"corpora": {{"{"x" * 201}": ""}}}}', "more than 200 characters; export the evaluator again"),
        ("[1, 2]", "is no JSON object"),
    ):
        card.write_text(content)
        with pytest.raises(EvaluatorError, match=says) as error:
            read_card(tmp_path / "open")
        assert len(str(error.value)) < 500 and str(error.value).isprintable()
    pack(tmp_path / "open", file)
    with pytest.raises(EvaluatorError, match="is no JSON object"):
        import_evaluator(str(file), str(other.root))
    assert other.partitions() == []
    card.write_text(json.dumps({"labels": "a" * 64, "seconds": 0.5, "epochs": 0}))
    pack(tmp_path / "open", file)
    assert import_evaluator(str(file), str(other.root)) == ("ssrem", 1, True)
    (row,) = versions(other, "ssrem")
    assert (row["labels"], row["seconds"], row["epochs"]) == ("a" * 64, 0.5, 0)


# Evaluators as files


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "saved"
    Bleu2().save(folder)
    write_json(folder / "card.json", {"evaluator": "bleu-2"})
    (folder / "encoder").mkdir()
    (folder / "encoder" / "encoder.json").write_text("{}")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_what_is_packed_comes_out_whole_and_equal_folders_become_equal_files(
    saved: Path, tmp_path: Path
) -> None:
    pack(saved, tmp_path / "a.ssrem")
    unpack(tmp_path / "a.ssrem", tmp_path / "out")
    assert files(tmp_path / "out") == files(saved)
    assert load_evaluator(tmp_path / "out").signature == Bleu2().signature
    (saved / "card.json").touch()
    pack(saved, tmp_path / "b.ssrem")
    assert (tmp_path / "a.ssrem").read_bytes() == (tmp_path / "b.ssrem").read_bytes()


def test_what_can_be_neither_packed_nor_unpacked_is_one_line(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match="holds no saved evaluator"):
        pack(tmp_path, tmp_path / "a.ssrem")
    with pytest.raises(EvaluatorError, match="cannot be written"):
        pack(saved, tmp_path / "nowhere" / "a.ssrem")
    for folder in (Path(), Path("/"), tmp_path):
        with pytest.raises(EvaluatorError, match=r"cannot be written \(is not a regular file\)"):
            pack(saved, folder)
    assert list(tmp_path.iterdir()) == [saved]
    (tmp_path / "text.ssrem").write_text("hello")
    tarfile.open(tmp_path / "empty.ssrem", "w").close()
    for name, says in (
        ("text", "not what this version of ssrem evaluators export wrote"),
        ("none", "does not exist"),
        ("empty", "holds no evaluator"),
    ):
        with pytest.raises(EvaluatorError, match=says):
            unpack(tmp_path / f"{name}.ssrem", tmp_path / "out")


# Evaluators that come with ssrem


def test_a_packaged_evaluator_becomes_a_version_once(tmp_path: Path) -> None:
    home = Warehouse.at(tmp_path / "home")
    assert unregistered(home, ["ssrem", "rsrem", "length"]) == ["ssrem", "length"]
    assert register("ssrem", str(home.root)) == (1, True)
    assert register("ssrem", str(home.root)) == (1, False)
    (row,) = versions(home, "ssrem")
    assert row["promoted"] and comes_packaged("ssrem", row["signature"])
    assert load_evaluator(home.models / "ssrem" / "1").signature == load_evaluator("ssrem").signature
    assert not unregistered(home, ["ssrem"]) and not any_trained(home) and not outdated(home)
    (home.models / "ssrem" / "1" / "weights.safetensors").unlink()
    assert register("ssrem", str(home.root)) == (2, True), "in place of what is damaged"


def test_an_own_version_replaces_the_packaged_one_without_a_comparison(
    copy: Warehouse, tmp_path: Path
) -> None:
    pack(PACKAGED / "ssrem", tmp_path / "x.ssrem")
    assert import_evaluator(str(tmp_path / "x.ssrem"), str(copy.root)) == ("ssrem", 2, True)
    assert promoted(copy, ["ssrem"]) == [("ssrem", 2)]
    assert any_trained(copy)  # rsrem
    assert "ssrem" not in outdated(copy)
    assert train("ssrem", ["tiny"], str(copy.root), TrainSettings(set={"epochs": 1})) == (3, True)
    row = versions(copy, "ssrem")[-1]
    assert (row["promoted"], row["why"]) == (True, "newest; replaces version 2, which comes with ssrem")


def test_what_is_correlated_by_default(copy: Warehouse, tmp_path: Path) -> None:
    fresh = Warehouse.at(tmp_path / "fresh")
    best, _ = best_packaged()
    assert to_correlate(fresh) == [best, "cosine", "length"]
    assert to_correlate(fresh, ["bleu-2"]) == ["bleu-2", "cosine", "length"]
    assert to_correlate(fresh, ["length"]) == ["length"]
    assert to_correlate(copy) == ["cosine", "length", "rsrem", "ssrem"]
