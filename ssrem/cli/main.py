"""The `ssrem` command: its verbs, one-line errors, exit statuses and signals."""

from __future__ import annotations

import gc
import io
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ssrem import __version__
from ssrem.cli import STDIN, UsageError
from ssrem.errors import SsremError, printable
from ssrem.extras import explained
from ssrem.registry import did_you_mean

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError

VERBS = {
    "run": ("data:run", "land, build tables, train, score, correlate and report"),
    "ingest": ("data:ingest", "land a dump of conversations: a file, folder, archive or URL"),
    "tables": ("data:tables", "build the speaker tables of landed corpora"),
    "negatives": ("data:negatives", "make negative responses, as a table"),
    "train": ("train:train", "train evaluators, score their test splits, promote those that are not worse"),
    "score": ("score:score", "print a score for each response in a file, or for one"),
    "score-corpus": ("score:score_corpus", "score a test split with evaluators that may never have seen it"),
    "correlate": ("people:correlate", "correlate scores with human scores"),
    "study": (
        "people:study",
        "what scores depend on besides quality, such as length, copying or injected text",
    ),
    "validate": ("people:validate", "tell on one page how far an evaluator can be trusted, by human labels"),
    "report": ("read:report", "write the report and print its path"),
    "sql": ("read:sql", "query the published tables, read-only"),
    "status": ("read:status", "show what has landed, how far each corpus is, and what went wrong"),
    "forget": ("data:forget", "delete a person from corpora and what was made of them, not from rated sets"),
    "evaluators list": ("train:list_", "list the available evaluators, and the versions trained here"),
    "evaluators promote": ("train:promote", "bring a version of an evaluator into use"),
    "evaluators rollback": ("train:rollback", "bring the previous version back into use"),
    "evaluators export": ("train:export", "write a trained evaluator into one file, for another home folder"),
    "evaluators import": ("train:import_", "add an evaluator that ssrem evaluators export wrote"),
    "evaluators retrain": ("train:retrain", "retrain the evaluators that have not seen every landed corpus"),
    "ratings list": ("ratings:list_", "list the known public annotated sets, with their licences"),
    "ratings pull": ("ratings:pull", "fetch public annotated sets, which ssrem correlate then takes by name"),
    "ratings collect": (
        "ratings:collect",
        "draw a batch of responses; write what raters fill in, and the key",
    ),
    "ratings import": ("ratings:import_", "read raters' answers, report agreement, write an annotated set"),
    "home prune": ("read:prune", "delete the files that no snapshot needs any more"),
}
"""Verb → ("module:function" in ssrem.cli, imported when the verb is used; help of the verb)."""

GROUPS = {
    "evaluators": "list evaluators, choose versions, retrain, and move them between home folders",
    "ratings": "collect human ratings, and fetch public annotated sets",
    "home": "prune a home folder",
}

EPILOG = """\
Examples:

  ssrem run                                      all, of a packaged corpus
  ssrem run dump.jsonl --annotations people.json all, of your own
  ssrem sql "SELECT * FROM identification"       query the tables
"""

_WITHOUT_STAGES = (["sql"], ["score"], ["validate"], ["status"])
UNPUBLISHED = "; nothing of this stage was published, run it again to go on"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status.

    The status is 0 after success, 1 after an error or where a verb reports failure by it, 2 for a command that cannot
    be understood, 130 after Ctrl-C, 143 after SIGTERM, and 141 if the output is a pipe that nobody reads any more. An
    error is printed as one line on stderr: what is wrong, where, and what to do.
    """
    if arguments is None:
        _prepare_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    arrived: list[int] = []
    try:
        with stopped_by_signals(arrived):
            status = run(words)
            print(end="", flush=True)  # so that a broken pipe is noticed here
        return status
    except BaseException as error:
        # A library may have replaced the KeyboardInterrupt of the signal's handler by an error of its own.
        if arrived or isinstance(error, KeyboardInterrupt):
            after, status = ("terminated", 143) if arrived[:1] == [signal.SIGTERM] else ("interrupted", 130)
            line = f"{after}{'' if words[:1] in _WITHOUT_STAGES else UNPUBLISHED}"
        else:
            status, line = outcome(error)
        if line:
            print(f"ssrem: {line}", file=sys.stderr)
        return status


def _prepare_streams() -> None:
    """Open the standard streams that the caller closed, and let output escape what its encoding does not have."""
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def run(words: list[str]) -> int:
    """Run a command; returns its exit status, unless it fails with an error, which is raised."""
    # Rows are many objects without cycles; the default search for cycles takes a fifth of the time of scoring.
    gc.set_threshold(100_000, 20, 20)
    work = parsed(words)
    if work is None:
        return 0
    from ssrem.files import delete_abandoned
    from ssrem.tasks.stage.progress import lines_without_terminal

    delete_abandoned()
    with lines_without_terminal():
        return work() or 0


def parsed(words: list[str]) -> Callable[[], int | None] | None:
    """The function that carries out a command, all of whose options were checked; None if it only asked for help.

    The help is printed here. Raises UsageError for a command that cannot be understood.
    """
    from cyclopts import CycloptsError

    if words[:1] == ["evaluators"] and all(
        one.startswith("-") and one not in ("-h", "--help") for one in words[1:2]
    ):
        words = ["evaluators", "list", *words[1:]]  # what the group does by default
    # An SQL query that begins with a comment is not an option.
    words = [f" {word}" if re.match(r"--\s", word) else word for word in words]
    try:
        work, bound, _ = app().parse_args([STDIN if word == "-" else word for word in words])
    except CycloptsError as error:
        place = " ".join(["ssrem", *(error.command_chain or ())])
        raise UsageError(f"{wrong(error, words)}; see {place} --help".replace(STDIN, "-")) from None
    work = work(*bound.args, **bound.kwargs)
    return work if callable(work) else None


def app() -> App:
    """The application of cyclopts with all verbs and groups of verbs."""
    from cyclopts import App, Group

    top = App(
        "ssrem",
        help="Learns from people's own conversations to tell good dialogue responses from bad ones.",
        help_epilogue=EPILOG,
        version=f"ssrem {__version__}",
        version_flags=("--version",),
        group_commands=Group("Verbs", sort_key=0),
        group_parameters="Options",
        print_error=False,
        exit_on_error=False,
        help_format="plaintext",
    )
    groups = {"": top}
    for number, (name, help) in enumerate(GROUPS.items(), len(VERBS)):
        group = App(name, help=help, version_flags=(), help_epilogue="", sort_key=number)
        groups[name] = top.command(group)
    for number, (name, (place, help)) in enumerate(VERBS.items()):
        of, _, word = name.rpartition(" ")
        groups[of].command(f"ssrem.cli.{place}", name=word, help=help, help_epilogue="", sort_key=number)
    for flag in ("--help", "-h", "--version"):
        top[flag].group = "Options"
    return top


def wrong(error: CycloptsError, words: Sequence[str]) -> str:
    """A message that says what cyclopts found wrong with the command that consists of `words`."""
    from cyclopts import MissingArgumentError, UnknownCommandError, UnknownOptionError, UnusedCliTokensError

    if isinstance(error, UnknownCommandError):
        word, group = (error.unused_tokens or [""])[0], " ".join(error.command_chain or ())
        known = [of for name in (*VERBS, *GROUPS) for own, _, of in [name.rpartition(" ")] if own == group]
        near = did_you_mean(word, known) or f"; the verbs are {', '.join(known)}"
        return f"there is no verb {word!r}{near}"
    if isinstance(error, UnknownOptionError):
        word = (error.token.keyword or error.token.value).partition("=")[0]
        known = [name for one in error.argument_collection for name in one.names]
        return f"there is no option {word}{did_you_mean(word, known)}"
    if isinstance(error, UnusedCliTokensError):
        return f"{' '.join(error.unused_tokens or ())}: one argument too many"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        name = error.argument.name
        if name.startswith("--"):
            return f"{name} needs a value"
        swallowed = "; give it before the options" * any(word.startswith("--") for word in words)
        return f"{name.strip('-').upper()} is missing{swallowed}"
    error.verbose = False
    return str(error).rstrip(".")


def outcome(error: BaseException) -> tuple[int, str]:
    """The exit status after an error, and the line to print; an unexpected error is raised again."""
    if isinstance(error, SsremError):
        return 2 if isinstance(error, UsageError) else 1, str(error)
    if isinstance(error, ModuleNotFoundError) and (needs := explained(error)):
        return 1, str(needs)
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141, ""
    if isinstance(error, MemoryError):
        return 1, "not enough memory; give it more, or a smaller file"
    if isinstance(error, OSError):  # a full disk, or a folder without write permission
        where = f"{error.filename}: " if error.filename else ""
        return 1, printable(f"{where}{error.strerror or error}; make room, or change its permissions")
    raise error


@contextmanager
def stopped_by_signals(arrived: list[int]) -> Iterator[None]:
    """End the block with KeyboardInterrupt on Ctrl-C or SIGTERM, and append the signal's number to `arrived`.

    A second signal is ignored, so that it prevents neither the message nor the cleanup.
    """

    def stop(number: int, _: object) -> NoReturn:
        arrived.append(number)
        for one in before:
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        if not arrived:
            for number, handler in before.items():
                signal.signal(number, handler)
