"""Trains ADEM (Lowe et al. 2017, section 5.1): its recurrent encoder as part of the dialogue model VHRED (Serban et al.
2017), its principal components and constants from a corpus, and M and N from human scores."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from ssrem.encoders.recurrent import Stretches, Words, learned_weights, take_weights
from ssrem.errors import EvaluatorError
from ssrem.evaluators.adem_space import (
    HIGHEST,
    LOWEST,
    PREFIX,
    Dialogues,
    Encoded,
    Space,
    Vectors,
    context_rows,
    spanning,
)
from ssrem.evaluators.base import Bounds
from ssrem.evaluators.learning import HeldOutSplit, learned_and_valid
from ssrem.samples import SPLIT_NAMES, TRAIN, VALID, Candidates, Floats, Labels, Progress, Rows, draw
from ssrem.tokenize import words as words_of
from ssrem.training import Training
from ssrem.training.checkpoint import Checkpoint
from ssrem.training.trainer import Curve, Group, Loss, Schedule, Step, one_thread, shuffled_epochs, train

END, OTHER = 0, 1
"""Classes of the decoder: the end of a turn, and every word outside its vocabulary."""
_LOG_VARIANCE = 8.0


class GruNetwork(torch.nn.Module):
    """A recurrent network over the words of a turn, and one over the turns (Lowe et al. 2017, section 4, appendix C).

    Layer normalisation stands between the two; the paper has it inside the recurrence.
    """

    def __init__(self, dimensions: int, utterance: int, context: int) -> None:
        super().__init__()
        self.words = torch.nn.GRU(dimensions, utterance, batch_first=True)
        self.norm = torch.nn.LayerNorm(utterance)
        self.turns = torch.nn.GRUCell(utterance, context)

    @classmethod
    def of(cls, tensors: Mapping[str, Any], dimensions: int, utterance: int, context: int) -> GruNetwork:
        """The network with the weights among ADEM's tensors; EvaluatorError if their shapes do not fit."""
        with torch.random.fork_rng(devices=[]):
            net = cls(dimensions, utterance, context)
        weights = {name.removeprefix(PREFIX): a for name, a in tensors.items() if name.startswith(PREFIX)}
        take_weights(net, weights, "the recurrent encoder's", dimensions)
        return net

    def utterances(self, words: PackedSequence) -> torch.Tensor:
        """Encode n turns with at least one known word, given as `Stretches.packed`; float32 (n, utterance)."""
        _, last = self.words(words)
        normalised: torch.Tensor = self.norm(last[0])
        return normalised

    def states(self, utterances: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        """The state after each turn, float32 (n, t, context), from the encoded turns (n, t, utterance).

        A turn that is not `known`, bool (n, t), is skipped: the state stays as it was.
        """
        state = utterances.new_zeros(len(utterances), self.turns.hidden_size)
        states = []
        for turn in range(utterances.shape[1]):
            following = self.turns(utterances[:, turn], state)
            state = torch.where(known[:, turn, None], following, state)
            states.append(state)
        return torch.stack(states, dim=1)


@dataclass(frozen=True)
class Losses:
    """Losses of a batch, summed over its predicted turns, in nats.

    words: -log p(words and ends of the turns, given z and the turns before). divergence: KL[posterior || prior]. turns,
    tokens: the number of predicted turns, and of their words and ends.
    """

    words: torch.Tensor
    divergence: torch.Tensor
    turns: int
    tokens: int


class Vhred(torch.nn.Module):
    """Predicts each turn from those before it through a Gaussian z (Serban et al. 2017; eq. 11 of Lowe et al. 2017).

    The prior of z depends on the turns before, the posterior on the turn itself too. A summary of the turns before and
    z is the decoder's first state and part of its input at every word.
    """

    def __init__(self, dimensions: int, log_frequencies: NDArray[np.float32], settings: Any) -> None:
        super().__init__()
        context, hidden, latent = settings.context, settings.decoder, settings.latent
        self.encoder = GruNetwork(dimensions, settings.utterance, context)
        self.prior = _feed_forward(context, hidden, 2 * latent)
        self.posterior = _feed_forward(context + settings.utterance, hidden, 2 * latent)
        self.summary = torch.nn.Linear(context + latent, hidden)
        self.decoder = torch.nn.GRU(dimensions + hidden, hidden, batch_first=True)
        self.start = torch.nn.Parameter(torch.zeros(dimensions))
        self.dropped = torch.nn.Parameter(torch.zeros(dimensions))
        self.output = torch.nn.Linear(hidden, len(log_frequencies))
        # The bias starts at the words' log frequencies, so that no steps are spent on learning them.
        self.output.bias.data = torch.from_numpy(log_frequencies.copy())

    @classmethod
    def seeded(cls, dimensions: int, log_frequencies: NDArray[np.float32], settings: Any) -> Vhred:
        """The network before training; the caller's random state does not change."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            return cls(dimensions, log_frequencies, settings)

    def forward(
        self, batch: StretchBatch, classes: torch.Tensor, generator: torch.Generator, word_drop: float
    ) -> Losses:
        """Losses with one sample of z for each predicted turn.

        classes: int64 (v + 1,), the decoder's class of each row of the words' vectors. word_drop: share of the
        decoder's input words that are hidden from it.
        """
        known = torch.from_numpy(batch.known)
        vectors = torch.zeros(*known.shape, self.encoder.norm.normalized_shape[0])
        vectors[known] = self.encoder.utterances(batch.texts.of(batch.turns[batch.known]).packed(batch.words))
        states = self.encoder.states(vectors, known)
        wanted = torch.from_numpy(batch.predicted)
        context, utterance = states[:, :-1][wanted[:, 1:]], vectors[:, 1:][wanted[:, 1:]]
        prior = self.prior(context).chunk(2, dim=1)
        posterior = self.posterior(torch.cat([context, utterance], dim=1)).chunk(2, dim=1)
        noise = torch.randn(posterior[0].shape, generator=generator)
        z = posterior[0] + noise * torch.exp(posterior[1].clamp(-_LOG_VARIANCE, _LOG_VARIANCE) / 2)
        summary = torch.tanh(self.summary(torch.cat([context, z], dim=1)))
        texts = batch.texts.of(batch.turns[batch.predicted])
        loss = self._decode(summary, batch.words, texts, classes, generator, word_drop)
        tokens = int(texts.lengths.sum()) + len(texts.lengths)
        return Losses(loss, divergence(posterior, prior).sum(), len(texts.lengths), tokens)

    def _decode(
        self,
        summary: torch.Tensor,
        words: Words,
        texts: Stretches,
        classes: torch.Tensor,
        generator: torch.Generator,
        word_drop: float,
    ) -> torch.Tensor:
        """-log p of the words and ends of the texts, summed over all texts."""
        ids = torch.from_numpy(texts.padded(words.ids))
        hidden = torch.rand(ids.shape, generator=generator) < word_drop
        shown = hide(torch.from_numpy(words.vectors)[ids], hidden, self.dropped)
        starts = self.start.expand(len(ids), 1, -1)
        steps = summary[:, None].expand(-1, ids.shape[1] + 1, -1)
        inputs = torch.cat([torch.cat([starts, shown], dim=1), steps], dim=2)
        # Padding is row 0 and class 0 is the end of a turn, so that the end follows each text's words.
        targets = functional.pad(classes[ids], (0, 1), value=END)
        lengths = torch.from_numpy(texts.lengths + 1)
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        aims = pack_padded_sequence(targets, lengths, batch_first=True, enforce_sorted=False)
        decoded, _ = self.decoder(packed, summary[None])
        return functional.cross_entropy(self.output(decoded.data), aims.data, reduction="sum")


@dataclass(frozen=True)
class StretchBatch:
    """b stretches of conversation. turns: int64 (b, t), rows of `texts`, -1 where there is no turn."""

    words: Words
    texts: Stretches
    turns: Rows

    def part(self, rows: Rows | slice) -> StretchBatch:
        """The stretches at `rows`."""
        return StretchBatch(self.words, self.texts, self.turns[rows])

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether each turn has a known word, bool (b, t)."""
        return np.asarray((self.turns >= 0) & (self.texts.lengths[self.turns] > 0))

    @property
    def predicted(self) -> NDArray[np.bool_]:
        """Whether each turn is to be predicted, bool (b, t): it is known, and so is a turn before it."""
        known = self.known
        return known & (np.cumsum(known, axis=1) > known)


def hide(vectors: torch.Tensor, hidden: torch.Tensor, instead: torch.Tensor) -> torch.Tensor:
    """Word vectors (n, l, d) with those that are `hidden`, bool (n, l), replaced by the vector `instead`, (d,)."""
    return torch.where(hidden[..., None], instead, vectors)


def divergence(posterior: tuple[torch.Tensor, ...], prior: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """KL[posterior || prior], nats, (n,), of diagonal Gaussians given as mean and log variance, (n, k) each."""
    (mean, log_variance), (prior_mean, prior_log) = posterior, prior
    log_variance = log_variance.clamp(-_LOG_VARIANCE, _LOG_VARIANCE)
    prior_log = prior_log.clamp(-_LOG_VARIANCE, _LOG_VARIANCE)
    ratio = (torch.exp(log_variance) + (mean - prior_mean) ** 2) / torch.exp(prior_log)
    return 0.5 * (prior_log - log_variance + ratio - 1).sum(dim=1)


def kl_weight(step: int, anneal_steps: int) -> float:
    """Weight of the KL divergence in batch `step`, from 0: rises linearly from 0 to 1 over `anneal_steps` batches."""
    return 1.0 if step >= anneal_steps else step / anneal_steps


def _feed_forward(inputs: int, hidden: int, outputs: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, outputs)
    )


class VhredObjective:
    """Trains the dialogue model on stretches of conversation and validates it on others.

    The validation loss has the KL divergence with its full weight and no word drop; its noise is the same in every
    epoch.
    """

    def __init__(self, learned: StretchBatch, valid: StretchBatch, settings: Any) -> None:
        self.learned, self.valid, self.settings = learned, valid, settings
        words = learned.words
        self.classes, frequencies = decoder_classes(words, learned.texts, learned.turns, settings.vocabulary)
        self.net = Vhred.seeded(words.vectors.shape[1], frequencies, settings)
        self.taken = min(settings.max_train, len(learned.turns))
        self.steps = -(-self.taken // settings.batch_size)

    def learn(self, progress: Progress | None, checkpoint: Path | None) -> Curve:
        """Train with Adam, gradients clipped to norm 1; stop early once the KL divergence has its full weight."""
        settings = self.settings
        annealed = max(0, settings.anneal_steps - 1) // self.steps
        plan = Schedule(settings.epochs, settings.seed, patience=settings.patience, patience_from=annealed)
        words = self.learned.words
        data: list[NDArray[Any]] = [words.ids, words.ends, words.vectors]
        data += [self.learned.turns, self.valid.turns]
        unfinished = Checkpoint(checkpoint, settings.model_dump(), data) if checkpoint else None
        return train(self, plan, progress=progress, checkpoint=unfinished)

    def untrained_loss(self) -> float:
        """The validation loss of the network in its present state; call it before `learn`."""
        with torch.no_grad(), one_thread():
            return self.validate(0)["valid_loss"]

    def groups(self) -> Sequence[Group]:
        return [Group(dict(self.net.named_parameters()), self.settings.learning_rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        n, seed = len(self.learned.turns), [self.settings.seed, 3]
        return shuffled_epochs(n, self.settings.batch_size, seed, taken=self.taken)

    def loss(self, rows: Rows, step: Step) -> Loss:
        """-ELBO per word, with the KL divergence weighted; the learning curve shows it per turn and unweighted."""
        losses = self.net(self.learned.part(rows), self.classes, step.noise, self.settings.word_drop)
        weight = kl_weight(step.number, self.settings.anneal_steps)
        mean = (losses.words + weight * losses.divergence) / losses.tokens
        return Loss(mean, float((losses.words + losses.divergence).detach()), losses.turns)

    def validate(self, epoch: int) -> dict[str, float]:
        """Mean -ELBO and KL divergence per turn and -log p per word, in nats, and the KL divergence's weight."""
        words = kl = 0.0
        turns = tokens = 0
        noise = torch.Generator().manual_seed(self.settings.seed)
        for first in range(0, len(self.valid.turns), self.settings.batch_size):
            batch = self.valid.part(slice(first, first + self.settings.batch_size))
            losses = self.net(batch, self.classes, noise, 0.0)
            words, kl = words + float(losses.words), kl + float(losses.divergence)
            turns, tokens = turns + losses.turns, tokens + losses.tokens
        return {
            "valid_loss": (words + kl) / turns,
            "valid_kl": kl / turns,
            "valid_word_loss": words / tokens,
            "kl_weight": kl_weight(epoch * self.steps, self.settings.anneal_steps),
        }


def decoder_classes(
    words: Words, texts: Stretches, train: Rows, vocabulary: int
) -> tuple[torch.Tensor, NDArray[np.float32]]:
    """The decoder's class of each row of the words' vectors, int64 (v + 1,), and the log frequencies of the classes.

    Each of the `vocabulary` most frequent words of the training stretches has a class of its own; of equally frequent
    words the one used first comes first.
    """
    used = np.unique(train[train >= 0])
    ids = texts.of(used).padded(words.ids)
    counts = np.bincount(ids[ids > 0], minlength=len(words.vectors))
    ranked = np.argsort(-counts, kind="stable")
    frequent = ranked[: min(vocabulary, int((counts > 0).sum()))]
    classes = np.full(len(counts), OTHER, dtype=np.int64)
    classes[0] = END
    classes[frequent] = np.arange(len(frequent)) + 2
    sums = np.bincount(classes, weights=counts, minlength=len(frequent) + 2)
    sums[END] = len(used)
    # Add-one smoothing, so that every class has a frequency above 0.
    return torch.from_numpy(classes), np.log((sums + 1) / (sums + 1).sum()).astype(np.float32)


def fit(
    evaluator: Any, candidates: Candidates, progress: Progress | None, checkpoint: Path | None
) -> Training:
    """Train the recurrent encoder, if there is one, and fit the principal components; M and N are the identity.

    The validation split chooses the encoder's epoch and gives α, β and the bounds.
    """
    began, name, settings = time.perf_counter(), evaluator.name, evaluator.settings
    learned, valid, notes = learned_and_valid(name, candidates, candidates.has_context, "a context", settings)
    rows = {"train": len(learned), "valid": len(valid)}
    if settings.pretrained == "encoder":
        space, bounds, figures = _calibrated(evaluator, candidates, learned, valid, None)
        losses = {f"{split}_loss": figures[f"{split}_unexplained"] for split in ("train", "valid")}
        figures["valid_loss"] = losses["valid_loss"]
        notes.append("the encoder is off the shelf; loss: share of variance that the projection leaves out")
        if progress is not None:
            progress(1, 1)
        evaluator.take(space.tensors, bounds)
        seconds = time.perf_counter() - began
        return Training(({"epoch": 1, **losses},), 1, seconds, rows, figures, tuple(notes))
    objective = _vhred(evaluator, candidates, learned, valid)
    untrained_loss = objective.untrained_loss()
    curve = objective.learn(progress, checkpoint)
    net = objective.net.encoder
    space, bounds, figures = _calibrated(evaluator, candidates, learned, valid, net)
    weights = {PREFIX + weight: array for weight, array in learned_weights(net).items()}
    evaluator.take({**weights, **space.tensors}, bounds)
    figures["valid_loss_untrained"] = untrained_loss
    figures |= {key: value for key, value in curve.best.items() if key.startswith("valid_")}
    stretches = len(objective.learned.turns)
    rows["train_an_epoch"] = min(settings.max_train, stretches)
    if settings.max_train < stretches:
        notes.append(
            f"an epoch takes {settings.max_train} of {stretches} stretches of conversation, "
            "the next one goes on from there (max_train)"
        )
    return curve.training(began, rows, figures, notes)


def _vhred(evaluator: Any, candidates: Candidates, learned: Rows, valid: Rows) -> VhredObjective:
    """The dialogue model before training, on the stretches of conversation with a turn to predict.

    A stretch is a response with the last `context_turns` turns before it.
    """
    settings = evaluator.settings
    stretches = {
        split: np.column_stack(
            [context_rows(candidates, rows, settings.context_turns), candidates.response[rows]]
        )
        for split, rows in ((TRAIN, learned), (VALID, valid))
    }
    dialogues = Dialogues.among(candidates.texts, np.concatenate(list(stretches.values())))
    words = Words.of(dialogues.texts, evaluator.encoder)
    texts = words.first(len(dialogues.texts), settings.turn_words)
    usable = []
    for split, turns in zip(stretches, np.split(dialogues.turns, [len(learned)]), strict=True):
        batch = StretchBatch(words, texts, turns)
        usable.append(batch.part(np.flatnonzero(batch.predicted.any(axis=1))))
        if not len(usable[-1].turns):
            raise EvaluatorError(
                f"{evaluator.name}: no conversation of the {SPLIT_NAMES[split]} split has two turns with a known word; "
                "give more conversations, or an encoder that knows their words"
            )
    return VhredObjective(usable[0], usable[1], settings)


def _calibrated(
    evaluator: Any, candidates: Candidates, learned: Rows, valid: Rows, net: GruNetwork | None
) -> tuple[Space, dict[str, Bounds], dict[str, float]]:
    """The space with its projection from the training split and α, β from the validation split; bounds; figures.

    The bounds are from the validation split too. The figures are the share of the variance that the projection leaves
    out, and the share of negatives whose f is below that of the true response.
    """
    settings = evaluator.settings

    def read(turns: Rows) -> Encoded:
        """Encode dialogues that are rows of the candidates' texts, int64 (n, t); -1 stands for no turn."""
        dialogues = Dialogues.among(candidates.texts, turns)
        return Encoded.of(dialogues, evaluator.encoder, net, settings.turn_words)

    chosen = draw(learned, settings.pca_rows, [settings.seed, 6])
    contexts = read(context_rows(candidates, chosen, settings.context_turns))
    responses = read(candidates.response[chosen, None])
    pairs = [(getattr(contexts, name), getattr(responses, name)) for name in ("vectors", "known", "cut")]
    both = Encoded(*(np.concatenate(pair) for pair in pairs))
    if not both.known.any():
        raise EvaluatorError(
            f"{evaluator.name}: the encoder knows no word of the training split; name another one"
        )
    space = Space.around(both.vectors[both.known], settings.components, evaluator.pieces)
    # The true response first, then the first negative of each kind.
    negatives = [drawn[valid, 0] for drawn in candidates.negatives.values() if drawn.shape[1]]
    rows = np.column_stack([candidates.response[valid], *negatives])
    encoded = read(rows.reshape(-1, 1))
    vectors = space.project(encoded).reshape(*rows.shape, -1)
    sides = {
        "f": space.project(read(context_rows(candidates, valid, settings.context_turns))),
        "g": vectors[:, 0],
    }
    left = {part: np.repeat(sides[part], rows.shape[1], axis=0) for part in space.matrices}
    flat = space.products(Vectors(left, vectors.reshape(rows.size, -1), np.zeros(rows.size, dtype=bool)))
    products = {part: np.where(rows >= 0, each.reshape(rows.shape), np.nan) for part, each in flat.items()}
    # Most responses that will be scored are not the true one: if there are negatives, they alone give the constants.
    measured = slice(1 if (rows[:, 1:] >= 0).any() else 0, None)
    alpha, beta = spanning(np.sum(list(products.values()), axis=0)[:, measured])
    space = replace(space, alpha=alpha, beta=beta)
    bounds = {part: Bounds.of(share[:, measured]) for part, share in space.shares(products).items()}
    figures = {"train_unexplained": space.unexplained(both), "valid_unexplained": space.unexplained(encoded)}
    if "f" in products:
        difference = products["f"][:, :1] - products["f"][:, 1:]
        difference = difference[np.isfinite(difference)]
        if difference.size:  # a tie counts half
            figures["valid_gt_above"] = float(np.heaviside(difference, 0.5).mean())
    return space, bounds, figures


@dataclass(frozen=True)
class Labelled:
    """Vectors of n samples with their human scores on ADEM's scale, float64 (n,)."""

    vectors: Vectors
    targets: Floats

    def part(self, rows: Rows) -> Labelled:
        """The samples at `rows`."""
        return Labelled(self.vectors.part(rows), self.targets[rows])

    def error(self, space: Space) -> float:
        """Mean squared error of the scores that `space` gives against the human scores."""
        scores = space.score(space.products(self.vectors))
        return float(((scores - self.targets) ** 2).mean())


def tune(evaluator: Any, labels: Labels, progress: Progress | None) -> Training:
    """Learn M and N from human scores: minimise the mean squared error + γ(‖M‖ + ‖N‖).

    The human scores are mapped linearly to 1 to 5, and samples are repeated to balance their lengths and scores (Lowe
    et al. 2017, eq. 2, section 5.1 and appendix D). α and β are set so that the scores start with the mean of the human
    scores. Held-out contexts choose the epoch. Samples without a reference are left out if N is learned.
    """
    began, settings, space = time.perf_counter(), evaluator.settings, evaluator.space
    referenced = "g" in space.matrices
    usable = [pair for pair in labels.pairs if not referenced or pair[0].reference is not None]
    kind = "annotated responses with a reference" if referenced else "annotated responses"
    share, seed = settings.held_out, [settings.seed, 7]
    human = HeldOutSplit.of(evaluator.name, usable, labels.scale, share=share, seed=seed, kind=kind)
    vectors = space.read(human.samples, evaluator.encoder, evaluator.net, settings)
    labelled = Labelled(vectors, LOWEST + human.unit * (HIGHEST - LOWEST))
    learned, valid = (labelled.part(rows) for rows in human.split)
    lengths = np.array([len(words_of(sample.response)) for sample in human.samples], dtype=np.int64)
    drawn = over_sampled(lengths[~human.held_out], learned.targets, settings.length_bins, settings.seed)
    start = np.asarray(sum(space.products(learned.vectors).values()))
    beta = spanning(start)[1]
    before = replace(space, alpha=float(start.mean()) - float(learned.targets.mean()) * beta, beta=beta)
    after, curve = learn(before, learned.part(drawn), valid, settings, progress)
    bounds = {part: Bounds.of(each) for part, each in after.shares(after.products(vectors)).items()}
    evaluator.take({**evaluator.tensors, **after.tensors}, bounds, tuned=len(usable))
    error = valid.error(after)
    figures = {"valid_loss": error, "valid_loss_untuned": valid.error(before), "valid_rmse": error**0.5}
    notes = [human.note]
    if len(usable) < len(labels.pairs):
        notes.append(
            f"{len(labels.pairs) - len(usable)} annotated responses have no reference and are left out"
        )
    return curve.training(began, {**human.counts, "train_over_sampled": len(drawn)}, figures, notes)


def over_sampled(lengths: Rows, scores: Floats, bins: int, seed: int) -> Rows:
    """Sorted rows, each at least once, repeated so that all length bins are equally frequent within each score.

    lengths: number of words of each response, int64 (n,), cut into `bins` bins of about equal size. scores: float64
    (n,), rounded to whole numbers. Within a score, rows of every bin that has some are repeated up to the size of the
    largest bin; how often two rows of a bin occur differs by at most one.
    """
    generator = np.random.default_rng([seed, 8])
    edges = np.quantile(lengths, np.linspace(0, 1, bins + 1)[1:-1])
    by_length = np.searchsorted(edges, lengths, side="left")
    by_score = np.floor(scores + 0.5).astype(np.int64)
    drawn = []
    for score in np.unique(by_score):
        in_bins = [np.flatnonzero((by_score == score) & (by_length == length)) for length in range(bins)]
        wanted = max(map(len, in_bins))
        for rows in in_bins:
            if len(rows):
                more = generator.choice(rows, wanted % len(rows), replace=False)
                drawn += [np.tile(rows, wanted // len(rows)), more]
    return np.sort(np.concatenate(drawn))


def learn(
    space: Space, learned: Labelled, valid: Labelled, settings: Any, progress: Progress | None
) -> tuple[Space, Curve]:
    """The space with M and N of the epoch with the lowest mean squared error on `valid`, and the learning curve.

    Epoch 0 has the M and N of `space`. The optimiser is Adam. Training stops after `tune_patience` epochs without a
    lower error.
    """
    objective = MatricesObjective(space, learned, valid, settings)
    plan = Schedule(
        settings.tune_epochs, settings.seed, patience=settings.tune_patience, from_0=True, clip=None
    )
    curve = train(objective, plan, progress=progress)
    return replace(space, matrices=objective.matrices()), curve


class MatricesObjective:
    """Objective for `train` that learns M and N in float64 from human scores."""

    def __init__(self, space: Space, learned: Labelled, valid: Labelled, settings: Any) -> None:
        self.space, self.valid, self.settings = space, valid, settings
        self.parameters = {
            part: torch.nn.Parameter(torch.from_numpy(matrix.astype(np.float64)))
            for part, matrix in space.matrices.items()
        }
        vectors = learned.vectors
        self.left = {part: torch.from_numpy(vectors.left[part]) for part in self.parameters}
        self.right, self.targets = torch.from_numpy(vectors.right), torch.from_numpy(learned.targets)

    def groups(self) -> Sequence[Group]:
        return [Group(self.parameters, self.settings.tune_learning_rate)]

    def epochs(self) -> Iterator[Sequence[Rows]]:
        return shuffled_epochs(len(self.targets), self.settings.tune_batch_size, [self.settings.seed, 9])

    def loss(self, rows: Rows, step: Step) -> Loss:
        at = torch.from_numpy(rows)
        products = [
            ((self.left[part][at] @ matrix) * self.right[at]).sum(dim=1)
            for part, matrix in self.parameters.items()
        ]
        scores = (torch.stack(products).sum(dim=0) - self.space.alpha) / self.space.beta
        penalty = sum(torch.linalg.norm(matrix) for matrix in self.parameters.values())
        squared = ((scores - self.targets[at]) ** 2).mean()
        return Loss.averaged(squared + self.settings.gamma * penalty, len(rows))

    def validate(self, epoch: int) -> dict[str, float]:
        return {"valid_loss": self.valid.error(replace(self.space, matrices=self.matrices()))}

    def matrices(self) -> dict[str, NDArray[np.float32]]:
        """Part → M or N as it is now, float32 (k, k), the type in which it is saved."""
        return {part: matrix.detach().numpy().astype(np.float32) for part, matrix in self.parameters.items()}
