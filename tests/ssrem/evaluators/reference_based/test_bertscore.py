"""BERTScore against a plain loop over one text at a time, and the authors' package where it is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, T5Config, T5EncoderModel, T5Model

from ssrem.errors import EvaluatorError
from ssrem.evaluators.reference_based.embedding import BertScore
from ssrem.samples import Sample
from support.metric_checks import ODD, check_independent, check_parts, check_saved, odd_samples
from support.tiny_transformer import SIZES, tokenizer, write_bert
from support.trained import check_scores_stand_alone

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


def by_loops(model: torch.nn.Module, layer: int) -> list[float]:
    """F1 of texts that fit, each on its own, with [CLS] and [SEP] there to be matched but not counted."""
    words, vectors = tokenizer(), {}
    for text in TEXTS:
        with torch.no_grad():
            states = model(words(text, return_tensors="pt").input_ids, output_hidden_states=True)
        rows = states.hidden_states[layer][0].double().numpy()
        vectors[text] = [row / np.linalg.norm(row) for row in rows]
    expected = []
    for pair in PAIRS:
        a, b = vectors[pair.response], vectors[str(pair.reference)]
        precision = np.mean([max(x @ y for y in b) for x in a[1:-1]])
        recall = np.mean([max(x @ y for x in a) for y in b[1:-1]])
        above = min(precision, recall) > 0
        expected.append(float(2 * precision * recall / (precision + recall)) if above else 0.0)
    return expected


def test_as_in_plain_loops(bert: Path) -> None:
    model = AutoModel.from_pretrained(bert).eval()
    for layer in (-1, 0, 1, 2, -3):
        scores = BertScore(model=str(bert), layer=layer).score(PAIRS)
        assert np.abs(scores - by_loops(model, layer)).max() < 1e-5
        assert scores.min() < 0.9 and scores[:: len(TEXTS) + 1] == pytest.approx(1)


def test_as_the_authors_package(tmp_path: Path) -> None:
    package = pytest.importorskip("bert_score")
    bert = write_bert(tmp_path)
    words = AutoTokenizer.from_pretrained(bert)
    words.model_max_length = SIZES["max_position_embeddings"]  # the package asks for a limit
    words.save_pretrained(bert)
    pairs = [*PAIRS, Sample((), "the cat sat. " * 4, "red cat"), Sample((), "red cat", "the " * 30)]
    texts = [pair.response for pair in pairs], [pair.reference for pair in pairs]
    for layer in (1, 2):
        *_, expected = package.score(*texts, model_type=str(bert), num_layers=layer, batch_size=5)
        scores = BertScore(model=str(bert), layer=layer).score(pairs)
        assert np.abs(scores - expected.numpy()).max() < 1e-4


def test_the_encoder_of_a_pair(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    T5Model(T5Config(vocab_size=14, initializer_factor=5.0, **sizes)).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    evaluator = BertScore(model=str(tmp_path))
    expected = by_loops(T5EncoderModel.from_pretrained(tmp_path).eval(), -1)
    assert np.abs(evaluator.score(PAIRS) - expected).max() < 1e-5
    # Neither model nor tokenizer has a limit, so the usual one holds: 510 words, [CLS] and [SEP].
    long = [Sample((), "red", "the " * words) for words in (510, 511)]
    assert evaluator.compute(long).truncated.tolist() == [False, True]


def test_every_text_has_a_score(bert: Path, tmp_path: Path) -> None:
    evaluator = BertScore(model=str(bert))
    samples = odd_samples("the red cat sat.")
    check_independent(evaluator, [*samples[::2], *PAIRS[::5]])
    check_parts(evaluator, samples)
    check_saved(evaluator, samples, tmp_path / "saved")
    for odd in ODD[:2]:
        assert evaluator.compute([Sample((), odd, "red"), Sample((), "red", odd)]).score.tolist() == [0, 0]


def test_long_texts_are_cut_at_the_end_and_blanks_around_them_say_nothing(bert: Path) -> None:
    evaluator = BertScore(model=str(bert))  # reads 12 tokens: ten words, [CLS] and [SEP]
    whole, long = "red cat " * 5, "red cat " * 5 + "blue"
    scores = evaluator.compute([Sample((), text, "the dog") for text in (whole, long, f" \n {whole}\t")])
    assert scores.truncated.tolist() == [False, True, False]
    assert scores.g[0] == scores.g[1] == scores.g[2]
    assert evaluator.compute([Sample((), "the dog", long)]).truncated.tolist() == [True]


def test_nothing_depends_on_threads_and_what_is_held_at_a_time(
    bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {
        f"reference_based.embedding.{name}": 3 for name in ("_BATCH_TOKENS", "PairMetric.batch_samples")
    }
    check_scores_stand_alone(BertScore(model=str(bert)), PAIRS, limits, monkeypatch)


def test_signature_names_weights_layer_and_tokenizer(tmp_path: Path) -> None:
    bert = write_bert(tmp_path)
    signatures = [BertScore(model=str(bert), layer=layer).signature for layer in (-1, 1)]
    write_bert(bert, seed=1)
    signatures.append(BertScore(model=str(bert)).signature)
    tokenizer(("blue", "red")).save_pretrained(bert)
    signatures.append(BertScore(model=str(bert)).signature)
    assert len(set(signatures)) == 4


@pytest.mark.parametrize("layer", [3, -4])
def test_a_layer_that_is_not_there(bert: Path, layer: int) -> None:
    with pytest.raises(EvaluatorError, match=f"has no layer {layer}; 0 to 2, or -1 for the last"):
        BertScore(model=str(bert), layer=layer).score(PAIRS)


def test_broken_weights_are_no_score(bert: Path, tmp_path: Path) -> None:
    model = AutoModel.from_pretrained(bert)
    with torch.no_grad():
        model.encoder.layer[0].output.dense.bias.fill_(float("nan"))
    model.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    with pytest.raises(EvaluatorError, match="not finite; its weights are broken"):
        BertScore(model=str(tmp_path)).score(PAIRS)
    assert np.isfinite(BertScore(model=str(tmp_path), layer=0).score(PAIRS)).all()


def test_the_default_is_the_packaged_minilm(tmp_path: Path) -> None:
    evaluator = BertScore()
    reference = "I would love to visit Paris in the spring."
    texts = ("I'd like to see Paris this spring.", "My printer is broken.")
    close, far = evaluator.score([Sample((), text, reference) for text in texts])
    assert close > far + 0.2
    evaluator.save(tmp_path)
    saved = json.loads((tmp_path / "evaluator.json").read_text())["settings"]
    assert saved == {"model": "all-minilm-l6-v2", "layer": -1}
