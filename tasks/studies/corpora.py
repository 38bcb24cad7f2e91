"""Data for studies of corpora: true responses of a test split to attack, and how well its scores identify them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sql import statement
from ssrem.encoders.word_average import packaged_glove
from ssrem.errors import AnnotationError, EvaluatorError
from ssrem.evaluators import evaluator_class
from ssrem.samples import TEST, Sample
from ssrem.studies.attacks import TrueResponses
from ssrem.studies.neighbours import neighbours
from ssrem.studies.scored import Identified
from tasks.scoring.batches import score_samples
from tasks.speaker_tables.build import candidate_sources, landed_corpus
from tasks.speaker_tables.load import load_candidates
from tasks.stage.ledger import sources
from tasks.stage.stage import Stage
from tasks.studies.source import Source, StudySettings, Version
from tasks.warehouse.home import Warehouse, landed_corpora


class Corpus(Source):
    """A corpus whose test split is studied, by evaluators that score without the true response."""

    def datasets(self, home: Warehouse) -> list[str]:
        return landed_corpora(str(home.root))

    def inputs(self, home: Warehouse, dataset: str) -> dict[str, Any]:
        negatives = [p.key for p in home.partitions() if p.table == "negatives" and p.key.corpus == dataset]
        return {
            dataset: landed_corpus(home, dataset)[0],
            "tables": candidate_sources(home, [dataset]) + sources(home, ["negatives"], negatives),
        }

    def usable(self, study: str, evaluators: Sequence[Version]) -> list[Version]:
        usable = [version for version in evaluators if "f" in evaluator_class(version[0]).parts]
        if not usable:
            names = ", ".join(name for name, _ in evaluators)
            raise EvaluatorError(
                f"{names}: scores by the true response, which {study} keeps back; name others with --evaluator"
            )
        return usable


class TestSplit(Corpus):
    """True responses of the test split, drawn by the seed, with what landed generators wrote in their place."""

    def load(
        self, stage: Stage, dataset: str, evaluators: Sequence[Version], settings: StudySettings
    ) -> Iterator[tuple[Version, TrueResponses]]:
        candidates = load_candidates(stage.connection, [dataset])
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
        written = _written_negatives(stage, dataset, ids)
        for version in evaluators:

            def score(attacked: Sequence[Sample], version: Version = version) -> Any:
                (scores,) = score_samples(stage.home, [version], attacked, dataset, stage.scratch)
                return scores.f

            yield version, TrueResponses(samples, score, more, written)


class ScoredTestSplit(Corpus):
    """The scores of a test split: the share of its negatives that each true response is above."""

    def load(
        self, stage: Stage, dataset: str, evaluators: Sequence[Version], settings: StudySettings
    ) -> Iterator[tuple[Version, Identified]]:
        names = ("turns of the speaker", "turns of the context", "words of the response")
        for version in evaluators:
            shares, *features = scored_columns(
                stage, "7_studies/identified_responses", version, dataset, "train"
            )
            yield version, Identified(shares, dict(zip(names, features, strict=True)))


def scored_columns(
    stage: Stage, query: str, version: Version, dataset: str, verb: str, **values: str
) -> list[Any]:
    """The columns of a query for what a version scored, numbers as float (n,); AnnotationError, naming the verb that
    scores, where it scored nothing."""
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


def _written_negatives(stage: Stage, corpus: str, ids: NDArray[np.int64]) -> dict[str, list[str | None]]:
    """The first negative of each response (n,) by each landed generator; None where there is none."""
    rows = stage.connection.execute(
        "SELECT generator, response_id, text FROM negatives WHERE corpus = ? AND k = 0 ORDER BY ALL", [corpus]
    ).fetchall()
    place = {int(response): at for at, response in enumerate(ids)}
    written: dict[str, list[str | None]] = {}
    for generator, response, text in rows:
        if response in place:
            texts = written.setdefault(f"negative of {generator}", [None] * len(ids))
            texts[place[response]] = text
    return written
