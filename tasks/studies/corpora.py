"""Data of studies without human scores: the test split of a corpus, and the packaged pairs of responses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssrem.agreement.signature import digest
from ssrem.encoders.static.word_average import packaged_glove
from ssrem.errors import EvaluatorError
from ssrem.evaluators import evaluator_class
from ssrem.evaluators.judge.request_options import request_options
from ssrem.samples import TEST, Sample
from ssrem.studies import EVERYDAY_PAIRS, study_called
from ssrem.studies.attacks import Score, TrueResponses, noting
from ssrem.studies.behaviour import FILE, Pairs, everyday_pairs
from ssrem.studies.neighbours import neighbours
from ssrem.studies.scored import Identified
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.scoring.batches import score_samples
from ssrem.tasks.scoring.endpoint_requests import why_private
from ssrem.tasks.scoring.signatures import Version
from ssrem.tasks.speaker_tables.build import candidate_sources
from ssrem.tasks.stage.ledger import sources
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.studies.source import Source, StudySettings, scored_columns
from ssrem.tasks.warehouse.corpora import landed_corpora, landed_corpus
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    import duckdb


class WithoutReference(Source):
    """Responses scored by evaluators that do not need the true response."""

    def usable(self, study: str, evaluators: Sequence[Version]) -> list[Version]:
        usable = without_reference(evaluators)
        if not usable:
            names = ", ".join(name for name, _ in evaluators)
            raise EvaluatorError(
                f"{names}: scores by the true response, which {study} keeps back; name others with --evaluator"
            )
        return usable


class ScoredAnew(WithoutReference):
    """Responses that the evaluators score when the study runs, rather than published scores."""

    @abstractmethod
    def data(
        self, connection: duckdb.DuckDBPyConnection, dataset: str, settings: StudySettings, score: Score
    ) -> Any:
        """The data of an evaluator with this score function."""

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
            shares, *features = scored_columns(stage, query, version, dataset, "train")
            yield version, Identified(shares, dict(zip(names, features, strict=True)))


def without_reference(evaluators: Sequence[Version]) -> list[Version]:
    """The evaluators that score without the true response."""
    return [version for version in evaluators if "f" in evaluator_class(version[0]).parts]


def _scoring(stage: Stage, version: Version, dataset: str) -> Score:
    private = why_private(stage.home, dataset)

    def score(samples: Sequence[Sample]) -> Any:
        with request_options(private=private):
            (scores,) = score_samples(stage.home, [version], samples, dataset, stage.scratch)
        return scores.f

    return score


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
