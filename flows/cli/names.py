"""Names and files of a command's options, checked before the home folder is opened and anything large is imported."""

from __future__ import annotations

import argparse
from pathlib import Path

from ssrem.errors import AnnotationError
from ssrem.registry import registered

CHECKS = {
    "study": "ssrem.studies:check_name",
    "evaluator": "ssrem.evaluators:check_name",
    "encoder": "ssrem.encoders:check_spec",
    "generator": "ssrem.negatives:needs_model",
    "file": "flows.cli.names:check_annotated",
    "annotations": "flows.cli.names:check_annotated",
    "labels": "flows.cli.names:check_annotated",
}
"""Option to the function that raises an SsremError for a value that names nothing."""


def check(options: argparse.Namespace) -> None:
    """Raise an SsremError for the first option that names what does not exist."""
    for option, place in CHECKS.items():
        for name in listed(options, option):
            registered(place)(name)


def listed(options: argparse.Namespace, option: str) -> list[str]:
    """The values of an option that takes one or several, or that the verb does not have."""
    value = getattr(options, option, None)
    return [value] if isinstance(value, str) else value or []


def check_annotated(file: str) -> None:
    """Raise AnnotationError for the path of an annotated set that does not exist; a bare name may be a pulled set's."""
    path = Path(file)
    if (path.suffix or path.name != file) and not path.exists():
        raise AnnotationError(f"{file} does not exist; give the path of a file of responses")
