"""The verbs of the `ssrem` command and their options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from flows.cli.commands import public_sets
from flows.cli.commands import ratings_options as annotate_options
from flows.cli.options import (
    Parser,
    as_json,
    at_least,
    corpora,
    draws,
    dump,
    home,
    key,
    layout,
    learn,
    mapped,
    margins,
    room,
    runner,
    time,
    wait,
)
from ssrem import __version__

EPILOG = """\
examples:
  ssrem run                                          everything, on the corpus that comes with the install
  ssrem run dump.jsonl --annotations human_eval.json everything, on your own
  ssrem sql "SELECT * FROM identification"           ask the tables
"""

Verb = Callable[..., argparse.ArgumentParser]


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    top = Parser(
        prog="ssrem",
        description="Learns from people's own conversations to tell good dialogue responses from bad ones.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"ssrem {__version__}")
    verbs = top.add_subparsers(title="verbs", dest="verb", required=True, metavar="VERB", parser_class=Parser)

    def verb(name: str, help: str, *groups: Parser) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=help, description=help, parents=[home(), *groups])

    _stages(verb)
    _evaluators(verb)
    _questions(verb)
    annotate_options.add(verbs)
    public_sets.add(verbs)
    _upkeep(verb)
    return top


def _stages(verb: Verb) -> None:
    """What is done to a corpus, in order."""
    run = verb(
        "run",
        "land, build tables, train, score, correlate and report",
        as_json(),
        dump(),
        room(),
        learn(),
        margins(),
        runner(),
    )
    run.add_argument(
        "source", nargs="?", default="chitchat", help="dump, a file or folder (default: %(default)s)"
    )
    run.add_argument(
        "--annotations",
        nargs="+",
        metavar="FILE",
        default=[],
        help="responses with human scores, files, folders or pulled sets; fields of --map as in ssrem agree",
    )
    layout(run)
    run.add_argument(
        "--evaluator", nargs="+", metavar="NAME", help="evaluators to train (default: ssrem rsrem)"
    )
    draws(run)

    ingest = verb("ingest", "land a dump of conversations", as_json(), dump(), room(), margins())
    ingest.add_argument(
        "source", nargs="?", help="dump, a file or folder; chitchat is the one that comes with the install"
    )
    ingest.add_argument(
        "--replace", action="store_true", help="land again what has landed, with other options"
    )
    ingest.add_argument(
        "--retrain", action="store_true", help="then train again what has not seen all that landed"
    )
    ingest.add_argument(
        "--inbox",
        metavar="FOLDER",
        help="land what is complete in it, and move it to its done/, or to rejected/ with the reason beside it",
    )
    ingest.add_argument(
        "--settle",
        type=time,
        metavar="TIME",
        default=5.0,
        help="what does not change for so long is complete (default: 5 s)",
    )
    ingest.add_argument(
        "--watch", type=time, metavar="TIME", help="look into --inbox again after so long, until interrupted"
    )

    tables = verb(
        "tables",
        "build the speaker tables of landed corpora",
        as_json(),
        corpora(),
        room(),
        learn(),
        runner(),
    )
    draws(tables)

    negatives = verb(
        "negatives", "make responses that are wrong on purpose, as a table", as_json(), corpora(), room()
    )
    negatives.add_argument(
        "generator",
        metavar="SPEC",
        help="random-2, sc, sp, ss, mask-and-fill, drop-golden, shuffle-golden, …; A+B for several",
    )
    negatives.add_argument("--split", default="train", help="train, valid or test (default: %(default)s)")
    negatives.add_argument(
        "--responses",
        type=at_least(0),
        metavar="N",
        default=1000,
        help="how many responses, 0 for all (default: %(default)s)",
    )
    negatives.add_argument(
        "--model",
        metavar="SPEC",
        help="masked language model of mask-and-fill, a name or folder (default: one fine-tuned here, once)",
    )
    negatives.add_argument(
        "--seed", type=at_least(0), metavar="N", default=0, help="seed of every draw (default: %(default)s)"
    )

    train = verb(
        "train",
        "train evaluators, score their test splits, and promote those that are not worse",
        as_json(),
        corpora(),
        room(),
        learn(),
        margins(),
        runner(),
    )
    train.add_argument("evaluator", nargs="*", metavar="NAME", help="evaluators (default: ssrem rsrem)")
    _training(train)

    agree = verb("agree", "correlate scores with human scores", as_json(), room(), runner())
    agree.add_argument(
        "file",
        nargs="+",
        metavar="FILE",
        help="annotated sets, files, folders or names of what ssrem annotations pull fetched",
    )
    layout(agree)
    mapped(
        agree,
        "which column of a table is which field: context response score criterion rater model reference dialogue; "
        "score.NAME=A+B for raters' columns; separator=TEXT between turns (default: a line break)",
    )
    agree.add_argument("--evaluator", nargs="+", metavar="NAME", help="trained evaluators (default: all)")
    agree.add_argument(
        "--keep-ground-truth", action="store_true", help="correlate ground-truth rows too (default: left out)"
    )
    agree.add_argument(
        "--force-systems",
        action=argparse.BooleanOptionalAction,
        help="figures at system level of fewer than five systems too, flagged as forced (default: as before, at "
        "first none)",
    )

    study = verb("study", "what the scores of evaluators hang on besides quality", as_json(), room())
    study.add_argument(
        "study",
        metavar="NAME",
        help="attacks or corpus-buckets, of a corpus; length, buckets, distribution or without-system, of an "
        "annotated set's scores; low-resource, label-noise, leave-one-system-out or transfer, where evaluators learn "
        "from its human scores",
    )
    study.add_argument(
        "--of",
        nargs="+",
        metavar="DATASET",
        help="corpora or annotated sets (default: all that there are for this study)",
    )
    study.add_argument("--evaluator", nargs="+", metavar="NAME", help="trained evaluators (default: all)")
    study.add_argument(
        "--responses",
        type=at_least(0),
        metavar="N",
        default=200,
        help="true responses to attack, 0 for all of the test split (default: %(default)s)",
    )
    study.add_argument(
        "--seed", type=at_least(0), metavar="N", default=0, help="seed of every draw (default: %(default)s)"
    )


def _evaluators(verb: Verb) -> None:
    """What is done with trained evaluators."""
    verb("evaluators", "list the evaluators there are, and those trained", as_json())
    retrain = verb(
        "retrain", "train again what has not seen all that landed", as_json(), room(), margins(), runner()
    )
    retrain.add_argument("evaluator", nargs="*", metavar="NAME", help="evaluators (default: all in use)")

    promote = verb("promote", "bring a version of an evaluator into use", as_json(), room())
    promote.add_argument("evaluator", metavar="NAME", help="trained evaluator")
    promote.add_argument("version", type=at_least(1), metavar="VERSION", help="which of its versions")

    rollback = verb("rollback", "bring the version that was in use before back into use", as_json(), room())
    rollback.add_argument("evaluator", metavar="NAME", help="trained evaluator")

    export = verb("export", "write a trained evaluator into one file, to carry it elsewhere", as_json())
    export.add_argument("evaluator", metavar="NAME", help="trained evaluator")
    export.add_argument(
        "--version", type=at_least(1), metavar="N", help="its version (default: the one in use)"
    )
    export.add_argument("--output", type=Path, metavar="FILE", help="default: NAME-VERSION.ssrem, here")

    take = verb("import", "take in an evaluator that ssrem export wrote", as_json(), room())
    take.add_argument("file", metavar="FILE", help="what ssrem export wrote")
    take.add_argument(
        "--allow",
        nargs="+",
        metavar="SPEC",
        help="encoders and models, names or paths, that it may read or fetch though it does not bring them",
    )


def _questions(verb: Verb) -> None:
    """What only reads."""
    score = verb("score", "print a score for each response in a file", as_json())
    score.add_argument(
        "file", metavar="FILE", help="responses with their contexts, a JSON list or one object a line"
    )
    score.add_argument(
        "--evaluator",
        default="ssrem",
        metavar="NAME",
        help="evaluator (default: %(default)s, which comes trained where the home folder has none)",
    )
    score.add_argument("--output", metavar="FILE", help="write there instead of to the terminal")

    sql = verb("sql", "ask the published tables, read-only", as_json())
    sql.add_argument(
        "query",
        nargs="?",
        help="one SELECT; SHOW TABLES lists the tables (default: a prompt, or what is piped in)",
    )
    sql.add_argument("--csv", metavar="FILE", help="write the answer there as CSV; - for the terminal")
    sql.add_argument("--parquet", metavar="FILE", help="write the answer there as Parquet")

    reproduce = verb("reproduce", "compute a published figure again, or say what differs", as_json())
    reproduce.add_argument("signature", metavar="SIGNATURE", help="of a row of the table agreement")

    status = verb("status", "show what has landed, how far each corpus is, and what went wrong", as_json())
    status.add_argument(
        "--deep", action="store_true", help="read every published file through and compare it with its digest"
    )
    report = verb("report", "write the report and print its path", as_json())
    report.add_argument("--open", action="store_true", help="open the page in the browser")
    what = report.add_mutually_exclusive_group()
    what.add_argument(
        "--figures",
        type=Path,
        metavar="FOLDER",
        help="write every figure there, too, as SVG, PDF and PNG, and every table as LaTeX, Markdown and CSV",
    )
    what.add_argument(
        "--compare",
        nargs=2,
        metavar="RUN",
        help="write a page of what differs between two runs instead; ids, or their beginnings, of the table runs",
    )


def _upkeep(verb: Verb) -> None:
    """What an operator does with a home folder."""
    collect = verb("collect", "remove what no snapshot needs any more", as_json(), wait())
    collect.add_argument(
        "--keep-runs",
        type=at_least(0),
        metavar="N",
        default=5,
        help="unused run folders kept (default: %(default)s)",
    )
    collect.add_argument(
        "--keep-failures",
        type=at_least(0),
        metavar="N",
        default=20,
        help="failed runs whose rows are kept (default: %(default)s)",
    )

    backup = verb("backup", "copy what is published, with its models, while others read and write", as_json())
    backup.add_argument(
        "target", metavar="FILE_OR_FOLDER", help="a new .tar, .tar.gz or .tgz file, or folder"
    )
    restore = verb("restore", "put a backup into a new or empty home folder", as_json(), wait())
    restore.add_argument(
        "source",
        metavar="FILE_OR_FOLDER",
        help="what ssrem backup wrote; or the home folder itself, after it was moved",
    )
    forget = verb(
        "forget", "remove a person from every table, run folder and cache", as_json(), corpora(), room()
    )
    forget.add_argument("speaker", metavar="SPEAKER", help="the person's id, as in the dump or in the tables")
    key(forget)


def _training(train: argparse.ArgumentParser) -> None:
    train.add_argument(
        "--seed", type=at_least(0), metavar="N", default=0, help="seed of the training (default: %(default)s)"
    )
    train.add_argument(
        "--set",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="settings, such as epochs=10 or reference=embedding-average",
    )
    train.add_argument(
        "--negatives",
        metavar="SPEC",
        help="what true responses are told from, such as random-1+mask-and-fill",
    )
    train.add_argument("--init", metavar="MODEL", help="transformer to start from, a name or folder")
    train.add_argument("--device", help="cpu, cuda or mps (default: the best there is)")
    train.add_argument("--labels", metavar="FILE", help="annotated set whose human scores to learn from, too")
    train.add_argument("--criterion", metavar="NAME", help="which of its scores (default: overall)")
    train.add_argument(
        "--labels-only", action="store_true", help="learn from the human scores, not from the corpora"
    )
    train.add_argument(
        "--dry-run", action="store_true", help="say what would be trained on what, and train nothing"
    )
