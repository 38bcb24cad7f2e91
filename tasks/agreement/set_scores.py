"""Scores of an annotated set by evaluator versions, as the staged tables `scores` and `judgments`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ssrem.errors import say
from ssrem.evaluators import evaluator_class
from ssrem.evaluators.base import EMPTY_CONTEXT, EMPTY_RESPONSE, NO_REFERENCE, Evaluator, Scores
from ssrem.evaluators.judge.request_options import request_options
from ssrem.evaluators.parts import PARTS
from ssrem.samples import Sample
from ssrem.tasks.agreement.landed_set import samples_of, version_outputs
from ssrem.tasks.scoring.batches import evaluator_at, score_samples
from ssrem.tasks.scoring.endpoint_requests import asks, marked_private, request_options_in
from ssrem.tasks.scoring.signatures import Version, learned_from
from ssrem.tasks.stage.stage import Output, Stage


def stage_scores(stage: Stage, dataset: str, versions: Sequence[Version]) -> list[Output]:
    """Score the set with the versions, and stage `scores` and, for versions that ask an endpoint, `judgments`."""
    if not versions:
        return []
    samples = samples_of(stage.connection, dataset)
    private = marked_private(dataset) if stage.recipe.parameters.get("private") else None
    with request_options(private=private):
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
    return version_outputs("scores", dataset, versions) + version_outputs("judgments", dataset, answered)


def _judgment_rows(
    stage: Stage, dataset: str, version: Version, samples: Sequence[Sample]
) -> Iterator[dict[str, Any]]:
    """Rows of `judgments`: the answers that the version's scores come from."""
    name, number = version
    with request_options_in(stage.home), evaluator_at(stage.home.models / name / str(number)) as evaluator:
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
    """Print how many responses have no score for which reason, except those that lack a text or a reference."""
    texts = (EMPTY_RESPONSE, EMPTY_CONTEXT, NO_REFERENCE, "")
    counts = Counter(reason.partition(":")[0] for reason in scores.reasons.tolist() if reason not in texts)
    if counts:
        listed = ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
        say(f"{name}: {counts.total():,} of {len(scores):,} responses of {dataset} have no score: {listed}")


def _score_rows(kind: type[Evaluator], samples: Sequence[Sample], scores: Scores) -> Iterator[dict[str, Any]]:
    # A part that a response cannot have is null. NaN where there should be a number stays, so that the gate refuses it.
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
