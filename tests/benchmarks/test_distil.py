"""A sentence encoder, moved towards another one by adapters."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks import distil
from ssrem.encoders.base import Encoder
from ssrem.encoders.transformer import AdaptedTransformer, Transformer
from ssrem.samples import TRAIN, Candidates
from ssrem.training.trainer import Schedule, train
from support.tiny_transformer import write_bert

WORDS = ("red", "the", "cat", "dog", "blue")
TEXTS = [" ".join(words) for words in product(WORDS, repeat=3)]


def cosines(encoder: Encoder) -> NDArray[np.float64]:
    vectors = encoder.encode(TEXTS).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors @ vectors.T)


def test_adapters_bring_cosines_nearer_to_the_teachers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, teacher = (Transformer(str(write_bert(tmp_path / str(seed), seed=seed))) for seed in range(2))
    monkeypatch.setattr(distil, "BATCH", 16)
    rows = np.random.default_rng(0).integers(len(TEXTS), size=(120, 3))
    objective = distil.Adapters(start, TEXTS, teacher.encode(TEXTS), rows[:96], rows[96:])
    before = objective.validate(0)["valid_loss"]
    curve = train(objective, Schedule(5, 0, warmup=0.1))
    assert curve.best["valid_loss"] < 0.8 * before
    moved = AdaptedTransformer(start, objective.factors())
    wanted = cosines(teacher)
    assert np.abs(cosines(moved) - wanted).mean() < 0.9 * np.abs(cosines(start) - wanted).mean()


def test_what_cosine_reads_of_a_response() -> None:
    texts = ["hello", "hi", " ", "how are you?", "fine"]
    first, response = np.array([0, 0, 4]), np.array([1, 4, 4])
    candidates = Candidates(texts, response, first, response, {}, np.full(3, TRAIN, dtype=np.uint8))
    row: dict[str, int] = {}
    read = distil.cosine_texts(candidates, np.arange(3), row)
    known = list(row)
    assert [[known[at] for at in one] for one in read.tolist()] == [
        ["hello", "hello", "hi"],
        ["how are you?", "hi how are you?", "fine"],  # the third has no context
    ]
