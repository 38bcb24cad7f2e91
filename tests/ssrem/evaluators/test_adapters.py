"""SSREM over a transformer with adapters: a tiny one on a corpus whose answer is known, and the packaged one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from ssrem.encoders import load_encoder, load_saved
from ssrem.encoders.hub import MINILM
from ssrem.encoders.layers import LowerStates
from ssrem.encoders.transformer import DOWN, UP, AdaptedTransformer, Transformer
from ssrem.errors import EvaluatorError
from ssrem.evaluators.baselines import Cosine
from ssrem.evaluators.bilinear import SSREMMiniLM
from ssrem.evaluators.bilinear_inputs import AdapterSettings, Cases
from ssrem.evaluators.bilinear_training import AdapterObjective
from ssrem.evaluators.blend import Blend, BlendSettings
from ssrem.samples import TEST, TRAIN, VALID, Candidates, Sample
from support.topical import topical_encoder
from support.trained import KilledError, killed_at, saved_and_loaded

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.xdist_group("adapters")]

COLOURS = ("red", "blue", "green")
CONFIG = AdapterSettings(
    epochs=16, patience=16, batch_size=32, learning_rate=0.02, rank=4, freeze=1, max_tokens=12, responses=192,
    valid_responses=64, keep=1.0, bf16="off", seed=3,
)  # fmt: skip
SAMPLES = [
    Sample((f"{one} cat", "runs"), f"{other} dog .", f"{one} dog") for one in COLOURS for other in COLOURS
]


@cache
def coloured(n: int = 320) -> Candidates:
    """'red cat', 'runs', 'dog red': the response has the colour of the first turn; a fifth is not learned from."""
    generator = np.random.default_rng(1)
    colours = generator.integers(0, 3, n)
    texts: list[str] = []
    for colour in colours.tolist():
        animal, form = generator.choice(["cat", "dog"]), generator.choice(["{} .", "sat {}", "the {} dog"])
        texts += [f"{COLOURS[colour]} {animal}", "runs", form.format(COLOURS[colour])]
    response = np.arange(n) * 3 + 2
    other = [generator.choice(np.flatnonzero(colours != colour), 2) * 3 + 2 for colour in colours]
    negatives = {kind: np.array(other)[:, :1].copy() for kind in ("SC", "SP", "SS")}
    negatives["SC"][::3] = -1
    split = (np.arange(n) % 10 >= 8).astype(np.uint8) + (np.arange(n) % 10 == 9).astype(np.uint8)
    return Candidates(texts, response, response - 2, response, {**negatives, "Rand": np.array(other)}, split)


def evaluator(bert: Path, **settings: Any) -> SSREMMiniLM:
    return SSREMMiniLM(CONFIG.model_copy(update=settings), load_encoder(f"hf:{bert}"))


def objective(bert: Path, **settings: Any) -> tuple[AdapterObjective, Candidates]:
    made, candidates = evaluator(bert, **settings), coloured()
    wanted = made._wanted(candidates)
    usable = {split: candidates.rows(split) for split in (TRAIN, VALID)}
    return made._objective(candidates, wanted, usable), candidates  # type: ignore[return-value]


def test_lower_layers_run_once_a_text(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their states are those of the whole model, are kept on the disk, and are bounded by it."""
    made, _ = objective(bert)
    assert made.lower is not None
    texts = np.arange(12)
    whole, made.lower = made.lower, None
    below_and_above, made.model = made.model, made.start.model
    with torch.no_grad():
        expected = made.vectors(texts)
        made.lower, made.model = whole, below_and_above
        assert made.vectors(texts).numpy() == pytest.approx(expected.numpy(), abs=2e-3)  # kept as float16

    def kept(key: str = "a") -> LowerStates:
        return LowerStates(whole.below, made.tokens, made.start.dimensions, tmp_path / "states", key)

    monkeypatch.setattr(LowerStates, "_UNSAVED", 10)
    mask = np.arange(whole.lengths[texts].max()) < whole.lengths[texts, None]
    first = kept().padded(texts, mask)
    monkeypatch.setattr(LowerStates, "_compute", lambda *_: pytest.fail("computed twice"))
    assert torch.equal(kept().padded(texts, mask), first)
    assert not kept("b").known.any()
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1_000))
    with pytest.raises(EvaluatorError, match="GB are free; make room"):
        kept("c")


def curve(before: float, after: float) -> Any:
    """The share of negatives outranked before training, and with all that was learned."""
    return SimpleNamespace(history=[{"valid_gt_above": before}], best={"valid_gt_above": after}, best_epoch=1)


@pytest.fixture(scope="module")
def fitted(bert: Path) -> SSREMMiniLM:
    learned = evaluator(bert)
    learned.fit(coloured())
    return learned


def test_learns_what_the_corpus_teaches_and_that_a_copy_is_no_answer(fitted: SSREMMiniLM) -> None:
    assert fitted.training is not None
    first, best = fitted.training.history[0], fitted.training.figures
    assert best["valid_loss"] < first["valid_loss"]
    assert best["valid_gt_above"] > max(0.8, first["valid_gt_above"])
    f = fitted.score_candidates(coloured(), TEST)
    for kind in ("SC", "Rand", "Context"):
        assert (f["GT"] > f[kind])[~np.isnan(f[kind])].mean() > 0.8, kind
    assert np.abs(fitted.components(SAMPLES).f).max() < 0.999
    assert np.isnan(fitted.score([Sample((), "red"), Sample(("  ",), "red"), Sample(("red",), "")])).all()
    long = [Sample(("red cat",), "red " * 20), Sample(("red " * 20, *["red"] * 3), "red")]
    # The long turn of the last one is not read at all.
    assert fitted.components([*SAMPLES, *long]).truncated.tolist() == [False] * len(SAMPLES) + [True, False]
    assert any("learned from" in note and "of the way from" in note for note in fitted.training.notes)


def test_a_blend_computes_by_whole_numbers_what_adapted_encoders_read(
    fitted: SSREMMiniLM, bert: Path
) -> None:
    cosine = Cosine(encoder=f"hf:{bert}", context_turns=1)
    expected = [np.tile(part.components(SAMPLES).f, 2) for part in (cosine, fitted)]
    blend = Blend(BlendSettings(products="float32"), members={"ssrem-minilm": fitted, "cosine": cosine})
    values = blend.part_scores([*SAMPLES, *SAMPLES])[0]
    fitted.encoder.cache = None
    np.testing.assert_allclose(values[:, ::-1], np.transpose(expected), atol=1e-3)
    int8 = Blend(members=blend.members)
    apart = np.abs(int8.part_scores(SAMPLES)[0] - values[: len(SAMPLES)]).max(axis=0)
    fitted.encoder.cache = None
    assert (apart > 0).all() and (apart < 0.2).all()
    # It is the blend whose scores are others; its parts stay what they were.
    assert int8._about() == blend._about().replace("|tuned", "|int8|tuned")
    named = Blend(members={"cosine": Cosine(encoder=f"hf:{bert}:bf16")})
    cache: Any = named.members["cosine"].encoder.cache  # type: ignore[union-attr]
    assert cache.encoder.form == ":bf16"


def test_only_the_adapters_of_upper_layers_learn(fitted: SSREMMiniLM, bert: Path) -> None:
    encoder = fitted.encoder
    assert isinstance(encoder, AdaptedTransformer)
    before, after = (dict(part.model.named_parameters()) for part in (encoder.start, encoder.adapted))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name.rpartition(".")[0] for name in encoder.factors}
    assert changed and all("layer.1." in name and name.endswith("weight") for name in changed)
    assert len(changed) == 6  # query, key, value, output, and two of the feed-forward part
    untouched = Transformer(f"hf:{bert}")
    assert encoder.start.signature == untouched.signature


def test_training_scores_are_those_of_scoring(bert: Path) -> None:
    learning, candidates = objective(bert)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, value in learning.parameters().items():
            if name.endswith(UP):
                value.copy_(torch.randn(value.shape, generator=generator) * 0.3)
        _, own, copied = learning.scored(learning.rows[VALID])
    rows, wanted = learning.usable[VALID], evaluator(bert)._wanted(candidates)
    end = candidates.context_stop[rows]
    columns = np.concatenate([wanted[rows], end[:, None] - 1, end[:, None] - 2], axis=1)
    encoder, learned, _ = learning.learned(curve(0.0, 9.0))  # nothing keeps such a gain: all of the way
    cases = Cases.of(candidates, rows, columns, CONFIG.context_turns, encoder)
    expected = SSREMMiniLM(CONFIG, encoder).products(learned, cases)
    present = wanted[rows] >= 0
    assert np.allclose(own.numpy()[present], expected[:, :-2][present], atol=5e-3)
    assert np.allclose(copied.numpy()[:, :2], expected[:, -2:], atol=5e-3)


def test_the_share_is_the_smallest_that_keeps_enough_of_the_gain(
    bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learning, _ = objective(bert, keep=0.9)
    with torch.no_grad():
        for value in learning.parameters().values():
            value.fill_(1.0)
        learning.matrix.fill_(2.0)
    up = next(name for name in learning.parameters() if name.endswith(UP))
    seen: list[tuple[float, float]] = []

    def validate(epoch: int) -> dict[str, float]:
        share = learning.parameters()[up].detach().mean().item()
        seen.append((share, learning.matrix[0, 1].item()))
        return {"valid_gt_above": 0.6 + 0.3 * min(1.0, share / 0.5)}  # all of the gain is there half-way

    monkeypatch.setattr(learning, "validate", validate)
    encoder, tensors, (note,) = learning.learned(curve(0.6, 0.9))
    assert "; 50% of the way from the start" in note and note.endswith("0.900 with this share")
    assert isinstance(encoder, AdaptedTransformer) and (encoder.factors[up] == 0.5).all()
    assert len(seen) < 5 and np.allclose([share * 2 for share, _ in seen], [entry for _, entry in seen])
    assert tensors["matrix"][0, :2] == pytest.approx([1.5, 1.0])
    with torch.no_grad():
        learning.parameters()[up].fill_(1.0)
    assert "; 100% of the way from the start" in learning.learned(curve(0.6, 1.2))[2][0]


def test_a_batch_is_made_of_runs_and_encodes_the_drawn_negatives_of_some(bert: Path) -> None:
    learning, _ = objective(bert, batch_size=32, responses=128)
    epochs: Iterator[Any] = learning.epochs()
    first, second = next(epochs), next(epochs)
    assert [len(batch) for batch in first] == [32] * 4
    assert all((np.diff(batch[:16]) == 1).all() for batch in first)
    assert not set(np.concatenate(first)) & set(np.concatenate(second))  # 256 are learned from
    encoded = Mock(side_effect=learning.vectors)
    learning.vectors = encoded  # type: ignore[method-assign]
    learning.loss(first[0], None)  # type: ignore[arg-type]
    batch = learning.rows[TRAIN][first[0]]
    assert len(encoded.call_args.args[0]) <= len(np.unique(learning.content[batch[batch >= 0]]))
    assert (learning.rows[TRAIN][:, -1] >= 0).all()  # what is left out of a batch stays in the data


def test_a_training_that_was_broken_off_ends_as_an_unbroken_one(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AdapterObjective, "steps_a_state", 2)
    few: dict[str, Any] = {"epochs": 2, "responses": 96, "valid_responses": 32}
    unbroken, broken, steps = evaluator(bert, **few), evaluator(bert, **few), list[int]()
    unbroken.fit(coloured())
    with pytest.raises(KilledError):
        evaluator(bert, **few).fit(coloured(), progress=killed_at(5), checkpoint=tmp_path)
    broken.fit(coloured(), progress=lambda done, _: steps.append(done), checkpoint=tmp_path)
    assert steps[0] == 5  # three batches an epoch, and the last state is that of step 4
    assert broken.signature == unbroken.signature


def test_saved_and_loaded(fitted: SSREMMiniLM, tmp_path: Path) -> None:
    saved_and_loaded(fitted, tmp_path, SAMPLES)
    assert not list(tmp_path.rglob("model.safetensors"))  # the transformer stays in its package


def test_encoders_that_it_cannot_have(bert: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"minilm learns adapters of a transformer.*or train ssrem"):
        SSREMMiniLM(CONFIG, topical_encoder(3))
    with pytest.raises(EvaluatorError, match=r"adapted is none"):
        SSREMMiniLM(CONFIG, load_encoder("minilm-mpnet"))
    with pytest.raises(EvaluatorError, match=r"freeze is 2; the model has 2 layers, and one must learn"):
        evaluator(bert, freeze=2).fit(coloured())
    foreign = {f"no.weight{side}": np.ones((2, 2), dtype=np.float16) for side in (UP, DOWN)}
    with pytest.raises(EvaluatorError, match="do not fit"):
        AdaptedTransformer(Transformer(f"hf:{bert}"), foreign)


def test_the_packaged_encoder_learns_from_a_few_texts(tmp_path: Path) -> None:
    start = load_encoder(MINILM)
    assert isinstance(start, Transformer)
    sizes = {"responses": 32, "valid_responses": 8, "batch_size": 16, "freeze": 4, "rank": 8}
    learned = SSREMMiniLM(AdapterSettings(epochs=2, learning_rate=0.002, **sizes), start)  # type: ignore[arg-type]
    training = learned.fit(coloured(80))
    assert training.rows["train_an_epoch"] == 32
    assert training.history[-1]["valid_loss"] < training.history[0]["valid_loss"]
    learned.encoder.save(tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*")) < 400_000
    loaded = load_saved(tmp_path)
    texts = ["See you on Friday, then!", "\ud800 half a pair"]
    assert loaded.signature == learned.encoder.signature
    assert np.array_equal(loaded.encode(texts), learned.encoder.encode(texts))
    assert 0.001 < np.abs(loaded.encode(texts) - start.encode(texts)).max() < 0.5
    assert loaded.truncated(["word " * 300]).all()
