"""Options of `ssrem annotate export` and `ssrem annotate import`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from flows.cli.options import Parser, as_json, at_least, home, room, runner


def add(verbs: argparse._SubParsersAction[Any]) -> None:
    """Add the verb to the command's."""
    about = "collect human scores: a batch for raters, and their answers back"
    steps = verbs.add_parser("annotate", help=about, description=about).add_subparsers(
        title="steps", dest="step", required=True, metavar="STEP", parser_class=Parser
    )
    about = "draw a batch, and write the page and tables that raters fill in, and the key that stays with you"
    _export(steps.add_parser("export", help=about, description=about, parents=[home(), as_json()]))
    about = "read answers back, leave out careless raters, report agreement, and write an annotated set"
    groups = [home(), as_json(), room(), runner()]
    _import(steps.add_parser("import", help=about, description=about, parents=groups))


def _export(export: argparse.ArgumentParser) -> None:
    def number(name: str, least: int, default: int, help: str) -> None:
        export.add_argument(
            name, type=at_least(least), metavar="N", default=default, help=f"{help} (default: %(default)s)"
        )

    export.add_argument("folder", type=Path, metavar="FOLDER", help="new folder of the batch")
    export.add_argument("--corpus", metavar="NAME", help="corpus (default: the only one that has landed)")
    export.add_argument(
        "--split",
        choices=("valid", "test"),
        default="test",
        help="whose contexts; bm25 answers them from the training split (default: %(default)s)",
    )
    export.add_argument(
        "--responses",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=FILE",
        help="a system and its responses, a JSON list or one object a line with context and response; contexts are "
        "drawn from those that every file answers",
    )
    export.add_argument("--without-bm25", action="store_true", help="no retrieved responses")
    number("--contexts", 1, 24, "contexts, each rated with every system's response")
    number("--raters", 1, 3, "raters, each with a sheet")
    number("--redundancy", 1, 3, "raters of each response")
    number("--checks", 0, 4, "attention checks of each rater")
    number("--seed", 0, 0, "seed of every draw")
    export.add_argument(
        "--criterion", metavar="NAME", default="overall", help="what is scored (default: %(default)s)"
    )
    export.add_argument(
        "--question",
        metavar="TEXT",
        default="How well does the response fit the conversation?",
        help="what raters are asked (default: %(default)s)",
    )
    export.add_argument(
        "--scale",
        type=int,
        choices=range(2, 10),
        metavar="N",
        default=5,
        help="highest score, 2 to 9; 1 is the lowest (default: %(default)s)",
    )


def _import(take: argparse.ArgumentParser) -> None:
    take.add_argument(
        "answers", nargs="+", type=Path, metavar="ANSWERS", help="files that raters saved, JSON or CSV"
    )
    take.add_argument(
        "--batch", type=Path, required=True, metavar="FOLDER", help="what annotate export wrote"
    )
    take.add_argument(
        "--checks-passed",
        type=_share,
        metavar="SHARE",
        default=1.0,
        help="leave out who passed fewer of their attention checks (default: %(default)g)",
    )
    take.add_argument(
        "--kappa",
        type=_bound,
        metavar="BOUND",
        default=0.2,
        help="leave out whose mean quadratic kappa with the others is below, -1 to 1, or none (default: %(default)g)",
    )
    take.add_argument(
        "--output", type=Path, metavar="FILE", help="annotated set to write (default: FOLDER/BATCH_eval.json)"
    )
    take.add_argument("--agree", action="store_true", help="then correlate trained evaluators with it")


def _share(text: str) -> float:
    return _number(text, lambda value: 0 < value <= 1, "share above 0, up to 1")


def _bound(text: str) -> float | None:
    return None if text == "none" else _number(text, lambda value: -1 <= value <= 1, "number from -1 to 1")


def _number(text: str, fits: Any, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not fits(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no {what}")
    return value
