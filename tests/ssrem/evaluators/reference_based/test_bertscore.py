"""BERTScore against a plain loop over one text at a time, and the authors' package where it is installed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, T5Config, T5EncoderModel, T5Model

from ssrem.errors import EvaluatorError
from ssrem.evaluators.reference_based.embedding import BertScore
from ssrem.samples import Sample
from support.metric_checks import ODD, check_independent, check_parts, check_saved, odd_samples
from support.tiny_transformer import SIZES, tokenizer, write_bert

TEXTS = (
    "red cat",
    "the blue dog sat.",
    "the cat runsning",
    "green.",
    "dog the red",
    "the whatever sat",
    "dog dog dog dog dog dog",
)
PAIRS = [Sample((), response, reference) for response in TEXTS for reference in TEXTS]


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    return write_bert(tmp_path / "bert")


def by_loops(model: torch.nn.Module, response: str, reference: str, layer: int) -> float:
    """F1 of texts that fit, each on its own, with [CLS] and [SEP] there to be matched but not counted."""
    words = tokenizer()
    rows = []
    for text in (response, reference):
        ids = words(text, return_tensors="pt").input_ids
        with torch.no_grad():
            rows.append(model(ids, output_hidden_states=True).hidden_states[layer][0].double().numpy())
    a, b = ([row / np.linalg.norm(row) for row in vectors] for vectors in rows)
    precision = np.mean([max(x @ y for y in b) for x in a[1:-1]])
    recall = np.mean([max(x @ y for x in a) for y in b[1:-1]])
    return float(2 * precision * recall / (precision + recall)) if min(precision, recall) > 0 else 0.0


@pytest.mark.parametrize("layer", [-1, 0, 1, 2, -3])
def test_as_in_plain_loops(bert: Path, layer: int) -> None:
    scores = BertScore(model=str(bert), layer=layer).score(PAIRS)
    model = AutoModel.from_pretrained(bert).eval()
    expected = [by_loops(model, pair.response, str(pair.reference), layer) for pair in PAIRS]
    assert np.abs(scores - expected).max() < 1e-5
    assert scores.min() < 0.9 and scores[:: len(TEXTS) + 1] == pytest.approx(1)


def test_as_the_authors_package(bert: Path) -> None:
    package = pytest.importorskip("bert_score")
    words = AutoTokenizer.from_pretrained(bert)
    words.model_max_length = SIZES["max_position_embeddings"]  # the package asks for a limit
    words.save_pretrained(bert)
    pairs = [*PAIRS, Sample((), "the cat sat. " * 4, "red cat"), Sample((), "red cat", "the " * 30)]
    responses, references = [pair.response for pair in pairs], [pair.reference for pair in pairs]
    for layer in (1, 2):
        *_, expected = package.score(
            responses, references, model_type=str(bert), num_layers=layer, batch_size=5
        )
        scores = BertScore(model=str(bert), layer=layer).score(pairs)
        assert np.abs(scores - expected.numpy()).max() < 1e-4


def test_the_encoder_of_a_pair(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=14, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, initializer_factor=5.0
    )
    T5Model(config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    evaluator = BertScore(model=str(tmp_path))
    encoder = T5EncoderModel.from_pretrained(tmp_path).eval()
    expected = [by_loops(encoder, pair.response, str(pair.reference), -1) for pair in PAIRS]
    assert np.abs(evaluator.score(PAIRS) - expected).max() < 1e-5
    # Neither model nor tokenizer has a limit, so the usual one holds: 510 words, [CLS] and [SEP].
    long = [Sample((), "red", "the " * words) for words in (510, 511)]
    assert evaluator.compute(long).truncated.tolist() == [False, True]


def test_every_text_has_a_score(bert: Path, tmp_path: Path) -> None:
    evaluator = BertScore(model=str(bert))
    samples = odd_samples("the red cat sat.")
    check_independent(evaluator, [*samples, *PAIRS])
    check_parts(evaluator, samples)
    check_saved(evaluator, samples, tmp_path / "saved")
    for odd in ODD[:2]:
        assert evaluator.compute([Sample((), odd, "red"), Sample((), "red", odd)]).score.tolist() == [0, 0]


def test_long_texts_are_cut_at_the_end(bert: Path) -> None:
    evaluator = BertScore(model=str(bert))  # reads 12 tokens: ten words, [CLS] and [SEP]
    whole, long = "red cat " * 5, "red cat " * 5 + "blue"
    scores = evaluator.compute([Sample((), text, "the dog") for text in (whole, long)])
    assert scores.truncated.tolist() == [False, True]
    assert scores.g[0] == scores.g[1]
    assert evaluator.compute([Sample((), "the dog", long)]).truncated.tolist() == [True]


def test_blanks_around_a_text_say_nothing(bert: Path) -> None:
    evaluator = BertScore(model=str(bert))
    assert evaluator.score([Sample((), " \n red cat ", "the dog")]) == evaluator.score(
        [Sample((), "red cat", "the dog")]
    )


def test_nothing_depends_on_what_is_held_at_a_time(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = BertScore(model=str(bert)).score(PAIRS)
    monkeypatch.setattr("ssrem.evaluators.reference_based.embedding._BATCH_TOKENS", 8)
    monkeypatch.setattr("ssrem.evaluators.reference_based.embedding.PairMetric.batch_samples", 3)
    assert np.abs(BertScore(model=str(bert)).score(PAIRS) - expected).max() < 1e-5


def test_nothing_depends_on_the_number_of_threads(bert: Path) -> None:
    evaluator, before = BertScore(model=str(bert)), torch.get_num_threads()
    scores = []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            scores.append(evaluator.score(PAIRS))
    finally:
        torch.set_num_threads(before)
    assert np.ptp(scores, axis=0).max() < 1e-5


def test_signature_names_weights_layer_and_tokenizer(bert: Path, tmp_path: Path) -> None:
    signature = BertScore(model=str(bert)).signature
    assert BertScore(model=str(bert), layer=1).signature != signature
    write_bert(bert, seed=1)
    changed = BertScore(model=str(bert)).signature
    assert changed != signature
    tokenizer(("blue", "red")).save_pretrained(bert)
    assert BertScore(model=str(bert)).signature not in (signature, changed)


@pytest.mark.parametrize("layer", [3, -4])
def test_a_layer_that_is_not_there(bert: Path, layer: int) -> None:
    with pytest.raises(EvaluatorError, match=f"has no layer {layer}; 0 to 2, or -1 for the last"):
        BertScore(model=str(bert), layer=layer).score(PAIRS)


def test_broken_weights_are_no_score(bert: Path) -> None:
    model = AutoModel.from_pretrained(bert)
    with torch.no_grad():
        model.encoder.layer[0].output.dense.bias.fill_(float("nan"))
    model.save_pretrained(bert)
    with pytest.raises(EvaluatorError, match="not finite; its weights are broken"):
        BertScore(model=str(bert)).score(PAIRS)
    assert np.isfinite(BertScore(model=str(bert), layer=0).score(PAIRS)).all()


def test_the_default_is_the_packaged_minilm(tmp_path: Path) -> None:
    evaluator = BertScore()
    reference = "I would love to visit Paris in the spring."
    close, far = evaluator.score(
        [
            Sample((), "I'd like to see Paris this spring.", reference),
            Sample((), "My printer is broken.", reference),
        ]
    )
    assert close > far + 0.2
    evaluator.save(tmp_path)
    assert json.loads((tmp_path / "evaluator.json").read_text())["settings"] == {
        "model": "all-minilm-l6-v2",
        "layer": -1,
    }
