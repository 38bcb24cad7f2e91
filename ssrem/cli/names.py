"""Checks names and files in a command's options before the home folder is opened or large packages are imported."""

from __future__ import annotations

import argparse
from pathlib import Path

from ssrem.errors import AnnotationError, EvaluatorError
from ssrem.registry import registered

CHECKS = {
    "study": "ssrem.studies:check_name",
    "evaluator": "ssrem.evaluators:check_name",
    "encoder": "ssrem.encoders:check_spec",
    "generator": "ssrem.negatives:needs_model",
    "model": "ssrem.encoders.transformer.hub:check_at_hand",
    "init": "ssrem.encoders.transformer.hub:check_at_hand",
    "file": "ssrem.cli.names:check_annotated",
    "annotations": "ssrem.cli.names:check_annotated",
    "labels": "ssrem.cli.names:check_annotated",
    "signature": "ssrem.agreement.signature:parse",
    "archive": "ssrem.cli.names:check_archive",
    "batch": "ssrem.cli.names:check_batch",
    "answers": "ssrem.cli.names:check_answers",
}
"""Option → function that raises an SsremError for a value that does not exist."""


LANGUAGE_MODELS = ("masked-lm", "lm")
"""Language models that `ssrem train` fine-tunes; they are not evaluators."""


def check(options: argparse.Namespace) -> None:
    """Raise an SsremError for the first option whose value does not exist."""
    for option, place in CHECKS.items():
        for name in listed(options, option):
            if option == "evaluator" and options.verb == "train" and name in LANGUAGE_MODELS:
                continue
            registered(place)(name)


def listed(options: argparse.Namespace, option: str) -> list[str]:
    """The values of an option as a list; empty if the verb does not have the option."""
    value = getattr(options, option, None)
    return [str(value)] if isinstance(value, str | Path) else list(map(str, value or ()))


def check_annotated(file: str) -> None:
    """Raise AnnotationError if `file` is neither a path, nor the name of a public set, nor `-` (standard input)."""
    path = Path(file)
    if file == "-" or path.exists():
        return
    if path.suffix or path.name != file:
        raise AnnotationError(f"{file} does not exist; give the path of a file of responses")
    registered("ssrem.annotated_sets.known:known_set")(file)  # imports NumPy


def check_archive(file: str) -> None:
    """Raise EvaluatorError for an archive of an evaluator that does not exist."""
    if not Path(file).exists():
        raise EvaluatorError(f"{file} does not exist; give what ssrem evaluators export wrote")


def check_batch(folder: str) -> None:
    """Raise AnnotationError for a folder without the key of a batch."""
    if not (key := Path(folder) / "key.json").exists():
        raise AnnotationError(f"{key} cannot be read; give the folder that ssrem ratings collect wrote")


def check_answers(file: str) -> None:
    """Raise AnnotationError for a file of a rater's answers that does not exist."""
    if not Path(file).exists():
        raise AnnotationError(f"{file} does not exist; give the files that raters saved")
