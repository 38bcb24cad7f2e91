"""Flow `decide`: compare new versions with the ones in use, and promote those that are not worse."""

from __future__ import annotations

from dataclasses import replace

from ssrem.evaluators import evaluator_class
from ssrem.flows.orchestration.artifacts import stage_artifacts
from ssrem.tasks.agreement.correlate import correlate_all, correlate_landed, left_out
from ssrem.tasks.maintenance.repair import repair
from ssrem.tasks.scoring.test_split import score_corpus
from ssrem.tasks.stage.stage import Resources
from ssrem.tasks.training.promotion import Challenge, challenges
from ssrem.tasks.training.promotion import decide as decide_on
from ssrem.tasks.training.settings import Margins
from ssrem.tasks.warehouse.home import Warehouse


def decide(
    home: str = "warehouse",
    evaluators: list[str] | None = None,
    margins: Margins = Margins(),
    resources: Resources = Resources(),
) -> dict[str, str]:
    """Decide on every version that waits; returns `NAME VERSION` to the decision and its reason.

    Both versions first score the test splits of the newer one's corpora and all annotated sets.

    Args:
        evaluators: Names of evaluators; by default all
    """
    decided = {}
    repair(home)
    with stage_artifacts(home, "train", ["evaluators", "identification", "agreement"]):
        while waiting := challenges(Warehouse.at(home), evaluators or ()):
            # Each decision may change what the next one is compared with.
            challenge = _scored(waiting[0], home, resources)
            promoted, why = decide_on(challenge, home, margins=margins, resources=resources)
            what = "promoted" if promoted else "not promoted"
            decided[f"{challenge.evaluator} {challenge.version}"] = f"{what}: {why}"
        if decided:
            correlate_all(home, resources=resources)
    return decided


def _scored(challenge: Challenge, home: str, resources: Resources) -> Challenge:
    """Score with both versions; returns the challenge without annotated sets whose figures cannot be published."""
    both = [(challenge.evaluator, version) for version in (challenge.champion, challenge.version)]
    if "f" in evaluator_class(challenge.evaluator).parts:
        for name, version in both:
            for corpus in challenge.corpora:
                score_corpus(name, version, corpus, home, resources=resources)
    scored = []
    for dataset in challenge.datasets:
        with left_out(home, dataset):
            correlate_landed(dataset, both, home, resources=resources)
            scored.append(dataset)
    return replace(challenge, datasets=tuple(scored))
