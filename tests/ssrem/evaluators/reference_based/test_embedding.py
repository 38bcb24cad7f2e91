"""Similarity of vectors, worked out by hand and in plain loops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ssrem.evaluators.reference_based.embedding import (
    EmbeddingAverage,
    EmbeddingExtrema,
    EmbeddingGreedy,
    EncoderMetric,
    SentenceMovers,
)
from ssrem.samples import Sample
from support.metric_checks import ODD, check_independent, check_parts, check_saved, odd_samples

METRICS = (EmbeddingAverage, EmbeddingGreedy, EmbeddingExtrema, SentenceMovers)
Vector = NDArray[np.float64]


def one(metric: type[EncoderMetric], encoder: str, response: str, reference: str) -> float:
    return float(metric(encoder=encoder).compute([Sample((), response, reference)]).score[0])


def test_of_equally_far_ends_the_extrema_take_the_lower_one(colours: str) -> None:
    # 2 and -2 are equally far: the lower one, as the paper's equation has it.
    assert one(EmbeddingExtrema, colours, "grey dark", "dark") == pytest.approx(1)
    assert one(EmbeddingExtrema, colours, "green dark green", "red dark") == pytest.approx(
        -2 / (5 * np.sqrt(5))
    )


def cosine(a: Vector, b: Vector) -> float:
    return float(a @ b / np.sqrt(a @ a) / np.sqrt(b @ b))


def average(a: list[Vector], b: list[Vector]) -> float:
    return cosine(np.mean(a, axis=0), np.mean(b, axis=0))


def greedy(a: list[Vector], b: list[Vector]) -> float:
    forth = [max(cosine(x, y) for y in b) for x in a]
    back = [max(cosine(x, y) for x in a) for y in b]
    return (sum(forth) / len(forth) + sum(back) / len(back)) / 2


def extrema(a: list[Vector], b: list[Vector]) -> float:
    def ends(vectors: list[Vector]) -> Vector:
        return np.array([max(column, key=abs) for column in zip(*vectors, strict=True)])

    return cosine(ends(a), ends(b))


@pytest.mark.parametrize(
    ("metric", "by_loops"),
    [(EmbeddingAverage, average), (EmbeddingGreedy, greedy), (EmbeddingExtrema, extrema)],
)
def test_as_in_plain_loops(metric: type[EncoderMetric], by_loops, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    generator = np.random.default_rng(0)
    vectors = {f"w{n}": generator.normal(size=6).astype(np.float16).astype(np.float64) for n in range(20)}
    path = tmp_path / "random.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in vectors.items()))
    words = [*vectors, "unknown", "missing"]
    texts = [list(generator.choice(words, size)) for size in generator.integers(1, 15, 60)]
    pairs = list(zip(texts[::2], texts[1::2], strict=True))
    scores = metric(encoder=f"file:{path}:uniform").score(
        [Sample((), " ".join(a), " ".join(b)) for a, b in pairs]
    )
    for score, pair in zip(scores, pairs, strict=True):
        a, b = ([vectors[word] for word in text if word in vectors] for text in pair)
        # All but the average are of the words' own vectors, which were not rounded again.
        allowed = 1e-3 if by_loops is average else 1e-9
        assert score == pytest.approx(by_loops(a, b) if a and b else 0, abs=allowed)


@pytest.mark.parametrize("metric", METRICS)
def test_every_text_has_a_score(metric: type[EncoderMetric], colours: str, tmp_path: Path) -> None:
    evaluator = metric(encoder=colours)
    samples = odd_samples("The red cat. It was dark, grey and green.")
    check_independent(evaluator, samples)
    check_parts(evaluator, samples[::3])
    check_saved(evaluator, samples[:3], tmp_path / "saved")
    assert not evaluator.compute(samples).truncated.any()
    known = [Sample((), "the cat", odd) for odd in ODD[:3]] + [Sample((), odd, "the cat") for odd in ODD[:3]]
    assert evaluator.compute([*known, Sample((), "the cat", "The cat!")]).score == pytest.approx(
        [0] * 6 + [1]
    )


@pytest.mark.parametrize("metric", [EmbeddingGreedy, SentenceMovers])
def test_a_transformer_is_an_encoder_too(metric: type[EncoderMetric], bert: Path) -> None:
    evaluator = metric(encoder=f"hf:{bert}")
    check_independent(evaluator, odd_samples("The cat sat. The red dog runs.")[2::6])


def test_truncated_where_a_piece_does_not_fit(bert: Path) -> None:
    ten, eleven = "the " * 10, "the " * 11  # it reads 12 tokens, [CLS] and [SEP] among them
    word = "runs" + "ning" * 10  # of 11 tokens
    pairs = [("red cat", ten), ("red cat", eleven), (eleven, "red cat"), ("red cat", "the dog runs. " * 5)]
    samples = [Sample((), *pair) for pair in (*pairs, (word, "red cat"))]
    expected = {
        EmbeddingAverage: [False, True, True, True, True],
        SentenceMovers: [False, True, True, False, True],
        EmbeddingGreedy: [False, False, False, False, True],
        EmbeddingExtrema: [False, False, False, False, True],
    }
    for metric, truncated in expected.items():
        assert metric(encoder=f"hf:{bert}").compute(samples).truncated.tolist() == truncated


@pytest.mark.parametrize("metric", METRICS)
def test_nothing_depends_on_what_is_held_at_a_time(
    metric: type[EncoderMetric], colours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["red", "blue dark", "green. Red dark blue", "", "grey grey red dark green blue"]
    samples = [Sample((), a, b) for a in texts for b in texts]
    expected = metric(encoder=colours).compute(samples).score
    embedding = "ssrem.evaluators.reference_based.embedding"
    for name, limit in (("PairMetric.batch_samples", 3), ("PairMetric.batch_characters", 20), ("_ROWS", 2)):
        monkeypatch.setattr(f"{embedding}.{name}", limit)
        assert np.abs(metric(encoder=colours).compute(samples).score - expected).max() < 1e-12


def test_the_default_is_the_packaged_glove() -> None:
    default = EmbeddingAverage()
    near, far = default.score([Sample((), "king", "queen"), Sample((), "king", "carrot")])
    assert near > 0.7 > far
    assert default.signature.startswith("emb-average|encoder:glove-6b-50d:uniform|glove-6b-50d-uniform-d50-")
