"""Attacks: responses that no person would prefer to the true one, and how often an evaluator does.

Sai et al. (2019) attack ADEM in such ways.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssrem.samples import Sample
from ssrem.studies.study import Finding, Study, best

Score = Callable[[Sequence[Sample]], NDArray[Any]]
"""Samples to their scores, float (n,)."""
Attack = Callable[[Sample, random.Random], str | None]
"""A sample and a generator to the response that replaces the true one; None where the attack does not apply."""

DROPPED = 0.3
TIE = 1e-4
"""In standard deviations of the true responses' scores: a smaller difference is a rounding error, not a preference."""
POOL = 10
"""True responses that are tried as the universal response."""
GENERIC = ("i don't know .", "yes .", "that's great !", "what do you mean ?")
UNIVERSAL = "universal response"

_VERBS = re.compile(
    r"\b(am|is|are|was|were|do|does|did|have|has|had|can|could|will|would|should|must)\b", re.I
)
_NOT = re.compile(r"\s*\b(not)\b|n't\b", re.I)


def _words(change: Callable[[list[str], random.Random], list[str]]) -> Attack:
    """An attack that changes the words of a response; it does not apply to a single word."""

    def attack(sample: Sample, draw: random.Random) -> str | None:
        words = sample.response.split()
        return " ".join(change(words, draw)) if len(words) > 1 else None

    return attack


def _dropped(words: list[str], draw: random.Random) -> list[str]:
    remaining = draw.sample(range(len(words)), max(1, round(len(words) * (1 - DROPPED))))
    return [words[at] for at in sorted(remaining)]


def _negated(sample: Sample, _: random.Random) -> str | None:
    """The response without its first 'not', or with one after its first auxiliary verb."""
    if _NOT.search(sample.response):
        return _NOT.sub("", sample.response, count=1)
    verb = _VERBS.search(sample.response)
    return f"{sample.response[: verb.end()]} not{sample.response[verb.end() :]}" if verb else None


ATTACKS: dict[str, Attack] = {
    "context copied": lambda sample, _: sample.context[-1] if sample.context else None,
    "response repeated": lambda sample, _: f"{sample.response} {sample.response}",
    "words dropped": _words(_dropped),
    "words shuffled": _words(lambda words, draw: draw.sample(words, len(words))),
    "words reversed": _words(lambda words, _: words[::-1]),
    "negated": _negated,
    "generic response": lambda _, draw: draw.choice(GENERIC),
    "empty response": lambda *_: "",
}


def noting(samples: dict[Sample, None]) -> Score:
    """A score function that scores nothing but adds its samples to `samples`: what a study would score."""

    def noted(responses: Sequence[Sample]) -> NDArray[np.float64]:
        samples.update(dict.fromkeys(responses))
        return np.arange(len(responses), dtype=np.float64)

    return noted


@dataclass(frozen=True)
class TrueResponses:
    """True responses in their contexts (n,), scored by `score` without references. more: name → attack, besides
    `ATTACKS`. written: name of a generator → its response in place of each sample's (n,), None where it has none."""

    samples: Sequence[Sample]
    score: Score
    more: Mapping[str, Attack] = field(default_factory=dict)
    written: Mapping[str, Sequence[str | None]] = field(default_factory=dict)


def attacks(data: TrueResponses, seed: int) -> list[Finding]:
    """Share of the true responses (n) that each attack does not score below: how often it fools the evaluator, in
    [0, 1].

    A tie counts as fooled: the evaluator does not distinguish the two. An attack without a score, such as an empty
    response, does not fool. Samples are scored without references, because the reference of a true response is the
    response itself. A response that an attack does not change is not counted. The universal response is the one of
    `POOL` true responses that scores highest on average in the contexts of half of the samples; it is tried in the
    contexts of the other half.
    """
    samples = [replace(sample, reference=None) for sample in data.samples]
    true = np.asarray(data.score(samples), dtype=np.float64)
    has_score = np.isfinite(true)  # a judge may refuse one
    samples, true = list(compress(samples, has_score)), true[has_score]
    written = {name: list(compress(texts, has_score)) for name, texts in data.written.items()}
    texts: dict[str, Sequence[str | None]] = {}
    for name, attack in {**ATTACKS, **data.more}.items():
        draw = random.Random(f"{seed} {name}")
        texts[name] = [attack(sample, draw) for sample in samples]
    findings = [
        fooled(name, samples, true, data.score, changed) for name, changed in {**texts, **written}.items()
    ]
    return [*findings, _universal(samples, true, data.score, random.Random(f"{seed} {UNIVERSAL}"))]


def fooled(
    name: str, samples: Sequence[Sample], true: NDArray[Any], score: Score, changed: Sequence[str | None]
) -> Finding:
    """Share of the samples (n), with the scores `true`, that score no higher than with the response replaced by that of
    `changed` (n,), None where the attack does not apply. Samples without a true score are left out."""
    tried = [
        (at, text)
        for at, text in enumerate(changed)
        if text is not None and text != samples[at].response and np.isfinite(true[at])
    ]
    if not tried:
        return Finding(name, "fooled", None, 0, "too_few")
    scores = np.asarray(score([replace(samples[at], response=text) for at, text in tried]), dtype=np.float64)
    share = float((scores >= true[[at for at, _ in tried]] - TIE * np.nanstd(true)).mean())
    return Finding(name, "fooled", share, len(tried))


def _universal(samples: Sequence[Sample], true: NDArray[Any], score: Score, draw: random.Random) -> Finding:
    order = draw.sample(range(len(samples)), len(samples))
    seen, unseen = order[: len(order) // 2], order[len(order) // 2 :]
    pool = sorted({samples[at].response for at in seen})
    if not pool:
        return Finding(UNIVERSAL, "fooled", None, 0, "too_few")
    pool = draw.sample(pool, min(POOL, len(pool)))
    scores = np.array([score([replace(samples[at], response=text) for at in seen]) for text in pool])
    complete = np.isfinite(scores).all(axis=1)  # a judge may refuse one
    if not complete.any():
        return Finding(UNIVERSAL, "fooled", None, 0, "too_few")
    magic = pool[int(np.argmax(np.where(complete, scores.mean(axis=1), -np.inf)))]
    tried = set(unseen)
    changed = [magic if at in tried else None for at in range(len(samples))]
    return fooled(UNIVERSAL, samples, true, score, changed)


def _sentences(findings: Sequence[Finding]) -> tuple[str, str]:
    """What fools the evaluator most and least."""
    ranked = best(findings, "fooled")
    if not ranked:
        return "Too few responses to say what fools it.", "Take more with --responses."
    most, least = ranked[0], ranked[-1]
    return (
        f"What fools it most is {most.condition}: {most.value:.0%} of {most.n} score no lower than the true response.",
        f"What fools it least is {least.condition}: {least.value:.0%} of {least.n}.",
    )


STUDY = Study(
    "attacks",
    "Attacks",
    "The share of true responses that score no higher than what was made of them: the lower, the better.",
    TrueResponses,
    attacks,
    _sentences,
    "share fooled",
)
