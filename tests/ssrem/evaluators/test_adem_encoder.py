"""ADEM's recurrent encoder on its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ssrem.encoders import load_encoder, load_saved
from ssrem.encoders.recurrent import Words
from ssrem.encoders.words import WordAverage
from ssrem.errors import EvaluatorError
from ssrem.evaluators.adem import Adem, AdemSettings
from ssrem.evaluators.reference_based.overlap import Bleu2
from ssrem.files import read_json, write_json
from ssrem.samples import Candidates, Sample
from support.trained import changed

CONFIG = AdemSettings(
    utterance=6,
    context=8,
    decoder=6,
    latent=3,
    epochs=1,
    max_train=40,
    components=4,
    anneal_steps=0,
    turn_words=4,
)
TEXTS = ["a b", "b a", "a b c d e", "unknown", "", "a b"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    words = list("abcdefgh")
    encoder = WordAverage("letters", words, np.random.default_rng(0).normal(size=(8, 5)), weighting="uniform")
    generator = np.random.default_rng(1)
    texts = [" ".join(generator.choice(words, 3)) for _ in range(180)]
    response = np.arange(60) * 3 + 2
    split = (np.arange(60) % 3 == 0).astype(np.uint8)
    candidates = Candidates(texts, response, response - 2, response, {}, split)
    folders = {}
    for pretrained in ("vhred", "encoder"):
        adem = Adem(changed(CONFIG, pretrained=pretrained), encoder)
        adem.fit(candidates)
        folders[pretrained] = tmp_path_factory.mktemp(pretrained)
        adem.save(folders[pretrained])
    return folders


def test_vectors_are_the_networks_last_states(saved: dict[str, Path]) -> None:
    encoder = load_encoder(f"adem:{saved['vhred']}")
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (6, 8) == (6, encoder.dimensions)
    np.testing.assert_array_equal(vectors[0], vectors[5])
    assert not np.allclose(vectors[0], vectors[1])  # the order of words counts
    assert not vectors[3:5].any()
    assert encoder.truncated(TEXTS).tolist() == [False, False, True, False, False, False]
    np.testing.assert_array_equal(encoder.encode(["b a"])[0], vectors[1])

    adem = Adem.load(saved["vhred"])
    assert adem.net is not None
    words = Words.of(["a b"], adem.encoder)
    read = adem.net.utterances(words.first(1, 4).packed(words))
    expected = adem.net.turns(read)[0].detach().numpy()
    np.testing.assert_allclose(vectors[0], expected, atol=1e-3)


def test_over_the_tokens_of_a_table(tmp_path: Path) -> None:
    turns = ["unbelievable", "believable", "unbelievable believable"] * 20
    response = np.arange(1, 60)
    candidates = Candidates(turns, response, response - 1, response, {}, (response % 3 == 0).astype(np.uint8))
    adem = Adem(changed(CONFIG, turn_words=20), load_encoder("wordllama"))
    adem.fit(candidates)
    assert "|tokens:20|" in adem.signature
    assert len(set(adem.score([Sample(("hi",), text, "ok") for text in turns[:3]]))) == 3
    adem.save(tmp_path / "adem")
    assert Adem.load(tmp_path / "adem").signature == adem.signature


def test_saved_beside_what_is_trained_over_it(saved: dict[str, Path], tmp_path: Path) -> None:
    encoder = load_encoder(f"adem:{saved['vhred']}")
    encoder.save(tmp_path / "encoder")
    again = load_saved(tmp_path / "encoder")
    assert again.signature == encoder.signature
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))
    about = read_json(tmp_path / "encoder" / "encoder.json", ("signature",))
    write_json(tmp_path / "encoder" / "encoder.json", {**about, "signature": "adem-gru-d8-0"})
    with pytest.raises(EvaluatorError, match="saved as adem-gru-d8-0"):
        load_saved(tmp_path / "encoder")


def test_what_is_no_recurrent_encoder(saved: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match="pretrained=encoder, so it has no recurrent encoder"):
        load_encoder(f"adem:{saved['encoder']}")
    Bleu2().save(tmp_path / "bleu")
    with pytest.raises(EvaluatorError, match="holds bleu-2, not adem"):
        load_encoder(f"adem:{tmp_path / 'bleu'}")
    with pytest.raises(EvaluatorError, match="nowhere"):
        load_encoder("adem:nowhere")
