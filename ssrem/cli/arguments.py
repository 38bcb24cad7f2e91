"""Makes the settings of flows from a command's options; errors in them are reported before a flow starts.

The settings are Pydantic models, imported in the functions that fill them: quick commands do not need them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ssrem.errors import AnnotationError, DumpError, SsremError
from ssrem.evaluators import evaluator_class, route
from ssrem.evaluators.core.archive import unpack
from ssrem.files import resolved, temporary_folder
from ssrem.readers import open_dump, parse_mapping
from ssrem.readers.files.encodings import checked_encoding
from ssrem.readers.files.sources import is_remote
from ssrem.readers.times import checked_format
from ssrem.tasks.ingest.dataset_names import checked_name, corpus_name
from ssrem.tasks.privacy.ingest_filter import key_for
from ssrem.tasks.warehouse.corpora import corpora_to_learn_from
from ssrem.tasks.warehouse.home import Warehouse

if TYPE_CHECKING:
    from ssrem.flows.orchestration.options import (
        AnnotatedSetOptions,
        DumpOptions,
        Options,
        RunnerOptions,
        TrainingOptions,
    )
    from ssrem.tasks.agreement.annotated_sets import AnnotatedFile
    from ssrem.tasks.stage.stage import Resources
    from ssrem.tasks.training.settings import LabelOptions, Margins

Model = TypeVar("Model", bound="Options")


def filled(model: type[Model], options: argparse.Namespace, **values: Any) -> Model:
    """The settings `model` with the options of the same names, where they have a value, and `values`."""
    named = {name: getattr(options, name, None) for name in model.model_fields}
    return model(**{name: value for name, value in named.items() if value is not None} | values)


def dump(options: argparse.Namespace, home: Warehouse, pairs: Sequence[str]) -> DumpOptions:
    """The options with which the dump lands; pairs: its `--map`.

    Raises DumpError or PrivacyError if the name or key cannot be used, or the dump cannot be read with these options.
    """
    if options.name is not None:
        checked_name(options.name, "a corpus", "give another with --name", DumpError)
    key = options.pseudonym_key
    key_for(home, options.pseudonymise, key)
    mapping = {field: "+".join(columns) for field, columns in parse_mapping(pairs).items()} or None
    encoding, time_format = checked_encoding(options.encoding), checked_format(options.time_format)
    if options.source and options.name is None:
        corpus_name(options.source)
    # Remote sources are fetched only once, when they land.
    if options.source and not any(map(is_remote, options.source)):
        open_dump(
            options.source, format=options.format, mapping=mapping, encoding=encoding, time_format=time_format
        )
    from ssrem.flows.orchestration.options import DumpOptions

    file = str(resolved(key)) if key else None
    return filled(DumpOptions, options, mapping=mapping, pseudonym_key_file=file)


def source(options: argparse.Namespace, default: str | None = None) -> str | list[str] | None:
    """The source or sources of the dump."""
    sources = list(dict.fromkeys(options.source))
    return sources if len(sources) > 1 else sources[0] if sources else default


def annotated_sets(
    options: argparse.Namespace, home: Warehouse, files: Sequence[str], pairs: Sequence[str]
) -> AnnotatedSetOptions:
    """The annotated sets; pairs: their `--map`. AnnotationError if one cannot be read, or none takes a mapping."""
    from ssrem.flows.orchestration.options import AnnotatedSetOptions

    _, mapping = mapped_sets(home, files, pairs, "--annotations", options.layout)
    return filled(AnnotatedSetOptions, options, files=list(files), mapping=mapping)


def mapped_sets(
    home: Warehouse, files: Sequence[str], pairs: Sequence[str], given_by: str, layout: str | None = None
) -> tuple[list[AnnotatedFile], dict[str, str] | None]:
    """The annotated sets of these files, and their `--map`, which `pairs` are. AnnotationError as `annotated_sets`."""
    from ssrem.annotated_sets.columns import parse  # imports NumPy
    from ssrem.tasks.agreement.annotated_sets import annotated_file

    mapping = parse(pairs)
    sets = [annotated_file(home, file, layout, mapping) for file in files]
    if mapping and not files:
        raise AnnotationError(
            f"--map {next(iter(mapping))}=… is about annotated sets; give one with {given_by}"
        )
    if mapping and not any(one.read.mapped for one in sets):
        layouts = ", ".join(dict.fromkeys(one.read.layout for one in sets))
        raise AnnotationError(f"--map does not apply to {layouts}, whose fields are known; leave it out")
    return sets, mapping or None


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
        corpora_to_learn_from(home, labels_alone=options.labels_only)
    labels = _labels(options, home)
    for name in names:
        evaluator_class(name).check_labels(len(labels.files) if labels else 0, bool(labels and labels.alone))
    from ssrem.flows.orchestration.options import TrainingOptions

    return filled(TrainingOptions, options, config=config, labels=labels)


def _labels(options: argparse.Namespace, home: Warehouse) -> LabelOptions | None:
    sets, mapping = mapped_sets(home, options.labels, options.map, "--labels")
    if not options.labels:
        if options.criterion or options.labels_only:
            raise SsremError("--criterion and --labels-only need --labels FILE")
        return None
    from ssrem.tasks.agreement.annotated_sets import human_scores  # imports NumPy
    from ssrem.tasks.training.settings import LabelOptions

    labels = LabelOptions(tuple(options.labels), options.criterion, options.labels_only, mapping)
    human_scores(sets, labels.criterion)
    for one in sets:
        one.say_how_read()
    return labels


def check_packed(file: str) -> None:
    """Raise EvaluatorError if the file is not an exported evaluator."""
    with temporary_folder() as folder:
        unpack(Path(file), folder)


def margins(options: argparse.Namespace) -> Margins:
    """`--margin`; EvaluatorError for a margin that does not exist or is out of range."""
    from ssrem.tasks.training.settings import Margins

    return Margins.of(pairs_of(options.margin, "--margin", "agreement=0.05"))


def resources(options: argparse.Namespace) -> Resources:
    """The memory and threads that DuckDB may use."""
    from ssrem.tasks.stage.stage import Resources

    return Resources(memory_limit=options.memory_limit, threads=options.threads)


def runner(options: argparse.Namespace) -> RunnerOptions:
    """Where shards are processed."""
    from ssrem.flows.orchestration.options import RunnerOptions

    return RunnerOptions(name=options.runner, address=options.runner_address, workers=options.workers)


def evaluator_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of `--set`, and of the options that are short for some of them."""
    settings = pairs_of(options.set, "--set", "model=NAME")
    shortcuts = {"max_requests": options.max_requests, "max_cost": options.max_cost}
    shortcuts |= {"send_texts": options.send_texts or None}
    return settings | {key: value for key, value in shortcuts.items() if value is not None}


def pairs_of(pairs: Sequence[str], option: str, example: str) -> dict[str, Any]:
    """`KEY=VALUE` pairs of an option: values are JSON, or else text."""
    values = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise SsremError(f"{option} {pair}: expected KEY=VALUE, such as {example}")
        try:
            values[key] = json.loads(value)
        except (ValueError, RecursionError):  # nested deeply, or a number of thousands of digits
            values[key] = value
    return values
