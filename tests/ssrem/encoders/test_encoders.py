"""Encoders: words, averages, files, saved folders."""

from __future__ import annotations

import gzip
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from ssrem.encoders import check_spec, load_encoder, load_saved
from ssrem.encoders.base import Concatenation
from ssrem.encoders.tables import packaged_tokens
from ssrem.encoders.words import WordAverage, packaged_glove, read_vectors, train_word2vec
from ssrem.errors import EvaluatorError
from ssrem.tokenize import sentences, words


@pytest.fixture
def encoder() -> WordAverage:
    vectors = np.array([[1, 0], [0, 1], [3, 3]])
    return WordAverage("tiny", ["red", "blue", "n't"], vectors, weighting="uniform")


def test_words_and_sentences() -> None:
    said = {
        "Don't you think it’s FINE?": "do n't you think it 's fine",
        "can't won't isn't": "ca n't wo n't is n't",
        "I 'm sure, they 've do n't": "i 'm sure they 've do n't",
        "Ünïcode naïve_word 42": "ünïcode naïve word 42",
        "?! …": "",
    }
    assert {text: " ".join(words(text)) for text in said} == said
    assert sentences("One. Two?  Three\nfour 3.5") == ["One.", "Two?", "Three", "four 3.5"]


def test_average_counts_occurrences_and_ignores_unknown_words(encoder: WordAverage) -> None:
    vectors = encoder.encode(["Red red blue", "red unknown", "nothing", "", "don't"])
    expected = np.array([[2 / 3, 1 / 3], [1, 0], [0, 0], [0, 0], [3, 3]])
    assert vectors.dtype == np.float32 and np.abs(vectors - expected).max() < 5e-4
    assert np.array_equal(vectors, vectors.astype(np.float16).astype(np.float32))
    assert encoder.encode([]).shape == (0, 2)
    vectors, weights = encoder.bag("Red red. Blue unknown")  # words and sentences with their counts
    assert vectors.tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]] and weights.tolist() == [2, 1, 2, 1]
    assert len(encoder.bag("unknown")[0]) == 0


def test_a_vector_does_not_depend_on_its_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    vocabulary = [f"w{number}" for number in range(50)]
    encoder = WordAverage("random", vocabulary, generator.normal(size=(50, 16)))
    texts = [" ".join(generator.choice(vocabulary, size)) for size in generator.integers(0, 30, 100)]
    together = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    assert np.array_equal(together, alone)
    monkeypatch.setattr("ssrem.encoders.words._CHUNK", 7)
    assert np.array_equal(together, encoder.encode(texts))


def test_sif_weighs_frequent_words_less() -> None:
    frequencies = np.array([0.999, 0.001])
    encoder = WordAverage("tiny", ["the", "cat"], np.eye(2), weighting="sif", frequencies=frequencies)
    # Weights a / (a + p) with a = .001: 1/1000 and 1/2.
    assert encoder.encode(["the cat"])[0] == pytest.approx([0.001 / 0.501, 0.5 / 0.501], abs=1e-3)
    assert encoder.encode(["the"])[0] == pytest.approx([1, 0])


def test_signature_follows_weights_and_settings(encoder: WordAverage) -> None:
    def signature(name: str = "tiny", last: str = "n't", times: int = 1, weighting: str = "uniform") -> str:
        vectors = times * encoder.vectors
        return WordAverage(name, ["red", "blue", last], vectors, weighting=weighting).signature

    assert signature() == encoder.signature
    others = {signature(last="no"), signature(times=2), signature(weighting="sif"), signature("other")}
    assert len(others | {encoder.signature}) == 5
    assert Path(signature("a/b c")).name.startswith("a-b-c")
    # Vectors that do not fit are refused.
    for vectors, weighting, message in (
        (np.zeros((2, 3)), "sif", "do not fit"),
        (np.array([[np.nan]]), "sif", "not finite"),
        (np.ones((1, 1)), "idf", "weighting"),
    ):
        with pytest.raises(EvaluatorError, match=message):
            WordAverage("x", ["a"], vectors, weighting=weighting)


def test_saved_and_loaded_also_side_by_side(encoder: WordAverage, tmp_path: Path) -> None:
    both = Concatenation([encoder, WordAverage("other", ["blue"], np.array([[5.0]]))])
    assert both.dimensions == 3
    assert both.encode(["blue", "red"]).tolist() == [[0, 1, 5], [1, 0, 0]]
    sif = WordAverage("tiny", encoder.vocabulary, encoder.vectors, weighting="sif")
    texts = ["red blue", "blue don't"]
    for name, original in (("uniform", encoder), ("sif", sif), ("both", both)):
        original.save(tmp_path / name)
        loaded = load_saved(tmp_path / name)
        assert loaded.signature == original.signature
        assert np.array_equal(loaded.encode(texts), original.encode(texts))


def test_changed_or_foreign_folders_are_refused(encoder: WordAverage, tmp_path: Path) -> None:
    def refused(message: str, folder: Path = tmp_path) -> None:
        with pytest.raises(EvaluatorError, match=message):
            load_saved(folder)

    encoder.save(tmp_path)
    weights = tmp_path / "encoder.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x7f")
    refused("sha256")
    weights.unlink()
    refused("no such file")
    refused("not a folder that ssrem saved", tmp_path / "elsewhere")
    (tmp_path / "encoder.json").write_text("{broken")
    refused("JSON")


GLOVE = b"red 1 0.5\n. . 2 -1e-1\nred 9 9\nblue 0 3\n"


def test_text_and_binary_vectors(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    for content in (GLOVE, b"4 2\n" + GLOVE, gzip.compress(GLOVE), gzip.compress(b"4 2\n" + GLOVE)):
        path.write_bytes(content)
        vocabulary, vectors = read_vectors(path)
        assert vocabulary == ["red", ". .", "blue"]
        assert np.allclose(vectors, [[1, 0.5], [2, -0.1], [0, 3]])
    expected = np.array([[1.5, -2, 0], [3, 4, 1e-9]], dtype="<f4")
    path = tmp_path / "vectors.bin"
    for newline in (b"", b"\n"):
        red, blue = (row.tobytes() + newline for row in expected)
        path.write_bytes(b"2 3\nred " + red + "blå ".encode() + blue)
        vocabulary, vectors = read_vectors(path)
        assert vocabulary == ["red", "blå"] and np.array_equal(vectors, expected)
        path.write_bytes(path.read_bytes()[:-6])
        with pytest.raises(EvaluatorError, match="entry 2 of 2"):
            read_vectors(path)


def test_malformed_files_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    for content, message in {
        b"": r"v\.txt:1: empty",
        b"red 1 2\nblue 1\n": r"v\.txt:2: expected a word and 2 finite numbers",
        b"red 1 2\nblue 1 x\n": r"v\.txt:2:",
        b"red 1 2\nblue 1 nan\n": r"v\.txt:2:",
        b"2 2\nred 1 2\nblue 1\n": r"v\.txt:3:",
        b"3 2\nred 1 2\nblue 1 2\n": "promises 3 words",
        b"word\n": r"v\.txt:1:",
        gzip.compress(GLOVE * 100)[:-20]: "gzip",
    }.items():
        path.write_bytes(content)
        with pytest.raises(EvaluatorError, match=message):
            read_vectors(path)
    with pytest.raises(EvaluatorError, match="no such file"):
        load_encoder(f"file:{tmp_path / 'none.txt'}")


def test_specs(tmp_path: Path) -> None:
    path = tmp_path / "my.vectors.txt"
    path.write_bytes(GLOVE)
    by_path = load_encoder(str(path))
    assert by_path.name == "my" and by_path.signature == load_encoder(f"file:{path}").signature
    (tmp_path / "a+b.txt").write_bytes(GLOVE)
    for spec, dimensions in ((f"file:{tmp_path}/a+b.txt", 2), (f"file:{path}+wordllama", 258)):
        check_spec(spec)
        assert load_encoder(spec).dimensions == dimensions
    check_spec("word2vec:uniform+all-minilm-l6-v2:int8")
    for spec in ("glove-6b-50d:unifrom", "wordllama:int8", "all-minilm-l6-v2:int9"):
        with pytest.raises(EvaluatorError, match="no encoder or file"):
            check_spec(spec)
    for spec, message in (("glove-twiter-200", "glove-twitter-200"), ("word2vec", "train_texts")):
        with pytest.raises(EvaluatorError, match=message):
            load_encoder(spec)


def test_an_unknown_user_and_a_missing_network_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for prefix in ("", "file:", "hf:", "wordllama+", "wordllama+file:"):
        with pytest.raises(EvaluatorError, match="~nouser/x: the home folder ~nouser is not known"):
            load_encoder(f"{prefix}~nouser/x")
    monkeypatch.setattr("gensim.downloader.load", Mock(side_effect=OSError("<urlopen error\n no network>")))
    with pytest.raises(EvaluatorError, match=r"glove-twitter-200.*no network") as error:
        load_encoder("glove-twitter-200")
    assert "\n" not in str(error.value)


def test_packaged_glove(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_encoder("glove-6b-50d")
    assert (encoder.dimensions, encoder.origin) == (50, "glove-6b-50d:sif")
    king, queen, carrot, none = encoder.encode(["king", "queen", "carrot", "xqzzyx"]).astype(np.float64)
    norms = np.linalg.norm([king, queen, carrot], axis=1)
    assert king @ queen / norms[0] / norms[1] > 0.7 > king @ carrot / norms[0] / norms[2]
    assert not none.any()
    # Packaged vectors that are not installed name the package.
    packaged_glove.cache_clear()
    packaged_tokens.cache_clear()
    monkeypatch.setattr("ssrem.files.find_spec", lambda name: None)
    for spec, package in (("glove-6b-50d", r"'ssrem\[train\]'"), ("wordllama", "wordllama")):
        with pytest.raises(EvaluatorError, match=f"pip install {package}"):
            load_encoder(spec)


def test_packaged_tokens_which_recurrent_networks_read_as_they_do_words() -> None:
    encoder = load_encoder("wordllama")
    assert (encoder.dimensions, encoder.origin) == (256, "wordllama")
    assert encoder is load_encoder("wordllama")  # read once
    texts = ["a king ruled", "the queen reigned", "grate two carrots", " \n", "</s> ☃"]
    together = encoder.encode(texts)
    king, queen, carrot, none, odd = together.astype(np.float64)
    assert np.dot(king, queen) / np.linalg.norm(queen) > np.dot(king, carrot) / np.linalg.norm(carrot)
    assert not none.any() and odd.any()
    assert np.array_equal(np.concatenate([encoder.encode([text]) for text in texts]), together)
    words, weights = encoder.bag("a king, a king")
    assert len(words) == len(weights) and weights.sum() > 6
    texts = ["Unbelievably kind!", "kind", ""]
    letters = WordAverage("words", ["kind"], np.array([[2.0, 1.0]]), weighting="uniform")
    rows, vectors = letters.units(texts)
    assert rows == [[0, 1], [1], []] and vectors.tolist() == [[0, 0], [2, 1]]
    tokens = load_encoder("wordllama")
    rows, vectors = tokens.units(texts)
    assert len(rows[0]) > 3 > len(rows[1]) > len(rows[2]) == 0  # pieces of words, and the punctuation
    assert len(vectors) == len({row for text in rows for row in text})
    for text, units in zip(texts[:2], rows, strict=False):
        np.testing.assert_allclose(vectors[units].mean(axis=0), tokens.encode([text])[0], atol=2e-3)


def test_word2vec_is_the_same_for_the_same_seed_and_weighs_words_by_their_frequency() -> None:
    texts = ["the red cat sat", "the blue dog sat", "a red dog ran", "a blue cat ran"] * 20
    one, two = (train_word2vec(texts, dimensions=8, epochs=2, seed=3) for _ in range(2))
    assert one[0] == two[0] and set(one[0]) == set(" ".join(texts).split())
    assert np.array_equal(one[1], two[1])
    other = train_word2vec(texts, dimensions=8, epochs=2, seed=4)
    assert not np.array_equal(one[1], other[1])
    assert dict(zip(one[0], one[2], strict=True))["red"] == pytest.approx(2 / 16)
    with pytest.raises(EvaluatorError, match="give more text"):
        train_word2vec(["only once"])
    encoder = load_encoder("word2vec", train_texts=texts)
    assert isinstance(encoder, WordAverage) and encoder.origin is None
    assert encoder.weights == pytest.approx(0.001 / (0.001 + 2 / 16))  # every word is 2 of 16
    assert load_encoder("word2vec:uniform", train_texts=texts).signature != encoder.signature
