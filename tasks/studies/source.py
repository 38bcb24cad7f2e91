"""Where the data of a study come from: each class of data that studies take has a source.

Studies of corpora take true responses of a test split or how well its scores identify them; studies of annotated sets
take scores beside human scores, or human scores and the evaluators that learn from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sql import statement
from ssrem.agreement.cross_validation import Labelled
from ssrem.agreement.signature import digest
from ssrem.encoders.word_average import packaged_glove
from ssrem.errors import AnnotationError, EvaluatorError
from ssrem.evaluators import evaluator_class, load_evaluator
from ssrem.evaluators.base import Evaluator
from ssrem.evaluators.judge.asking import asking
from ssrem.registry import did_you_mean
from ssrem.samples import TEST, Progress, Sample
from ssrem.studies import EVERYDAY_PAIRS, study_called
from ssrem.studies.attacks import Score, TrueResponses, noting
from ssrem.studies.behaviour import FILE, Pairs, everyday_pairs
from ssrem.studies.learned import Human, Learn, Learning, Transfer
from ssrem.studies.neighbours import neighbours
from ssrem.studies.scored import Identified, Scored
from ssrem.tables.candidates import load_candidates
from tasks.agreement.landed_set import landed_sets, overall_part_of
from tasks.scoring.asking import asking_in, why_private
from tasks.scoring.batches import score_samples
from tasks.scoring.signatures import Version
from tasks.speaker_tables.build import candidate_sources, landed_corpus
from tasks.stage.ledger import sources
from tasks.stage.progress import progress
from tasks.stage.stage import Stage
from tasks.warehouse.home import Warehouse, landed_corpora

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class StudySettings:
    """responses: how many true responses are attacked, drawn by the seed from the test split; 0 for all."""

    study: str
    responses: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        study_called(self.study)
        if self.responses < 0 or self.seed < 0:
            raise EvaluatorError("responses and seed must not be negative")


class Source(ABC):
    """The published tables as the data of a study."""

    @abstractmethod
    def datasets(self, home: Warehouse) -> list[str]:
        """Corpora or annotated sets that can be studied; an error where there is none."""

    @abstractmethod
    def inputs(self, home: Warehouse, dataset: str) -> dict[str, Any]:
        """What the study is computed from, for the ledger; an error where there is no such dataset."""

    def usable(self, study: str, evaluators: Sequence[Version]) -> list[Version]:
        """The evaluators that the study can be of; EvaluatorError if there is none."""
        return list(evaluators)

    def samples(self, home: Warehouse, dataset: str, settings: StudySettings) -> list[Sample]:
        """The samples that each evaluator is to score for the study; none where it takes published scores."""
        return []

    @abstractmethod
    def load(
        self, stage: Stage, dataset: str, evaluators: Sequence[Version], settings: StudySettings
    ) -> Iterator[tuple[Version, Any]]:
        """The data of each evaluator, loaded one by one; AnnotationError or EvaluatorError without them."""


class WithoutReference(Source):
    """Responses scored by evaluators that need no true response."""

    def usable(self, study: str, evaluators: Sequence[Version]) -> list[Version]:
        usable = without_reference(evaluators)
        if not usable:
            names = ", ".join(name for name, _ in evaluators)
            raise EvaluatorError(
                f"{names}: scores by the true response, which {study} keeps back; name others with --evaluator"
            )
        return usable


class ScoredAnew(WithoutReference):
    """Responses that the evaluators score for the study."""

    @abstractmethod
    def data(
        self, connection: duckdb.DuckDBPyConnection, dataset: str, settings: StudySettings, score: Score
    ) -> Any:
        """The data of an evaluator with this score."""

    def samples(self, home: Warehouse, dataset: str, settings: StudySettings) -> list[Sample]:
        samples: dict[Sample, None] = {}
        with home.reader() as connection:
            data = self.data(connection, dataset, settings, noting(samples))
        study_called(settings.study).findings(data, settings.seed)
        return list(samples)

    def load(
        self, stage: Stage, dataset: str, evaluators: Sequence[Version], settings: StudySettings
    ) -> Iterator[tuple[Version, Any]]:
        data = self.data(stage.connection, dataset, settings, noting({}))
        for version in evaluators:
            yield version, replace(data, score=_scoring(stage, version, dataset))


class Corpus(WithoutReference):
    """A corpus whose test split is studied, by evaluators that score without the true response."""

    def datasets(self, home: Warehouse) -> list[str]:
        return landed_corpora(str(home.root))

    def inputs(self, home: Warehouse, dataset: str) -> dict[str, Any]:
        negatives = [p.key for p in home.partitions() if p.table == "negatives" and p.key.corpus == dataset]
        return {
            dataset: landed_corpus(home, dataset)[0],
            "tables": candidate_sources(home, [dataset]) + sources(home, ["negatives"], negatives),
        }


class EverydayPairs(ScoredAnew):
    """The packaged pairs of responses, scored by evaluators that need no reference."""

    def datasets(self, home: Warehouse) -> list[str]:
        return [EVERYDAY_PAIRS]

    def inputs(self, home: Warehouse, dataset: str) -> dict[str, Any]:
        if dataset != EVERYDAY_PAIRS:
            raise EvaluatorError(f"no pairs {dataset!r}: this study is of {EVERYDAY_PAIRS} alone")
        return {dataset: digest(FILE.read_text(encoding="utf-8"))}

    def data(
        self, connection: duckdb.DuckDBPyConnection, dataset: str, settings: StudySettings, score: Score
    ) -> Pairs:
        return Pairs(everyday_pairs(), score)


class TestSplit(Corpus, ScoredAnew):
    """True responses of the test split, drawn by the seed, with the generated negatives of each."""

    def data(
        self, connection: duckdb.DuckDBPyConnection, dataset: str, settings: StudySettings, score: Score
    ) -> TrueResponses:
        candidates = load_candidates(connection, [dataset])
        rows = candidates.rows(TEST)
        if settings.responses:
            draw = np.random.default_rng(settings.seed)
            rows = np.sort(draw.permutation(rows)[: settings.responses])
        if not len(rows):
            raise EvaluatorError(f"{dataset} has no response in its test split; land a larger corpus")
        texts, ids = candidates.texts, candidates.response[rows]
        samples = [
            Sample(tuple(texts[candidates.context_start[row] : candidates.context_stop[row]]), texts[at])
            for row, at in zip(rows, ids, strict=True)
        ]
        more = {"words replaced by near ones": neighbours(packaged_glove())}
        return TrueResponses(samples, score, more, _written_negatives(connection, dataset, ids))


class ScoredTestSplit(Corpus):
    """The scores of a test split: for each true response, the share of its negatives that score lower."""

    def load(
        self, stage: Stage, dataset: str, evaluators: Sequence[Version], settings: StudySettings
    ) -> Iterator[tuple[Version, Identified]]:
        names = ("turns of the speaker", "turns of the context", "words of the response")
        for version in evaluators:
            query = "7_studies/identified_responses"
            shares, *features = _scored_columns(stage, query, version, dataset, "train")
            yield version, Identified(shares, dict(zip(names, features, strict=True)))


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
            score, human, words, *of_context, systems = _scored_columns(
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
            with progress(f"{settings.study} of {name}") as advance, asking_in(stage.home, private=private):
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


SOURCES: dict[type, Source] = {
    Pairs: EverydayPairs(),
    TrueResponses: TestSplit(),
    Identified: ScoredTestSplit(),
    Scored: ScoredSet(),
    Learning: HumanScores(),
    Transfer: HumanScoresOfAllSets(),
}
"""Each class of data that studies take to its source."""


def without_reference(evaluators: Sequence[Version]) -> list[Version]:
    """The evaluators that score without the true response."""
    return [version for version in evaluators if "f" in evaluator_class(version[0]).parts]


def _scoring(stage: Stage, version: Version, dataset: str) -> Score:
    private = why_private(stage.home, dataset)

    def score(samples: Sequence[Sample]) -> Any:
        with asking(private=private):
            (scores,) = score_samples(stage.home, [version], samples, dataset, stage.scratch)
        return scores.f

    return score


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
    """EvaluatorError for a version that learned from one of the sets, on which it would be tested."""
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


def _scored_columns(
    stage: Stage, query: str, version: Version, dataset: str, verb: str, **values: str
) -> list[Any]:
    """The columns of a query about what a version scored, numbers as float (n,).

    AnnotationError, naming the verb that scores, if it scored nothing.
    """
    evaluator, number = version
    who = {"evaluator": evaluator, "version": number, "dataset": dataset}
    rows = stage.connection.execute(statement(query), {**who, **values}).fetchall()
    if not rows:
        raise AnnotationError(
            f"{dataset} has no scores of {evaluator} version {number}; run ssrem {verb} {evaluator} first"
        )
    return [
        column if isinstance(column[0], str | None) else np.array(column, dtype=np.float64)
        for column in zip(*rows, strict=True)
    ]


def _written_negatives(
    connection: duckdb.DuckDBPyConnection, corpus: str, ids: NDArray[np.int64]
) -> dict[str, list[str | None]]:
    """Generator → its first negative of each response (n,), None if it has none."""
    rows = connection.execute(
        "SELECT generator, response_id, text FROM negatives WHERE corpus = ? AND k = 0 ORDER BY ALL", [corpus]
    ).fetchall()
    place = {int(response): at for at, response in enumerate(ids)}
    written: dict[str, list[str | None]] = {}
    for generator, response, text in rows:
        if response in place:
            texts = written.setdefault(f"negative of {generator}", [None] * len(ids))
            texts[place[response]] = text
    return written
