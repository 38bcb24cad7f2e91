"""Errors and notes for users, each of one line, which say what is wrong, where, and what to do; and their wording."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

_LONGEST, _END = 2_000, 500


def printable(text: str) -> str:
    """`text` on one line: line breaks and control codes are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def say(line: str) -> None:
    """Print a one-line note on stderr, such as what a command does or left out; with --quiet nothing is printed."""
    if not os.environ.get("SSREM_QUIET"):
        print(f"ssrem: {printable(line)}", file=sys.stderr, flush=True)


class SsremError(Exception):
    """Base of every error that ssrem raises on purpose; its message is one line and is shown without a traceback.

    Messages contain names from files and dumps, so line breaks and control codes are escaped, and a message longer
    than 2,000 characters is shortened in the middle.
    """

    def __init__(self, message: object = "") -> None:
        text = str(message)
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST - _END]} … {text[-_END:]}"
        super().__init__(printable(text))


def one_line(value: object, most: int = 160) -> str:
    """The text of a value, or the message of an error, without line breaks and cut to `most` characters; an error
    without a message gives the name of its type."""
    text = " ".join(str(value).split()) or (type(value).__name__ if isinstance(value, BaseException) else "")
    return text if len(text) <= most else text[: most - 1] + "…"


def short_repr(value: object, most: int = 60) -> str:
    """The `repr` of a value, cut to `most` characters, since a number in a file may have thousands of digits."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def counted(number: int, what: str) -> str:
    """A number and what it counts, its first word in the plural: `1 rating given as N/A`, `2 ratings given as N/A`."""
    noun, blank, rest = what.partition(" ")
    return f"{number:,} {noun}{'' if number == 1 else 's'}{blank}{rest}"


def first_of(names: Sequence[str], most: int) -> str:
    """The first names in a sentence, and how many more there are: `a, b and 1 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


class DumpError(SsremError):
    """A dump cannot be read: it is missing, empty or of another format, or it lacks the columns of its mapping."""


class EmptyFileError(DumpError):
    """A file of a dump has no row; others of the dump may have some."""


class AnnotationError(SsremError):
    """A file of human ratings cannot be read; the message names the file, the row and the fault."""


class EvaluatorError(SsremError):
    """An evaluator or encoder cannot be trained, loaded or applied."""


class HomeError(SsremError):
    """The home folder is locked, of another layout, damaged or full."""


class GateError(SsremError):
    """A data-quality gate failed; nothing was published. folder: where the refused rows are, or None."""

    def __init__(self, message: str, folder: Path | None = None) -> None:
        super().__init__(message)
        self.folder = folder

    def __reduce__(self) -> tuple[type[GateError], tuple[str, Path | None]]:
        return type(self), (str(self), self.folder)


class PrivacyError(SsremError):
    """A pseudonym key is missing or weak, or a person to forget is unknown or still in the data."""
