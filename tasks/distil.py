"""Distillation: a judge scores responses of corpora, and an evaluator that needs no endpoint learns these labels."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ssrem.errors import EvaluatorError, say
from ssrem.evaluators import load_evaluator
from ssrem.evaluators.judge.endpoint import Client, RequestOptions
from ssrem.evaluators.learning import check_enough, left_out, negatives_by_response
from ssrem.negatives import load_generator
from ssrem.samples import TRAIN, Candidates, Labels, Sample
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.correlate import correlate_landed
from ssrem.tasks.endpoints import connected
from ssrem.tasks.settings import TrainSettings
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.versions import Version, promoted, unregistered
from ssrem.tasks.warehouse.home import Warehouse, landed_corpora, records

GRADED = "sc+generic+random+copied+shuffle-golden"
"""Generators of the wrong responses that the judge scores beside true ones, from hard to easy to recognise: another
turn of the speaker in the same conversation, a generic turn, anyone's turn, the last turn again, and shuffled words."""

TIMED = 100
"""Most responses on which the student's CPU time is measured."""

_AGREEMENT = """
    SELECT
        v.evaluator, v.version, c.dataset, c.criterion, c.score, c.n, c.spearman, c.spearman_low AS low,
        c.spearman_high AS high
    FROM (VALUES (?, ?), (?, ?)) AS v (evaluator, version) LEFT JOIN correlations AS c
        ON v.evaluator = c.evaluator AND v.version = c.version AND c.level = 'segment' AND c.aggregation = 'mean'
    ORDER BY c.dataset, c.criterion, v.evaluator DESC, c.score
"""


def judge_in_use(home: Warehouse, settings: TrainSettings) -> tuple[Version, Any, Client]:
    """The judge that gives the labels, as (its version, the judge, its client); EvaluatorError if there is none."""
    name = str(settings.labels_from)
    RequestOptions(**settings.asking)  # raises SsremError for an invalid value
    if unregistered(home, [name]):
        raise EvaluatorError(
            f"--labels-from {name}: none is set up in {home.root}; ssrem train {name} --set model=NAME base_url=URL "
            "sets one up, and asks nothing yet"
        )
    ((_, version),) = promoted(home, [name])
    judge = load_evaluator(home.models / name / str(version))
    return (name, version), judge, Client(settings.max_requests, settings.asking)


def graded(name: str, candidates: Candidates, settings: TrainSettings) -> list[Sample]:
    """Responses for the judge to score: true ones of the training split, drawn by the seed, each before a wrong one to
    the same context, of the kinds of GRADED in turn. There are `settings.responses`, or as many as the split has; more
    of them begin with the same ones, whose answers are there already. EvaluatorError if they are too few to learn from.
    """
    rows = candidates.rows(TRAIN)
    rows = np.random.default_rng([settings.seed, 6]).permutation(rows[candidates.has_context[rows]])
    drawn = rows[: ((settings.responses or 0) + 1) // 2]
    groups = negatives_by_response(name, candidates, TRAIN, drawn, load_generator(GRADED), settings.seed)
    samples = [
        sample
        for at, (true, wrong) in enumerate(groups)
        for sample in (true, Sample(true.context, wrong[at % len(wrong)].text))
    ][: settings.responses]
    check_enough(name, samples, "responses to ask a judge about")
    return samples


def judged(
    name: str, corpora: Sequence[str], home: Warehouse, settings: TrainSettings
) -> dict[str, tuple[str, Labels]]:
    """NAME@VERSION of the judge → the digest of its labels, and the labels, as `human_scores` returns those of sets;
    empty without `settings.labels_from`.

    Answers that are in the judge's journal are not requested again. Raises EvaluatorError if there is no judge, if
    responses or answers are too few, or if all answers are the same.
    """
    if not settings.labels_from:
        return {}
    version, judge, client = judge_in_use(home, settings)
    with home.reader() as connection:
        samples = graded(name, load_candidates(connection, corpora), settings)
    with progress(f"asking {version[0]}") as advance:
        scores = connected(judge, home, client, advance).components(samples)
    pairs = [pair for pair in zip(samples, scores.score.tolist(), strict=True) if np.isfinite(pair[1])]
    notes = left_out(scores.reasons.tolist())
    check_enough(name, [sample for sample, _ in pairs], f"answers of {version[0]} ({', '.join(notes)})")
    if len(given := {score for _, score in pairs}) == 1:
        raise EvaluatorError(
            f"{name}: {version[0]} gives all {len(pairs):,} responses the score {given.pop():g}, which teaches "
            "nothing; choose another model or prompt"
        )
    for note in notes:
        say(f"{version[0]}: {note}")
    labels = Labels(tuple(pairs), judge.range, judge.prompt.criterion, 0)
    content = [[*sample.context, sample.response, score] for sample, score in pairs]
    digest = hashlib.sha256(json.dumps([content, labels.scale]).encode()).hexdigest()
    return {"@".join(map(str, version)): (digest, labels)}


def judge_and_student(
    name: str, student: int, corpora: Sequence[str], home: Warehouse, settings: TrainSettings
) -> list[dict[str, Any]]:
    """Rows that compare judge and student: Spearman's ρ with people and its interval, on every annotated set that the
    judge has scored here, and what 1,000 responses cost. Without such a set there is one row for each of the two.

    requests, prompt_tokens, completion_tokens: the judge's, as in a dry run; cpu_seconds: the student's, measured here.
    """
    version, judge, _ = judge_in_use(home, settings)
    scored = "SELECT DISTINCT dataset FROM agreement WHERE evaluator = ? AND version = ?"
    for (dataset,) in home.query(scored, version):
        correlate_landed(dataset, [(name, student)], str(home.root))
    with home.reader(query=_AGREEMENT) as connection:
        rows = records(connection, _AGREEMENT, [*version, name, student])
        chosen = landed_corpora(home.root, corpora)
        samples = graded(name, load_candidates(connection, chosen), settings)
    asked = judge.asked(samples)  # without its journal, so that all requests count
    price = {what: round(1000 * asked[what] / len(samples)) for what in asked if what != "answered_before"}
    model = load_evaluator(home.models / name / str(student))
    model.score(samples[:1])  # so that loading its encoder is not measured
    timed, began = samples[1 : TIMED + 1], time.process_time()
    model.score(timed)
    seconds = 1000 * (time.process_time() - began) / len(timed)
    free = {**dict.fromkeys(price, 0), "cpu_seconds": seconds}
    return [{**row, **(free if row["evaluator"] == name else price | {"cpu_seconds": None})} for row in rows]
