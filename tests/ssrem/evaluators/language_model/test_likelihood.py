"""Likelihood evaluators against a loop that asks the model for one token at a time, with tiny random models."""

from __future__ import annotations

import copy
import hashlib
import math
import shutil
import signal
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, BertModel, GPT2Config, GPT2LMHeadModel
from transformers import PreTrainedTokenizerFast as FastTokenizer

from ssrem import extras
from ssrem.encoders.pretrained import Pretrained, load
from ssrem.errors import EvaluatorError
from ssrem.evaluators.language_model import models as language_models
from ssrem.evaluators.language_model.likelihood import Likelihood, LmCoherence, LmPmi, MlmLikelihood
from ssrem.samples import Sample
from support.stages import run_python
from support.tiny_transformer import SIZES

TEXT = "hi how are you fine thanks and do like cats dogs no yes i the a movie was good bad [ ] mask"
WORDS = TEXT.split(" ")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<|end|>", "\n"]
VOCABULARY = {word: at for at, word in enumerate(SPECIAL + WORDS)}
SAMPLES = [
    Sample(("hi how are you", "fine thanks and you"), "fine"),
    Sample(("do you like cats",), "no i like dogs and the movie was good"),
    Sample(("the movie was bad", "yes", "no", "yes and no", "hi", "how was the movie"), "good"),
    Sample(("hi",), "zebra the hi"),
    Sample(("a", "i like the movie and the cats and the dogs and you"), "thanks"),
]


def make_tokenizer(folder: Path, *, pairs: bool) -> None:
    """A word and a line break are a token each; with `pairs` [CLS] a [SEP] b [SEP] in two segments."""
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    cuts = [pre_tokenizers.Split("\n", "isolated"), pre_tokenizers.Split(" ", "removed")]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*cuts, pre_tokenizers.Punctuation()])
    special: dict[str, Any] = {"unk_token": "[UNK]", "eos_token": "<|end|>"}
    if pairs:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        )
        special = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "pad", "cls", "sep", "mask")}
        special["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    FastTokenizer(tokenizer_object=tokenizer, **special).save_pretrained(folder)


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpt2")
    torch.manual_seed(3)
    sizes: dict[str, Any] = {"n_positions": 48, "n_embd": 16, "n_layer": 2, "n_head": 2}
    config = GPT2Config(vocab_size=len(SPECIAL + WORDS), bos_token_id=5, eos_token_id=5, **sizes)
    config.initializer_range = 0.6  # far from uniform, so that what stands before a token matters
    GPT2LMHeadModel(config).save_pretrained(folder)
    make_tokenizer(folder, pairs=False)
    return folder


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    torch.manual_seed(4)
    BertForMaskedLM(bert_config()).save_pretrained(folder)
    make_tokenizer(folder, pairs=True)
    return folder


def bert_config() -> BertConfig:
    sizes = {**SIZES, "max_position_embeddings": 48, "initializer_range": 0.6}
    return BertConfig(vocab_size=len(SPECIAL + WORDS), **sizes)


def ids(text: str) -> list[int]:
    """By hand: known words by their place, unknown ones as [UNK]."""
    return [VOCABULARY.get(word, 1) for word in text.replace("\n", " \n ").split(" ") if word]


@cache
def loaded(kind: Any, folder: Path) -> Any:
    return kind.from_pretrained(folder).eval()


def causal_log_p(folder: Path, before: Sequence[int], response: Sequence[int]) -> list[float]:
    """One call of the model a token."""
    model = loaded(GPT2LMHeadModel, folder)
    values = []
    for at, token in enumerate(response):
        with torch.no_grad():
            logits = model(torch.tensor([[*before, *response[:at]]])).logits[0, -1].double()
        values.append(float(logits.log_softmax(0)[token]))
    return values


def masked_log_p(folder: Path, context: Sequence[int], response: Sequence[int]) -> list[float]:
    model = loaded(BertForMaskedLM, folder)
    values = []
    for at, token in enumerate(response):
        row = [2, *context, 3, *response, 3]
        row[len(context) + 2 + at] = 4
        types = [0] * (len(context) + 2) + [1] * (len(response) + 1)
        with torch.no_grad():
            logits = model(torch.tensor([row]), token_type_ids=torch.tensor([types])).logits[0].double()
        values.append(float(logits[len(context) + 2 + at].log_softmax(0)[token]))
    return values


def lines(sample: Sample, turns: int = 5) -> list[int]:
    return [token for turn in sample.context[-turns:] for token in ids(turn + "\n")]


def test_coherence_is_the_mean_of_single_steps(causal: Path) -> None:
    expected = [causal_log_p(causal, [5, *lines(sample)], ids(sample.response)) for sample in SAMPLES]
    scores = LmCoherence(model=causal, speakers="", device="cpu").score(SAMPLES)
    np.testing.assert_allclose(scores, [np.mean(steps) for steps in expected], atol=1e-5)
    assert np.ptp(scores) > 1  # the models are far enough from uniform for the comparison to mean something
    total = LmCoherence(model=causal, speakers="", aggregate="sum").score(SAMPLES)
    np.testing.assert_allclose(total, [np.sum(steps) for steps in expected], atol=1e-5)


def test_pmi_subtracts_the_response_alone(causal: Path) -> None:
    expected = [
        np.mean(causal_log_p(causal, [5, *lines(sample)], ids(sample.response)))
        - np.mean(causal_log_p(causal, [5], ids(sample.response)))
        for sample in SAMPLES
    ]
    scores = LmPmi(model=causal, speakers="").score(SAMPLES)
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert np.abs(scores).max() > 0.5


def test_mlm_masks_each_token_in_turn(masked: Path) -> None:
    def context(sample: Sample) -> list[int]:
        return ids("\n".join(sample.context[-5:]))

    expected = [masked_log_p(masked, context(sample), ids(sample.response)) for sample in SAMPLES]
    scores = MlmLikelihood(model=masked).score(SAMPLES)
    np.testing.assert_allclose(scores, [np.mean(steps) for steps in expected], atol=1e-5)
    assert np.ptp(scores) > 1
    total = MlmLikelihood(model=masked, aggregate="sum").score(SAMPLES)
    np.testing.assert_allclose(total, [np.sum(steps) for steps in expected], atol=1e-5)


def evaluator_of(cls: type[Likelihood], causal: Path, masked: Path, **settings: Any) -> Likelihood:
    return cls(model=masked if cls is MlmLikelihood else causal, **settings)


ALL = pytest.mark.parametrize("cls", [LmCoherence, LmPmi, MlmLikelihood])


@ALL
def test_a_score_is_the_samples_own(cls: type[Likelihood], causal: Path, masked: Path) -> None:
    expected = evaluator_of(cls, causal, masked).score(SAMPLES)
    for size in (2, 64):
        evaluator = evaluator_of(cls, causal, masked, batch_size=size)
        evaluator.model._known = {}
        np.testing.assert_allclose(evaluator.score(SAMPLES[::-1])[::-1], expected, atol=1e-5)
    for sample, value in zip(SAMPLES, expected, strict=True):
        evaluator.model._known = {}
        assert evaluator.score([sample])[0] == pytest.approx(value, abs=1e-5)


@ALL
def test_odd_texts_have_scores(cls: type[Likelihood], causal: Path, masked: Path) -> None:
    texts = ["", "  \n ", "zebra", "你好吗", "\u0000", "[MASK] <|end|> [SEP]", "cats " * 500]
    samples = [Sample(("hi how are you",), text) for text in texts]
    samples += [Sample((text,), "fine") for text in texts] + [Sample((), "fine")]
    evaluator = evaluator_of(cls, causal, masked)
    scores = evaluator.compute(samples)
    assert np.isfinite(scores.f).all()
    assert scores.truncated.tolist() == [*[False] * 6, True, *[False] * 6, True, False]
    nothing = 0.0 if cls is LmPmi else -np.log(len(SPECIAL + WORDS))
    np.testing.assert_allclose(scores.f[:2], nothing, atol=1e-9)
    none, blank = evaluator.compute([Sample((), "fine"), Sample(("", " "), "fine")]).score
    assert blank == pytest.approx(none, abs=1e-9)
    if cls is LmPmi:
        assert none == 0


def test_special_tokens_in_a_text_are_plain_characters(causal: Path, masked: Path) -> None:
    for cls in (LmCoherence, MlmLikelihood):
        model = evaluator_of(cls, causal, masked).model
        (tokens,) = model.tokens([(["hi <|end|>"], "[MASK]")], separator="\n", max_length=None)
        assert tokens.response == tuple(ids("[ mask ]"))
        assert not {2, 3, 4, 5} & {*tokens.response, *tokens.context}


def test_oldest_context_goes_first(causal: Path, masked: Path) -> None:
    sample = Sample(("hi how are you", "do you like cats"), "no i like dogs")
    whole = lines(sample)
    assert len(whole) == 10
    evaluator = LmCoherence(model=causal, speakers="", max_length=1 + 3 + 4)
    scores = evaluator.compute([sample, SAMPLES[3]])
    assert scores.truncated.tolist() == [True, False]
    cut = causal_log_p(causal, [5, *whole[-3:]], ids(sample.response))
    assert scores.f[0] == pytest.approx(np.mean(cut), abs=1e-5)
    exact = LmCoherence(model=causal, speakers="", max_length=1 + 10 + 4).compute([sample])
    assert not exact.truncated[0]

    pmi, coherence = (
        kind(model=causal, speakers="", max_length=1 + 2).compute([sample]) for kind in (LmPmi, LmCoherence)
    )
    assert pmi.truncated[0] and pmi.f[0] == 0  # the response alone fills the window
    first = causal_log_p(causal, [5], ids("no i"))
    assert coherence.f[0] == pytest.approx(np.mean(first), abs=1e-5)

    context = ids("\n".join(sample.context))
    components = MlmLikelihood(model=masked, max_length=3 + 2 + 4).compute([sample])
    assert components.truncated[0]
    expected = masked_log_p(masked, context[-2:], ids(sample.response))
    assert components.f[0] == pytest.approx(np.mean(expected), abs=1e-5)


def test_separator_and_turns(causal: Path) -> None:
    sample = SAMPLES[2]
    for separator, before in (
        ("\n", lines(sample, 2)),
        ("<|end|>", [*ids("hi"), 5, *ids("how was the movie"), 5]),
    ):
        evaluator = LmCoherence(model=causal, speakers="", context_turns=2, separator=separator)
        expected = np.mean(causal_log_p(causal, [5, *before], ids(sample.response)))
        assert evaluator.score([sample])[0] == pytest.approx(expected, abs=1e-5)


def test_speakers_take_turns_before_what_is_said(causal: Path) -> None:
    sample = SAMPLES[2]
    said = ids(f"cats : {sample.context[-2]}\n") + ids(f"dogs : {sample.context[-1]}\n")
    after_context = causal_log_p(causal, [5, *said, *ids("cats :")], ids(sample.response))
    alone = causal_log_p(causal, [5, *ids("cats :")], ids(sample.response))
    settings: dict[str, Any] = {"model": causal, "speakers": "cats+dogs", "context_turns": 2}
    assert LmCoherence(**settings).score([sample]) == pytest.approx([np.mean(after_context)], abs=1e-5)
    gain = np.mean(after_context) - np.mean(alone)
    assert LmPmi(**settings).compute([sample, Sample((), "fine")]).f == pytest.approx([gain, 0], abs=1e-5)
    # The name stays where the context has to go.
    settings["max_length"] = 1 + len(ids("cats :")) + len(ids(sample.response))
    scores = LmCoherence(**settings).compute([sample])
    assert scores.truncated[0] and scores.f[0] == pytest.approx(np.mean(alone), abs=1e-5)


def test_models_that_multiply_by_the_weights_of_their_head_score_alike(
    causal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = LmCoherence(model=causal)
    expected = evaluator.score(SAMPLES)
    evaluator.model._known = {}
    # such a model never calls the head that it names
    idle = copy.deepcopy(evaluator.model.model.lm_head)
    monkeypatch.setattr(evaluator.model.model, "get_output_embeddings", lambda: idle)
    np.testing.assert_allclose(evaluator.score(SAMPLES), expected, atol=1e-6)


def test_the_head_is_computed_only_where_a_token_is_scored(causal: Path) -> None:
    evaluator = LmPmi(model=causal)
    evaluator.model._known = {}
    positions: list[int] = []
    head = evaluator.model.model.lm_head
    hook = head.register_forward_hook(lambda _, __, logits: positions.append(logits.shape[:-1].numel()))
    try:
        evaluator.score(SAMPLES)
    finally:
        hook.remove()
    tokens = [len(ids(sample.response)) for sample in SAMPLES]
    # once a token after the context; alone all responses share the pass and the logits before their first token
    assert sum(positions) == sum(tokens) + 1 + sum(count - 1 for count in tokens)


@pytest.mark.parametrize("size", [1, 2, 64])
def test_responses_to_one_context_share_its_pass(
    size: int, causal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ("hi how are you", "fine thanks and you")
    responses = ["fine", "i like cats and the movie", "", "no", "zebra the hi"]
    evaluator = LmCoherence(model=causal, speakers="", batch_size=size, aggregate="sum")
    model = evaluator.model
    model._known = {}
    forward, widths = model.model.forward, []

    def counted(*arguments: Any, **options: Any) -> Any:
        widths.append(options["input_ids"].shape[1])
        return forward(*arguments, **options)

    monkeypatch.setattr(model.model, "forward", counted)
    scores = evaluator.compute([Sample(context, response) for response in responses]).score
    before = [5, *lines(Sample(context, ""))]
    expected = [sum(causal_log_p(causal, before, ids(response))) for response in responses]
    expected[2] = -math.log(model.vocabulary)
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    assert widths.count(len(before)) == 1, "the context is read once"
    assert max(width for width in widths if width != len(before)) < len(before)


def test_what_was_asked_before_is_not_computed_again(causal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coherence, pmi = LmCoherence(model=causal), LmPmi(model=causal)
    assert coherence.model is pmi.model
    expected = pmi.score(SAMPLES)
    coherence.score(SAMPLES)
    monkeypatch.setattr(pmi.model.model, "forward", lambda **_: pytest.fail("computed again"))
    np.testing.assert_array_equal(pmi.score(SAMPLES), expected)


def test_layers_over_all_gpus(causal: Path) -> None:
    class Split(GPT2LMHeadModel):
        """Some of its layers do not fit the GPUs."""

        hf_device_map = {"transformer": 0, "lm_head": "cpu"}  # noqa: RUF012

    with pytest.raises(EvaluatorError, match="fit the GPUs; name a smaller model, or use device=cpu"):
        load(str(causal), Split)
    pytest.importorskip("accelerate")
    mapped = LmPmi(model=f"hf:{causal}", device="map")
    np.testing.assert_allclose(mapped.score(SAMPLES), LmPmi(model=causal).score(SAMPLES), atol=1e-5)


def test_signature_names_what_scores_and_nothing_else(causal: Path, masked: Path) -> None:
    plain = LmCoherence(model=causal)
    assert plain.signature == LmCoherence(model=causal, device="cpu", batch_size=3).signature
    assert "\n" not in plain.signature
    changes: list[dict[str, Any]] = [{"separator": " "}, {"context_turns": 4}, {"speakers": ""}]
    others = [*(LmCoherence(model=causal, **change) for change in changes), MlmLikelihood(model=masked)]
    assert len({evaluator.signature for evaluator in [plain, *others]}) == 5


@pytest.mark.parametrize("cls", [LmPmi, MlmLikelihood])
def test_bf16_is_chosen_by_name_and_told_by_the_signature(
    cls: type[Likelihood], causal: Path, masked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = masked if cls is MlmLikelihood else causal
    full, mixed = cls(model=folder), cls(model=f"{folder}:bf16")
    assert mixed.model is not full.model and mixed.signature != full.signature
    exact, rounded = full.score(SAMPLES), mixed.score(SAMPLES)
    assert not np.array_equal(exact, rounded)
    np.testing.assert_allclose(rounded, exact, atol=0.2)
    mixed.save(tmp_path / "saved")
    assert np.array_equal(cls.load(tmp_path / "saved").score(SAMPLES), rounded)
    assert np.array_equal(full.score(SAMPLES), exact)
    # Weights that are rounded once give what rounding in every call gives.
    monkeypatch.setattr(Pretrained, "round_weights", lambda _: None)
    other = shutil.copytree(folder, tmp_path / "model")
    assert np.array_equal(cls(model=f"{other}:bf16").score(SAMPLES), rounded)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_length": 3}, "max_length is 3; .* from 4 to 48"),
        ({"max_length": 49}, "max_length is 49; .* from 4 to 48"),
        ({"speakers": "A+"}, "speakers: 'A\\+' is no list of names"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], message: str, causal: Path) -> None:
    with pytest.raises(EvaluatorError, match=message):
        LmCoherence(model=causal, **settings).score(SAMPLES)


def test_wrong_models(causal: Path, masked: Path, tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match="mlm-likelihood has no default model"):
        MlmLikelihood()
    with pytest.raises(EvaluatorError, match="not a causal language model"):
        LmCoherence(model=masked).score(SAMPLES)
    with pytest.raises(EvaluatorError, match="cannot be loaded"):
        MlmLikelihood(model=causal).score(SAMPLES)
    BertModel(bert_config()).save_pretrained(tmp_path)
    make_tokenizer(tmp_path, pairs=True)
    with pytest.raises(EvaluatorError, match="lack"):  # an encoder without a trained head scores nothing
        MlmLikelihood(model=tmp_path).score(SAMPLES)


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Stand-ins for the packages with Gemma's parts, and for its conversion, which takes a minute."""
    files = [tmp_path / "part0", tmp_path / "part1"]
    files[0].write_bytes(b"GGUF one ")
    files[1].write_bytes(b"and two")
    digest = hashlib.sha256(b"GGUF one and two").hexdigest()
    package = SimpleNamespace(EXPECTED_SHA256=digest, chunk_paths=lambda: files)
    monkeypatch.setitem(sys.modules, "gemma_parts", package)
    monkeypatch.setattr(language_models, "_MODULE", "gemma_parts")
    monkeypatch.setattr(extras, "OF_GEMMA", ())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def convert(joined: Path, ready: Path) -> None:
        ready.mkdir()
        (ready / "weights").write_bytes(joined.read_bytes())

    monkeypatch.setattr(language_models, "_convert", convert)
    return files


def test_gemma_is_joined_once(parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = language_models.gemma_folder()
    assert folder.parent == tmp_path / "cache" / "ssrem"
    assert (folder / "weights").read_bytes() == b"GGUF one and two"
    assert list(folder.parent.iterdir()) == [folder]  # nothing else is left
    monkeypatch.setattr(language_models, "_convert", None)
    assert language_models.gemma_folder() == folder


def test_a_killed_conversion_of_gemma_leaves_nothing_to_the_next(parts: list[Path], tmp_path: Path) -> None:
    code = """
import os, signal, sys, types
from pathlib import Path
from ssrem.evaluators.language_model import models
parts = [Path(part) for part in sys.argv[1:-1]]
sys.modules["parts"] = types.SimpleNamespace(EXPECTED_SHA256=sys.argv[-1], chunk_paths=lambda: parts)
models._MODULE, models.extras.OF_GEMMA = "parts", ()
models._convert = lambda joined, ready: os.kill(os.getpid(), signal.SIGKILL)
models.gemma_folder()
"""
    cache = tmp_path / "cache" / "ssrem"
    digest = hashlib.sha256(b"GGUF one and two").hexdigest()
    assert run_python(code, *parts, digest).returncode == -signal.SIGKILL
    assert list(cache.glob("*/joined"))
    folder = language_models.gemma_folder()
    assert list(cache.iterdir()) == [folder]


def test_gemma_damaged_or_missing(parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts[1].write_bytes(b"and 2")
    with pytest.raises(EvaluatorError, match="damaged"):
        language_models.gemma_folder()
    assert not list((tmp_path / "cache" / "ssrem").iterdir())
    parts[1].unlink()
    with pytest.raises(EvaluatorError, match=r"cannot be put together .* XDG_CACHE_HOME"):
        language_models.gemma_folder()
    monkeypatch.setattr(extras, "OF_GEMMA", ("no_such_package",))
    monkeypatch.setitem(extras.EXTRA_OF, "no_such_package", "lm")
    with pytest.raises(EvaluatorError, match=r"needs no-such-package; pip install 'ssrem\[lm\]'"):
        LmCoherence().score(SAMPLES)
