"""The parser of the `ssrem` command: its verbs and groups of verbs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from ssrem import __version__
from ssrem.cli.group_verbs import GROUP_VERBS, GROUPS
from ssrem.cli.options import HOME, JSON, Verbs
from ssrem.cli.verbs import SINGLE_VERBS
from ssrem.errors import SsremError
from ssrem.registry import did_you_mean

EPILOG = """\
examples:
  ssrem run                                          everything, on the corpus that comes with the install
  ssrem run dump.jsonl --annotations human_eval.json everything, on your own
  ssrem sql "SELECT * FROM identification"           query the tables
"""

RENAMED = {
    "agree": "is now ssrem correlate",
    "annotate": "is now ssrem ratings collect (to write a batch) and ssrem ratings import",
    "annotations": "is now ssrem ratings list and ssrem ratings pull",
    "collect": "is now ssrem home prune",
    "backup": "is now ssrem home backup",
    "restore": "is now ssrem home restore",
    "promote": "is now ssrem evaluators promote",
    "rollback": "is now ssrem evaluators rollback",
    "export": "is now ssrem evaluators export",
    "import": "is now ssrem evaluators import",
    "retrain": "is now ssrem evaluators retrain",
    "upgrade": "is gone: with ssrem run, make a home folder of another layout anew from its dumps and ratings",
}
"""Verbs of version 0.1 and what replaced them."""

VERBS: Verbs = {**SINGLE_VERBS, **GROUP_VERBS}


class Parser(argparse.ArgumentParser):
    """Reports a wrong command in one line, like every other error, with the nearest valid name."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in argparse, but the parser of a verb refuses unknown options itself, since it knows the valid ones."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            known = [option for action in self._actions for option in action.option_strings]
            name = unknown[0].partition("=")[0]
            near = did_you_mean(name, known) if name.startswith("-") else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{near}")
        return options, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            known = [str(choice) for choice in action.choices or ()]
            near = did_you_mean(str(value), known)
            if action.metavar != "VERB":
                raise argparse.ArgumentError(action, f"{error.message}{near}") from None
            near = near or f"; the verbs are {', '.join(known)}"
            raise argparse.ArgumentError(None, f"there is no verb {value!r}{near}") from None

    def error(self, message: str) -> NoReturn:
        line = str(SsremError(message))  # one line of bounded length
        self.exit(2, f"ssrem: {line}; see {self.prog} --help\n")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of a command, and its `verb`. Ends the process, with one line, if they are wrong."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments and arguments[0] in RENAMED:
        parser().error(f"ssrem {arguments[0]} {RENAMED[arguments[0]]}")
    word = "".join(arguments[1:2])
    if arguments[:1] == ["evaluators"] and (not word or word.startswith("--")) and word != "--help":
        arguments.insert(1, "list")  # the group's default
    return parser().parse_args(arguments)


def parser() -> Parser:
    """The parser of all verbs."""
    top = Parser(
        prog="ssrem",
        description="Learns from people's own conversations to tell good dialogue responses from bad ones.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"ssrem {__version__}")
    verbs = {"": _verbs(top)}
    for name, (help, *options) in VERBS.items():
        group, _, word = name.rpartition(" ")
        if group not in verbs:
            verbs[group] = _verbs(verbs[""].add_parser(group, help=GROUPS[group], description=GROUPS[group]))
        verb = verbs[group].add_parser(word, help=help, description=help)
        verb.set_defaults(verb=name)
        for add in (HOME, JSON, *options):
            add(verb)
    return top


def _verbs(parser: argparse.ArgumentParser) -> Any:
    return parser.add_subparsers(title="verbs", required=True, metavar="VERB", parser_class=Parser)
