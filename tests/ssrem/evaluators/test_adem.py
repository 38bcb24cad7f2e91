"""ADEM by hand, and on a corpus whose answer is known: a response repeats the topic of its context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from ssrem.encoders import load_encoder
from ssrem.encoders.recurrent import Words
from ssrem.encoders.words import WordAverage
from ssrem.errors import EvaluatorError
from ssrem.evaluators.adem import Adem, AdemRef, AdemSettings, AdemUnref
from ssrem.evaluators.adem_space import MATRICES, Dialogues, Encoded, Space, Vectors, spanning
from ssrem.evaluators.adem_training import (
    GruNetwork,
    Labelled,
    StretchBatch,
    Vhred,
    decoder_classes,
    divergence,
    hide,
    learn,
    over_sampled,
)
from ssrem.files import write_tensors
from ssrem.samples import VALID, Candidates, Rows, Sample
from support import trained
from support.topical import topical_candidates, topical_encoder, topical_samples

pytestmark = pytest.mark.xdist_group("adem")

TOPICS = 5
FEW = {"utterance": 16, "context": 20, "decoder": 16, "latent": 4}
CONFIG = AdemSettings(
    **FEW, epochs=6, batch_size=16, learning_rate=0.01, anneal_steps=20, components=8, turn_words=6, seed=5
)
SHELF = trained.changed(CONFIG, pretrained="encoder")
FAMILY = (Adem, AdemRef, AdemUnref)


def negatives(generator: np.random.Generator, topics: Rows) -> dict[str, Rows]:
    """Responses of other topics, some of them missing."""
    rand = trained.other_topics(generator, topics, 2)
    rand[::3, 1] = -1
    return {"Rand": rand}


@cache
def candidates_of(n: int = 300) -> Candidates:
    return topical_candidates(n, TOPICS, negatives)


@pytest.fixture(scope="module")
def fitted() -> Adem:
    evaluator = Adem(CONFIG, topical_encoder(TOPICS))
    evaluator.fit(candidates_of())
    return evaluator


def of(kind: type[Adem], fitted: Adem, **settings: Any) -> Adem:
    """Of the family, with the same encoder and projection."""
    evaluator = kind(trained.changed(fitted.settings, **settings), fitted.encoder)
    left_out = {MATRICES[part] for part in MATRICES if part not in kind.parts}
    tensors = {name: array for name, array in fitted.tensors.items() if name not in left_out}
    evaluator.take(tensors, {part: fitted.bounds[part] for part in evaluator.pieces})
    return evaluator


def truncated(evaluator: Adem, samples: Sequence[Sample]) -> list[bool]:
    """Of which samples something was left out."""
    return evaluator.compute(samples).truncated.tolist()  # type: ignore[no-any-return]


SAMPLES = topical_samples(TOPICS)


# --- the dialogue model


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
    spy = create_autospec(hide, side_effect=hide)
    monkeypatch.setattr("ssrem.evaluators.adem_training.hide", spy)

    def loss(share: float, moved: float) -> float:
        """moved: what is added to the vector of a word, in the decoder's eyes alone."""
        texts = batch.texts.of(batch.turns[batch.predicted])
        vectors = batch.words.vectors.copy()
        vectors[int(batch.words.ids[batch.texts.start[batch.turns[0, 1]]])] += moved
        words = replace(batch.words, vectors=vectors)
        summary, generator = torch.zeros(len(texts.lengths), CONFIG.decoder), torch.Generator().manual_seed(0)
        with torch.no_grad():
            return float(net._decode(summary, words, texts, classes, generator, share))

    assert loss(0.0, 0) != pytest.approx(loss(0.0, 1), abs=1e-6)
    assert loss(1.0, 0) == loss(1.0, 1)  # nothing is shown
    spy.reset_mock()
    for seed in range(40):
        net(batch, classes, torch.Generator().manual_seed(seed), 0.25)
    shares = [float(call.args[1].float().mean()) for call in spy.call_args_list]
    assert np.mean(shares) == pytest.approx(0.25, abs=0.05)
    vectors = torch.arange(12.0).reshape(1, 4, 3)
    shown = hide(vectors, torch.tensor([[False, True, False, False]]), torch.full((3,), -1.0))
    assert shown[0, 1].tolist() == [-1] * 3 and torch.equal(shown[0, [0, 2, 3]], vectors[0, [0, 2, 3]])


def test_the_loss_by_hand() -> None:
    """-log p of every word and the end, without padding or packing, one turn at a time; z without noise."""
    encoder = topical_encoder(TOPICS)
    batch = batch_of(encoder, ("a1 x0", "b1 x1 x2"), ("a2", "unknown", "b2", "x3"))
    assert batch.predicted.tolist() == [[False, True, False, False], [False, False, True, True]]
    classes, log = decoder_classes(batch.words, batch.texts, batch.turns, 4)
    first = ["a1", "x0", "b1", "x1", "x2", "a2", "b2", "x3"]  # in the order in which words come
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
            summary = torch.tanh(net.summary(torch.cat([state, posterior[:, : CONFIG.latent]], dim=1)))
            inputs = torch.cat([net.start[None], vectors[-1]])
            inputs = torch.cat([inputs, summary.expand(len(inputs), -1)], dim=1)
            logits = net.output(net.decoder(inputs[None], summary[None])[0][0])
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
    assert weights == [pytest.approx(15 / 20)] + [1] * 5
    assert {"epoch", "train_loss", "valid_loss", "valid_kl", "seconds"} <= set(training.history[0])


def test_stops_early_but_not_before_the_kl_divergence_has_its_weight() -> None:
    # Words drawn at random: nothing is to be learned, and a high rate soon overfits.
    candidates, generator = candidates_of(60), np.random.default_rng(3)
    texts = [f"x{a} x{b}" for a, b in generator.integers(0, 4, (len(candidates.texts), 2))]
    config = trained.changed(CONFIG, epochs=30, learning_rate=0.05, patience=2, max_valid=5)
    lengths = {}
    for anneal in (0, 3 * 5):
        evaluator = AdemUnref(trained.changed(config, anneal_steps=anneal), topical_encoder(TOPICS))
        training = evaluator.fit(replace(candidates, texts=texts))
        lengths[anneal] = len(training.history)
        annealed = sum(epoch["kl_weight"] < 1 for epoch in training.history)
        assert lengths[anneal] == max(training.best_epoch, annealed) + 2 < 30
        assert training.notes[0] == "validation takes 5 of 6 responses, drawn once (max_valid)"
    assert lengths[15] >= 6


# --- projection and constants


def test_projection_against_the_covariance_matrix() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(200, 6)) * [5, 4, 3, 2, 1, 0.5] @ generator.normal(size=(6, 6)) + 3
    known = np.ones(200, dtype=bool)
    encoded = Encoded(vectors, known, ~known)
    projection = Space.around(vectors, 4, [])
    values, axes = np.linalg.eigh(np.cov(vectors.T))
    values, axes = values[::-1], axes[:, ::-1]
    assert projection.axes.T @ projection.axes == pytest.approx(np.eye(4), abs=1e-5)
    assert np.abs(projection.axes.T @ axes[:, :4]) == pytest.approx(np.eye(4), abs=1e-3)
    projected = projection.project(encoded)
    assert np.cov(projected.T) == pytest.approx(np.diag(values[:4]), abs=1e-2 * values[0])
    assert (projection.axes[np.abs(projection.axes).argmax(axis=0), range(4)] > 0).all()
    lost = projection.unexplained(encoded)
    assert lost == pytest.approx(values[4:].sum() / values.sum(), abs=1e-4)
    # As many components as dimensions turn the vectors and lose nothing.
    turned = Space.around(vectors, 50, []).project(encoded)
    centred = vectors - vectors.mean(axis=0)
    assert turned.shape == (200, 6) and turned @ turned.T == pytest.approx(centred @ centred.T, abs=1e-2)
    known[3] = False
    assert not projection.project(Encoded(vectors, known, ~known))[3].any()


def test_equal_products_and_none_are_the_middle_of_the_scale() -> None:
    for same in (np.full(5, 8.0), np.array([np.nan])):
        alpha, beta = spanning(same)
        assert (np.nan_to_num(same) - alpha) / beta == pytest.approx(3)


def test_validation_candidates_span_the_scale(fitted: Adem) -> None:
    candidates, texts = candidates_of(), candidates_of().texts
    rows = candidates.rows(VALID)
    drawn = zip(candidates.response[rows], candidates.negatives["Rand"][rows, 0], strict=True)
    samples = [Sample(tuple(texts[true - 2 : true]), texts[other], texts[true]) for true, other in drawn]
    shelf = [kind(SHELF, fitted.encoder) for kind in FAMILY]
    for evaluator in shelf:
        evaluator.fit(candidates)
    for evaluator in (fitted, *shelf):
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
    parts_missing = (
        *({"context": ()}, {"context": ("", "你好")}, {"response": ""}),
        *({"response": "unknown"}, {"reference": ""}, {"reference": None}),
    )
    samples = [full, *(replace(full, **part) for part in parts_missing)]  # type: ignore[arg-type]
    parts = fitted.compute(samples)
    assert parts.f[1:5].tolist() == [0] * 4 and parts.g[3:6].tolist() == [0] * 3
    assert parts.h[3:5] == pytest.approx(-fitted.space.alpha / fitted.space.beta)
    assert parts.g[1] == parts.g[0] and parts.f[5:] == pytest.approx(np.full(2, parts.f[0]))
    assert np.isnan(parts.g[6]) and np.isnan(parts.h[6])
    assert np.isfinite(parts.h[:6]).all() and not parts.truncated.any()
    assert fitted.compute([]).score.shape == (0,)
    assert np.isfinite(of(AdemUnref, fitted).compute(samples).score).all()
    assert np.isnan(of(AdemRef, fitted).compute(samples).score).tolist() == [False] * 6 + [True]
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
    assert truncated(of(AdemRef, fitted), more) == [True, True, False, False, False]
    assert truncated(of(AdemUnref, fitted), more) == [True, False, True, False, False]


def test_scores_do_not_depend_on_batch_order_or_threads(
    fitted: Adem, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Lengths from 0 to 6 words and 0 to 5 turns, so that batches are padded.
    mixed = [
        replace(sample, response=sample.response + " b1" * (n % 6), context=sample.context * (n % 4))
        for n, sample in enumerate(SAMPLES)
    ]
    limits = {"adem_space._TURNS": 3, "adem_space._DIALOGUES": 5, "adem._CHUNK": 7}
    trained.check_scores_stand_alone(fitted, mixed, limits, monkeypatch)
    assert fitted.net is not None and all(p.grad is None for p in fitted.net.parameters())


def test_seeded_and_whatever_the_threads() -> None:
    def made(seed: int) -> AdemUnref:
        return AdemUnref(trained.changed(CONFIG, epochs=1, seed=seed), topical_encoder(TOPICS))

    trained.check_seeded_whatever_the_threads(made, candidates_of(60))


# --- an encoder off the shelf


def test_off_the_shelf() -> None:
    encoder, calls = topical_encoder(TOPICS), list[tuple[int, int]]()
    evaluator = Adem(trained.changed(SHELF, components=10, context_turns=2), encoder)
    training = evaluator.fit(candidates_of(), progress=lambda *at: calls.append(at))
    assert calls == [(1, 1)]
    assert training.figures["valid_loss"] == pytest.approx(0, abs=1e-6)  # all 10 dimensions are kept
    assert {"train_loss", "valid_loss"} <= set(training.history[0])
    space = evaluator.space

    def vector(text: str) -> np.ndarray:
        return encoder.encode([text])[0] - space.mean.astype(np.float64)

    # With all components, products are those of the centred vectors. The last two turns are "?" and "x3".
    f, g = vector("x3") @ vector("b1 x0"), vector("b2") @ vector("b1 x0")
    parts = evaluator.compute([Sample(("b4", "x1 a2", "?", "x3"), "b1 x0", "b2")])
    assert parts.f[0] == pytest.approx(f / space.beta, abs=1e-4)
    assert parts.h[0] == pytest.approx((f + g - space.alpha) / space.beta, abs=1e-4)
    assert "|encoder|" in evaluator.signature and evaluator.net is None


class Short(WordAverage):
    """Reads the first 9 characters of a text."""

    def truncated(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([len(text) > 9 for text in texts], dtype=bool)


def test_what_an_encoder_off_the_shelf_leaves_out_is_said_and_it_is_saved(
    fitted: Adem, tmp_path: Path
) -> None:
    whole = fitted.encoder
    assert isinstance(whole, WordAverage)
    short, long = Short("short", whole.vocabulary, whole.vectors, weighting="uniform"), "x1 x2 x3 x0"
    full = Sample(("x1",) * 5, "b1", "b2")
    samples = [full, replace(full, response=long), replace(full, reference=long)]
    samples += [replace(full, context=context) for context in ((long, *full.context), (*full.context, long))]
    for kind, expected in ((Adem, [0, 1, 1, 0, 1]), (AdemUnref, [0, 1, 0, 0, 1])):
        evaluator = kind(SHELF, short)
        evaluator.fit(candidates_of(60))
        assert truncated(evaluator, samples) == expected
        loaded = trained.saved_and_loaded(evaluator, tmp_path / kind.name, SAMPLES)
        assert loaded.training is not None and len(loaded.training.history) == 1


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
        cells = [(bins == length) & (scores == score) for length in np.unique(bins[scores == score])]
        assert {int(cell[rows].sum()) for cell in cells} == {max(int(cell.sum()) for cell in cells)}
    times = np.bincount(rows)
    assert all(np.ptp(times[(bins == length) & (scores == 3)]) <= 1 for length in range(4))
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
    train, hidden = planted(200, 1)
    valid, _ = planted(100, 2)
    identity = dict.fromkeys(("f", "g"), np.eye(5, dtype=np.float32))
    space = Space(np.zeros(5, dtype=np.float32), np.eye(5, dtype=np.float32), identity, -6.0, 2.0)
    config = AdemSettings(gamma=0.0, tune_epochs=40, tune_learning_rate=0.06)
    learned, curve = learn(space, train, valid, config, None)
    for part, matrix in hidden.items():
        assert learned.matrices[part] == pytest.approx(2 * matrix, abs=0.05)
    assert curve.best["valid_loss"] == min(epoch["valid_loss"] for epoch in curve.history) < 0.01
    # γ pulls towards zero.
    small, _ = learn(space, train, valid, trained.changed(config, gamma=3.0, tune_epochs=10), None)
    assert np.linalg.norm(small.matrices["f"]) < 0.8 * np.linalg.norm(learned.matrices["f"])
    assert all(np.array_equal(matrix, np.eye(5)) for matrix in identity.values())
    # What only makes it worse leaves the matrices as they were.
    good = replace(space, matrices={part: (2 * m).astype(np.float32) for part, m in hidden.items()})
    unchanged, curve = learn(good, train, valid, trained.changed(config, gamma=50.0, tune_epochs=3), None)
    assert curve.best_epoch == 0 and np.array_equal(unchanged.matrices["f"], good.matrices["f"])


def judged() -> list[tuple[Sample, float]]:
    """A person who likes answers 'b1' and 'b3', whatever was said, on a scale from 0 to 10."""
    more = np.random.default_rng(7).integers(0, 3, (4, TOPICS, TOPICS))
    return [
        (
            Sample((f"x{a} a{topic}",), f"b{answer}" + " x1" * int(more[a, topic, answer]), f"b{topic} x{a}"),
            9.0 if answer in (1, 3) else 2.0,
        )
        for a, topic, answer in np.ndindex(more.shape)
    ]


JUDGED = trained.one_set(judged(), (0, 10))


@pytest.mark.parametrize("kind", [Adem, AdemRef])
def test_fine_tuned_follows_human_scores(fitted: Adem, kind: type[Adem]) -> None:
    annotated, evaluator = judged(), of(kind, fitted)
    tuned = evaluator.tuned_on(JUDGED)
    assert type(tuned) is kind and "tuned:100" in tuned.signature
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
    bounds, values = tuned.bounds[tuned.parts[0]], getattr(tuned.compute(samples), tuned.parts[0])
    assert (bounds.low, bounds.high) == pytest.approx((values.min(), values.max()), abs=1e-6)


def test_fine_tuning_starts_at_the_mean_of_the_human_scores(fitted: Adem) -> None:
    tuned = of(Adem, fitted, tune_epochs=1, tune_learning_rate=1e-9, held_out=0.01).tuned_on(JUDGED)
    mean = tuned.score([sample for sample, _ in judged()]).mean()
    assert mean == pytest.approx((4.6 * 2 + 1.8 * 3) / 5, abs=0.1)


def test_human_scores_that_cannot_be_learned_from(fitted: Adem) -> None:
    annotated = judged()
    for pairs, scale, message in (
        (annotated, (1, 4), "1 to 4"),
        ([(sample, 5.0) for sample, _ in annotated], (5, 5), "5 to 5"),
        ([(annotated[0][0], float("nan")), *annotated[1:]], (0, 10), "scale"),
        (annotated[:20], (0, 10), "20 annotated responses with a reference to 4 contexts are too few"),
    ):
        with pytest.raises(EvaluatorError, match=message):
            fitted.tuned_on(trained.one_set(pairs, scale))
    bare = [(replace(sample, reference=None), score) for sample, score in annotated]
    for kind in (Adem, AdemRef):
        with pytest.raises(EvaluatorError, match=r"0 annotated responses .*reference"):
            of(kind, fitted).tuned_on(trained.one_set(bare, (0, 10)))
    assert of(AdemUnref, fitted, tune_epochs=1).tuned_on(trained.one_set(bare, (0, 10))).tuned == 100
    some = of(Adem, fitted, tune_epochs=1).tuned_on(trained.one_set([*bare[:10], *annotated[10:]], (0, 10)))
    assert some.tuned == 90 and some.training is not None
    assert some.training.notes[1] == "10 annotated responses have no reference and are left out"


# --- kept and loaded


def test_saved_and_loaded_unless_changed(fitted: Adem, tmp_path: Path) -> None:
    untuned = of(AdemUnref, fitted, tune_epochs=2)
    tuned = untuned.tuned_on(JUDGED)
    for evaluator in (tuned, untuned):
        loaded = trained.saved_and_loaded(evaluator, tmp_path, SAMPLES)
        assert loaded.settings == evaluator.settings
        files = {path.name for path in tmp_path.iterdir()}
        assert files == {"weights.safetensors", "evaluator.json", "encoder"}
        assert (loaded.training is None) == (evaluator is untuned)
    # What is loaded learns the same, whatever the order of the scores, and stays as it was.
    again = loaded.tuned_on(trained.one_set(judged()[::-1], (0, 10)))
    assert again.signature == tuned.signature != tuned.tuned_on(JUDGED).signature
    assert loaded.signature == untuned.signature
    for damage in (constants_of_three, trained.manifest_with("config", "utterance", value=4)):
        trained.check_damage_is_refused(fitted, tmp_path / "damaged", damage)


def constants_of_three(folder: Path, manifest: dict[str, Any]) -> None:
    weights = folder / "weights.safetensors"
    digest = write_tensors(weights, {**load_file(weights), "constants": np.zeros(3)})
    manifest["sha256"][weights.name] = digest


def test_candidates_that_cannot_be_learned_from() -> None:
    evaluator, candidates = Adem(CONFIG, topical_encoder(TOPICS)), candidates_of(60)
    wordless = replace(candidates, texts=["?"] * len(candidates.texts))
    with pytest.raises(EvaluatorError, match="two turns with a known word"):
        evaluator.fit(wordless)
    with pytest.raises(EvaluatorError, match="knows no word"):
        Adem(SHELF, topical_encoder(TOPICS)).fit(wordless)
    alone = Adem(trained.changed(CONFIG, epochs=1), topical_encoder(TOPICS))
    training = alone.fit(replace(candidates, negatives={}))  # none is needed
    assert "valid_gt_above" not in training.figures and np.isfinite(alone.score(SAMPLES)).all()


def test_over_the_tokens_of_a_table(tmp_path: Path) -> None:
    turns = ["unbelievable", "believable", "unbelievable believable"] * 8
    response = np.arange(1, 24)
    candidates = Candidates(turns, response, response - 1, response, {}, (response % 3 == 0).astype(np.uint8))
    adem = Adem(
        trained.changed(CONFIG, turn_words=20, epochs=1, max_train=10, components=4),
        load_encoder("wordllama"),
    )
    training = adem.fit(candidates)
    assert training.rows["train_an_epoch"] == 10 and "an epoch takes 10 of 1" in training.notes[0]
    assert "|tokens:20|" in adem.signature
    assert len(set(adem.score([Sample(("hi",), text, "ok") for text in turns[:3]]))) == 3
    adem.save(tmp_path / "adem")
    assert Adem.load(tmp_path / "adem").signature == adem.signature
