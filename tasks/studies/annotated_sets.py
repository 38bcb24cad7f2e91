"""Data of studies from annotated sets: scores with human scores, or human scores for an evaluator to learn from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ssrem.agreement.cross_validation import Labelled
from ssrem.errors import AnnotationError, EvaluatorError
from ssrem.evaluators import evaluator_class, load_evaluator
from ssrem.evaluators.base import Evaluator
from ssrem.registry import did_you_mean
from ssrem.samples import Progress, Sample
from ssrem.sql import statement
from ssrem.studies.learned import Human, Learn, Learning, Transfer
from ssrem.studies.scored import Scored
from ssrem.tasks.agreement.landed_set import landed_sets, overall_part_of
from ssrem.tasks.scoring.endpoint_requests import request_options_in, why_private
from ssrem.tasks.scoring.signatures import Version
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.studies.source import Source, StudySettings, scored_columns
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    import duckdb


class AnnotatedSet(Source):
    """An annotated set that ssrem correlate has landed."""

    def datasets(self, home: Warehouse) -> list[str]:
        names = list(_digests(home))
        if not names:
            raise AnnotationError(
                f"this study compares with people, and {home.root} has no annotated set; "
                "run ssrem correlate FILE first"
            )
        return names

    def inputs(self, home: Warehouse, dataset: str) -> dict[str, Any]:
        digests = _digests(home)
        if dataset not in digests:
            known = ", ".join(digests)
            raise AnnotationError(
                f"no annotated set {dataset!r} in {home.root} (there are: {known}){did_you_mean(dataset, digests)}"
            )
        return {dataset: digests[dataset]}


class ScoredSet(AnnotatedSet):
    """The set with the scores of evaluators."""

    def load(
        self, stage: Stage, dataset: str, evaluators: Sequence[Version], settings: StudySettings
    ) -> Iterator[tuple[Version, Scored]]:
        for version in evaluators:
            part = overall_part_of(stage.connection, version, dataset)
            query, verb = "7_studies/scored_responses", "correlate FILE --evaluator"
            score, human, words, *of_context, systems = scored_columns(
                stage, query, version, dataset, verb, part=part
            )
            names = ("words of the response", "turns of the context", "words of the context")
            features = dict(zip(names, (words, *of_context), strict=True))
            yield version, Scored(score, human, words, systems, features)


class HumanScores(AnnotatedSet):
    """The set's human scores, and the evaluators that learn from them."""

    def usable(self, study: str, evaluators: Sequence[Version]) -> list[Version]:
        classes: dict[Version, Any] = {version: evaluator_class(version[0]) for version in evaluators}
        usable = [version for version, kind in classes.items() if "labels" in kind.learns_from]
        if not usable:
            names = ", ".join(name for name, _ in evaluators)
            raise EvaluatorError(
                f"{names}: learns nothing from human scores, which {study} is about; train roberta-eval, blend, adem "
                "or ruber, and name it with --evaluator"
            )
        return usable

    def samples(self, home: Warehouse, dataset: str, settings: StudySettings) -> list[Sample]:
        with home.reader() as connection:
            sets = [_human(connection, name) for name in self.inputs(home, dataset)]
        return list(dict.fromkeys(sample for human in sets for sample in human.samples))

    def load(
        self, stage: Stage, dataset: str, evaluators: Sequence[Version], settings: StudySettings
    ) -> Iterator[tuple[Version, Learning]]:
        digests = self.inputs(stage.home, dataset)
        for version in evaluators:
            _refuse_trained_on(stage, version, digests)
        sets = {name: _human(stage.connection, name) for name in digests}
        private = next(filter(None, (why_private(stage.home, name) for name in digests)), None)
        for name, number in evaluators:
            base: Any = load_evaluator(stage.home.models / name / str(number))
            with (
                progress(f"{settings.study} of {name}") as advance,
                request_options_in(stage.home, private=private),
            ):
                yield (name, number), self.learning(dataset, sets, _learn(base, advance))

    def learning(self, dataset: str, sets: dict[str, Human], learn: Learn) -> Learning:
        """The data of the study, from all sets of `inputs`."""
        return Learning(sets[dataset], learn)


class HumanScoresOfAllSets(HumanScores):
    """The human scores of every annotated set, one of which is learned from."""

    def inputs(self, home: Warehouse, dataset: str) -> dict[str, Any]:
        return {**super().inputs(home, dataset), **_digests(home)}

    def learning(self, dataset: str, sets: dict[str, Human], learn: Learn) -> Transfer:
        others = {name: human for name, human in sets.items() if name != dataset}
        return Transfer(sets[dataset], learn, dataset, others)


def _digests(home: Warehouse) -> dict[str, str]:
    """Every annotated set to the digest of its content."""
    with home.reader() as connection:
        return landed_sets(connection)


def _learn(base: Any, advance: Progress) -> Learn:
    def learn(pairs: Labelled, scale: tuple[float, float]) -> Evaluator:
        tuned: Evaluator = base.fine_tuned(pairs, scale=scale, progress=advance)
        return tuned

    return learn


def _refuse_trained_on(stage: Stage, version: Version, digests: Mapping[str, str]) -> None:
    """EvaluatorError for a version that learned from one of the sets, since it would be tested on what it learned."""
    row = stage.connection.execute(
        "SELECT labels FROM evaluators WHERE evaluator = ? AND version = ?", list(version)
    ).fetchone()
    known = [dataset for dataset, digest in digests.items() if row and digest in (row[0] or "")]
    if known:
        raise EvaluatorError(
            f"{version[0]} version {version[1]} learned from the human scores of {known[0]} already; promote a "
            "version that did not, or name another evaluator"
        )


def _human(connection: duckdb.DuckDBPyConnection, dataset: str) -> Human:
    rows = connection.execute(statement("7_studies/labelled_responses"), {"dataset": dataset}).fetchall()
    if not rows:
        raise AnnotationError(f"{dataset}: every response is ground truth, which nothing is learned from")
    contexts, responses, references, systems, scores, (low, *_), (high, *_) = zip(*rows, strict=True)
    samples = [
        Sample(tuple(context), response, reference)
        for context, response, reference in zip(contexts, responses, references, strict=True)
    ]
    return Human(samples, np.array(scores, dtype=np.float64), (low, high), systems)
