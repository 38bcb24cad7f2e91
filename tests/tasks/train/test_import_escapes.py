"""What a hostile .ssrem file may try: none of it writes outside, fills the disk, or reads what it did not bring."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ssrem import trusted_sources
from ssrem.encoders import hub, load_encoder, load_saved
from ssrem.encoders.transformer import Pooling
from ssrem.encoders.words import WordAverage
from ssrem.errors import EvaluatorError, SsremError
from ssrem.evaluators import PACKAGED
from ssrem.files import read_json
from ssrem.tasks.transfer import import_evaluator, pack, unpack
from ssrem.tasks.warehouse.home import Warehouse


def entry(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    about = tarfile.TarInfo(name)
    about.size, about.type, about.linkname = size, kind, "/etc/passwd"
    return about


def archive(path: Path, *entries: tuple[tarfile.TarInfo, bytes], mode: Any = "w") -> Path:
    with tarfile.open(path, mode) as file:
        for about, content in ((entry("evaluator.json", 18), b'{"name": "length"}'), *entries):
            file.addfile(about, io.BytesIO(content))
    return path


def refused(file: Path, tmp_path: Path) -> str:
    before = {p for p in tmp_path.rglob("*") if "out" not in p.parts}
    with pytest.raises(EvaluatorError) as error:
        unpack(file, tmp_path / "out")
    assert str(error.value).isprintable()
    assert {p for p in tmp_path.rglob("*") if "out" not in p.parts} == before
    return str(error.value)


def test_entries_that_lead_elsewhere_or_are_no_files(tmp_path: Path) -> None:
    kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)
    odd = [entry("../x.json"), entry("a/../../x.json"), *(entry("x.json", kind=kind) for kind in kinds)]
    for about in odd:
        assert "export or copy it again" in refused(archive(tmp_path / "a.ssrem", (about, b"")), tmp_path)


def test_a_path_from_the_root_lies_inside(tmp_path: Path) -> None:
    unpack(archive(tmp_path / "a.ssrem", (entry(f"{tmp_path}/x.json", 1), b"1")), tmp_path / "out")
    assert not (tmp_path / "x.json").exists()


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    large = entry("x.json", 50_000_000), bytes(50_000_000)
    refused(archive(tmp_path / "a.ssrem", large, mode="w:gz"), tmp_path)
    assert not (tmp_path / "out").exists()


def test_names_that_the_disk_refuses_are_one_line(tmp_path: Path) -> None:
    for names in (["x" * 300 + ".json"], ["a.json", "a.json/b.json"]):
        refused(archive(tmp_path / "a.ssrem", *((entry(name, 1), b"1") for name in names)), tmp_path)
    refused(tmp_path, tmp_path)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damaged_files_are_one_line(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    content = bytearray(archive(folder / "a.ssrem", (entry("x.json", 6), b"[1, 2]")).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (folder / "a.ssrem").write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        unpack(folder / "a.ssrem", folder / "out")
    except EvaluatorError as error:
        assert str(error).isprintable()
    assert {path.name for path in folder.iterdir()} <= {"a.ssrem", "out"}
    shutil.rmtree(folder)


# What it reads when it is loaded


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would have been fetched; nothing is."""
    names: list[str] = []

    def fetch(name: str, **options: Any) -> Path:
        names.append(name)
        raise OSError("no network in a test")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    monkeypatch.setattr("gensim.downloader.load", fetch)
    return names


NETWORK = ["hf:someone/model", "someone/model", "glove-wiki-gigaword-50"]
FILES = ["hf:/etc", "file:/etc/passwd", "/etc/passwd", "hf:../../other", "{secret}", "hf:{folder}"]
METRICS = {
    "emb-average": ("encoder", [*NETWORK, *FILES, "glove-6b-50d+file:/etc/passwd"]),
    "lm-coherence": ("model", ["hf:someone/model", "someone/model", "hf:/etc", "{secret}", "hf:{folder}"]),
    "bertscore": ("model", ["hf:someone/model", "hf:{folder}"]),
    "cosine": ("encoder", ["hf:someone/model", "{secret}"]),
    "ruber-ref": ("encoder", ["hf:someone/model", "{secret}"]),
}


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.txt"
    path.write_text("secret 1 2\nwords 3 4\n")
    return path


@pytest.mark.parametrize("evaluator", METRICS)
def test_a_metric_reads_nothing_else(
    home: Warehouse, tmp_path: Path, secret: Path, fetched: list[str], evaluator: str
) -> None:
    folder, file = tmp_path / "made", tmp_path / "a.ssrem"
    folder.mkdir()
    setting, specs = METRICS[evaluator]
    for spec in specs:
        source = spec.format(secret=secret, folder=tmp_path)
        manifest = {"name": evaluator, "settings": {setting: source}, "signature": "x"}
        (folder / "evaluator.json").write_text(json.dumps(manifest))
        pack(folder, file)
        with pytest.raises(EvaluatorError) as error:
            import_evaluator(str(file), str(home.root))
        assert "a.ssrem" in str(error.value) and "secret 1" not in str(error.value), spec
        assert fetched == [] and home.partitions() == [], spec


def test_what_a_person_allows_is_read(
    home: Warehouse, tmp_path: Path, secret: Path, fetched: list[str]
) -> None:
    from ssrem.evaluators.reference_based.embedding import EmbeddingAverage

    EmbeddingAverage(encoder=str(secret)).save(tmp_path / "made")
    pack(tmp_path / "made", tmp_path / "a.ssrem")
    with pytest.raises(EvaluatorError, match=r"secret\.txt.*which is not part of it.*--allow"):
        import_evaluator(str(tmp_path / "a.ssrem"), str(home.root))
    taken = import_evaluator(str(tmp_path / "a.ssrem"), str(home.root), allowed=[str(secret)])
    assert taken == ("emb-average", 1, True)
    allowed = trusted_sources.restricted_to(tmp_path, ["hf:someone/model"])
    with allowed, pytest.raises(EvaluatorError, match="no network"):
        load_encoder("hf:someone/model")
    assert fetched == ["someone/model"]


def test_a_saved_encoder_reads_nothing_else(tmp_path: Path, secret: Path, fetched: list[str]) -> None:
    inside = tmp_path / "evaluator"
    inside.mkdir()
    WordAverage("mine", ["a", "b"], np.eye(2, dtype=np.float32)).save(inside / "part0")
    good = read_json(inside / "part0" / "encoder.json", ("signature",))["signature"]
    parts = [{"origin": None, "signature": good}, {"origin": f"file:{secret}", "signature": "x"}]
    for about in (
        {"kind": "transformer", "origin": "hf:someone/model", "weights": "x"},
        {"kind": "transformer", "origin": str(tmp_path), "weights": "x"},
        {"kind": "concatenation", "parts": parts},
    ):
        (inside / "encoder.json").write_text(json.dumps({**about, "signature": "x"}))
        with trusted_sources.restricted_to(inside), pytest.raises(EvaluatorError, match="is not part of it"):
            load_saved(inside)
    assert fetched == []


def test_installed_packages_are_always_trusted(tmp_path: Path) -> None:
    with trusted_sources.restricted_to(tmp_path):
        assert load_encoder("all-minilm-l6-v2").dimensions == 384
        with pytest.raises(EvaluatorError, match="which is not part of it"):
            load_encoder(f"file:{tmp_path.parent / 'x'}")
        with pytest.raises(EvaluatorError, match="the home folder ~nouser is not known"):
            trusted_sources.check("file:~nouser/x")


def test_a_link_inside_does_not_lead_outside(tmp_path: Path, secret: Path) -> None:
    inside = tmp_path / "evaluator"
    inside.mkdir()
    (inside / "vectors.txt").symlink_to(secret)
    with trusted_sources.restricted_to(inside), pytest.raises(EvaluatorError, match="is not part of it"):
        load_encoder(str(inside / "vectors.txt"))


def test_weights_in_shards_lie_beside_their_index(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "x.safetensors").touch()
    for shard in ("../other.safetensors", "/etc/x.safetensors", "a/b.safetensors", 7, None):
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"w": shard}}))
        with pytest.raises(EvaluatorError, match="names"):
            hub.local_folder(str(tmp_path))


def test_modules_lie_in_their_model(tmp_path: Path) -> None:
    kinds = [{"type": "x.Transformer", "path": "../../etc"}, {"type": "x.Pooling", "path": "1"}]
    (tmp_path / "modules.json").write_text(json.dumps(kinds))
    with pytest.raises(EvaluatorError, match="outside the folder"):
        Pooling.of(tmp_path)


_numbers = st.integers(-(2**70), 2**70) | st.floats()
_odd = _numbers | st.none() | st.text(max_size=5) | st.lists(st.none(), max_size=2)


def _places(value: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    places = [where] if where else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in items:
        places += _places(member, (*where, key))
    return places


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_the_json_says_an_import_is_whole_or_one_line(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("odd")
    shutil.copytree(PACKAGED / "ssrem", folder / "made")
    file = folder / "made" / data.draw(st.sampled_from(["evaluator.json", "card.json"]))
    about = json.loads(file.read_text())
    *way, last = data.draw(st.sampled_from(_places(about)))
    holder = about
    for key in way:
        holder = holder[key]
    holder[last] = data.draw(_odd)
    file.write_text(json.dumps(about))
    pack(folder / "made", folder / "a.ssrem")
    home = Warehouse.at(folder / "home")
    try:
        import_evaluator(str(folder / "a.ssrem"), str(home.root))
    except SsremError as error:
        assert str(error).isprintable()
        assert home.partitions() == []
    shutil.rmtree(folder)
