"""Correlate: an annotated set is landed and scored, and every figure of agreement with its human scores published."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ssrem.agreement.figures import RESAMPLES, SEED, figures
from ssrem.agreement.rater_filters import without_outliers
from ssrem.agreement.raters import rater_figures, reliability_figures
from ssrem.annotated_sets import EVAL
from ssrem.errors import AnnotationError, EvaluatorError, GateError
from ssrem.evaluators import evaluator_class
from ssrem.evaluators.base import EMPTY_CONTEXT, EMPTY_RESPONSE, NO_REFERENCE, PARTS, Evaluator, Scores
from ssrem.evaluators.judge.asking import asking
from ssrem.samples import Sample
from tasks.agreement.annotated_sets import AnnotatedFile, annotated_file
from tasks.agreement.landed_set import (
    GROUND_TRUTH,
    Options,
    ScoredSet,
    human_scores,
    landed_sets,
    published_options,
    published_test,
    rating_rows,
    ratings_of,
    response_rows,
    samples_of,
    scored_set,
    scores_of,
)
from tasks.agreement.pairwise import comparison_rows
from tasks.ingest.dataset_names import checked_name
from tasks.scoring.asking import asking_in, asks, marked_private, why_marked, why_private
from tasks.scoring.batches import evaluator_at, score_samples
from tasks.scoring.signatures import Version, figure_row, learned_from, signature_of, weights_of
from tasks.stage.ledger import Recipe, already_done
from tasks.stage.progress import progress
from tasks.stage.protocol import Built, run_stage
from tasks.stage.stage import Output, Resources, Stage
from tasks.stage.steps import step
from tasks.warehouse.clock import utc_now
from tasks.warehouse.home import Warehouse
from tasks.warehouse.incidents import log_incident
from tasks.warehouse.partition import PartitionKey

LANDED_TABLES = ("rated_responses", "ratings", "human_scores")
SET_TABLES = ("comparisons", "rankings", "rater_agreement")
"""Tables whose partition covers all evaluators of an annotated set."""

SET_ERRORS = (AnnotationError, EvaluatorError, GateError)
"""Errors about one annotated set, whose figures cannot be computed or published; they stop no work on another set."""


@step("correlate")
def correlate(
    file: str,
    evaluators: Sequence[Version],
    home: str,
    *,
    ground_truth_kept: bool = False,
    systems_forced: bool | None = None,
    test: str | None = None,
    permutations: int | None = None,
    layout: str | None = None,
    mapping: Mapping[str, str] | None = None,
    resources: Resources | None = None,
) -> tuple[str, bool]:
    """Land the annotated set, score it with the evaluators (name, version) and publish their agreement with people;
    returns its name and whether anything was new.

    file: a file, a folder, or the name of a pulled set. ground_truth_kept: compare ground-truth rows too, which are
    scored in any case. systems_forced: figures at system level of too few systems too; test: by which evaluators are
    compared, one of `tasks.agreement.pairwise.TESTS`; permutations: of the test of no agreement behind p_permuted;
    None: these as before for the set, at first no, DEFAULT_TEST and 0. layout, mapping: as `read_set` takes them.
    Raises AnnotationError if the set cannot be read, or a set of that name with other content has landed.
    """
    place = Warehouse.at(home)
    source = annotated_file(place, file, layout, mapping)
    dataset = checked_name(source.name, "an annotated set", "rename the file", AnnotationError)
    _check_name(place, dataset, source)
    if source.read.layout != EVAL:  # a file of our own layout is read as it is
        print(f"ssrem: {file}: {source.read.summary}", file=sys.stderr)
    options = dict.fromkeys(evaluators, ground_truth_kept)
    chosen = {"systems_forced": systems_forced, "test": test, "permutations": permutations}
    return dataset, _correlate(place, dataset, options, chosen, source, resources)


@step("correlate landed set")
def correlate_landed(
    dataset: str,
    evaluators: Sequence[Version],
    home: str,
    *,
    resources: Resources | None = None,
) -> bool:
    """Update a landed set, whose file is not needed: missing scores of the evaluators (name, version), and the figures
    of all that scored it, with the options they had. Returns whether anything was new."""
    return _correlate(Warehouse.at(home), dataset, dict.fromkeys(evaluators), {}, None, resources)


def correlate_all(home: str, *, resources: Resources | None = None) -> list[str]:
    """Update the figures of every annotated set; returns the names of those that were out of date."""
    with Warehouse.at(home).reader() as connection:
        names = list(landed_sets(connection))
    outdated = []
    for dataset in names:
        with left_out(home, dataset):
            if correlate_landed(dataset, [], home, resources=resources):
                outdated.append(dataset)
    return outdated


@contextmanager
def left_out(home: str, dataset: str) -> Iterator[None]:
    """A block about one annotated set: where its figures cannot be computed or published, that is said and logged, so
    that it stops no work on another set."""
    try:
        yield
    except SET_ERRORS as error:
        message = f"{dataset} is left out: {error}"
        log_incident(Warehouse.at(home).root, utc_now(), message)
        print(f"ssrem: {message}", file=sys.stderr)


def _correlate(
    place: Warehouse,
    dataset: str,
    wanted: Mapping[Version, bool | None],
    chosen: Mapping[str, bool | str | int | None],
    source: AnnotatedFile | None,
    resources: Resources | None,
) -> bool:
    """wanted: version → whether figures include ground truth; chosen: option → its value; None: as before.
    source: None for a landed set."""

    def recipe() -> Recipe:
        if source is not None:
            _check_name(place, dataset, source)
        with place.reader() as connection:
            digest = source.digest if source else landed_sets(connection).get(dataset)
            options = published_options(connection, dataset)
            test = published_test(connection, dataset)
            in_use = connection.execute(
                "SELECT evaluator, version FROM evaluators WHERE promoted ORDER BY ALL"
            ).fetchall()
        before = {
            "systems_forced": any(one.systems_forced for one in options.values()),
            "test": test,
            "permutations": max((one.permutations for one in options.values()), default=0),
        }
        versions = {
            version: options.get(version, Options()).ground_truth_kept
            for version in (*_intact(place, "scores", dataset), *wanted)
        }
        versions |= {version: with_truth for version, with_truth in wanted.items() if with_truth is not None}
        parameters = {
            "dataset": dataset,
            "evaluators": [list(version) for version in sorted(versions)],
            "ground_truth_kept": [list(version) for version in sorted(versions) if versions[version]],
            "in_use": [list(version) for version in in_use if version in versions],
            **before,
            **{option: value for option, value in chosen.items() if value is not None},
            "resamples": RESAMPLES,
            "seed": SEED,
        }
        if (source and why_marked(source.path, dataset)) or why_private(place, dataset):
            parameters["private"] = True
        return Recipe(parameters, {dataset: digest})  # without its path: a copy elsewhere is the same set

    outdated: list[Version] = []

    def done(current: Recipe) -> bool | None:
        if current.inputs[dataset] is None:
            raise AnnotationError(f"no annotated set {dataset!r} has landed in {place.root}")
        outdated[:] = _outdated(place, current)
        return None if outdated or not already_done(place, "correlate", current) else False

    def build(stage: Stage) -> Built[bool]:
        outputs: list[Output] = []
        with place.reader() as connection:
            has_landed = dataset in landed_sets(connection)
        if not has_landed and source is not None:
            rows = source.read.rows
            stage.create_from_rows("rated_responses", list(response_rows(dataset, source.digest, rows)))
            stage.create_from_rows("ratings", list(rating_rows(dataset, rows)))
            stage.create("human_scores", "3_agreement/human_scores", dataset=dataset)
            outputs += [Output(table, PartitionKey(dataset=dataset)) for table in LANDED_TABLES]
        data = scored_set(stage.connection, dataset)
        assert data is not None  # it has landed, or just been staged
        scored = _intact(place, "scores", dataset)
        unscored = [version for version in outdated if version not in scored]
        outputs += _stage_scores(stage, dataset, unscored)
        with progress(f"measuring agreement on {dataset}"), threadpool_limits(1, "blas"):
            outputs += _stage_agreement(stage, data, outdated)
        return Built(True, outputs)

    return run_stage(place, "correlate", recipe, build, done=done, resources=resources)


def _check_name(home: Warehouse, dataset: str, source: AnnotatedFile) -> None:
    with home.reader() as connection:
        digest = landed_sets(connection).get(dataset)
    if digest not in (None, source.digest):
        raise AnnotationError(
            f"{source.path}: another annotated set named {dataset!r} is in {home.root}; rename the file to tell them "
            "apart"
        )


def _version_outputs(table: str, dataset: str, versions: Sequence[Version]) -> list[Output]:
    return [
        Output(
            table,
            PartitionKey(dataset=dataset, evaluator=name, version=number),
            f"evaluator = '{name}' AND version = {number}",
        )
        for name, number in versions
    ]


def _intact(home: Warehouse, table: str, dataset: str) -> dict[Version, str]:
    """Version → the run that published its partition of the table for the set, if the partition is intact."""
    damaged = {damage.partition for damage in home.damage()}
    return {
        (p.key.evaluator, p.key.version): p.run
        for p in home.partitions()
        if p.table == table and p.key.dataset == dataset and p not in damaged
        if p.key.evaluator is not None and p.key.version is not None
    }


def _outdated(home: Warehouse, recipe: Recipe) -> list[Version]:
    """Versions of the recipe whose scores or figures are missing, or whose figures were computed before their scores,
    with other options or with other draws."""
    dataset = recipe.parameters["dataset"]
    scored, measured = (_intact(home, table, dataset) for table in ("scores", "agreement"))
    rows = home.query("SELECT run_id, parameters FROM runs WHERE stage = 'correlate'")
    parameters_of = {run: json.loads(parameters) for run, parameters in rows}
    outdated = []
    for name, number in recipe.parameters["evaluators"]:
        version, with_truth = (name, number), [name, number] in recipe.parameters["ground_truth_kept"]
        run = measured.get(version, "")
        before = parameters_of.get(run, {})
        same_options = ([name, number] in before.get("ground_truth_kept", [])) == with_truth and all(
            before.get(option) == recipe.parameters[option]
            for option in ("systems_forced", "permutations", "resamples", "seed")
        )
        if version not in scored or run < scored[version] or not same_options:
            outdated.append(version)
    return outdated


def _stage_scores(stage: Stage, dataset: str, versions: Sequence[Version]) -> list[Output]:
    """Score the set with the versions into the staged `scores`."""
    if not versions:
        return []
    samples = samples_of(stage.connection, dataset)
    private = marked_private(dataset) if stage.recipe.parameters.get("private") else None
    with asking(private=private):
        scores = score_samples(stage.home, versions, samples, dataset, stage.scratch)
    for (name, _), of_version in zip(versions, scores, strict=True):
        _say_lacking(name, dataset, of_version)
    stage.create_from_rows(
        "scores",
        [
            {**origin, **row}
            for (name, version), of_version in zip(versions, scores, strict=True)
            for origin in [
                {
                    "evaluator": name,
                    "version": version,
                    "dataset": dataset,
                    "learned_from": learned_from(stage.connection, (name, version)),
                }
            ]
            for row in _score_rows(evaluator_class(name), samples, of_version)
        ],
    )
    answered = [version for version in versions if asks(stage.home, *version)]
    rows = [row for version in answered for row in _judgment_rows(stage, dataset, version, samples)]
    if answered:
        stage.create_from_rows("judgments", rows)
    return _version_outputs("scores", dataset, versions) + _version_outputs("judgments", dataset, answered)


def _judgment_rows(
    stage: Stage, dataset: str, version: Version, samples: Sequence[Sample]
) -> Iterator[dict[str, Any]]:
    """Rows of `judgments`: the answers that the version's scores come from."""
    name, number = version
    with asking_in(stage.home), evaluator_at(stage.home.models / name / str(number)) as evaluator:
        for row in evaluator.judgments(samples):
            response_id = str(row.pop("row"))
            yield {
                "evaluator": name,
                "version": number,
                "dataset": dataset,
                "response_id": response_id,
                **row,
            }


def _say_lacking(name: str, dataset: str, scores: Scores) -> None:
    """Say how many responses have no score for which reason, beside those that lack a text or a reference."""
    texts = (EMPTY_RESPONSE, EMPTY_CONTEXT, NO_REFERENCE, "")
    counts = Counter(reason.partition(":")[0] for reason in scores.reasons.tolist() if reason not in texts)
    if counts:
        listed = ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
        print(
            f"ssrem: {name}: {counts.total():,} of {len(scores):,} responses of {dataset} have no score: {listed}",
            file=sys.stderr,
        )


def _score_rows(kind: type[Evaluator], samples: Sequence[Sample], scores: Scores) -> Iterator[dict[str, Any]]:
    # A part that a response cannot have is null. A part that should be a number and is not stays: the gate refuses it.
    columns = {part: getattr(scores, part).tolist() for part in (*PARTS, "f_unit", "g_unit")}
    for number, sample in enumerate(samples):
        own = () if scores.reasons[number] else kind.parts
        has = {
            part: part in own and (part == "f" or bool((sample.reference or "").strip())) for part in PARTS
        }
        has |= {f"{part}_unit": has[part] and "h" in own for part in ("f", "g")}  # scaled to be mixed
        yield {
            "response_id": str(number),
            "kind": "response",
            "k": 0,
            **{part: values[number] if has[part] else None for part, values in columns.items()},
            "truncated": bool(scores.truncated[number]),
        }


def _stage_agreement(stage: Stage, data: ScoredSet, outdated: Sequence[Version]) -> list[Output]:
    """Compute the figures of the outdated versions, and the tables of the whole set, into staged tables."""
    parameters, connection = stage.recipe.parameters, stage.connection
    if "scores" in stage.staged:  # beside those that were published before
        connection.execute(
            "CREATE TEMP VIEW set_scores AS SELECT * FROM main.scores UNION ALL BY NAME "
            "SELECT p.* FROM published.scores AS p ANTI JOIN main.scores AS m USING (evaluator, version, dataset)"
        )
    else:
        connection.execute("CREATE TEMP VIEW set_scores AS SELECT * FROM scores")
    options = {
        (name, number): Options(
            [name, number] in parameters["ground_truth_kept"],
            parameters["systems_forced"],
            parameters["permutations"],
        )
        for name, number in parameters["evaluators"]
    }
    rows = [row for version in outdated for row in _figure_rows(stage, data, version, options[version])]
    stage.create_from_rows("agreement", rows)
    in_use = [(name, number) for name, number in parameters["in_use"]]
    with_truth = bool(in_use) and all(options[version].ground_truth_kept for version in in_use)
    scores = {version: scores_of(connection, data, version, "set_scores") for version in in_use}
    humans = human_scores(connection, data)
    compared, ranked = comparison_rows(
        data, scores, humans, ground_truth_kept=with_truth, test=parameters["test"], seed=SEED
    )
    stage.create_from_rows("comparisons", compared)
    stage.create_from_rows("rankings", ranked)
    all_kept = bool(options) and all(one.ground_truth_kept for one in options.values())
    stage.create_from_rows("rater_agreement", list(_rater_rows(stage, data, all_kept)))
    return [
        *_version_outputs("agreement", data.dataset, outdated),
        *(Output(table, PartitionKey(dataset=data.dataset)) for table in SET_TABLES),
    ]


def _figure_rows(
    stage: Stage, data: ScoredSet, version: Version, options: Options
) -> Iterator[dict[str, Any]]:
    """Rows of `agreement` of a version, by each human score and each of its parts."""
    connection, with_truth = stage.connection, options.ground_truth_kept
    weights = weights_of(connection, version)
    scores = scores_of(connection, data, version, "set_scores")
    for (criterion, aggregation), human in human_scores(connection, data).items():
        for score, values in scores.items():
            responses = data.responses(values, human, ground_truth_kept=with_truth)
            for figure in figures(
                responses,
                slow=aggregation == "mean",
                force=options.systems_forced,
                permutations=options.permutations if aggregation == "mean" else 0,
            ):
                signature = signature_of(
                    figure,
                    version,
                    weights,
                    (data.dataset, data.sha256),
                    (criterion, aggregation),
                    score,
                    [GROUND_TRUTH] if figure.excluded else [],
                )
                yield figure_row(version, figure, signature, **vars(options))


def _rater_rows(stage: Stage, data: ScoredSet, ground_truth_kept: bool) -> Iterator[dict[str, Any]]:
    """Rows of `rater_agreement`: of the responses that evaluators are compared on, and of all, before and after the
    removal of outliers."""
    for criterion, table in ratings_of(stage.connection, data).items():
        compared = table if ground_truth_kept else np.where(data.truth, np.nan, table)
        for responses, rated in (("compared", compared), ("all", table)):
            for outliers, left in (("kept", rated), ("removed", without_outliers(rated))):
                whole = responses == "compared" and outliers == "kept"
                counted = int((~np.isnan(left)).sum())
                about = {
                    "dataset": data.dataset,
                    "criterion": criterion,
                    "responses": responses,
                    "outliers": outliers,
                    "ratings": counted,
                    "removed": int((~np.isnan(rated)).sum()) - counted,
                }
                for figure in rater_figures(left, seed=SEED) if whole else reliability_figures(left):
                    yield {**about, **vars(figure), "reason": figure.reason or None}
