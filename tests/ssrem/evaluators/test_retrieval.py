"""BERT-retrieval with a tiny transformer, on a corpus whose answer is known: a response repeats the colour."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from ssrem.encoders.hub import MINILM
from ssrem.encoders.pretrained import tokenizer_hash
from ssrem.errors import EvaluatorError
from ssrem.evaluators import load_evaluator
from ssrem.evaluators.baselines import Cosine
from ssrem.evaluators.blend import Blend
from ssrem.evaluators.cross_encoder import Retrieval, RetrievalSettings
from ssrem.evaluators.cross_encoder_network import CrossNet, logits
from ssrem.evaluators.cross_encoder_training import calibrate, losses
from ssrem.samples import TEST, VALID, Candidates, Sample
from support.tiny_transformer import SIZES, SPECIAL, WORDS, tokenizer
from support.trained import KilledError, changed, check_scores_stand_alone, killed_at

COLOURS = ("red", "blue", "green")
pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.xdist_group("retrieval")]


def config(bert: Path, **settings: Any) -> RetrievalSettings:
    usual = {
        "model": str(bert), "max_tokens": 12, "freeze": 1, "contexts": 80, "valid_contexts": 40, "epochs": 2,
        "learning_rate": 1e-2, "head_learning_rate": 1e-2, "batch_size": 16, "dropout": 0.0, "device": "cpu",
        "bf16": "off", "negatives": "random-1", "seed": 3,
    }  # fmt: skip
    return RetrievalSettings(**{**usual, **settings})


@cache
def coloured(n: int = 400) -> Candidates:
    """'red cat', 'dog', 'red .' or 'sat red': the response has the colour of the first turn."""
    generator = np.random.default_rng(1)
    colours = generator.integers(0, 3, n)
    texts = []
    for colour in colours:
        animal, more = generator.choice(["cat", "dog", "cat dog"]), generator.choice(["{} .", "sat {}", "{}"])
        texts += [f"{COLOURS[colour]} {animal}", "runs", more.format(COLOURS[colour])]
    response = np.arange(n) * 3 + 2
    other = [generator.choice(np.flatnonzero(colours != colour), 2) * 3 + 2 for colour in colours]
    negatives = {"Rand": np.array(other), "SC": np.array(other)[:, :1].copy()}
    negatives["SC"][::3] = -1
    split = (np.arange(n) % 5 >= 3).astype(np.uint8) + (np.arange(n) % 5 == 4).astype(np.uint8)
    return Candidates(texts, response, response - 2, response, negatives, split)


@pytest.fixture(scope="module")
def fitted(bert: Path) -> Retrieval:
    evaluator = Retrieval(config(bert, contexts=240, epochs=10, patience=10))
    evaluator.fit(coloured())
    return evaluator


SAMPLES = [
    Sample((f"{said} cat", "runs")[: 1 + at % 2], " ".join([answer] * (1 + (at + number) % 4)))
    for number, said in enumerate(COLOURS)
    for at, answer in enumerate(COLOURS)
]


def test_learns_what_the_corpus_teaches(fitted: Retrieval) -> None:
    f = fitted.score_candidates(coloured(), TEST)
    assert (f["GT"] > f["Rand"]).mean() > 0.9
    training = fitted.training
    assert training is not None
    assert training.rows == {"train": 240, "train_negatives": 240, "valid": 40, "valid_negatives": 40}
    losses_ = [entry["valid_loss"] for entry in training.history]
    assert [entry["epoch"] for entry in training.history] == list(range(11))
    assert training.best_epoch == int(np.argmin(losses_)) > 0
    assert training.figures["valid_loss"] == min(losses_) < training.figures["prior_valid_loss"]
    assert training.figures["valid_gt_above"] > 0.9


def test_odd_texts_have_scores(fitted: Retrieval) -> None:
    odd = [Sample((), "red"), Sample((" ", ""), ""), Sample(("red",), ""), Sample(("你好",), "мир \ud800")]
    f = fitted.compute(odd).score
    assert np.isfinite(f).all() and f[1] == pytest.approx(fitted.compute([Sample((), "")]).score[0], abs=1e-5)
    assert fitted.score([]).shape == (0,)


def test_scores_do_not_depend_on_batch_order_or_threads(
    fitted: Retrieval, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len({len(ids) for ids in fitted.base.read(SAMPLES).ids}) > 3
    limits = {"cross_encoder._CHUNK": 4, "cross_encoder_network._TOKENS_AT_ONCE": {"cpu": 25}}
    check_scores_stand_alone(fitted, SAMPLES, limits, monkeypatch)


def test_the_bounds_are_those_of_the_validation_split(fitted: Retrieval) -> None:
    parts = fitted.compute(SAMPLES)
    seen = fitted.score_candidates(coloured(), VALID)
    seen_all = np.concatenate([seen["GT"], seen["Rand"]], axis=1)
    low, high = fitted.bounds["f"].low, fitted.bounds["f"].high
    assert np.nanmin(seen_all) - 1e-6 <= low < high <= np.nanmax(seen_all) + 1e-6
    assert parts.f_unit == pytest.approx(np.clip((parts.f - low) / (high - low), 0, 1))


# --- the prior


def test_training_starts_from_the_prior(bert: Path) -> None:
    """A fit that hardly moves ranks as the untrained cosine does."""
    evaluator = Retrieval(config(bert, learning_rate=0, head_learning_rate=1e-12, epochs=1))
    training = evaluator.fit(coloured())
    cosine = Cosine(encoder=f"hf:{bert}").score(SAMPLES)
    f = evaluator.score(SAMPLES)
    z = np.log(f / (1 - f))
    slope, offset = np.polyfit(cosine, z, 1)
    assert slope > 0 and z == pytest.approx(slope * cosine + offset, abs=1e-4)
    assert training.history[0]["train_loss"] < np.log(2)


def test_a_prior_that_nothing_improves_is_kept(bert: Path) -> None:
    wild = config(bert, learning_rate=1.0, head_learning_rate=10.0, epochs=5, patience=2)
    calls: list[tuple[int, int]] = []
    evaluator = Retrieval(wild)
    training = evaluator.fit(coloured(), progress=lambda done, steps: calls.append((done, steps)))
    assert training.best_epoch == 0 and [entry["epoch"] for entry in training.history] == [0, 1, 2]
    trained = [call for call in calls if call[1] == 25]
    assert trained[-1] == (25, 25) and len(trained) == 11  # two epochs, and the end
    # Responses that have got their negatives, then cosines of both; first of what is learned from.
    learned, valid = [(32, 80), (64, 80), (80, 80)], [(32, 40), (40, 40)]
    assert calls[: -len(trained)] == [*learned, (160, 160), *valid, (80, 80)]
    assert "prior alone" in training.notes[0]
    assert not evaluator.tensors["outer.weight"].any()
    assert np.corrcoef(evaluator.score(SAMPLES), Cosine(encoder=f"hf:{bert}").score(SAMPLES))[0, 1] > 0.99


def test_calibrate_by_hand(bert: Path) -> None:
    """Two values, so that the best fit meets the mean target of each."""
    evaluator = Retrieval(config(bert))
    net = CrossNet(evaluator.base, evaluator.settings, "linear")
    values = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 1.0])
    calibrate(net, values, np.array([0, 0, 0, 1, 1, 0.5], dtype=np.float32))
    assert float(net.outer.bias.detach()) == pytest.approx(np.log(0.25 / 0.75), abs=1e-3)
    assert float(net.slope.detach()) == pytest.approx(np.log(3) - np.log(1 / 3), abs=1e-3)
    calibrate(net, values, 1 - np.array([0, 0, 0, 1, 1, 1], dtype=np.float32))
    assert float(net.slope.detach()) == 0  # never turned around


def test_the_network_by_hand(bert: Path) -> None:
    """Against the transformer called for one sample, without padding."""
    evaluator = Retrieval(config(bert))
    base = evaluator.base
    net = CrossNet(base, evaluator.settings, "linear")
    torch.nn.init.normal_(net.outer.weight)
    inputs = base.read(SAMPLES)
    for at, z in enumerate(logits(net, inputs)):
        ids, first = inputs.ids[at], int(inputs.first[at])
        types = torch.tensor([[0] * first + [1] * (len(ids) - first)])
        states = base.model(input_ids=torch.tensor([ids]), token_type_ids=types).last_hidden_state
        expected = float(inputs.prior[at]) + float(net.outer(states.mean(dim=1)).detach())
        assert z == pytest.approx(expected, abs=1e-5)
    assert torch.equal(
        net.model.encoder.layer[0].output.dense.weight, base.model.encoder.layer[0].output.dense.weight
    )


def test_frozen_layers_are_run_once(bert: Path) -> None:
    """The states that are held lead to the same logits, dropout and the frozen layers' mode aside."""
    evaluator = Retrieval(config(bert))
    base = evaluator.base
    net = CrossNet(base, evaluator.settings, "linear")
    torch.nn.init.normal_(net.outer.weight)
    inputs = base.read(SAMPLES)
    held = net.with_frozen_output(inputs)
    assert held.states is not None and inputs.states is None
    assert [tuple(states.shape) for states in held.states] == [(length, 16) for length in inputs.lengths]
    assert np.abs(logits(net, held) - logits(net, inputs)).max() < 1e-5
    with torch.no_grad():
        net.model.encoder.layer[1].output.dense.weight.mul_(2)  # what learns is not held
    assert np.abs(logits(net, held) - logits(net, inputs)).max() < 1e-5
    free = CrossNet(base, changed(evaluator.settings, freeze=0), "linear")
    assert free.with_frozen_output(inputs) is inputs
    rows = np.array([4, 1])
    assert torch.equal(held.part(rows).states[0], held.states[4])  # type: ignore[index]


# --- what is read


def test_what_is_read(bert: Path) -> None:
    base = Retrieval(config(bert, context_turns=2)).base
    words = {word: number for number, word in enumerate((*SPECIAL.values(), *WORDS))}

    def ids(text: str) -> tuple[int, ...]:
        return tuple(words[word] for word in text.split())

    inputs = base.read([
        Sample(("the", "red cat", " ", "dog"), "blue"),
        Sample((), "blue"),
        Sample(("red [SEP]",), "[CLS]"),
        Sample(("red blue green cat dog", "runs sat the ."), "cat dog ."),
        Sample(("red",), "cat " * 30),
    ])  # fmt: skip
    assert inputs.ids[0] == ids("[CLS] red cat [SEP] dog [SEP] blue [SEP]")
    assert inputs.ids[1] == ids("[CLS] [SEP] blue [SEP]")
    assert words["[SEP]"] not in inputs.ids[2][1:3] and inputs.ids[2].count(words["[CLS]"]) == 1
    assert inputs.ids[3] == ids("[CLS] dog [SEP] runs sat the . [SEP] cat dog . [SEP]")[:1] + ids(
        "dog [SEP] runs sat the . [SEP] cat dog . [SEP]"
    )
    assert inputs.ids[4] == ids("[CLS] [SEP] " + "cat " * 9 + "[SEP]")
    assert inputs.first.tolist() == [6, 2, inputs.first[2], 8, 2]
    assert inputs.truncated[[0, 1, 3, 4]].tolist() == [False, False, True, True]


# --- learning


def test_losses_by_hand() -> None:
    z, targets = torch.tensor([1.0, -1.0, 0.5, 0.0]), torch.tensor([1.0, 0.0, 1.0, 0.0])
    sizes = np.array([2, 2])
    p = 1 / (1 + np.exp(-z.numpy()))
    binary = -np.log(np.where(targets.numpy() == 1, p, 1 - p))
    assert losses("binary", z, targets, sizes).numpy() == pytest.approx(binary, abs=1e-6)
    assert losses("squared", z, targets, sizes).numpy() == pytest.approx((p - targets.numpy()) ** 2, abs=1e-6)
    softmax = [np.log(1 + np.exp(-2)), np.log(1 + np.exp(-0.5))]
    assert losses("softmax", z, targets, sizes).numpy() == pytest.approx(softmax, abs=1e-6)


def test_lower_layers_stay(fitted: Retrieval) -> None:
    learned = {name for name in fitted.tensors if name.startswith("model.")}
    assert learned and all(name.startswith("model.encoder.layer.1.") for name in learned)
    assert fitted.net is not None
    fitted.net.train()
    still = [name for name, part in fitted.net.model.named_children() if not part.training]
    assert "embeddings" in still and not fitted.net.model.encoder.layer[0].training
    assert fitted.net.model.encoder.layer[1].training
    fitted.net.eval()


def test_adapters_learn_in_place_of_the_layers(bert: Path, tmp_path: Path) -> None:
    rates = {"learning_rate": 0.04, "head_learning_rate": 0.02}
    evaluator = Retrieval(config(bert, rank=4, contexts=240, epochs=6, patience=6, **rates))
    figures = evaluator.fit(coloured()).figures
    assert figures["valid_gt_above"] > figures["prior_valid_gt_above"] + 0.2
    learned = {name for name in evaluator.tensors if name.startswith("model.")}
    assert learned and all(name.endswith((".up", ".down")) and ".layer.1." in name for name in learned)
    assert all((array.dtype == np.float16) == (name in learned) for name, array in evaluator.tensors.items())
    evaluator.save(tmp_path / "saved")
    again = load_evaluator(tmp_path / "saved")
    scores = evaluator.score(SAMPLES)
    assert np.array_equal(again.score(SAMPLES), scores)
    blend = Blend(members={"retrieval": again})  # in int8, the adapters in the weights
    near = blend.part_scores(SAMPLES)[0][:, 0]
    assert 0 < np.abs(near - scores).max() < 0.1
    assert np.array_equal(again.score(SAMPLES), near), "the weights get the adapters once"


def test_a_killed_fit_goes_on(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the prior's vectors and the negatives that were kept before."""
    monkeypatch.setattr("ssrem.evaluators.cross_encoder_training._STEPS_A_STATE", 3)
    rates = {"learning_rate": 1e-4, "head_learning_rate": 1e-3, "dropout": 0.2}
    settings = config(bert, contexts=24, valid_contexts=8, batch_size=8, epochs=2, **rates)
    whole, broken, steps = Retrieval(settings), Retrieval(settings), list[int]()
    whole.fit(coloured())
    with pytest.raises(KilledError):
        Retrieval(settings).fit(coloured(), progress=killed_at(5), checkpoint=tmp_path)

    def step_told(done: int, total: int) -> None:
        if total == 6:  # not responses that get their negatives
            steps.append(done)

    with monkeypatch.context() as kept:
        kept.setattr("ssrem.encoders.store._write", lambda *_: pytest.fail("texts are encoded again"))
        kept.setattr("ssrem.negatives.base.Generator.admitted", lambda *_: pytest.fail("generated again"))
        broken.fit(coloured(), progress=step_told, checkpoint=tmp_path)
    assert steps == [4, 5, 6]  # the first epoch ended at step 3
    assert broken.signature == whole.signature
    for name, weights in whole.tensors.items():
        assert np.array_equal(weights, broken.tensors[name])
    steps.clear()
    Retrieval(settings).fit(coloured(), progress=step_told, checkpoint=tmp_path)
    assert not steps  # nothing was left to do
    with pytest.raises(EvaluatorError, match="other settings or data"):
        Retrieval(settings).fit(coloured(300), checkpoint=tmp_path)
    for damaged in (next(tmp_path.glob("*.safetensors")), tmp_path / "training.json"):
        damaged.write_bytes(b'{"changed": ')
        steps.clear()
        anew = Retrieval(settings)
        anew.fit(coloured(), progress=step_told, checkpoint=tmp_path)
        assert steps[0] == 1, "a state that is damaged is not gone on from"
        assert anew.signature == whole.signature


# --- negatives


def test_negatives_are_a_setting(bert: Path, tmp_path: Path) -> None:
    def retrieval(**settings: Any) -> Retrieval:
        return Retrieval(config(bert, contexts=30, valid_contexts=10, epochs=1, **settings))

    changed = retrieval(negatives="shuffle-golden+drop-golden")
    candidates = replace(coloured(), texts=[f"the {text} ." for text in coloured().texts])
    rows = changed.fit(replace(candidates, texts=[*coloured().texts[:300], *candidates.texts[300:]])).rows
    assert 0 < rows["train"] < 30 and rows["train_negatives"] == 2 * rows["train"]  # two words are too few
    assert "neg:shuffle-golden+drop-golden" in changed.signature
    said = message(lambda: retrieval(negatives="shufle-golden"))
    assert "did you mean" in said and "shuffle-golden" in said
    assert "set negatives_model" in message(lambda: retrieval(negatives="random-1+mask-and-fill"))
    assert "have 2 turns of Rand" in message(lambda: retrieval(negatives="random-3").fit(coloured()))
    masked = write_masked(tmp_path / "masked")
    filled = retrieval(negatives="random-1+select-random", negatives_model=str(masked))
    rows = filled.fit(candidates).rows
    assert rows["train"] < rows["train_negatives"] <= 60
    rows = retrieval(negatives="random-2+sc", loss="softmax").fit(coloured()).rows
    assert rows["train"] == 30 and 60 < rows["train_negatives"] < 90  # a third has no SC
    alone = retrieval(negatives="replace-with-history", negatives_model=str(masked), device="auto")
    made_by = alone.negatives()
    assert made_by.name == "replace-with-history"
    assert made_by.settings.model == str(masked) and made_by.settings.device is None
    assert retrieval(negatives="random-1", negatives_model="unused").negatives().name == "random-1"


def write_masked(folder: Path) -> Path:
    from transformers import BertConfig, BertForMaskedLM

    words = ("[MASK]", *WORDS)
    sizes = {**SIZES, "max_position_embeddings": 260}
    torch.manual_seed(0)
    BertForMaskedLM(BertConfig(vocab_size=len(SPECIAL) + len(words), **sizes)).save_pretrained(folder)
    tokens = tokenizer(words)
    tokens.mask_token = "[MASK]"
    tokens.save_pretrained(folder)
    return folder


# --- on disk, and what is refused


def test_saved_and_loaded(bert: Path, tmp_path: Path) -> None:
    """The transformer goes along: its folder may be gone when the evaluator is loaded."""
    own = shutil.copytree(bert, tmp_path / "own")
    (own / "pytorch_model.bin").write_bytes(b"not to be copied")
    evaluator = Retrieval(config(own, contexts=40, epochs=1))
    evaluator.fit(coloured())
    folder = tmp_path / "saved"
    evaluator.save(folder)
    shutil.rmtree(own)
    loaded = Retrieval.load(folder)
    assert loaded.signature == evaluator.signature and loaded.training is not None
    assert np.array_equal(loaded.score(SAMPLES), evaluator.score(SAMPLES))
    assert {path.suffix for path in folder.rglob("*") if path.is_file()} == {".json", ".safetensors"}
    # Frozen layers are in the transformer alone.
    assert not any("layer.0" in name for name in load_file(folder / "weights.safetensors"))
    loaded.save(folder)  # where it was loaded from
    assert Retrieval.load(folder).signature == loaded.signature

    def spoilt(what: Callable[[Path], object]) -> str:
        copy = shutil.copytree(folder, tmp_path / "spoilt")
        what(copy)
        said = message(lambda: Retrieval.load(copy))
        shutil.rmtree(copy)
        return said

    def rewritten(copy: Path, **changes: Any) -> None:
        about = json.loads((copy / "evaluator.json").read_text())
        about["config"] |= changes
        (copy / "evaluator.json").write_text(json.dumps(about))

    inside = "transformer/config.json"
    assert "config.json was changed" in spoilt(lambda copy: (copy / inside).write_text("{}"))
    assert "is missing" in spoilt(lambda copy: (copy / inside).unlink())
    assert "was not saved" in spoilt(lambda copy: (copy / "transformer/added.json").write_text("{}"))
    assert "do not fit" in spoilt(lambda copy: rewritten(copy, freeze=0))
    assert "was changed" in spoilt(lambda copy: rewritten(copy, context_turns=1))


def message(attempt: Callable[[], object]) -> str:
    """The one line of the error."""
    with pytest.raises(EvaluatorError) as error:
        attempt()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_is_refused(bert: Path) -> None:
    assert Retrieval.default_encoder is None and Retrieval().settings.model == MINILM
    assert "from 4 to 12" in message(lambda: Retrieval(config(bert, max_tokens=13)).base)
    assert "has 2 layers" in message(lambda: Retrieval(config(bert, freeze=3)).fit(coloured()))
    few = replace(coloured(), split=np.zeros(400, dtype=np.uint8))
    assert "no response of the validation split" in message(lambda: Retrieval(config(bert)).fit(few))
    assert tokenizer_hash(Retrieval(config(bert)).base.tokenizer) in Retrieval(config(bert)).base.fingerprint
