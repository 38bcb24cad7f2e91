"""Makes settings of flows from options about annotated sets and training, checked before a flow starts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flows.cli.arguments import filled, pairs_of
from ssrem.errors import AnnotationError, SsremError
from ssrem.evaluators import evaluator_class, route
from tasks.warehouse.home import Warehouse, landed_corpora

if TYPE_CHECKING:
    from flows.orchestration.options import AnnotatedSetOptions, TrainingOptions
    from tasks.training.settings import HumanScores


def annotated_sets(
    options: argparse.Namespace, home: Warehouse, files: Sequence[str], pairs: Sequence[str]
) -> AnnotatedSetOptions:
    """The annotated sets; pairs: their `--map`. AnnotationError if one cannot be read, or none takes a mapping."""
    from flows.orchestration.options import AnnotatedSetOptions  # imports Pydantic
    from ssrem.annotated_sets.columns import parse  # imports NumPy
    from tasks.agreement.annotated_sets import annotated_file

    mapping = parse(pairs)
    sets = [annotated_file(home, file, options.layout, mapping).read for file in files]
    if mapping and not files:
        raise AnnotationError(
            f"--map {next(iter(mapping))}=… is about annotated sets; give one with --annotations"
        )
    if mapping and not any(read.mapped for read in sets):
        layouts = ", ".join(dict.fromkeys(read.layout for read in sets))
        raise AnnotationError(f"--map does not apply to {layouts}, whose fields are known; leave it out")
    return filled(AnnotatedSetOptions, options, files=list(files), mapping=mapping or None)


def training(options: argparse.Namespace, home: Warehouse, names: Sequence[str]) -> TrainingOptions:
    """The options with which the evaluators learn.

    Raises an SsremError if an evaluator or setting does not exist, no corpus has landed, or an evaluator cannot learn
    from the labels.
    """
    shortcuts = {"negatives": options.negatives, "model": options.init, "device": options.device}
    config = {"seed": options.seed, **pairs_of(options.set, "--set", "epochs=10")}
    config |= {key: value for key, value in shortcuts.items() if value is not None}
    route(names, config)
    if any(evaluator_class(name).learns_from for name in names):
        landed_corpora(str(home.root))
    labels = _labels(options, home)
    for name in names:
        evaluator_class(name).check_labels(len(labels.files) if labels else 0, bool(labels and labels.alone))
    from flows.orchestration.options import TrainingOptions  # imports Pydantic

    return filled(TrainingOptions, options, config=config, labels=labels)


def _labels(options: argparse.Namespace, home: Warehouse) -> HumanScores | None:
    if not options.labels:
        if options.criterion or options.labels_only:
            raise SsremError("--criterion and --labels-only need --labels FILE")
        return None
    from tasks.agreement.annotated_sets import human_scores  # imports NumPy
    from tasks.training.settings import HumanScores

    labels = HumanScores(tuple(options.labels), options.criterion, options.labels_only)
    human_scores(home, labels.files, labels.criterion)
    return labels
