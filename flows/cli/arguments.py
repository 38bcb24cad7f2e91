"""From a command's options to what flows take; what is wrong at first sight is told before anything starts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ssrem.errors import AnnotationError, DumpError, RunnerError, SsremError

SETS_ALONE = ("agree",)
"""Verbs whose `--map` is about annotated sets and nothing else."""

EXAMPLES = {"--set": "epochs=10", "--margin": "agreement=0.05"}


def check_dump(options: argparse.Namespace) -> None:
    """Raise DumpError where the dump is missing, empty, not of the format or mapping given, or may not be called so."""
    from ssrem.readers import open_dump
    from tasks.ingest.dataset_names import checked_name

    if options.name is not None:
        checked_name(options.name, "a corpus", "give another with --name", DumpError)
    open_dump(options.source, format=options.format, mapping=mapping(options, sets=False))


def pseudonyms(options: argparse.Namespace) -> dict[str, Any]:
    """Whether to land with pseudonyms, and the file of their key. Raises where there is no key that will do."""
    from tasks.privacy.ingest_filter import key_for
    from tasks.warehouse.home import Warehouse

    key_for(Warehouse.at(options.home), options.pseudonymise, options.pseudonym_key)
    file = str(Path(options.pseudonym_key).expanduser().resolve()) if options.pseudonym_key else None
    return {"pseudonymise": options.pseudonymise, "pseudonym_key_file": file}


def check_evaluators(names: Sequence[str]) -> None:
    """Raise EvaluatorError for a name that is no evaluator's."""
    from ssrem.evaluators import evaluator_class

    for name in names:
        evaluator_class(name)


def learners(names: Sequence[str], config: Mapping[str, Any]) -> list[str]:
    """Those of the evaluators that learn; EvaluatorError for a name or a setting that does not exist."""
    from ssrem.evaluators import evaluator_class
    from ssrem.evaluators.core.routing import route

    route(names, config)
    return [name for name in names if evaluator_class(name).trained]


def learning(options: argparse.Namespace) -> dict[str, Any]:
    """Settings of a training: `--set`, and the options that are settings with a name of their own."""
    named = {"negatives": options.negatives, "model": options.init, "device": options.device}
    return {
        "seed": options.seed,
        **settings(options.set),
        **{key: value for key, value in named.items() if value is not None},
    }


def check_labels(names: Sequence[str], options: argparse.Namespace) -> None:
    """Raise where the labels cannot be read, or an evaluator cannot learn from what is given."""
    from ssrem.agreement.annotated import labels_of
    from ssrem.evaluators import evaluator_class
    from tasks.agreement.annotated_sets import annotated_file
    from tasks.training.labels import HumanScores, check_labels
    from tasks.warehouse.home import Warehouse

    if options.labels is None and (options.criterion or options.labels_only):
        raise SsremError("--criterion and --labels-only speak of --labels FILE; give it")
    labels = HumanScores(options.labels, options.criterion, options.labels_only) if options.labels else None
    if labels:
        labels_of(annotated_file(Warehouse.at(options.home), labels.file).read.rows, labels.criterion)
    for name in names:
        if evaluator_class(name).trained:
            check_labels(name, labels)
        elif labels:
            raise SsremError(
                f"{name} learns nothing, so it cannot learn from --labels; leave one of them out"
            )


def check_annotated(files: Sequence[str], options: argparse.Namespace) -> None:
    """Raise AnnotationError for what cannot be read as an annotated set, and for a mapping that none of them takes."""
    from ssrem.annotated_sets.columns import parse
    from tasks.agreement.annotated_sets import annotated_file
    from tasks.warehouse.home import Warehouse

    given = parse(pair for pair in options.map if _of_sets(pair, options))
    read = [annotated_file(Warehouse.at(options.home), file, options.layout, given).read for file in files]
    if given and not read:
        raise AnnotationError(
            f"--map {next(iter(given))}=… is about annotated sets; give one with --annotations"
        )
    if given and not any(found.mapped for found in read):
        layouts = ", ".join(dict.fromkeys(found.layout for found in read))
        raise AnnotationError(f"--map does not apply to {layouts}, whose fields are known; leave it out")


def check_packed(file: str) -> None:
    """Raise EvaluatorError for a file that holds no evaluator."""
    from tempfile import TemporaryDirectory

    from ssrem.evaluators.core.archive import unpack

    with TemporaryDirectory() as folder:
        unpack(Path(file), Path(folder))


def mapping(options: argparse.Namespace, *, sets: bool = True) -> dict[str, str] | None:
    """`--map` as fields to columns, those of annotated sets too if `sets`; None where there is none."""
    from ssrem.annotated_sets.columns import parse
    from ssrem.readers import parse_mapping

    dump = parse_mapping(pair for pair in options.map if not _of_sets(pair, options))
    found = {field: "+".join(columns) for field, columns in dump.items()}
    return (found | parse(pair for pair in options.map if sets and _of_sets(pair, options))) or None


def _of_sets(pair: str, options: argparse.Namespace) -> bool:
    """Whether a pair of `--map` is about annotated sets: by its field, where a command reads a dump too."""
    from ssrem.annotated_sets.columns import concerns

    return options.verb in SETS_ALONE or (options.verb == "run" and concerns(pair))


def encoder(options: argparse.Namespace) -> dict[str, Any]:
    """The encoder, where one was given: what a flow takes by default is its own to say."""
    return {"encoder": options.encoder} if options.encoder else {}


def margins(options: argparse.Namespace) -> dict[str, float] | None:
    """`--margin` as names to numbers; EvaluatorError for one that does not exist or is out of range."""
    from tasks.training.noninferiority_margins import Margins

    found = settings(options.margin, "--margin")
    Margins.of(found)
    return found or None


def room(options: argparse.Namespace) -> dict[str, Any]:
    """Memory and threads."""
    return {"memory_limit": options.memory_limit, "threads": options.threads}


def runner(options: argparse.Namespace) -> dict[str, Any]:
    """Who works on shards."""
    return {
        "runner": options.runner,
        "runner_address": options.runner_address,
        "workers": options.workers,
    }


def check_runner(name: str | None, address: str | None) -> None:
    """Raise RunnerError where the runner is not installed, or an address is given without one that takes it."""
    if name in (None, "process"):
        if address:
            raise RunnerError(f"--runner-address {address}: of what? add --runner dask or --runner ray")
    elif not all(find_spec(package) for package in (f"{name}", f"prefect_{name}")):
        raise RunnerError(f"--runner {name} is not installed; pip install 'ssrem[{name}]'")


def settings(pairs: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """`KEY=VALUE` of an option: values as JSON has them, or else text."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise SsremError(f"{option} {pair}: expected KEY=VALUE, such as {EXAMPLES[option]}")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found
