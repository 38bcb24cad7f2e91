"""A causal language model learns a corpus by adapters, is saved whole, and goes on after a stop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from ssrem.errors import EvaluatorError
from ssrem.evaluators.language_model.fine_tune import LmObjective, LmSettings
from ssrem.evaluators.language_model.likelihood import LmCoherence
from ssrem.files import read_json
from ssrem.samples import Candidates, Sample
from ssrem.training.fine_tuning import CARD, fine_tune
from support.tiny_transformer import SIZES, SPECIAL, tokenizer

WORDS = ("A", "B", ":", "a", "b", "cat", "dog", "sat", "runs", "the", ".")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("llama")
    torch.manual_seed(0)
    sizes = {**SIZES, "max_position_embeddings": 64, "initializer_range": 0.6}
    config = LlamaConfig(vocab_size=len(SPECIAL) + len(WORDS), **sizes)
    LlamaForCausalLM(config).save_pretrained(folder)
    reader = tokenizer(WORDS)
    reader.bos_token = "[CLS]"
    reader.save_pretrained(folder)
    return str(folder)


def pairs(n: int = 40) -> Candidates:
    """Two exchanges over and over; the last eight are the valid split."""
    both = (("the cat", "the cat sat ."), ("the dog", "the dog runs ."))
    texts = [turn for at in range(n) for turn in both[at % 2]]
    response = np.arange(n) * 2 + 1
    split = (np.arange(n) >= n - 8).astype(np.uint8)
    return Candidates(texts, response, response - 1, response, {}, split)


def objective(model: str, **more: int) -> LmObjective:
    given = {"steps": 30, "batch_size": 8, "max_tokens": 32, "rank": 4, **more}
    settings = LmSettings(model=model, device="cpu", learning_rate=0.05, **given)  # type: ignore[arg-type]
    return LmObjective(pairs(), settings)


def test_it_learns_and_scores_as_any_model(model: str, tmp_path: Path) -> None:
    curve = fine_tune(objective(model), tmp_path / "lm")
    card = read_json(tmp_path / "lm" / CARD, ("before", "after"))
    assert card["after"] < card["before"] - 0.2 and card["after"] == curve.best["valid_loss"]
    models = [LmCoherence(model=name, device="cpu") for name in (model, str(tmp_path / "lm"))]
    before, after = (lm.score([Sample(("the cat",), "the cat sat .")])[0] for lm in models)
    assert after > before + 0.2


def test_only_linear_maps_of_the_layers_that_are_not_frozen_change(model: str, tmp_path: Path) -> None:
    fine_tune(objective(model, steps=2, freeze=1), tmp_path / "lm")
    one, other = (AutoModelForCausalLM.from_pretrained(folder) for folder in (model, tmp_path / "lm"))
    weights = dict(other.named_parameters())
    changed = {name for name, value in one.named_parameters() if not torch.equal(value, weights[name])}
    assert changed and all(name.startswith("model.layers.1.") and "norm" not in name for name in changed)
    with pytest.raises(EvaluatorError, match="freeze is 2; the model has 2 layers"):
        fine_tune(objective(model, freeze=2), tmp_path / "none")


def test_nothing_to_learn_from(model: str) -> None:
    empty = pairs()
    empty.split[:] = 2
    with pytest.raises(EvaluatorError, match="the training split has no response"):
        LmObjective(empty, LmSettings(model=model))
