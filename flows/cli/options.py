"""What several verbs' options share: groups of them, and what their values must look like."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tasks.warehouse import lock


class Parser(argparse.ArgumentParser):
    """Tells what is wrong with a command in one line, as every other error."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"ssrem: {message}; see {self.prog} --help\n")


def home() -> Parser:
    group = Parser(add_help=False)
    group.add_argument(
        "--home",
        type=Path,
        metavar="FOLDER",
        default=Path(os.environ.get("SSREM_HOME", "warehouse")),
        help="home folder (default: $SSREM_HOME or ./warehouse)",
    )
    return group


def as_json() -> Parser:
    group = Parser(add_help=False)
    group.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return group


def dump() -> Parser:
    group = Parser(add_help=False)
    group.add_argument(
        "--format",
        help="chitchat, jsonl, csv, tsv, parquet, convokit or cornell (default: guessed from the content)",
    )
    mapped(group, "which column is which field; FIELD=A+B joins columns to a key")
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
    key(group)
    return group


def mapped(verb: argparse.ArgumentParser, help: str) -> None:
    verb.add_argument("--map", nargs="+", action="extend", default=[], metavar="FIELD=COLUMN", help=help)


def layout(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--layout",
        metavar="LAYOUT",
        help="of annotated sets: eval, usr, fed, grade, grade:PART, humod, csv, tsv or jsonl (default: guessed from "
        "the content)",
    )


def corpora() -> Parser:
    group = Parser(add_help=False)
    group.add_argument("--corpus", nargs="+", metavar="NAME", help="corpora (default: all that have landed)")
    return group


def wait() -> Parser:
    group = Parser(add_help=False)
    group.add_argument(
        "--wait",
        type=time,
        metavar="TIME",
        help="how long to wait for another writer, such as 90, 30m or 6h (default: $SSREM_WAIT, or not at all)",
    )
    return group


def room() -> Parser:
    group = Parser(add_help=False, parents=[wait()])
    group.add_argument(
        "--memory-limit",
        type=memory,
        metavar="SIZE",
        help="DuckDB spills to disk above it (default: by stage, 2GB at most)",
    )
    group.add_argument(
        "--threads", type=at_least(1), metavar="N", help="threads of DuckDB (default: all cores)"
    )
    return group


def runner() -> Parser:
    group = Parser(add_help=False)
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
        "--workers",
        type=at_least(1),
        metavar="N",
        default=2,
        help="workers started here (default: %(default)s)",
    )
    return group


def learn() -> Parser:
    group = Parser(add_help=False)
    group.add_argument(
        "--encoder",
        metavar="SPEC",
        help="word2vec, glove-6b-50d, all-minilm-l6-v2, a vectors file, a transformer's folder or hf:NAME, a "
        "gensim.downloader name, or A+B (default: glove-6b-50d+word2vec)",
    )
    return group


def margins() -> Parser:
    group = Parser(add_help=False)
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


def draws(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--seed", type=at_least(0), metavar="N", default=0, help="seed of every draw (default: %(default)s)"
    )
    verb.add_argument(
        "--context-turns",
        type=at_least(1),
        metavar="N",
        default=5,
        help="turns of a context at most (default: %(default)s)",
    )


def at_least(lowest: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < lowest:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {lowest} up")
        return int(text)

    return number


def time(text: str) -> float:
    try:
        return lock.seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def memory(text: str) -> str:
    if not re.fullmatch(r"\d+(\.\d+)?\s*([KMGT]i?B)", text, re.IGNORECASE):
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of memory, such as 2GB or 500MB")
    return text


def key(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--pseudonym-key",
        metavar="FILE",
        help="holds the key of the pseudonyms; outside the home folder (default: $SSREM_PSEUDONYM_KEY is the key)",
    )
