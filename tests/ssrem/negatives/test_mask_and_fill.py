"""Mask-and-fill against a plain loop over a small random BERT, one forward pass a mask."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    BertTokenizer,
)

from ssrem.errors import EvaluatorError
from ssrem.files import read_json
from ssrem.negatives import load_generator
from ssrem.negatives.base import Negative
from ssrem.negatives.mask_and_fill import MaskAndFill, MaskAndFillSettings, rewrite
from ssrem.negatives.tied_head import TiedHead, TiedHeadSettings
from ssrem.samples import Candidates, Floats
from ssrem.training.fine_tuning import CARD, fine_tune
from support.tiny_transformer import SIZES
from support.trained import KilledError, killed_at

WORDS = ["shall", "we", "go", "out", "tonight", "yes", "i", "would", "love", "to", "see", "a", "film"]
WORDS += ["my", "cat", "sleep", "all", "day"]
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]")
VOCABULARY = [*SPECIAL, *WORDS, "##s", "##ing", "?", ".", "'"]
CONTEXT = ("Shall we go out tonight?", "my cat sleeps all day.")
RESPONSE = "Yes, I would  love to see a film."


def write_bert(folder: Path, model_class: Any, seed: int = 0) -> Path:
    torch.manual_seed(seed)
    sizes = {**SIZES, "max_position_embeddings": 64, "initializer_range": 0.6}
    config = BertConfig(vocab_size=len(VOCABULARY), pad_token_id=0, **sizes)
    model_class(config).save_pretrained(folder)
    tokenizer = BertTokenizer(vocab={word: i for i, word in enumerate(VOCABULARY)}, do_lower_case=True)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert"), BertForMaskedLM)


def make(bert: Path, spec: str = "mask-and-fill", **settings: Any) -> MaskAndFill:
    settings = {"max_tokens": 64, "response_tokens": 32, "device": "cpu", "threshold": 0.1, **settings}
    generator = load_generator(spec, model=str(bert), **settings)
    assert isinstance(generator, MaskAndFill)
    return generator


def candidates(*responses: str, context: Sequence[str] = CONTEXT) -> Candidates:
    texts = [turn for response in responses for turn in (*context, response)]
    last = (np.arange(len(responses)) + 1) * (len(context) + 1) - 1
    return Candidates(texts, last, last - len(context), last, {}, np.zeros(len(responses), dtype=np.uint8))


def negatives(generator: MaskAndFill, responses: Candidates, seed: int = 0, **how: Any) -> list[Negative]:
    return [n for batch in generator.generate(responses, seed=seed, **how) for n in batch]


def scores_of(generator: MaskAndFill, context: Sequence[str] = CONTEXT) -> Floats:
    """What is compared with the threshold, of each token of RESPONSE."""
    pieces, history, _ = generator._read(context, RESPONSE)
    return generator._scores(pieces, history)


class Loop:
    """The same by hand: string tokens in, one unbatched pass of the whole model for each question."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForMaskedLM.from_pretrained(folder).eval()
        self.response = self.tokenizer.tokenize(RESPONSE)

    def logits(self, masked: Sequence[int], with_history: bool) -> Any:
        """(masked, vocabulary): of the tokens of the response that are masked at once."""
        tokens = ["[CLS]"]
        for turn in CONTEXT if with_history else ():
            tokens += [*self.tokenizer.tokenize(turn), "[SEP]"]
        places = [len(tokens) + i for i in masked]
        tokens += ["[MASK]" if i in masked else token for i, token in enumerate(self.response)] + ["[SEP]"]
        ids = torch.tensor([self.tokenizer.convert_tokens_to_ids(tokens)])
        with torch.no_grad():
            return self.model(input_ids=ids).logits[0].double()[places]

    def log_p(self, with_history: bool) -> list[float]:
        found = [torch.log_softmax(self.logits([i], with_history)[0], -1) for i in range(len(self.response))]
        return [float(one[VOCABULARY.index(token)]) for one, token in zip(found, self.response, strict=True)]

    def fill(self, selected: Sequence[int], with_history: bool) -> list[str]:
        filled = []
        for i, logits in zip(selected, self.logits(selected, with_history), strict=True):
            ranked = [VOCABULARY[int(j)] for j in logits.argsort(descending=True)]
            filled.append(next(t for t in ranked if t != self.response[i] and not t.startswith("[")))
        return filled


@pytest.fixture(scope="module")
def loop(bert: Path) -> Loop:
    return Loop(bert)


def test_scores_are_equation_1_mask_by_mask(bert: Path, loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    known = np.array([token != "[UNK]" for token in loop.response])
    with_history, without = (np.array(loop.log_p(history)) for history in (True, False))
    for spec, expected in (("mask-and-fill", with_history - without), ("score-without-history", -without)):
        for at_once in (8192, 40):
            monkeypatch.setattr("ssrem.negatives.masked_lm._TOKENS_AT_ONCE", at_once)
            scores = scores_of(make(bert, spec))
            assert len(scores) == len(known) and not known.all()
            np.testing.assert_allclose(scores[known], expected[known], atol=1e-5)
            assert (scores[~known] == -np.inf).all()  # the comma is not in the vocabulary


@pytest.mark.parametrize(("spec", "with_history"), [("mask-and-fill", False), ("replace-with-history", True)])
def test_selected_tokens_are_filled_at_once(bert: Path, loop: Loop, spec: str, with_history: bool) -> None:
    generator = make(bert, spec)
    scores = scores_of(generator)
    selected = [i for i, score in enumerate(scores) if score >= 0.1]
    assert 1 < len(selected) < len(scores)
    (negative,) = negatives(generator, candidates(RESPONSE))
    filled = dict(zip(selected, loop.fill(selected, with_history), strict=True))
    expected = [filled.get(i, token) for i, token in enumerate(loop.response)]
    glued = "".join(token.removeprefix("##") for token in expected)
    assert "".join(negative.text.split()).lower() == glued.replace("[UNK]", ",")
    assert (negative.replaced, negative.tokens, negative.k) == (len(selected), len(scores), 0)
    assert not negative.truncated


def test_the_likeliest_token_is_passed_over_where_it_is_the_original(bert: Path) -> None:
    """A bias that makes one word the likeliest everywhere: it never replaces itself, and replaces all others."""
    generator = make(bert, threshold=-100.0)
    with torch.no_grad():
        generator.lm.model.cls.predictions.decoder.bias[VOCABULARY.index("film")] += 1000
    (negative,) = negatives(generator, candidates("film would love cat"))
    first, *others = negative.text.split()
    assert first.lower() != "film" and others == ["film", "film", "film"]


def test_the_threshold_decides_and_only_the_last_turns_are_context(bert: Path) -> None:
    generator = make(bert)
    scores = scores_of(generator)
    assert negatives(make(bert, threshold=scores.max() + 0.001), candidates(RESPONSE)) == []
    (negative,) = negatives(make(bert, threshold=scores.max() - 0.001), candidates(RESPONSE))
    assert negative.replaced == 1
    one = scores_of(make(bert, context_turns=1))
    assert np.array_equal(one, scores_of(generator, CONTEXT[1:])) and not np.array_equal(one, scores)
    assert np.nanmax(scores_of(generator, ())) == 0
    assert negatives(generator, candidates(RESPONSE, context=())) == []


def test_select_random_draws_the_share_from_the_seed(bert: Path) -> None:
    generator = make(bert, "select-random", share=0.3, count=4)
    drawn = negatives(generator, candidates(RESPONSE))
    assert [n.replaced for n in drawn] == [3] * len(drawn) and len(drawn) >= 3  # 9 usable of 10 tokens
    assert len({n.text for n in drawn}) > 1
    assert negatives(generator, candidates(RESPONSE)) == drawn
    assert negatives(generator, candidates(RESPONSE), seed=1) != drawn


RESPONSES = (
    *(RESPONSE, "we go out all day.", "a cat sleeps tonight?"),
    *("film", "", "   "),  # under three words
    *("zyx wvu tsr", "你好 世界 朋友"),  # all unknown
    *("[MASK] [SEP] love to see", "we " * 300),
)


@pytest.mark.parametrize("spec", ["mask-and-fill", "select-random"])
def test_negatives_do_not_depend_on_order_batch_or_neighbours(bert: Path, spec: str) -> None:
    generator, responses = make(bert, spec), candidates(*RESPONSES)
    whole = negatives(generator, responses)
    assert len(whole) >= 4
    assert negatives(generator, responses, batch_size=1) == whole
    backwards = negatives(generator, responses, rows=range(len(RESPONSES))[::-1])
    assert sorted(backwards, key=lambda n: n.response) == whole
    for negative in whole:
        response = RESPONSES[negative.response]
        assert negative.text.strip() and negative.text.casefold() != response.casefold()
        assert len(response.split()) >= 3 and response not in RESPONSES[6:8]


def test_what_is_not_read_is_said_and_stands(bert: Path) -> None:
    generator = make(bert, "select-random", response_tokens=8)
    (long,) = [n for n in negatives(generator, candidates("we " * 50 + "film")) if n.k == 0]
    assert long.truncated and long.tokens == 8 and long.text.endswith("we " * 42 + "film")
    many = candidates(RESPONSE, context=("my cat sleeps all day. " * 5,))
    cut = negatives(make(bert, max_tokens=35, response_tokens=32, threshold=-100.0), many)
    assert cut and all(n.truncated for n in cut)
    # Special tokens in a text are only letters.
    ids = generator.lm.pieces("[MASK] [SEP] love").ids
    assert not {VOCABULARY.index("[MASK]"), VOCABULARY.index("[SEP]")} & set(ids)
    with pytest.raises(EvaluatorError, match="the model reads 64 tokens at most"):
        make(bert, max_tokens=65).generate(candidates(RESPONSE), seed=0)
    assert MaskAndFillSettings(model="m").threshold == 0.5  # the paper's


def test_the_signature_names_the_weights_not_the_folder(bert: Path, tmp_path: Path) -> None:
    exact = make(bert)
    assert str(bert) not in exact.signature and "threshold:0.1" in exact.signature
    same, other = (write_bert(tmp_path / str(seed), BertForMaskedLM, seed) for seed in (0, 1))
    assert make(same).signature == exact.signature != make(other).signature
    rounded = make(f"{bert}:bf16")  # whose products give nearly the same scores
    assert rounded.signature != exact.signature
    expected, scores = scores_of(exact), scores_of(rounded)
    usable = np.isfinite(expected)
    assert not np.array_equal(scores, expected)
    np.testing.assert_allclose(scores[usable], expected[usable], atol=0.15)


def test_only_words_give_a_rewritten_text_away() -> None:
    def written(token: str) -> tuple[str, bool]:
        return token.removeprefix("##"), not token.startswith("##")

    for text, pieces, replacements, expected in (
        ("Yes, my  cat.", "Yes|,|my|cat|.", {3: "dog"}, "Yes, my  dog."),
        ("Yes, my cat.", "Yes|,|my|cat|.", {0: "no", 3: "dog"}, "No, my dog."),
        ("I sleep. Cats do", "I|sleep|.|Cats|do", {3: "dogs"}, "I sleep. Dogs do"),
        ("see Paris now", "see|Paris|now", {1: "home"}, "see home now"),
        ("plays", "play|##s", {0: "walk"}, "walks"),
        ("plays well", "play|##s|well", {1: "now"}, "play now well"),
        ("we go", "we|go", {1: "##s"}, "wes"),
        ("go now", "go|now", {1: "?"}, "go?"),
        ("go now?", "go|now|?", {2: "dear"}, "go now dear"),
        ("don't", "don|'|t", {1: "not"}, "don not t"),
        ("  a b  ", "a|b", {0: "c", 1: "d"}, "  c d  "),
    ):
        tokens, spans, end = [written(piece) for piece in pieces.split("|")], [], 0
        for token, _ in tokens:
            start = text.index(token, end)
            spans.append((start, end := start + len(token)))
        new = {i: written(token) for i, token in replacements.items()}
        assert rewrite(text, spans, [starts for _, starts in tokens], new, capitals=True) == expected


PAIRS = (("shall we go out tonight?", "yes i would love to"), ("my cat sleeps all day", "a cat sleeps"))


def pairs(n: int = 24) -> Candidates:
    """Two exchanges over and over; the last eight are the valid split."""
    texts = [turn for i in range(n) for turn in PAIRS[i % 2]]
    response = np.arange(n) * 2 + 1
    split = (np.arange(n) >= n - 8).astype(np.uint8)
    return Candidates(texts, response, response - 1, response, {}, split)


def tune(encoder: Path, folder: Path, *, how: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Fine-tunes a masked language model into the folder; its card."""
    settings = {"batch_size": 8, "learning_rate": 3e-3, "head_learning_rate": 1e-2}
    settings |= {"max_tokens": 32, "device": "cpu", **more}
    fine_tune(TiedHead(pairs(), TiedHeadSettings(encoder=str(encoder), **settings)), folder, **how or {})
    return read_json(folder / CARD, ("before", "after", "weights"))


STILL = {"learning_rate": 1e-12, "head_learning_rate": 1e-12, "steps": 1}
"""Updates too small to matter."""


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("encoder"), BertModel)


def test_a_tied_head_learns_and_loads_as_a_masked_language_model(encoder: Path, tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    card = tune(encoder, tmp_path / "mlm", steps=12, how={"progress": lambda *at: steps.append(at)})
    assert card["after"] < card["before"] - 0.3
    assert steps == [(i, 12) for i in range(1, 13)]
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "mlm")
    assert torch.equal(model.cls.predictions.decoder.weight, model.get_input_embeddings().weight)
    generator = make(tmp_path / "mlm", max_tokens=32, response_tokens=16, threshold=0.0)
    assert negatives(generator, candidates(RESPONSE))
    tune(tmp_path / "mlm", tmp_path / "again", **STILL)
    again = AutoModelForMaskedLM.from_pretrained(tmp_path / "again")
    for name, value in model.cls.named_parameters():
        assert torch.allclose(value, again.cls.get_parameter(name), atol=1e-6), name


def test_frozen_layers_and_embeddings_do_not_learn(encoder: Path, tmp_path: Path) -> None:
    tune(encoder, tmp_path / "mlm", steps=2, freeze=1)
    before = AutoModel.from_pretrained(encoder)
    after = dict(AutoModelForMaskedLM.from_pretrained(tmp_path / "mlm").bert.named_parameters())
    same = {name for name, value in after.items() if torch.equal(value, before.get_parameter(name))}
    assert same == {name for name in after if not name.startswith("encoder.layer.1.")} < set(after)
    with pytest.raises(EvaluatorError, match="freeze is 9"):
        tune(encoder, tmp_path / "deep", freeze=9)
    untrained = pairs()
    untrained.split[:] = 2
    with pytest.raises(EvaluatorError, match="the training split has no response"):
        TiedHead(untrained, TiedHeadSettings(encoder=str(encoder)))


def test_a_stopped_training_goes_on(encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ssrem.training.fine_tuning._STEPS_A_STATE", 2)
    state = {"checkpoint": tmp_path / "state"}
    with pytest.raises(KilledError):
        tune(encoder, tmp_path / "two", steps=4, how={"progress": killed_at(3), **state})
    assert not (tmp_path / "two").exists()
    steps: list[int] = []
    how = {"progress": lambda done, _: steps.append(done), **state}
    resumed = tune(encoder, tmp_path / "two", steps=4, how=how)
    assert steps == [3, 4]
    assert resumed["weights"] == tune(encoder, tmp_path / "one", steps=4)["weights"]
    assert resumed["weights"] != tune(encoder, tmp_path / "other", steps=4, seed=1)["weights"]


def test_the_loss_before_is_that_of_a_plain_loop(encoder: Path, tmp_path: Path) -> None:
    card = tune(encoder, tmp_path / "mlm", **STILL, batch_size=1, masked=1e-9, context_share=0.0, held_out=8)
    assert card["before"] == pytest.approx(card["after"], abs=1e-5)
    loop = Loop(tmp_path / "mlm")
    every = []
    for _, response in PAIRS:  # masked = 1e-9: exactly one mask a text, anywhere
        loop.response = loop.tokenizer.tokenize(response)
        every.append([-value for value in loop.log_p(False)])
    low, high = np.mean([min(e) for e in every]), np.mean([max(e) for e in every])
    assert low <= card["before"] <= high
