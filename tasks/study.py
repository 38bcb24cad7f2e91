"""Stage `study`: what an evaluator's scores depend on besides quality."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ssrem.agreement.figures import digest
from ssrem.encoders.words import packaged_glove
from ssrem.errors import AnnotationError, EvaluatorError, say
from ssrem.evaluators import evaluator_class, load_evaluator
from ssrem.evaluators.base import Evaluator
from ssrem.evaluators.judge.endpoint import Client
from ssrem.registry import did_you_mean
from ssrem.samples import TEST, Labelled, Labels, Progress, Sample
from ssrem.sql import statement
from ssrem.studies import EVERYDAY_PAIRS, study_called
from ssrem.studies.attacks import TrueResponses, neighbours
from ssrem.studies.behaviour import FILE, Pairs, everyday_pairs
from ssrem.studies.learned import Human, Learning, Transfer
from ssrem.studies.scored import ScoredSet
from ssrem.studies.study import Study
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.annotated import landed_contexts, landed_sets
from ssrem.tasks.endpoints import connected
from ssrem.tasks.score import score_samples
from ssrem.tasks.settings import Resources, StudySettings
from ssrem.tasks.stage.progress import progress
from ssrem.tasks.stage.stage import Built, Recipe, Stage, candidate_sources, run_stage, sources
from ssrem.tasks.versions import Version, check_not_learned_from, promoted, version_outputs
from ssrem.tasks.warehouse.home import Warehouse, landed_corpora, landed_corpus, records

if TYPE_CHECKING:
    import duckdb

    from ssrem.studies.attacks import Score

SCORED_ANEW = (Pairs, TrueResponses)
"""Classes of data that are scored when the study runs; other classes have published scores, or are learned from."""


def study(
    dataset: str,
    name: str,
    versions: Sequence[Version],
    home: str,
    settings: StudySettings = StudySettings(),
    *,
    client: Client | None = None,
    resources: Resources = Resources(),
) -> bool:
    """Run the study `name` of evaluator versions on the dataset and publish it; False if it was published before.

    client: HTTP client through which judges query their endpoints.
    Versions that do not give what the study needs are left out. Raises EvaluatorError if none does, AnnotationError or
    HomeError if the dataset does not exist.
    """
    warehouse, kind = Warehouse.at(home), study_called(name)
    usable = _usable(kind, versions)
    parameters = {"dataset": dataset, "evaluators": sorted(usable), "study": name, **settings.model_dump()}

    def build(stage: Stage) -> Built[bool]:
        if issubclass(kind.data, Learning):
            found: Iterator[tuple[Version, Any]] = _learning(stage, kind, dataset, usable, client)
        elif kind.data in SCORED_ANEW:
            data_for = _data_to_score(stage.connection, kind, dataset, settings)
            found = ((one, data_for(partial(_scores, stage, one, dataset, client))) for one in usable)
        else:
            published = [(one, _published(stage, one, dataset)) for one in usable]
            found = ((one, data) for one, data in published if data)
            if not any(data for _, data in published):
                raise AnnotationError(f"no evaluator has a score on {dataset}; name another with --evaluator")
        rows = [
            {"evaluator": evaluator, "version": version, "study": name, "dataset": dataset}
            | {"position": position, **asdict(finding)}
            for (evaluator, version), data in found
            for position, finding in enumerate(kind(data, settings.seed))
        ]
        stage.create_from_rows("studies", rows)
        return Built(True, version_outputs("studies", usable, study=name, dataset=dataset))

    def recipe() -> Recipe:
        return Recipe(parameters, _inputs(warehouse, kind, dataset))

    return run_stage(warehouse, "study", recipe, build, done=False, resources=resources)


def study_behaviour(home: str, *, resources: Resources = Resources()) -> bool:
    """Publish the study of the packaged pairs for the evaluators in use that need no reference; False if there is no
    such evaluator or nothing is new."""
    versions = promoted(Warehouse.at(home))
    usable = any("f" in evaluator_class(name).parts for name, _ in versions)
    return usable and study(EVERYDAY_PAIRS, "behaviour", versions, home, resources=resources)


def datasets_of(home: str, name: str) -> list[str]:
    """The packaged pairs, corpora or annotated sets that the study of that name applies to; an error if none."""
    data = study_called(name).data
    if data is Pairs:
        return [EVERYDAY_PAIRS]
    if data is TrueResponses:
        return landed_corpora(home)
    if not (names := list(landed_sets(Warehouse.at(home)))):
        raise AnnotationError(f"{home} has no annotated set; run ssrem correlate FILE first")
    return names


def _usable(kind: Study[Any], versions: Sequence[Version]) -> list[Version]:
    """The versions that give what the study needs; EvaluatorError if none does."""
    usable = list(versions)
    if issubclass(kind.data, Learning):
        learn = {"labels", "candidates+labels"}
        usable = [version for version in versions if evaluator_class(version[0]).learns_from & learn]
        way_out = "train roberta-eval, blend, adem or ruber, and name it with --evaluator"
        why = f"{kind.name} needs evaluators that learn from human scores; {way_out}"
    elif kind.data is not ScoredSet:
        usable = [version for version in versions if "f" in evaluator_class(version[0]).parts]
        why = f"{kind.name} gives no reference, and these score by that alone; name others with --evaluator"
    if not usable:
        raise EvaluatorError(f"{', '.join(name for name, _ in versions)}: {why}")
    return usable


def _inputs(home: Warehouse, kind: Study[Any], dataset: str) -> dict[str, Any]:
    """Digests of what the study is computed from, for the ledger; raises an error if there is no such dataset."""
    if kind.data is Pairs:
        if dataset != EVERYDAY_PAIRS:
            raise EvaluatorError(f"no pairs {dataset!r}: this study is of {EVERYDAY_PAIRS} alone")
        return {dataset: digest(FILE.read_text(encoding="utf-8"))}
    if kind.data is TrueResponses:
        content, _ = landed_corpus(home, dataset)
        negatives = [p.key for p in home.partitions() if p.table == "negatives" and p.key.corpus == dataset]
        tables = candidate_sources(home, [dataset]) + sources(home, ["negatives"], negatives)
        return {dataset: content, "tables": tables}
    digests = landed_sets(home)
    if dataset not in digests:
        known = ", ".join(digests) or "none; ssrem correlate FILE lands one"
        near = did_you_mean(dataset, digests)
        raise AnnotationError(f"no annotated set {dataset!r} in {home.root} (there are: {known}){near}")
    return digests if kind.data is Transfer else {dataset: digests[dataset]}


def _published(stage: Stage, version: Version, dataset: str) -> ScoredSet | None:
    """The published scores of an annotated set by a version, with human scores; None, with a printed note, if no
    response has a score. AnnotationError, which names the command to run, if the version has not scored the set."""
    values: dict[str, Any] = {"evaluator": version[0], "version": version[1], "dataset": dataset}
    found = stage.connection.execute(statement("7_studies/scored_responses"), values).fetchnumpy()
    if not len(found["words"]):
        what = f"{dataset} has no scores of {version[0]} version {version[1]}"
        raise AnnotationError(f"{what}; run ssrem correlate FILE --evaluator {version[0]} first")
    score = np.ma.filled(found["score"], np.nan)
    has = ~np.isnan(score)
    if not has.any():
        say(f"{version[0]} is left out: no response of {dataset} has a score by it")
        return None
    return ScoredSet(score[has], found["human"][has], found["words"][has].astype(np.float64))


def _data_to_score(
    connection: duckdb.DuckDBPyConnection, kind: Study[Any], dataset: str, settings: StudySettings
) -> Callable[[Score], Pairs | TrueResponses]:
    """A function that turns a score function into the data of the study: the packaged pairs, or true responses drawn by
    the seed from the test split, each with the first negative that every generator has made for it."""
    if kind.data is Pairs:
        return partial(Pairs, everyday_pairs())
    candidates = load_candidates(connection, [dataset])
    rows = candidates.drawn(TEST, settings.responses or None, settings.seed)
    if not len(rows):
        raise EvaluatorError(f"{dataset} has no response in its test split; land a larger corpus")
    samples = [candidates.sample(row) for row in rows.tolist()]
    place = {int(response): at for at, response in enumerate(candidates.response[rows])}
    written: dict[str, list[str | None]] = {}
    query = "SELECT generator, response_id, text FROM negatives WHERE corpus = ? AND k = 0 ORDER BY ALL"
    for generator, response, text in connection.execute(query, [dataset]).fetchall():
        if response in place:
            written.setdefault(f"negative of {generator}", [None] * len(rows))[place[response]] = text
    near = {"words replaced by near ones": neighbours(packaged_glove())}
    return partial(TrueResponses, samples, more=near, written=written)


def _scores(
    stage: Stage, version: Version, dataset: str, client: Client | None, samples: Sequence[Sample]
) -> Any:
    """Scores f (n,) of samples by a version. dataset: named by the progress bar."""
    (scores,) = score_samples(stage.home, [version], samples, dataset, client)
    return scores.f


def _learning(
    stage: Stage, kind: Study[Any], dataset: str, versions: Sequence[Version], client: Client | None
) -> Iterator[tuple[Version, Learning]]:
    """Each version with its data for the study: human scores of the set, of all other sets too for `Transfer`, and a
    function that trains the evaluator on human scores.

    Raises EvaluatorError for a version that has learned from one of the sets already.
    """
    digests = _inputs(stage.home, kind, dataset)
    query = "SELECT evaluator, version, labelled FROM evaluators WHERE evaluator = ? AND version = ?"
    rows = (row for version in versions for row in records(stage.connection, query, version))
    check_not_learned_from(rows, {name: landed_contexts(stage.home, name) for name in digests})
    sets = {name: _human(stage.connection, name) for name in digests}
    for name, number in versions:
        base: Any = load_evaluator(stage.home.models / name / str(number))
        with progress(f"{kind.name} of {name}") as advance:
            connected(base, stage.home, client)
            others = {other: human for other, human in sets.items() if other != dataset}
            more = (dataset, others) if kind.data is Transfer else ()
            yield (name, number), kind.data(sets[dataset], partial(_tuned, base, advance), *more)


def _tuned(base: Any, advance: Progress, pairs: Labelled, scale: tuple[float, float]) -> Evaluator:
    tuned: Evaluator = base.tuned_on({"": Labels(tuple(pairs), scale, "", 0)}, progress=advance)
    return tuned


def _human(connection: duckdb.DuckDBPyConnection, dataset: str) -> Human:
    """The mean human score of each response that is not ground truth; AnnotationError if all responses are."""
    rows = connection.execute(statement("7_studies/labelled_responses"), {"dataset": dataset}).fetchall()
    if not rows:
        raise AnnotationError(f"{dataset}: every response is ground truth, which nothing is learned from")
    contexts, responses, references, systems, scores, (low, *_), (high, *_) = zip(*rows, strict=True)
    samples = [Sample(*one) for one in zip(map(tuple, contexts), responses, references, strict=True)]
    return Human(samples, np.array(scores, dtype=np.float64), (low, high), systems)
