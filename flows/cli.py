"""The `ssrem` command: parse, call, print."""

from __future__ import annotations

import argparse
import atexit
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from ssrem import __version__
from ssrem.errors import SsremError
from tasks import waiting

EPILOG = """\
examples:
  ssrem run                                          everything, on the corpus that comes with the install
  ssrem run dump.jsonl --annotations human_eval.json everything, on your own
  ssrem sql "SELECT * FROM identification"           ask the tables
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status: 0, 1 for a failure told in one line, 130 when interrupted."""
    options = parser().parse_args(arguments)
    atexit.register(close_stderr)  # first registered, so run last
    if (
        getattr(options, "wait", None) is not None
    ):  # by the environment, so that shards in other processes know, too
        os.environ[waiting.VARIABLE] = str(options.wait)
    try:
        from flows import commands

        commands.run(options)
    except SsremError as error:
        print(f"ssrem: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "ssrem: interrupted; nothing of this stage was published, run it again to go on", file=sys.stderr
        )
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except RuntimeError as error:
        if "Prefect API server" not in str(error):
            raise
        reason = "Prefect's server did not start within its time; try again, or name a running one in PREFECT_API_URL"
        print(f"ssrem: {reason}", file=sys.stderr)
        return 1
    except OSError as error:  # a disk that is full or a folder that may not be written, wherever it showed
        where = f"{error.filename}: " if error.filename else ""
        print(
            f"ssrem: {where}{error.strerror or error}; make room, or change its permissions", file=sys.stderr
        )
        return 1
    return 0


def close_stderr() -> None:
    """DuckDB's bindings list what a gate's libraries still hold when the interpreter ends; nobody can act on it."""
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


class _Parser(argparse.ArgumentParser):
    """Tells what is wrong with a command in one line, as every other error."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"ssrem: {message}; see {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    top = _Parser(
        prog="ssrem",
        description="Learns from people's own conversations to tell good dialogue responses from bad ones.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"ssrem {__version__}")
    verbs = top.add_subparsers(
        title="verbs", dest="verb", required=True, metavar="VERB", parser_class=_Parser
    )

    def verb(name: str, help: str, *groups: _Parser) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=help, description=help, parents=[_home(), *groups])

    run = verb(
        "run",
        "land, build tables, train, score, correlate and report",
        _json(),
        _dump(),
        _room(),
        _learn(),
        _margins(),
        _runner(),
    )
    run.add_argument(
        "source", nargs="?", default="chitchat", help="dump, a file or folder (default: %(default)s)"
    )
    run.add_argument(
        "--annotations", nargs="+", metavar="FILE", default=[], help="responses with human scores"
    )
    run.add_argument(
        "--evaluator", nargs="+", metavar="NAME", help="evaluators to train (default: ssrem rsrem)"
    )
    _draws(run)

    ingest = verb("ingest", "land a dump of conversations", _json(), _dump(), _room(), _margins())
    _landing(ingest)

    tables = verb(
        "tables",
        "build the speaker tables of landed corpora",
        _json(),
        _corpora(),
        _room(),
        _learn(),
        _runner(),
    )
    _draws(tables)

    negatives = verb(
        "negatives", "make responses that are wrong on purpose, as a table", _json(), _corpora(), _room()
    )
    negatives.add_argument(
        "generator",
        metavar="SPEC",
        help="random-2, sc, sp, ss, mask-and-fill, drop-golden, shuffle-golden, …; A+B for several",
    )
    negatives.add_argument("--split", default="train", help="train, valid or test (default: %(default)s)")
    negatives.add_argument(
        "--responses",
        type=_from(0),
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
        "--seed", type=_from(0), metavar="N", default=0, help="seed of every draw (default: %(default)s)"
    )

    train = verb(
        "train",
        "train evaluators, score their test splits, and promote those that are not worse",
        _json(),
        _corpora(),
        _room(),
        _learn(),
        _margins(),
        _runner(),
    )
    train.add_argument("evaluator", nargs="*", metavar="NAME", help="evaluators (default: ssrem rsrem)")
    _training(train)

    agree = verb("agree", "correlate scores with human scores", _json(), _room(), _runner())
    agree.add_argument("file", nargs="+", metavar="FILE", help="annotated sets")
    agree.add_argument("--evaluator", nargs="+", metavar="NAME", help="trained evaluators (default: all)")
    agree.add_argument(
        "--keep-ground-truth", action="store_true", help="correlate ground-truth rows too (default: left out)"
    )

    score = verb("score", "print a score for each response in a file", _json())
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

    sql = verb("sql", "ask the published tables, read-only", _json())
    sql.add_argument("query", help="one SELECT; SHOW TABLES lists the tables")

    export = verb("export", "write a trained evaluator into one file, to carry it elsewhere", _json())
    export.add_argument("evaluator", metavar="NAME", help="trained evaluator")
    export.add_argument("--version", type=_from(1), metavar="N", help="its version (default: the one in use)")
    export.add_argument("--output", type=Path, metavar="FILE", help="default: NAME-VERSION.ssrem, here")

    take = verb("import", "take in an evaluator that ssrem export wrote", _json(), _room())
    take.add_argument("file", metavar="FILE", help="what ssrem export wrote")
    take.add_argument(
        "--allow",
        nargs="+",
        metavar="SPEC",
        help="encoders and models, names or paths, that it may read or fetch though it does not bring them",
    )

    _upkeep(verb)
    verb("evaluators", "list the evaluators there are, and those trained", _json())
    status = verb("status", "show what has landed, how far each corpus is, and what went wrong", _json())
    status.add_argument(
        "--deep", action="store_true", help="read every published file through and compare it with its digest"
    )
    verb("report", "write the report and print its path", _json())

    verb("upgrade", "bring a home folder of an older version to this one", _json(), _wait())
    backup = verb("backup", "copy what is published, with its models, while others read and write", _json())
    backup.add_argument(
        "target", metavar="FILE_OR_FOLDER", help="a new .tar, .tar.gz or .tgz file, or folder"
    )
    restore = verb("restore", "put a backup into a new or empty home folder", _json(), _wait())
    restore.add_argument(
        "source",
        metavar="FILE_OR_FOLDER",
        help="what ssrem backup wrote; or the home folder itself, after it was moved",
    )
    forget = verb(
        "forget", "remove a person from every table, run folder and cache", _json(), _corpora(), _room()
    )
    forget.add_argument("speaker", metavar="SPEAKER", help="the person's id, as in the dump or in the tables")
    _key(forget)
    return top


def _key(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--pseudonym-key",
        metavar="FILE",
        help="holds the key of the pseudonyms; outside the home folder (default: $SSREM_PSEUDONYM_KEY is the key)",
    )


def _landing(ingest: argparse.ArgumentParser) -> None:
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
        type=_time,
        metavar="TIME",
        default=5.0,
        help="what does not change for so long is complete (default: 5 s)",
    )
    ingest.add_argument(
        "--watch", type=_time, metavar="TIME", help="look into --inbox again after so long, until interrupted"
    )


def _upkeep(verb: Callable[..., argparse.ArgumentParser]) -> None:
    retrain = verb("retrain", "train again what has not seen all that landed", _json(), _room(), _margins())
    retrain.add_argument("evaluator", nargs="*", metavar="NAME", help="evaluators (default: all in use)")

    promote = verb("promote", "bring a version of an evaluator into use", _json(), _room())
    promote.add_argument("evaluator", metavar="NAME", help="trained evaluator")
    promote.add_argument("version", type=_from(1), metavar="VERSION", help="which of its versions")

    rollback = verb("rollback", "bring the version that was in use before back into use", _json(), _room())
    rollback.add_argument("evaluator", metavar="NAME", help="trained evaluator")

    collect = verb("collect", "remove what no snapshot needs any more", _json(), _wait())
    collect.add_argument(
        "--keep-runs",
        type=_from(0),
        metavar="N",
        default=5,
        help="unused run folders kept (default: %(default)s)",
    )
    collect.add_argument(
        "--keep-failures",
        type=_from(0),
        metavar="N",
        default=20,
        help="failed runs whose rows are kept (default: %(default)s)",
    )


def _training(train: argparse.ArgumentParser) -> None:
    train.add_argument(
        "--seed", type=_from(0), metavar="N", default=0, help="seed of the training (default: %(default)s)"
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


def _home() -> _Parser:
    group = _Parser(add_help=False)
    group.add_argument(
        "--home",
        type=Path,
        metavar="FOLDER",
        default=Path(os.environ.get("SSREM_HOME", "warehouse")),
        help="home folder (default: $SSREM_HOME or ./warehouse)",
    )
    return group


def _json() -> _Parser:
    group = _Parser(add_help=False)
    group.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return group


def _dump() -> _Parser:
    group = _Parser(add_help=False)
    group.add_argument(
        "--format",
        help="chitchat, jsonl, csv, tsv, parquet, convokit or cornell (default: guessed from the content)",
    )
    group.add_argument(
        "--map",
        nargs="+",
        action="extend",
        default=[],
        metavar="FIELD=COLUMN",
        help="which column is which field; FIELD=A+B joins columns to a key",
    )
    group.add_argument("--name", help="name of the corpus (default: that of the file)")
    group.add_argument(
        "--speakers",
        choices=("auto", "person", "conversation"),
        default="auto",
        help="what a speaker id names: a person, whatever the conversation, or a seat in one conversation "
        "(default: person, but ids that look like seats stop the ingest)",
    )
    group.add_argument(
        "--pseudonymise",
        action="store_true",
        help="land keyed hashes instead of ids, and mask e-mail addresses, phone numbers and user handles",
    )
    _key(group)
    return group


def _corpora() -> _Parser:
    group = _Parser(add_help=False)
    group.add_argument("--corpus", nargs="+", metavar="NAME", help="corpora (default: all that have landed)")
    return group


def _wait() -> _Parser:
    group = _Parser(add_help=False)
    group.add_argument(
        "--wait",
        type=_time,
        metavar="TIME",
        help="how long to wait for another writer, such as 90, 30m or 6h (default: $SSREM_WAIT, or not at all)",
    )
    return group


def _room() -> _Parser:
    group = _Parser(add_help=False, parents=[_wait()])
    group.add_argument(
        "--memory-limit",
        type=_memory,
        metavar="SIZE",
        help="DuckDB spills to disk above it (default: by stage, 2GB at most)",
    )
    group.add_argument("--threads", type=_from(1), metavar="N", help="threads of DuckDB (default: all cores)")
    return group


def _runner() -> _Parser:
    group = _Parser(add_help=False)
    group.add_argument(
        "--runner",
        choices=("process", "dask", "ray"),
        default="process",
        help="who encodes and scores: this process, or workers of Dask or Ray, which must all see the home folder "
        "under the same path (default: %(default)s)",
    )
    group.add_argument(
        "--runner-address", metavar="ADDRESS", help="a cluster there is (default: workers here)"
    )
    group.add_argument(
        "--workers", type=_from(1), metavar="N", default=2, help="workers started here (default: %(default)s)"
    )
    return group


def _learn() -> _Parser:
    group = _Parser(add_help=False)
    group.add_argument(
        "--encoder",
        metavar="SPEC",
        help="word2vec, glove-6b-50d, all-minilm-l6-v2, a vectors file, a transformer's folder or hf:NAME, a "
        "gensim.downloader name, or A+B (default: glove-6b-50d+word2vec)",
    )
    return group


def _margins() -> _Parser:
    group = _Parser(add_help=False)
    group.add_argument(
        "--margin",
        nargs="+",
        action="extend",
        default=[],
        metavar="MEASURE=VALUE",
        help="how much worse than the version in use is still not worse: identification (share of negatives that "
        "the true response is above, default 0.01) and agreement (Spearman with human scores, default 0.05)",
    )
    return group


def _draws(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--seed", type=_from(0), metavar="N", default=0, help="seed of every draw (default: %(default)s)"
    )
    verb.add_argument(
        "--context-turns",
        type=_from(1),
        metavar="N",
        default=5,
        help="turns of a context at most (default: %(default)s)",
    )


def _from(lowest: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < lowest:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {lowest} up")
        return int(text)

    return number


def _time(text: str) -> float:
    try:
        return waiting.seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _memory(text: str) -> str:
    if not re.fullmatch(r"\d+(\.\d+)?\s*([KMGT]i?B)", text, re.IGNORECASE):
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of memory, such as 2GB or 500MB")
    return text


if __name__ == "__main__":
    sys.exit(main())
