"""Sentence vectors by transformers, against the model called plainly."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer, T5Config, T5Model

from ssrem.encoders import check_spec, hub, load_again, load_encoder, load_saved, pretrained
from ssrem.encoders.base import Concatenation, Encoder
from ssrem.encoders.transformer import Transformer
from ssrem.encoders.words import WordAverage
from ssrem.errors import EvaluatorError
from support.metric_checks import ODD
from support.tiny_transformer import SIZES, tokenizer, write_bert, write_json, write_modules

TEXTS = ("red cat", "the Blue dog sat.", "the cat runsning", "green.", "dog the red whatever", "dog " * 9)
FLOAT16 = 1e-3
MEAN = {"pooling_mode": "mean"}
TWO = {"pooling_mode_max_tokens": True, "pooling_mode_cls_token": True}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("written") / "bert")


@pytest.fixture
def bert(written: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(written, tmp_path / "bert"))


def padded(folder: Path, pooling: str = "mean", **options: Any) -> NDArray[np.float64]:
    """Vectors of TEXTS as transformers' users pool them: one padded batch under its attention mask."""
    words, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    inputs = words(list(TEXTS), padding=True, return_tensors="pt", return_token_type_ids=False, **options)
    with torch.no_grad():
        states = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None]
    match pooling:
        case "cls":
            pooled = states[:, 0]
        case "max":
            pooled = states.masked_fill(mask == 0, -torch.inf).amax(1)
        case _:
            pooled = (states * mask).sum(1) / mask.sum(1)
    return np.asarray(pooled.double().numpy())


def near(vectors: NDArray[np.float64]) -> Any:
    """Equal but for rounding to float16."""
    return pytest.approx(vectors, abs=FLOAT16, rel=FLOAT16)


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def test_a_bare_model_gives_the_mean_of_its_tokens_and_others_what_the_folder_says(bert: Path) -> None:
    vectors = load_encoder(f"hf:{bert}").encode(TEXTS)
    assert vectors.shape == (len(TEXTS), 16) and vectors.dtype == np.float32
    assert np.array_equal(vectors, vectors.astype(np.float16).astype(np.float32))
    assert vectors == near(padded(bert))
    assert np.ptp(vectors, axis=0).min() > 0.01  # texts differ
    for pooling, settings in (
        ("mean", {"pooling_mode_mean_tokens": True}),
        ("cls", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}),
        ("max", {"pooling_mode": "max"}),
    ):
        write_modules(bert, "Pooling", pooling=settings)
        assert Transformer(str(bert)).encode(TEXTS) == near(padded(bert, pooling))
    write_modules(bert, "Pooling", "Normalize", pooling={"pooling_mode": ["mean"]})
    assert Transformer(str(bert)).encode(TEXTS) == near(unit(padded(bert)))


def test_length_and_case_as_the_folder_says(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_modules(bert, "Pooling", pooling=MEAN, transformer={"max_seq_length": 4})
    encoder = Transformer(str(bert))
    assert encoder.max_length == 4
    assert encoder.encode(TEXTS) == near(padded(bert, truncation=True, max_length=4))
    assert encoder.truncated(["red", "red cat", "red cat sat", ""]).tolist() == [False, False, True, False]
    one, other = encoder.encode(["dog dog cat", "dog dog red"])
    assert np.array_equal(one, other)
    backend = json.loads((bert / "tokenizer.json").read_text())
    write_json(bert, "tokenizer.json", backend | {"normalizer": None})
    assert not Transformer(str(bert)).encode(["RED CAT"]).any()
    # More than the model has positions for is not to be had.
    write_json(bert, "sentence_bert_config.json", {"max_seq_length": 999, "do_lower_case": True})
    longer = Transformer(str(bert))
    assert longer.max_length == SIZES["max_position_embeddings"]
    assert np.array_equal(longer.encode(["RED CAT"]), longer.encode(["red cat"]))
    monkeypatch.setattr(pretrained, "max_tokens", lambda tokenizer, model: None)
    assert Transformer(str(bert)).max_length == 999
    (bert / "sentence_bert_config.json").unlink()
    assert Transformer(str(bert)).max_length == 512


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    return load_encoder(hub.MINILM)


def test_the_packaged_minilm_is_the_unit_mean_of_its_tokens(minilm: Encoder) -> None:
    assert (minilm.name, minilm.origin, minilm.dimensions) == (hub.MINILM, hub.MINILM, 384)
    expected = unit(padded(Path(hub.model_folder(hub.MINILM)), truncation=True, max_length=256))
    assert np.abs(minilm.encode(TEXTS) - expected).max() < 1e-3
    assert minilm.truncated(["cat " * 254, "cat " * 255]).tolist() == [False, True]
    assert "-l256-d384-" in minilm.signature


def test_minilm_mpnet_is_the_packaged_minilm_with_adapters(minilm: Encoder, tmp_path: Path) -> None:
    encoder = load_encoder("minilm-mpnet")
    assert (encoder.origin, encoder.dimensions) == ("minilm-mpnet", 384)
    texts = ["Where do you live?", "I live in Berlin, near the river.", "", "I am a dentist."]
    vectors, before = encoder.encode(texts), minilm.encode(texts)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 0, 1], abs=1e-3)
    moved = (vectors * before).sum(axis=1)[[0, 1, 3]]
    assert (moved > 0.5).all() and (moved < 0.99).all()  # other vectors, in the neighbourhood of the first
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[3] + 0.2
    # It is saved by its name alone.
    saved = encoder.save_unless_named(tmp_path / "encoder")
    assert saved["origin"] == "minilm-mpnet" and not (tmp_path / "encoder").exists()
    assert load_again(saved["origin"], saved["signature"], tmp_path).signature == encoder.signature
    check_spec("minilm-mpnet+wordllama")
    with pytest.raises(EvaluatorError, match="did you mean minilm-mpnet"):
        load_encoder("minilm-mpnett")


def test_an_unknown_text_is_the_zero_vector_and_sentences_are_what_sms_moves(written: Path) -> None:
    encoder = Transformer(str(written))
    vectors = encoder.encode(["", " \n", "🙂", "这是什么", "[UNK] [PAD]", "whatever", "red"])
    assert vectors.any(axis=1).tolist() == [False] * 6 + [True]
    vectors, weights = encoder.bag("The red cat. Unseen! Dog runs? whatever")
    assert weights.tolist() == [3, 2]
    assert np.array_equal(vectors, encoder.encode(["The red cat.", "Dog runs?"]))


def test_a_vector_does_not_depend_on_its_neighbours(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = Transformer(str(written))
    texts = [*TEXTS, *ODD, *(f"{a} {b}" for a in TEXTS[:3] for b in TEXTS)]
    together = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    assert np.isfinite(together).all()
    assert together == pytest.approx(alone, abs=1e-6, rel=2**-10)  # the next float16 at most
    assert (together == alone).mean() > 0.99
    monkeypatch.setattr("ssrem.encoders.transformer._CHUNK", 4)
    monkeypatch.setattr("ssrem.encoders.transformer._BATCH_TOKENS", {"cpu": 20})
    assert together == pytest.approx(encoder.encode(texts[::-1])[::-1], abs=1e-6, rel=2**-10)
    assert np.array_equal(encoder.truncated(texts), [encoder.truncated([text])[0] for text in texts])
    assert encoder.encode([]).shape == (0, 16) and encoder.truncated([]).shape == (0,)


def test_saved_and_loaded_unless_changed(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    saved, original = tmp_path / "saved", load_encoder("bert")
    original.save(saved)
    assert sorted(path.name for path in saved.iterdir()) == ["encoder.json"]
    monkeypatch.chdir("/")  # the folder was named from where we were
    loaded = load_saved(saved)
    assert isinstance(loaded, Transformer) and loaded.signature == original.signature
    assert np.array_equal(loaded.encode(TEXTS), original.encode(TEXTS))
    assert original.origin is not None and load_encoder(original.origin).signature == original.signature
    write_modules(bert, "Pooling", "Normalize", pooling=MEAN)
    with pytest.raises(EvaluatorError, match="its settings or tokenizer were changed"):
        load_saved(saved)
    write_bert(bert, seed=1)
    with pytest.raises(EvaluatorError, match=r"which now has .* bring those weights back"):
        load_saved(saved)
    write_json(saved, "encoder.json", json.loads((saved / "encoder.json").read_text()) | {"origin": 5})
    with pytest.raises(EvaluatorError, match="origin is 5"):
        load_saved(saved)


def test_signature_follows_weights_pooling_length_and_tokenizer(bert: Path) -> None:
    signatures = [Transformer(str(bert)).signature]
    for change in (
        lambda: write_modules(bert, "Pooling", pooling={"pooling_mode": "cls"}),
        lambda: write_json(bert, "sentence_bert_config.json", {"max_seq_length": 5}),
        lambda: tokenizer(("blue", "red")).save_pretrained(bert),
        lambda: write_bert(bert, seed=1),
    ):
        change()
        signatures.append(Transformer(str(bert)).signature)
    assert len(set(signatures)) == 5
    assert all("/" not in signature and len(signature) < 100 for signature in signatures)


def test_specs(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = (f"hf:{bert}", f"file:{bert}", str(bert))
    assert {load_encoder(spec).signature for spec in specs} == {Transformer(str(bert)).signature}
    # A folder of another thing that bears a name of word vectors does not hide them.
    monkeypatch.chdir(bert.parent)
    (bert.parent / "word2vec").mkdir()
    with pytest.raises(EvaluatorError, match="train_texts"):
        load_encoder("word2vec")


def test_bf16_and_int8_are_chosen_by_name_and_told_by_the_signature(written: Path, tmp_path: Path) -> None:
    full = load_encoder(f"hf:{written}")
    others = full.encode(TEXTS)
    for form, most in (("bf16", 0.05), ("int8", 0.1)):
        mixed = load_encoder(f"hf:{written}:{form}")
        assert mixed.origin == f"{full.origin}:{form}"
        assert mixed.signature != full.signature and f"-{form}-" in mixed.signature
        vectors = mixed.encode(TEXTS)
        assert not np.array_equal(vectors, others) and vectors == pytest.approx(others, abs=most)
        mixed.save(tmp_path / form)
        again = load_saved(tmp_path / form)
        assert again.signature == mixed.signature and np.array_equal(again.encode(TEXTS), vectors)


def test_beside_word_vectors(written: Path, tmp_path: Path) -> None:
    words = WordAverage("words", ["red", "cat"], np.array([[1.0, 0], [0, 1]]))
    encoder = Transformer(str(written))
    both = Concatenation([words, encoder])
    assert both.dimensions == 18
    assert np.array_equal(both.encode(TEXTS)[:, 2:], encoder.encode(TEXTS))
    texts = ["red", "red " * 11]
    assert words.truncated(texts).tolist() == [False, False]
    for either in (both, Concatenation([encoder, words])):
        assert either.truncated(texts).tolist() == [False, True]
    both.save(tmp_path / "both")
    assert np.array_equal(load_saved(tmp_path / "both").encode(TEXTS), both.encode(TEXTS))


def test_an_encoder_with_a_decoder_and_broken_weights_are_refused(bert: Path, tmp_path: Path) -> None:
    config = T5Config(vocab_size=14, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    T5Model(config).save_pretrained(tmp_path / "t5")
    tokenizer().save_pretrained(tmp_path / "t5")
    with pytest.raises(EvaluatorError, match="an encoder with a decoder"):
        Transformer(str(tmp_path / "t5"))
    model = AutoModel.from_pretrained(bert)
    with torch.no_grad():
        model.encoder.layer[1].output.dense.bias.fill_(float("inf"))
    model.save_pretrained(bert)
    with pytest.raises(EvaluatorError, match="not finite; its weights are broken"):
        Transformer(str(bert)).encode(["red"])


def test_pipelines_that_would_give_other_vectors(bert: Path) -> None:
    one, dense = ({"type": f"x.{kind}", "path": ""} for kind in ("Transformer", "Dense"))
    for file, content, message in (
        ("modules.json", {"a": 1}, "modules.json is not a JSON list"),
        ("modules.json", [5], "modules.json is no list of modules"),
        ("modules.json", [one, dense], "its modules are Transformer, Dense"),
        ("1_Pooling/config.json", {}, "its pooling is not said"),
        ("1_Pooling/config.json", {"pooling_mode": 5}, "its pooling is 5"),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", "mean"]}, "its pooling is cls with mean"),
        ("1_Pooling/config.json", TWO, "its pooling is cls with max"),
        ("sentence_bert_config.json", {"max_seq_length": "9"}, "max_seq_length is '9'"),
        ("config_sentence_transformers.json", {"default_prompt_name": "query"}, "expects its prompt 'query'"),
    ):
        write_modules(bert, "Pooling", pooling=MEAN, transformer={})
        write_json(bert, file, content)
        with pytest.raises(EvaluatorError, match=message) as error:
            Transformer(str(bert))
        assert "\n" not in str(error.value)


def test_batches_of_similar_lengths_bound_texts_and_tokens() -> None:
    lengths = np.array([3, 0, 500, 100, 64, 65, 1, 0, 30])
    batches = [rows.tolist() for rows in pretrained.similar_lengths(lengths, 256, 16)]
    assert batches == [[2], [3, 5], [4, 8, 0, 6]]  # the longest first; none without tokens
    nine = [rows.tolist() for rows in pretrained.similar_lengths(np.full(9, 5), 128, 8)]
    assert nine == [[0, 1, 2, 3, 4, 5, 6, 7], [8]]
