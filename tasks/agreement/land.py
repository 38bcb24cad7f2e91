"""Agree: an annotated set is landed and scored, and the scores are correlated with people's."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from prefect import task

from ssrem.agreement.annotated import Annotated
from ssrem.annotated_sets import EVAL
from ssrem.errors import AnnotationError
from ssrem.evaluators import evaluator_class
from tasks.agreement.annotated_sets import annotated_file
from tasks.agreement.correlation_rows import correlation_row
from tasks.ingest.dataset_names import checked_name
from tasks.scoring.batches import score_samples
from tasks.stage.ledger import Recipe
from tasks.stage.protocol import Built, run_stage
from tasks.stage.stage import Output, Resources, Stage
from tasks.warehouse.home import Warehouse
from tasks.warehouse.partition import PartitionKey

if TYPE_CHECKING:
    from ssrem.evaluators.base import Evaluator, Scores

MIN_SYSTEMS = 5
"""System-level correlations need at least this many systems: from two, every coefficient is 1 or -1."""

SCORES = ("f", "g", "h")


@task(name="agree")
def agree(
    file: str,
    evaluators: Sequence[tuple[str, int]],
    home: str,
    *,
    keep_ground_truth: bool = False,
    layout: str | None = None,
    mapping: Mapping[str, str] | None = None,
    resources: Resources | None = None,
) -> tuple[str, bool]:
    """Land the annotated set, score it with the evaluators (name, version) and correlate; returns its name and
    whether anything was new. Ground-truth rows are scored but not correlated, unless `keep_ground_truth`.

    file: or a folder, or the name of a set that was pulled. layout, mapping: how it is to be read. Raises
    AnnotationError where it cannot be read, or a set of that name with other content is there.
    """
    place = Warehouse.at(home)
    given = annotated_file(place, file, layout, mapping)
    annotated, digest = given.read.rows, given.digest
    dataset = checked_name(given.name, "an annotated set", "rename the file", AnnotationError)
    _check_name(place, dataset, digest, file)
    if given.read.layout != EVAL:  # what is not in it need not be told
        print(f"ssrem: {file}: {given.read.summary}", file=sys.stderr)
    parameters = {
        "dataset": dataset,
        "evaluators": sorted(evaluators),
        "keep_ground_truth": keep_ground_truth,
    }

    def recipe() -> Recipe:
        _check_name(place, dataset, digest, file)
        return Recipe(parameters, {dataset: digest})  # not its path: the same set elsewhere is the same set

    def build(stage: Stage) -> Built[tuple[str, bool]]:
        stage.create_from_rows("annotated", list(_annotated_rows(dataset, digest, annotated)))
        stage.create_from_rows("annotations", list(_annotation_rows(dataset, annotated)))
        stage.create("human_scores", "3_agreement/human_scores", dataset=dataset)
        add_agreement(stage, dataset, annotated, evaluators, keep_ground_truth)
        key = PartitionKey(dataset=dataset)
        outputs = [Output(table, key) for table in ("annotated", "annotations", "human_scores")]
        return Built((dataset, True), [*outputs, *agreement_outputs(dataset, evaluators)])

    return run_stage(place, "agree", recipe, build, done=(dataset, False), resources=resources)


def add_agreement(
    stage: Stage,
    dataset: str,
    annotated: Sequence[Annotated],
    evaluators: Sequence[tuple[str, int]],
    keep_ground_truth: bool,
) -> None:
    """Create the staged `scores` and `correlations` of the annotated set under the evaluators (name, version)."""
    scores: list[dict[str, Any]] = []
    correlations: list[dict[str, Any]] = []
    samples = [row.sample for row in annotated]
    all_found = score_samples(stage.home, evaluators, samples, dataset, stage.scratch)
    for (name, version), found in zip(evaluators, all_found, strict=True):
        parts = _parts(evaluator_class(name), annotated)
        who = {"evaluator": name, "version": version, "dataset": dataset}
        scores += _score_rows(who, found, parts)
        correlations += _correlations(stage, who, annotated, found, parts, keep_ground_truth)
    stage.create_from_rows("scores", scores)
    stage.create_from_rows("correlations", correlations)


def agreement_outputs(dataset: str, evaluators: Sequence[tuple[str, int]]) -> list[Output]:
    """The partitions that `add_agreement` fills."""
    return [
        Output(
            table,
            PartitionKey(dataset=dataset, evaluator=name, version=version),
            f"evaluator = '{name}' AND version = {version}",
        )
        for name, version in evaluators
        for table in ("scores", "correlations")
    ]


def _check_name(home: Warehouse, dataset: str, digest: str, file: str) -> None:
    with home.reader() as connection:
        row = connection.execute(
            "SELECT any_value(sha256) FROM annotated WHERE dataset = ?", [dataset]
        ).fetchone()
    if row and row[0] not in (None, digest):
        raise AnnotationError(
            f"{file}: another annotated set named {dataset!r} is in {home.root}; rename the file to tell them apart"
        )


def _annotated_rows(dataset: str, digest: str, annotated: Sequence[Annotated]) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(annotated):
        yield {
            "dataset": dataset,
            "sha256": digest,
            "response_id": str(number),
            "dialogue_id": row.dialogue_id,
            "context": list(row.context),
            "response": row.response,
            "reference": row.reference,
            "system": row.system,
            "ground_truth": row.ground_truth,
        }


def _annotation_rows(dataset: str, annotated: Sequence[Annotated]) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(annotated):
        for criterion, ratings in row.ratings.items():
            for rater, score in enumerate(ratings):
                yield {
                    "dataset": dataset,
                    "response_id": str(number),
                    "criterion": criterion,
                    "rater": rater,
                    "score": score,
                }


def _parts(evaluator: type[Evaluator], annotated: Sequence[Annotated]) -> dict[str, list[bool]]:
    """Column of `scores` to whether the evaluator gives it of a row: g and h only where there is a reference."""
    referenced = [row.reference is not None for row in annotated]
    of = {"f": [True] * len(annotated), "g": referenced, "h": referenced}
    absent = [False] * len(annotated)
    there = {part: of[part] if part in evaluator.parts else absent for part in SCORES}
    mixed = "h" in evaluator.parts  # what is not mixed is not scaled
    return there | {f"{part}_unit": there[part] if mixed else absent for part in ("f", "g")}


def _score_rows(
    who: dict[str, Any], scores: Scores, parts: Mapping[str, Sequence[bool]]
) -> list[dict[str, Any]]:
    # A part that is not there is null, which is not the same as a score that is not a number: the gate refuses that.
    columns = {part: getattr(scores, part).tolist() for part in parts}
    return [
        {
            **who,
            "response_id": str(number),
            "kind": "response",
            "k": 0,
            **{part: values[number] if parts[part][number] else None for part, values in columns.items()},
            "truncated": bool(scores.truncated[number]),
        }
        for number in range(len(scores))
    ]


def _correlations(
    stage: Stage,
    who: dict[str, Any],
    annotated: Sequence[Annotated],
    scores: Scores,
    parts: Mapping[str, Sequence[bool]],
    keep_ground_truth: bool,
) -> Iterator[dict[str, Any]]:
    """Segment level for every criterion, aggregation and score; system level where there are enough systems."""
    human = stage.connection.execute(
        "SELECT criterion, aggregation, response_id::BIGINT, score FROM human_scores WHERE dataset = ? ORDER BY ALL",
        [who["dataset"]],
    ).fetchall()
    for (criterion, aggregation), group in groupby(human, key=lambda row: (row[0], row[1])):
        rows = [(int(number), float(score)) for _, _, number, score in group]
        fair = [(n, score) for n, score in rows if keep_ground_truth or not annotated[n].ground_truth]
        excluded = len(rows) - len(fair)
        for part in SCORES:
            values = getattr(scores, part)
            pairs = [(n, float(values[n]), score) for n, score in fair if parts[part][n]]
            if not all(np.isfinite(value) for _, value, _ in pairs):
                continue  # the gate refuses the scores themselves, and says which
            if not pairs:
                continue
            where = {**who, "criterion": criterion, "aggregation": aggregation, "score": part}
            yield correlation_row({**where, "level": "segment"}, [p[1:] for p in pairs], excluded=excluded)
            systems: dict[str, list[tuple[float, float]]] = {}
            for n, value, score in pairs:
                if (system := annotated[n].system) is not None:
                    systems.setdefault(system, []).append((value, score))
            if len(systems) >= MIN_SYSTEMS:
                means = [tuple(np.mean(values, axis=0).tolist()) for _, values in sorted(systems.items())]
                yield correlation_row({**where, "level": "system"}, means, excluded=excluded)
