"""Studies of scores: of attacks on true responses, of a corpus's scored test split, of a scored annotated set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sql import statement
from ssrem.encoders.word_average import packaged_glove
from ssrem.errors import AnnotationError, EvaluatorError
from ssrem.samples import TEST, Sample
from ssrem.studies.attacks import attacks
from ssrem.studies.finding import Finding
from ssrem.studies.neighbours import neighbours
from ssrem.studies.scored import SCORED, Scored, identified
from tasks.scoring.batches import score_samples
from tasks.speaker_tables.load import load_candidates
from tasks.stage.stage import Stage

Found = dict[tuple[str, int], list[Finding]]
"""Evaluator and version to what a study finds of it."""


def attacked(
    stage: Stage, corpus: str, evaluators: Sequence[tuple[str, int]], responses: int, seed: int
) -> Found:
    """Attacks on true responses of the corpus's test split, drawn by the seed; 0 for all of them."""
    candidates = load_candidates(stage.connection, [corpus])
    rows = candidates.rows(TEST)
    if responses:
        rows = np.sort(np.random.default_rng(seed).permutation(rows)[:responses])
    if not len(rows):
        raise EvaluatorError(f"{corpus} has no response in its test split; land a larger corpus")
    texts, ids = candidates.texts, candidates.response[rows]
    samples = [
        Sample(tuple(texts[candidates.context_start[row] : candidates.context_stop[row]]), texts[at])
        for row, at in zip(rows, ids, strict=True)
    ]
    more = {"words replaced by near ones": neighbours(packaged_glove())}
    written = _negatives(stage, corpus, ids)
    found = {}
    for who in evaluators:

        def score(asked: Sequence[Sample], who: tuple[str, int] = who) -> Any:
            (scores,) = score_samples(stage.home, [who], asked, corpus, stage.scratch)
            return scores.f

        found[who] = attacks(samples, score, seed=seed, more=more, written=written)
    return found


def _negatives(stage: Stage, corpus: str, ids: NDArray[np.int64]) -> dict[str, list[str | None]]:
    """What landed generators made of the responses (n,), by generator: the first of each, None where there is none."""
    rows = stage.connection.execute(
        "SELECT generator, response_id, text FROM negatives WHERE corpus = ? AND k = 0 ORDER BY ALL", [corpus]
    ).fetchall()
    place = {int(response): at for at, response in enumerate(ids)}
    found: dict[str, list[str | None]] = {}
    for generator, response, text in rows:
        if response in place:
            found.setdefault(f"negative of {generator}", [None] * len(ids))[place[response]] = text
    return found


def of_corpus(stage: Stage, corpus: str, evaluators: Sequence[tuple[str, int]]) -> Found:
    """Where true responses of the corpus's scored test split are told from their negatives, and where not."""
    found = {}
    for name, version in evaluators:
        shares, *features = _columns(stage, "7_studies/identified_responses", name, version, corpus, "train")
        names = ("turns of the speaker", "turns of the context", "words of the response")
        found[name, version] = identified(shares, dict(zip(names, features, strict=True)))
    return found


def of_annotated(stage: Stage, dataset: str, evaluators: Sequence[tuple[str, int]], study: str) -> Found:
    """A study of `SCORED` on an annotated set that the evaluators have scored."""
    found = {}
    for name, version in evaluators:
        *numbers, systems = _columns(
            stage, "7_studies/scored_responses", name, version, dataset, "agree FILE --evaluator"
        )
        score, human, words, turns, context_words = numbers
        features = {
            "words of the response": words,
            "turns of the context": turns,
            "words of the context": context_words,
        }
        data = Scored(score, human, words, systems, features)
        found[name, version] = SCORED[study](data)
    return found


def _columns(stage: Stage, query: str, evaluator: str, version: int, dataset: str, verb: str) -> list[Any]:
    """The columns of a query for what a version scored, numbers as float (n,); an error where it scored nothing."""
    who = {"evaluator": evaluator, "version": version, "dataset": dataset}
    rows = stage.connection.execute(statement(query), who).fetchall()
    if not rows:
        raise AnnotationError(
            f"{dataset} has no scores of {evaluator} version {version}; run ssrem {verb} {evaluator} first"
        )
    return [
        column if isinstance(column[0], str | None) else np.array(column, dtype=np.float64)
        for column in zip(*rows, strict=True)
    ]
