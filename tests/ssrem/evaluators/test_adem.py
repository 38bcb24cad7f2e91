"""ADEM by hand, and on a corpus whose answer is known: a response repeats the topic of its context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from ssrem.encoders import load_encoder
from ssrem.encoders.recurrent import Words
from ssrem.encoders.words import WordAverage
from ssrem.errors import EvaluatorError
from ssrem.evaluators.adem import Adem, AdemRef, AdemSettings, AdemUnref
from ssrem.evaluators.adem_space import MATRICES, Dialogues, Encoded, Space, Vectors, context_rows, spanning
from ssrem.evaluators.adem_training import (
    GruNetwork,
    Labelled,
    StretchBatch,
    Vhred,
    decoder_classes,
    divergence,
    hide,
    kl_weight,
    learn,
    over_sampled,
)
from ssrem.files import write_tensors
from ssrem.samples import TEST, VALID, Candidates, Rows, Sample
from support.topical import topical_candidates, topical_encoder, topical_samples
from support.trained import (
    Damage,
    changed,
    check_before_training,
    check_candidates_score_as_samples,
    check_damage_is_refused,
    check_seeded_whatever_the_threads,
    check_settings_are_refused,
    manifest_with,
    one_set,
    other_topics,
)

pytestmark = pytest.mark.xdist_group("adem")

TOPICS = 5
FEW = {"utterance": 16, "context": 20, "decoder": 16, "latent": 4}
CONFIG = AdemSettings(
    **FEW, epochs=6, batch_size=16, learning_rate=0.01, anneal_steps=20, components=8, turn_words=6, seed=5
)
SHELF = changed(CONFIG, pretrained="encoder")
FAMILY = (Adem, AdemRef, AdemUnref)


def negatives(generator: np.random.Generator, topics: Rows) -> dict[str, Rows]:
    """Responses of other topics, some of them missing."""
    rand = other_topics(generator, topics, 2)
    rand[::3, 1] = -1
    return {"Rand": rand}


def candidates_of(n: int = 300) -> Candidates:
    return topical_candidates(n, TOPICS, negatives)


@pytest.fixture(scope="module")
def fitted() -> Adem:
    evaluator = Adem(CONFIG, topical_encoder(TOPICS))
    evaluator.fit(candidates_of())
    return evaluator


def of(kind: type[Adem], fitted: Adem) -> Adem:
    """Of the family, with the same encoder and projection."""
    evaluator = kind(fitted.settings, fitted.encoder)
    left_out = {MATRICES[part] for part in MATRICES if part not in kind.parts}
    tensors = {name: array for name, array in fitted.tensors.items() if name not in left_out}
    evaluator.take(tensors, {part: fitted.bounds[part] for part in evaluator.pieces})
    return evaluator


SAMPLES = topical_samples(TOPICS)


# --- the dialogue model


def test_kl_weight_rises_linearly() -> None:
    assert [kl_weight(step, 4) for step in range(6)] == [0, 0.25, 0.5, 0.75, 1, 1]
    assert kl_weight(0, 0) == 1
    assert kl_weight(30_000, 60_000) == 0.5


def test_divergence_against_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    mean, log, prior_mean, prior_log = torch.randn(4, 6, 3, generator=generator)
    expected = torch.distributions.kl_divergence(
        torch.distributions.Normal(mean, (log / 2).exp()),
        torch.distributions.Normal(prior_mean, (prior_log / 2).exp()),
    ).sum(dim=1)
    assert torch.allclose(divergence((mean, log), (prior_mean, prior_log)), expected, atol=1e-5)
    assert divergence((mean, log), (mean, log)).abs().max() < 1e-6


def batch_of(encoder: WordAverage, *stretches: tuple[str, ...]) -> StretchBatch:
    dialogues = Dialogues.of(stretches)
    words = Words.of(dialogues.texts, encoder)
    return StretchBatch(words, words.first(len(dialogues.texts), CONFIG.turn_words), dialogues.turns)


def test_word_drop_hides_the_decoders_input(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = topical_encoder(TOPICS)
    batch = batch_of(encoder, ("a1 x0", "b1 x1 x2 x3"), ("a2", "b2 x1", "x0 x1 x2"))
    classes, log = decoder_classes(batch.words, batch.texts, batch.turns, 100)
    net = Vhred.seeded(encoder.dimensions, log, CONFIG)
    net.dropped.data += 7
    shares = []

    def spy(vectors: torch.Tensor, hidden: torch.Tensor, instead: torch.Tensor) -> torch.Tensor:
        shares.append(float(hidden.float().mean()))
        return hide(vectors, hidden, instead)

    monkeypatch.setattr("ssrem.evaluators.adem_training.hide", spy)

    def loss(share: float, word: int | None = None) -> float:
        """word: whose vector is made another one, in the decoder's eyes alone."""
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            texts = batch.texts.of(batch.turns[batch.predicted])
            vectors = batch.words.vectors.copy()
            if word is not None:
                vectors[word] += 1
            words = replace(batch.words, vectors=vectors)
            summary = torch.zeros(len(texts.lengths), CONFIG.decoder)
            return float(net._decode(summary, words, texts, classes, generator, share))

    word = int(batch.words.ids[batch.texts.start[batch.turns[0, 1]]])
    assert loss(0.0) != pytest.approx(loss(0.0, word), abs=1e-6)
    assert loss(1.0) == loss(1.0, word)  # nothing is shown
    for _ in range(80):
        net(batch, classes, torch.Generator().manual_seed(len(shares)), 0.25)
    assert np.mean(shares[-80:]) == pytest.approx(0.25, abs=0.03)
    vectors = torch.arange(12.0).reshape(1, 4, 3)
    shown = hide(vectors, torch.tensor([[False, True, False, False]]), torch.full((3,), -1.0))
    assert shown[0, 1].tolist() == [-1] * 3 and torch.equal(shown[0, [0, 2, 3]], vectors[0, [0, 2, 3]])


def test_the_loss_by_hand() -> None:
    """-log p of every word and the end, without padding or packing, one turn at a time; z without noise."""
    encoder = topical_encoder(TOPICS)
    batch = batch_of(encoder, ("a1 x0", "b1 x1 x2"), ("a2", "unknown", "b2", "x3"))
    assert batch.predicted.tolist() == [[False, True, False, False], [False, False, True, True]]
    classes, log = decoder_classes(batch.words, batch.texts, batch.turns, 4)
    net = Vhred.seeded(encoder.dimensions, log, CONFIG)
    with torch.no_grad():
        for last in (net.posterior[2], net.prior[2]):
            last.bias[CONFIG.latent :] = -8.0  # next to no variance
            last.weight[CONFIG.latent :] = 0.0
        losses = net(batch, classes, torch.Generator().manual_seed(0), 0.0)
        total, kl, count = 0.0, 0.0, 0
        for turns in (["a1 x0", "b1 x1 x2"], ["a2", "b2"], ["a2", "b2", "x3"]):
            vectors = [torch.from_numpy(encoder.encode(turn.split())) for turn in turns]
            utterances = [net.encoder.norm(net.encoder.words(turn[None])[1][0, 0]) for turn in vectors]
            state = torch.zeros(1, CONFIG.context)
            for utterance in utterances[:-1]:
                state = net.encoder.turns(utterance[None], state)
            prior = net.prior(state)
            posterior = net.posterior(torch.cat([state, utterances[-1][None]], dim=1))
            kl += 0.5 * float(((posterior - prior)[:, : CONFIG.latent] ** 2).sum()) * np.exp(8.0)
            z = posterior[:, : CONFIG.latent]
            summary = torch.tanh(net.summary(torch.cat([state, z], dim=1)))
            inputs = torch.cat([net.start[None], vectors[-1]])
            inputs = torch.cat([inputs, summary.expand(len(inputs), -1)], dim=1)
            logits = net.output(net.decoder(inputs[None], summary[None])[0][0])
            ids = [int(i) for i in Words.of([turns[-1]], encoder).ids]
            assert len(ids) == len(turns[-1].split())
            names = [w for text in ("a1 x0", "b1 x1 x2", "a2", "b2", "x3") for w in text.split()]
            first = list(dict.fromkeys(names))
            targets = [int(classes[first.index(word) + 1]) for word in turns[-1].split()] + [0]
            total -= float(torch.log_softmax(logits, dim=1)[range(len(targets)), targets].sum())
            count += len(targets)
    assert losses.turns == 3 and losses.tokens == count == 8
    assert float(losses.words) == pytest.approx(total, rel=0.02)  # z has a deviation of exp(-4)
    assert float(losses.divergence) == pytest.approx(kl, rel=1e-3)


def test_decoder_classes() -> None:
    encoder = topical_encoder(TOPICS)
    batch = batch_of(encoder, ("x1 x1 a1", "x1 b1"), ("a1", "x2"))
    classes, log = decoder_classes(batch.words, batch.texts, batch.turns[:1], 2)
    # x1 three times, a1 and b1 once: a1 comes first. x2 is not in the stretches that are learned from.
    assert classes.tolist() == [0, 2, 3, 1, 1]
    # Two ends, one other word, three x1, one a1; each one more.
    assert np.exp(log) == pytest.approx(np.array([3, 2, 4, 2]) / 11)


def test_the_encoder_by_hand() -> None:
    """Against PyTorch's GRU without padding or packing, one dialogue at a time."""
    encoder = topical_encoder(TOPICS)
    net = seeded_net(encoder)
    dialogues = [("x1 a2", "?", "x3"), ("b1",), ("b2 x1 x0 x2 a0 a1 a2 a3",), ("unknown", ""), ()]
    encoded = Encoded.of(Dialogues.of(dialogues), encoder, net, CONFIG.turn_words)
    assert encoded.known.tolist() == [True, True, True, False, False]
    assert encoded.cut.tolist() == [False, False, True, False, False]
    assert not encoded.vectors[3:].any()
    for row, turns in enumerate((["x1 a2", "x3"], ["b1"], ["b2 x1 x0 x2 a0 a1"])):
        state = torch.zeros(1, CONFIG.context)
        for turn in turns:
            _, last = net.words(torch.from_numpy(encoder.encode(turn.split()))[None])
            state = net.turns(net.norm(last[0]), state)
        assert encoded.vectors[row] == pytest.approx(state[0].detach().numpy(), abs=1e-6)


def seeded_net(encoder: WordAverage) -> GruNetwork:
    return Vhred.seeded(encoder.dimensions, np.zeros(5, dtype=np.float32), CONFIG).encoder


def test_pretraining_lowers_the_loss(fitted: Adem) -> None:
    training = fitted.training
    assert training is not None
    losses = [epoch["valid_loss"] for epoch in training.history]
    assert min(losses) < training.figures["valid_loss_untrained"] - 1
    assert training.best_epoch == int(np.argmin(losses)) + 1
    assert training.figures["valid_loss"] == min(losses)
    assert training.rows == {"train": 240, "valid": 30, "train_an_epoch": 240}
    weights = [epoch["kl_weight"] for epoch in training.history]
    assert weights[0] == pytest.approx(15 / 20) and weights[1:] == [1] * (len(weights) - 1)
    for epoch in training.history:
        assert {"epoch", "train_loss", "valid_loss", "valid_kl", "seconds"} <= set(epoch)


def test_stops_early_but_not_before_the_kl_divergence_has_its_weight() -> None:
    calls: list[tuple[int, int]] = []
    # Words drawn at random: nothing is to be learned, and a high rate soon overfits.
    candidates = candidates_of(60)
    generator = np.random.default_rng(3)
    texts = [f"x{a} x{b}" for a, b in generator.integers(0, 4, (len(candidates.texts), 2))]
    config = changed(CONFIG, epochs=30, learning_rate=0.05, patience=2)
    lengths = {}
    for anneal in (0, 3 * 10):
        evaluator = AdemUnref(changed(config, anneal_steps=anneal), topical_encoder(TOPICS))
        training = evaluator.fit(replace(candidates, texts=texts), progress=lambda *at: calls.append(at))
        lengths[anneal] = len(training.history)
        annealed = sum(epoch["kl_weight"] < 1 for epoch in training.history)
        assert len(training.history) == min(30, max(training.best_epoch, annealed) + 2) < 30
        assert calls[-1] == (90, 90)
    assert lengths[30] >= 11


# --- projection and constants


def test_projection_against_the_covariance_matrix() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(200, 6)) * [5, 4, 3, 2, 1, 0.5] @ generator.normal(size=(6, 6)) + 3
    known = np.ones(200, dtype=bool)
    projection = Space.around(vectors, 4, [])
    values, axes = np.linalg.eigh(np.cov(vectors.T))
    values, axes = values[::-1], axes[:, ::-1]
    assert projection.axes.T @ projection.axes == pytest.approx(np.eye(4), abs=1e-5)
    projected = projection.project(Encoded(vectors, known, ~known))
    assert np.abs(projection.axes.T @ axes[:, :4]) == pytest.approx(np.eye(4), abs=1e-3)
    assert np.cov(projected.T) == pytest.approx(np.diag(values[:4]), abs=1e-2 * values[0])
    assert (projection.axes[np.abs(projection.axes).argmax(axis=0), range(4)] > 0).all()
    lost = projection.unexplained(Encoded(vectors, known, ~known))
    assert lost == pytest.approx(values[4:].sum() / values.sum(), abs=1e-4)
    # As many components as dimensions turn the vectors and lose nothing.
    whole = Space.around(vectors, 50, [])
    assert whole.axes.shape == (6, 6)
    turned = whole.project(Encoded(vectors, known, ~known))
    centred = vectors - vectors.mean(axis=0)
    assert turned @ turned.T == pytest.approx(centred @ centred.T, abs=1e-2)
    known[3] = False
    assert not projection.project(Encoded(vectors, known, ~known))[3].any()


def test_constants_span_the_scale() -> None:
    products = np.concatenate([np.linspace(-3, 7, 101), [np.nan]])
    alpha, beta = spanning(products)
    scores = (products - alpha) / beta
    assert np.nanpercentile(scores, [1, 99]) == pytest.approx([1, 5])
    assert (np.diff(scores[:-1]) > 0).all()
    for same in (np.full(5, 8.0), np.array([np.nan])):
        alpha, beta = spanning(same)
        middle = (np.nan_to_num(same) - alpha) / beta
        assert middle == pytest.approx(3)


def test_validation_candidates_span_the_scale(fitted: Adem) -> None:
    candidates = candidates_of()
    rows = candidates.rows(VALID)
    texts, shelf = candidates.texts, [kind(SHELF, fitted.encoder) for kind in FAMILY]
    for evaluator in shelf:
        evaluator.fit(candidates)
    for evaluator in (fitted, *shelf):
        samples = [
            Sample(tuple(texts[true - 2 : true]), texts[other], texts[true])
            for true, other in zip(
                candidates.response[rows], candidates.negatives["Rand"][rows, 0], strict=True
            )
        ]
        assert np.percentile(evaluator.score(samples), [1, 99]) == pytest.approx([1, 5], abs=1e-3)


# --- scores


def test_scores_by_hand(fitted: Adem) -> None:
    generator = np.random.default_rng(4)
    size = len(fitted.space.matrices["f"])
    matrices = {part: generator.normal(size=(size, size)).astype(np.float32) for part in ("f", "g")}
    evaluator = Adem(CONFIG, fitted.encoder)
    space = replace(fitted.space, matrices=matrices, alpha=1.5, beta=2.5)
    evaluator.take({**fitted.tensors, **space.tensors}, fitted.bounds)
    parts = evaluator.compute(SAMPLES)
    net, projection = fitted.net, fitted.space

    def vector(dialogue: tuple[str, ...]) -> np.ndarray:
        encoded = Encoded.of(Dialogues.of([dialogue]), fitted.encoder, net, CONFIG.turn_words)
        return projection.project(encoded)[0]

    for row, sample in enumerate(SAMPLES):
        c, answer, r = (vector(d) for d in (sample.context, (sample.response,), (sample.reference or "",)))
        f, g = c @ matrices["f"] @ answer, r @ matrices["g"] @ answer
        assert parts.f[row] == pytest.approx(f / 2.5, abs=1e-5)
        assert parts.g[row] == pytest.approx(g / 2.5, abs=1e-5)
        assert parts.h[row] == pytest.approx((f + g - 1.5) / 2.5, abs=1e-5)
    assert np.array_equal(evaluator.score(SAMPLES), parts.h)
    assert np.array_equal(parts.f_unit, fitted.bounds["f"].unit(parts.f))
    for kind, part, whole in ((AdemUnref, "f", parts.f), (AdemRef, "g", parts.g)):
        alone = of(kind, evaluator)
        assert alone.score(SAMPLES) == pytest.approx(whole - 1.5 / 2.5, abs=1e-9)
        own = alone.compute(SAMPLES)
        assert np.array_equal(getattr(own, part), alone.score(SAMPLES))
        assert np.isnan(own.h).all() and np.isnan(own.g if part == "f" else own.f).all()


def test_what_is_missing(fitted: Adem) -> None:
    full = Sample(("x1 a1",), "b1", "b2 x1")
    alpha, beta = fitted.space.alpha, fitted.space.beta
    odd = [
        replace(full, context=()),
        replace(full, context=("", "你好")),
        replace(full, response=""),
        replace(full, response="unknown"),
        replace(full, reference=""),
        replace(full, reference=None),
    ]
    parts = fitted.compute([full, *odd])
    assert parts.f[1:5].tolist() == [0] * 4 and parts.g[3:6].tolist() == [0] * 3
    assert parts.h[3:5] == pytest.approx(-alpha / beta)
    assert parts.g[1] == parts.g[0] and parts.f[5] == pytest.approx(parts.f[0])
    assert np.isnan(parts.g[6]) and np.isnan(parts.h[6]) and parts.f[6] == pytest.approx(parts.f[0])
    assert np.isfinite(parts.h[:6]).all() and not parts.truncated.any()
    assert fitted.compute([]).score.shape == (0,)
    unref, ref = of(AdemUnref, fitted), of(AdemRef, fitted)
    assert np.isfinite(unref.compute([full, *odd]).score).all()
    assert np.isnan(ref.compute([full, *odd]).score).tolist() == [False] * 6 + [True]
    assert np.isfinite(fitted.compute([Sample(("?",), "!", "…")]).score).all()


def test_what_is_cut_is_said(fitted: Adem) -> None:
    """The first 6 known words of each of the last 5 turns are read."""
    long, cut = "x1 x2 x3 x0 a1 a2", "x1 x2 x3 x0 a1 a2 a3 a4"
    full = Sample((long,) * 5, long, long)
    more = [
        replace(full, response=cut),
        replace(full, reference=cut),
        replace(full, context=(long, cut, long, long, long)),
        replace(full, context=(cut, *full.context)),
        replace(full, response=long.replace(" ", " ? unknown ")),
    ]
    parts = fitted.compute([full, *more])
    assert parts.truncated.tolist() == [False, True, True, True, False, False]
    assert np.abs(parts.h - parts.h[0]).max() < 1e-6
    assert of(AdemRef, fitted).compute(more).truncated.tolist() == [True, True, False, False, False]
    assert of(AdemUnref, fitted).compute(more).truncated.tolist() == [True, False, True, False, False]


@pytest.mark.parametrize("kind", FAMILY)
def test_scores_do_not_depend_on_batch_order_or_threads(
    fitted: Adem, kind: type[Adem], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Lengths from 0 to 6 words and 0 to 5 turns, so that batches are padded.
    mixed = [
        replace(sample, response=sample.response + " b1" * (n % 6), context=sample.context * (n % 4))
        for n, sample in enumerate(SAMPLES)
    ]
    evaluator = of(kind, fitted)
    together = evaluator.compute(mixed).score
    assert np.array_equal(evaluator.compute(mixed).score, together)
    assert evaluator.net is not None and all(p.grad is None for p in evaluator.net.parameters())
    alone = np.concatenate([evaluator.compute([sample]).score for sample in mixed])
    backwards = evaluator.compute(mixed[::-1]).score[::-1]
    monkeypatch.setattr("ssrem.evaluators.adem_space._TURNS", 3)
    monkeypatch.setattr("ssrem.evaluators.adem_space._DIALOGUES", 5)
    monkeypatch.setattr("ssrem.evaluators.adem._CHUNK", 7)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    chunked = evaluator.compute(mixed).score
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
    for scores in (alone, backwards, chunked):
        assert np.abs(scores - together).max() < 1e-5
    assert np.ptp(together) > 0.1


def test_score_equals_score_candidates(fitted: Adem) -> None:
    candidates = candidates_of()
    for kind in (Adem, AdemUnref):
        evaluator = of(kind, fitted)
        present = candidates.negatives["Rand"][candidates.rows(TEST)] >= 0
        scored = np.isfinite(evaluator.score_candidates(candidates)["Rand"])
        assert np.array_equal(scored, present) and not present.all()
        check_candidates_score_as_samples(evaluator, candidates)
        parts = evaluator.compute(SAMPLES)
        assert evaluator.f_unit(parts.f) == pytest.approx(parts.f_unit, abs=1e-9)


def test_context_rows() -> None:
    candidates = Candidates(
        ["t"] * 9, np.array([4, 8]), np.array([0, 7]), np.array([4, 8]), {}, np.zeros(2, dtype=np.uint8)
    )
    assert context_rows(candidates, np.arange(2), 3).tolist() == [[1, 2, 3], [7, -1, -1]]


def test_seeded_and_whatever_the_threads() -> None:
    candidates, config = candidates_of(80), changed(CONFIG, epochs=2)
    check_seeded_whatever_the_threads(
        lambda seed: AdemUnref(changed(config, seed=seed), topical_encoder(TOPICS)), candidates
    )
    limited = AdemUnref(changed(config, max_train=20, max_valid=5), topical_encoder(TOPICS))
    training = limited.fit(candidates)
    assert training.rows == {"train": 64, "valid": 5, "train_an_epoch": 20}
    assert training.notes[:2] == (
        "validation takes 5 of 8 responses, drawn once (max_valid)",
        "an epoch takes 20 of 64 stretches of conversation, the next one goes on from there (max_train)",
    )


# --- an encoder off the shelf


def test_off_the_shelf() -> None:
    encoder, config = (
        topical_encoder(TOPICS),
        changed(CONFIG, pretrained="encoder", components=10, context_turns=2),
    )
    calls: list[tuple[int, int]] = []
    evaluator = Adem(config, encoder)
    training = evaluator.fit(candidates_of(), progress=lambda *at: calls.append(at))
    assert calls == [(1, 1)]
    assert training.figures["valid_loss"] == pytest.approx(0, abs=1e-6)  # all 10 dimensions are kept
    assert {"train_loss", "valid_loss"} <= set(training.history[0])
    mean, space = evaluator.space.mean.astype(np.float64), evaluator.space
    sample = Sample(("b4", "x1 a2", "?", "x3"), "b1 x0", "b2")

    def vector(*texts: str) -> np.ndarray:
        return encoder.encode(list(texts)).mean(axis=0) - mean

    # With all components, products are those of the centred vectors. The last two turns are "?" and "x3".
    f, g = vector("x3") @ vector("b1 x0"), vector("b2") @ vector("b1 x0")
    parts = evaluator.compute([sample])
    assert parts.f[0] == pytest.approx(f / space.beta, abs=1e-4)
    assert parts.h[0] == pytest.approx((f + g - space.alpha) / space.beta, abs=1e-4)
    assert "|encoder|" in evaluator.signature and evaluator.net is None


class Short(WordAverage):
    """Reads the first 9 characters of a text."""

    def truncated(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([len(text) > 9 for text in texts], dtype=bool)


def test_what_an_encoder_off_the_shelf_leaves_out_is_said(fitted: Adem) -> None:
    whole = fitted.encoder
    assert isinstance(whole, WordAverage)
    short, long = Short("short", whole.vocabulary, whole.vectors, weighting="uniform"), "x1 x2 x3 x0"
    evaluator = Adem(SHELF, short)
    evaluator.fit(candidates_of(60))
    full = Sample(("x1",) * 5, "b1", "b2")
    samples = [full, replace(full, response=long), replace(full, reference=long)]
    samples += [replace(full, context=context) for context in ((long, *full.context), (*full.context, long))]
    assert evaluator.compute(samples).truncated.tolist() == [False, True, True, False, True]
    alone = AdemUnref(SHELF, short)
    alone.fit(candidates_of(60))
    assert alone.compute(samples).truncated.tolist() == [False, True, False, False, True]


# --- human scores


def test_over_sampling_evens_out_the_lengths() -> None:
    generator = np.random.default_rng(0)
    scores = generator.integers(1, 6, 400).astype(np.float64)
    lengths = (generator.poisson(6, 400) + (5 - scores) * 2).astype(np.int64)
    rows = over_sampled(lengths, scores, 4, 0)
    assert set(rows.tolist()) == set(range(400))  # none is lost
    edges = np.quantile(lengths, [0.25, 0.5, 0.75])
    bins = np.searchsorted(edges, lengths, side="left")
    for score in range(1, 6):
        filled = np.unique(bins[scores == score])
        counts = [int(((bins == length) & (scores == score))[rows].sum()) for length in filled]
        assert len(set(counts)) == 1
        assert counts[0] == max(((bins == length) & (scores == score)).sum() for length in filled)
    times = np.bincount(rows)
    for length in range(4):
        of_bin = times[(bins == length) & (scores == 3)]
        assert np.ptp(of_bin) <= 1
    before, after = (abs(np.corrcoef(lengths[at], scores[at])[0, 1]) for at in (np.arange(400), rows))
    assert after < before - 0.2
    assert np.array_equal(over_sampled(lengths, scores, 4, 0), rows)
    assert over_sampled(np.full(9, 3), np.full(9, 2.0), 4, 0).tolist() == list(range(9))


def planted(n: int, seed: int) -> tuple[Labelled, dict[str, np.ndarray]]:
    """Scores that follow a hidden M and N."""
    generator = np.random.default_rng(11)
    hidden = {part: generator.normal(size=(5, 5)) / 5 for part in ("f", "g")}
    generator = np.random.default_rng(seed)
    left = {part: generator.normal(size=(n, 5)) for part in hidden}
    right = generator.normal(size=(n, 5))
    scores = 3 + sum(np.einsum("nk,kl,nl->n", left[part], hidden[part], right) for part in hidden)
    return Labelled(Vectors(left, right, np.zeros(n, dtype=bool)), scores), hidden


def test_learn_recovers_a_planted_matrix() -> None:
    train, hidden = planted(400, 1)
    valid, _ = planted(150, 2)
    identity = dict.fromkeys(("f", "g"), np.eye(5, dtype=np.float32))
    space = Space(np.zeros(5, dtype=np.float32), np.eye(5, dtype=np.float32), identity, -6.0, 2.0)
    config = AdemSettings(gamma=0.0, tune_epochs=60, tune_learning_rate=0.03)
    learned, curve = learn(space, train, valid, config, None)
    for part, matrix in hidden.items():
        assert learned.matrices[part] == pytest.approx(2 * matrix, abs=0.05)
    assert curve.best["valid_loss"] == min(epoch["valid_loss"] for epoch in curve.history) < 0.01
    # γ pulls towards zero.
    small, _ = learn(space, train, valid, changed(config, gamma=3.0, tune_epochs=20), None)
    assert np.linalg.norm(small.matrices["f"]) < 0.8 * np.linalg.norm(learned.matrices["f"])
    assert all(np.array_equal(matrix, np.eye(5)) for matrix in identity.values())
    # What only makes it worse leaves the matrices as they were.
    good = replace(space, matrices={part: (2 * m).astype(np.float32) for part, m in hidden.items()})
    unchanged, curve = learn(good, train, valid, changed(config, gamma=50.0, tune_epochs=3), None)
    assert curve.best_epoch == 0 and np.array_equal(unchanged.matrices["f"], good.matrices["f"])


def judged() -> list[tuple[Sample, float]]:
    """A person who likes answers 'b1' and 'b3', whatever was said, on a scale from 0 to 10."""
    generator = np.random.default_rng(7)
    return [
        (
            Sample(
                (f"x{a} a{topic}",), f"b{answer}" + " x1" * int(generator.integers(0, 3)), f"b{topic} x{a}"
            ),
            9.0 if answer in (1, 3) else 2.0,
        )
        for a in range(4)
        for topic in range(TOPICS)
        for answer in range(TOPICS)
    ]


@pytest.mark.parametrize("kind", FAMILY)
def test_fine_tuned_follows_human_scores(fitted: Adem, kind: type[Adem]) -> None:
    annotated, evaluator = judged(), of(kind, fitted)
    before = evaluator.signature
    tuned = evaluator.tuned_on(one_set(annotated, (0, 10)))
    assert evaluator.signature == before and evaluator.training is None
    assert type(tuned) is kind and "tuned:100" in tuned.signature
    assert tuned.tuned_on(one_set(annotated[::-1], (0, 10))).signature != tuned.signature
    assert evaluator.tuned_on(one_set(annotated[::-1], (0, 10))).signature == tuned.signature
    samples, human = [sample for sample, _ in annotated], np.array([score for _, score in annotated])
    scores = tuned.score(samples)
    start = np.corrcoef(evaluator.score(samples), human)[0, 1]
    assert np.corrcoef(scores, human)[0, 1] > max(0.5, start + 0.2)
    # 0 to 10 is laid on 1 to 5: 9 is 4.6 and 2 is 1.8.
    assert scores.mean() == pytest.approx((4.6 * 2 + 1.8 * 3) / 5, abs=0.4)
    training = tuned.training
    assert training is not None and training.rows["contexts"] == 20
    assert (training.rows["train"], training.rows["valid"]) == (85, 15)  # three contexts of five
    assert training.rows["train_over_sampled"] > 85
    figures = training.figures
    assert figures["valid_loss"] < figures["valid_loss_untuned"]
    assert figures["valid_rmse"] == pytest.approx(figures["valid_loss"] ** 0.5)
    part = tuned.parts[0]
    bounds, values = tuned.bounds[part], getattr(tuned.compute(samples), part)
    assert (bounds.low, bounds.high) == pytest.approx((values.min(), values.max()), abs=1e-6)


def test_fine_tuning_starts_at_the_mean_of_the_human_scores(fitted: Adem) -> None:
    annotated = judged()
    still = Adem(changed(CONFIG, tune_epochs=1, tune_learning_rate=1e-9, held_out=0.01), fitted.encoder)
    still.take(fitted.tensors, fitted.bounds)
    tuned = still.tuned_on(one_set(annotated, (0, 10)))
    means = [tuned.score([sample for sample, _ in annotated]).mean(), (4.6 * 2 + 1.8 * 3) / 5]
    assert means[0] == pytest.approx(means[1], abs=0.1)


def test_human_scores_that_cannot_be_learned_from(fitted: Adem) -> None:
    annotated = judged()
    with pytest.raises(EvaluatorError, match="1 to 4"):
        fitted.tuned_on(one_set(annotated, (1, 4)))
    with pytest.raises(EvaluatorError, match="5 to 5"):
        fitted.tuned_on(one_set([(sample, 5.0) for sample, _ in annotated], (5, 5)))
    with pytest.raises(EvaluatorError, match="scale"):
        fitted.tuned_on(one_set([(annotated[0][0], float("nan")), *annotated[1:]], (0, 10)))
    with pytest.raises(
        EvaluatorError, match="20 annotated responses with a reference to 4 contexts are too few"
    ):
        fitted.tuned_on(one_set(annotated[:20], (0, 10)))
    with pytest.raises(EvaluatorError, match="not trained"):
        Adem(None, fitted.encoder).tuned_on(one_set(annotated, (0, 10)))
    bare = [(replace(sample, reference=None), score) for sample, score in annotated]
    for kind in (Adem, AdemRef):
        with pytest.raises(EvaluatorError, match=r"0 annotated responses .*reference"):
            of(kind, fitted).tuned_on(one_set(bare, (0, 10)))
    assert of(AdemUnref, fitted).tuned_on(one_set(bare, (0, 10))).tuned == 100
    some = fitted.tuned_on(one_set([*bare[:10], *annotated[10:]], (0, 10)))
    assert some.tuned == 90 and some.training is not None
    assert some.training.notes[1] == "10 annotated responses have no reference and are left out"


# --- kept and loaded


@pytest.mark.parametrize("kind", FAMILY)
@pytest.mark.parametrize("tuned", [False, True])
def test_saved_and_loaded(fitted: Adem, tmp_path: Path, kind: type[Adem], tuned: bool) -> None:
    evaluator = of(kind, fitted)
    if tuned:
        evaluator = evaluator.tuned_on(one_set(judged(), (0, 10)))
    evaluator.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "weights.safetensors", "evaluator.json", "encoder"
    }  # fmt: skip
    loaded = kind.load(tmp_path)
    assert loaded.signature == evaluator.signature and loaded.settings == evaluator.settings
    assert np.array_equal(loaded.score(SAMPLES), evaluator.score(SAMPLES))
    assert (loaded.training is None) == (not tuned)
    if not tuned:
        again = loaded.tuned_on(one_set(judged(), (0, 10)))
        assert again.signature == evaluator.tuned_on(one_set(judged(), (0, 10))).signature
    other = Adem if kind is not Adem else AdemRef
    with pytest.raises(EvaluatorError, match=f"expected {other.name}"):
        other.load(tmp_path)


def test_saved_off_the_shelf(tmp_path: Path) -> None:
    evaluator = Adem(changed(CONFIG, pretrained="encoder"), topical_encoder(TOPICS))
    evaluator.fit(candidates_of(60))
    evaluator.save(tmp_path)
    loaded = Adem.load(tmp_path)
    assert np.array_equal(loaded.score(SAMPLES), evaluator.score(SAMPLES))
    assert loaded.training is not None and len(loaded.training.history) == 1


def constants_of_three(folder: Path, manifest: dict[str, Any]) -> None:
    weights = folder / "weights.safetensors"
    digest = write_tensors(weights, {**load_file(weights), "constants": np.zeros(3)})
    manifest["sha256"][weights.name] = digest


ADEM_DAMAGES = {
    "units": manifest_with("config", "utterance", value=4),
    "pretrained": manifest_with("config", "pretrained", value="encoder"),
    "constants": constants_of_three,
}


@pytest.mark.parametrize("damage", ADEM_DAMAGES.values(), ids=ADEM_DAMAGES.keys())
def test_changed_or_foreign_folders_are_refused(fitted: Adem, tmp_path: Path, damage: Damage) -> None:
    check_damage_is_refused(fitted, tmp_path, damage)


def test_before_training_and_bad_settings() -> None:
    evaluator, candidates = Adem(CONFIG, topical_encoder(TOPICS)), candidates_of(60)
    check_before_training(evaluator, candidates, SAMPLES)
    check_settings_are_refused(
        AdemSettings,
        {
            ("lr", 1): "no setting lr",
            ("pretrained", "bert"): "pretrained: .*not 'bert'",
            ("word_drop", 1): "word_drop: .*not 1",
            ("components", 0): "components: .*not 0",
            ("gamma", -1): "gamma: .*not -1",
            ("held_out", 0): "held_out: .*not 0",
            ("latent", "big"): "latent: .*not 'big'",
        },
    )
    assert AdemSettings(gamma=0, word_drop=0, anneal_steps=0).gamma == 0
    for split, word in ((0, "validation"), (1, "training")):
        with pytest.raises(EvaluatorError, match=f"no response of the {word} split"):
            evaluator.fit(replace(candidates, split=np.full(60, split, dtype=np.uint8)))
    wordless = replace(candidates, texts=["?"] * len(candidates.texts))
    with pytest.raises(EvaluatorError, match="two turns with a known word"):
        evaluator.fit(wordless)
    with pytest.raises(EvaluatorError, match="knows no word"):
        Adem(changed(CONFIG, pretrained="encoder"), topical_encoder(TOPICS)).fit(wordless)
    alone = Adem(changed(CONFIG, epochs=1), topical_encoder(TOPICS))
    training = alone.fit(replace(candidates, negatives={}))  # none is needed
    assert "valid_gt_above" not in training.figures and np.isfinite(alone.score(SAMPLES)).all()


def test_over_the_tokens_of_a_table(tmp_path: Path) -> None:
    turns = ["unbelievable", "believable", "unbelievable believable"] * 20
    response = np.arange(1, 60)
    candidates = Candidates(turns, response, response - 1, response, {}, (response % 3 == 0).astype(np.uint8))
    adem = Adem(
        changed(CONFIG, turn_words=20, epochs=1, max_train=40, components=4), load_encoder("wordllama")
    )
    adem.fit(candidates)
    assert "|tokens:20|" in adem.signature
    assert len(set(adem.score([Sample(("hi",), text, "ok") for text in turns[:3]]))) == 3
    adem.save(tmp_path / "adem")
    assert Adem.load(tmp_path / "adem").signature == adem.signature
