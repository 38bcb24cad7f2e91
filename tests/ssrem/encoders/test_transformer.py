"""Sentence vectors by transformers, against the model called plainly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer, T5Config, T5Model

from ssrem.encoders import hub, load_again, load_encoder, load_saved, pretrained
from ssrem.encoders.base import Concatenation
from ssrem.encoders.transformer import Transformer
from ssrem.encoders.words import WordAverage
from ssrem.errors import EvaluatorError
from support.metric_checks import ODD
from support.tiny_transformer import SIZES, tokenizer, write_bert, write_json, write_modules

TEXTS = ("red cat", "the Blue dog sat.", "the cat runsning", "green.", "dog the red whatever", "dog " * 9)
FLOAT16 = 1e-3


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return write_bert(tmp_path / "bert")


def padded(folder: Path, pooling: str = "mean", **options: Any) -> NDArray[np.float64]:
    """Vectors of TEXTS as transformers' users pool them: one padded batch under its attention mask."""
    words, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    inputs = words(list(TEXTS), padding=True, return_tensors="pt", return_token_type_ids=False, **options)
    with torch.no_grad():
        states = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None]
    pooled = {
        "mean": (states * mask).sum(1) / mask.sum(1),
        "cls": states[:, 0],
        "max": states.masked_fill(mask == 0, -torch.inf).amax(1),
    }[pooling]
    return np.asarray(pooled.double().numpy())


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def test_a_bare_model_gives_the_mean_of_its_tokens(bert: Path) -> None:
    vectors = load_encoder(f"hf:{bert}").encode(TEXTS)
    assert vectors.shape == (len(TEXTS), 16) and vectors.dtype == np.float32
    assert np.array_equal(vectors, vectors.astype(np.float16).astype(np.float32))
    assert vectors == pytest.approx(padded(bert), abs=FLOAT16, rel=FLOAT16)
    assert np.ptp(vectors, axis=0).min() > 0.01  # texts differ


@pytest.mark.parametrize(
    ("kinds", "settings", "pooling"),
    [
        (("Pooling",), {"pooling_mode_mean_tokens": True}, "mean"),
        (("Pooling",), {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        (("Pooling", "Normalize"), {"pooling_mode": "max"}, "max"),
        (("Pooling", "Normalize"), {"pooling_mode": ["mean"]}, "mean"),
    ],
)
def test_pooled_as_the_folder_says(
    bert: Path, kinds: tuple[str, ...], settings: dict[str, Any], pooling: str
) -> None:
    write_modules(bert, *kinds, pooling=settings)
    expected = padded(bert, pooling)
    vectors = Transformer(str(bert)).encode(TEXTS)
    assert vectors == pytest.approx(
        unit(expected) if "Normalize" in kinds else expected, abs=FLOAT16, rel=FLOAT16
    )


def test_length_and_case_as_the_folder_says(bert: Path) -> None:
    write_modules(bert, "Pooling", pooling={"pooling_mode": "mean"}, transformer={"max_seq_length": 4})
    encoder = Transformer(str(bert))
    assert encoder.max_length == 4
    assert encoder.encode(TEXTS) == pytest.approx(
        padded(bert, truncation=True, max_length=4), abs=FLOAT16, rel=FLOAT16
    )
    assert encoder.truncated(["red", "red cat", "red cat sat", ""]).tolist() == [False, False, True, False]
    # More than the model has positions for is not to be had.
    write_json(bert, "sentence_bert_config.json", {"max_seq_length": 99, "do_lower_case": True})
    longer = Transformer(str(bert))
    assert longer.max_length == SIZES["max_position_embeddings"]
    assert longer.pooling.lower and not encoder.pooling.lower


def test_lower_cased_where_the_folder_asks_for_it(bert: Path) -> None:
    backend = json.loads((bert / "tokenizer.json").read_text())
    write_json(bert, "tokenizer.json", backend | {"normalizer": None})
    assert not Transformer(str(bert)).encode(["RED CAT"]).any()
    write_modules(bert, "Pooling", pooling={"pooling_mode": "mean"}, transformer={"do_lower_case": True})
    encoder = Transformer(str(bert))
    assert np.array_equal(encoder.encode(["RED CAT"]), encoder.encode(["red cat"]))


def test_the_packaged_minilm_is_the_unit_mean_of_its_tokens() -> None:
    encoder = load_encoder("all-minilm-l6-v2")
    assert (encoder.name, encoder.origin, encoder.dimensions) == (hub.MINILM, hub.MINILM, 384)
    expected = unit(padded(Path(hub.model_folder(hub.MINILM)), truncation=True, max_length=256))
    assert np.abs(encoder.encode(TEXTS) - expected).max() < 1e-3
    assert encoder.truncated(["cat " * 254, "cat " * 255]).tolist() == [False, True]
    assert "-l256-d384-" in encoder.signature


def test_minilm_mpnet_is_the_packaged_minilm_with_adapters(tmp_path: Path) -> None:
    encoder, start = load_encoder("minilm-mpnet"), load_encoder(hub.MINILM)
    assert (encoder.origin, encoder.dimensions) == ("minilm-mpnet", 384)
    texts = ["Where do you live?", "I live in Berlin, near the river.", "", "I am a dentist."]
    vectors, before = encoder.encode(texts), start.encode(texts)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 0, 1], abs=1e-3)
    moved = (vectors * before).sum(axis=1)[[0, 1, 3]]
    assert (moved > 0.5).all() and (moved < 0.99).all()  # other vectors, in the neighbourhood of the first
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[3] + 0.2
    # It is saved by its name alone.
    saved = encoder.save_unless_named(tmp_path / "encoder")
    assert saved["origin"] == "minilm-mpnet" and not (tmp_path / "encoder").exists()
    assert load_again(saved["origin"], saved["signature"], tmp_path).signature == encoder.signature
    assert load_encoder("minilm-mpnet+wordllama").origin == "minilm-mpnet+wordllama"
    with pytest.raises(EvaluatorError, match="did you mean minilm-mpnet"):
        load_encoder("minilm-mpnett")


@pytest.mark.parametrize("unknown", ["", " \n", "🙂", "这是什么", "[UNK] [PAD]", "whatever"])
def test_a_text_without_a_known_token_is_the_zero_vector(bert: Path, unknown: str) -> None:
    vectors = Transformer(str(bert)).encode([unknown, "red"])
    assert not vectors[0].any() and vectors[1].any()


def test_a_vector_does_not_depend_on_its_neighbours(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = Transformer(str(bert))
    texts = [*TEXTS, *ODD, *(f"{a} {b}" for a in TEXTS for b in TEXTS)]
    together = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    assert np.isfinite(together).all()
    assert together == pytest.approx(alone, abs=1e-6, rel=2**-10)  # the next float16 at most
    assert (together == alone).mean() > 0.99
    monkeypatch.setattr("ssrem.encoders.transformer._CHUNK", 4)
    monkeypatch.setattr("ssrem.encoders.transformer._BATCH_TOKENS", {"cpu": 20})
    small = encoder.encode(texts[::-1])[::-1]
    assert together == pytest.approx(small, abs=1e-6, rel=2**-10)
    assert np.array_equal(encoder.truncated(texts), [encoder.truncated([text])[0] for text in texts])
    assert encoder.encode([]).shape == (0, 16) and encoder.truncated([]).shape == (0,)


def test_what_is_beyond_the_length_changes_nothing(bert: Path) -> None:
    encoder = Transformer(str(bert))
    one, other = encoder.encode(["dog " * 10 + "cat", "dog " * 10 + "red"])
    assert np.array_equal(one, other)
    assert encoder.truncated(["dog " * 10, "dog " * 11]).tolist() == [False, True]


def test_without_any_limit_the_usual_one_holds(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "max_tokens", lambda tokenizer, model: None)
    assert Transformer(str(bert)).max_length == 512
    write_modules(bert, "Pooling", pooling={"pooling_mode": "mean"}, transformer={"max_seq_length": 999})
    assert Transformer(str(bert)).max_length == 999


def test_saved_and_loaded(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    original = load_encoder("bert")
    original.save(tmp_path / "saved")
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == ["encoder.json"]
    monkeypatch.chdir("/")  # the folder was named from where we were
    loaded = load_saved(tmp_path / "saved")
    assert isinstance(loaded, Transformer) and loaded.signature == original.signature
    assert np.array_equal(loaded.encode(TEXTS), original.encode(TEXTS))
    assert original.origin is not None
    assert load_encoder(original.origin).signature == original.signature


def test_changed_models_are_not_the_saved_one(bert: Path, tmp_path: Path) -> None:
    before = Transformer(str(bert))
    before.save(tmp_path / "saved")
    write_modules(bert, "Pooling", "Normalize", pooling={"pooling_mode": "mean"})
    with pytest.raises(EvaluatorError, match="its settings or tokenizer were changed"):
        load_saved(tmp_path / "saved")
    write_bert(bert, seed=1)
    with pytest.raises(EvaluatorError, match=r"which now has .* bring those weights back"):
        load_saved(tmp_path / "saved")
    about = json.loads((tmp_path / "saved" / "encoder.json").read_text())
    write_json(tmp_path / "saved", "encoder.json", about | {"origin": 5})
    with pytest.raises(EvaluatorError, match="origin is 5"):
        load_saved(tmp_path / "saved")


def test_signature_follows_weights_pooling_length_and_tokenizer(bert: Path) -> None:
    signatures = {Transformer(str(bert)).signature}
    write_modules(bert, "Pooling", pooling={"pooling_mode": "cls"})
    signatures.add(Transformer(str(bert)).signature)
    write_json(bert, "sentence_bert_config.json", {"max_seq_length": 5})
    signatures.add(Transformer(str(bert)).signature)
    tokenizer(("blue", "red")).save_pretrained(bert)
    signatures.add(Transformer(str(bert)).signature)
    write_bert(bert, seed=1)
    signatures.add(Transformer(str(bert)).signature)
    assert len(signatures) == 5
    assert all("/" not in signature and len(signature) < 100 for signature in signatures)


def test_specs(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signatures = {load_encoder(spec).signature for spec in (f"hf:{bert}", f"file:{bert}", str(bert))}
    assert signatures == {Transformer(str(bert)).signature}
    with pytest.raises(
        EvaluatorError, match=r"no encoder or file 'all-minilm'; did you mean all-minilm-l6-v2"
    ):
        load_encoder("all-minilm")
    # A folder of another thing that bears a name of word vectors does not hide them.
    monkeypatch.chdir(bert.parent)
    (bert.parent / "word2vec").mkdir()
    with pytest.raises(EvaluatorError, match="train_texts"):
        load_encoder("word2vec")


@pytest.mark.parametrize(("form", "near"), [("bf16", 0.05), ("int8", 0.1)])
def test_bf16_and_int8_are_chosen_by_name_and_told_by_the_signature(
    bert: Path, tmp_path: Path, form: str, near: float
) -> None:
    full, mixed = load_encoder(f"hf:{bert}"), load_encoder(f"hf:{bert}:{form}")
    assert mixed.origin == f"{full.origin}:{form}"
    assert mixed.signature != full.signature and f"-{form}-" in mixed.signature
    vectors, others = mixed.encode(TEXTS), full.encode(TEXTS)
    assert not np.array_equal(vectors, others)
    assert vectors == pytest.approx(others, abs=near)
    mixed.save(tmp_path / "saved")
    again = load_saved(tmp_path / "saved")
    assert again.signature == mixed.signature and np.array_equal(again.encode(TEXTS), vectors)


def test_sentences_are_what_sms_moves(bert: Path) -> None:
    encoder = Transformer(str(bert))
    vectors, weights = encoder.bag("The red cat. Unseen! Dog runs? whatever")
    assert weights.tolist() == [3, 2]
    assert np.array_equal(vectors, encoder.encode(["The red cat.", "Dog runs?"]))


def test_beside_word_vectors(bert: Path, tmp_path: Path) -> None:
    words = WordAverage("words", ["red", "cat"], np.array([[1.0, 0], [0, 1]]))
    encoder = Transformer(str(bert))
    both = Concatenation([words, encoder])
    assert both.dimensions == 18
    assert np.array_equal(both.encode(TEXTS)[:, 2:], encoder.encode(TEXTS))
    texts = ["red", "red " * 11]
    assert words.truncated(texts).tolist() == [False, False]
    assert (
        both.truncated(texts).tolist()
        == Concatenation([encoder, words]).truncated(texts).tolist()
        == [False, True]
    )
    both.save(tmp_path / "both")
    assert np.array_equal(load_saved(tmp_path / "both").encode(TEXTS), both.encode(TEXTS))


def test_an_encoder_with_a_decoder_is_refused(tmp_path: Path) -> None:
    config = T5Config(vocab_size=14, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    T5Model(config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    with pytest.raises(EvaluatorError, match="an encoder with a decoder"):
        Transformer(str(tmp_path))


def test_broken_weights_give_no_vectors(bert: Path) -> None:
    model = AutoModel.from_pretrained(bert)
    with torch.no_grad():
        model.encoder.layer[1].output.dense.bias.fill_(float("inf"))
    model.save_pretrained(bert)
    with pytest.raises(EvaluatorError, match="not finite; its weights are broken"):
        Transformer(str(bert)).encode(["red"])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"modules.json": {"a": 1}}, "modules.json is not a JSON list"),
        ({"modules.json": [5]}, "modules.json is no list of modules"),
        ({"modules.json": [{"type": "x.Transformer", "path": ""}]}, "its modules are Transformer; only a"),
        ({"1_Pooling/config.json": {}}, "its pooling is not said"),
        ({"1_Pooling/config.json": {"pooling_mode": "lasttoken"}}, "its pooling is lasttoken"),
        ({"1_Pooling/config.json": {"pooling_mode": 5}}, "its pooling is 5"),
        ({"1_Pooling/config.json": {"pooling_mode": ["cls", "mean"]}}, "its pooling is cls with mean"),
        (
            {"1_Pooling/config.json": {"pooling_mode_max_tokens": True, "pooling_mode_cls_token": True}},
            "its pooling is cls with max",
        ),
        ({"1_Pooling/config.json": []}, "1_Pooling/config.json is not a JSON object"),
        ({"sentence_bert_config.json": {"max_seq_length": "9"}}, "max_seq_length is '9'"),
        (
            {"config_sentence_transformers.json": {"default_prompt_name": "query"}},
            "expects its prompt 'query'",
        ),
    ],
)
def test_pipelines_that_would_give_other_vectors(bert: Path, files: dict[str, Any], message: str) -> None:
    write_modules(bert, "Pooling", pooling={"pooling_mode": "mean"})
    Transformer(str(bert))
    for file, content in files.items():
        write_json(bert, file, content)
    with pytest.raises(EvaluatorError, match=message) as error:
        Transformer(str(bert))
    assert "\n" not in str(error.value)


def test_modules_beyond_pooling_are_refused(bert: Path) -> None:
    write_modules(bert, "Pooling", "Dense", pooling={"pooling_mode": "mean"})
    with pytest.raises(EvaluatorError, match="its modules are Transformer, Pooling, Dense"):
        Transformer(str(bert))
    (bert / "modules.json").write_text("{")
    with pytest.raises(EvaluatorError, match=r"modules.json is not JSON"):
        Transformer(str(bert))


def test_batches_of_similar_lengths_bound_texts_and_tokens() -> None:
    lengths = np.array([3, 0, 500, 100, 64, 65, 1, 0, 30])
    batches = [rows.tolist() for rows in pretrained.similar_lengths(lengths, 256, 16)]
    assert batches == [[2], [3, 5], [4, 8, 0, 6]]  # the longest first; none without tokens
    nine = [rows.tolist() for rows in pretrained.similar_lengths(np.full(9, 5), 128, 8)]
    assert nine == [[0, 1, 2, 3, 4, 5, 6, 7], [8]]
