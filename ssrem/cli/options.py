"""Options that several verbs share, and the types of their values."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ssrem.config import LARGEST, SIMILARITY_SPEAKERS
from ssrem.registry import did_you_mean
from ssrem.tasks.warehouse import lock
from ssrem.validation import REQUIRABLE

Option = Callable[[Any], Any]
"""Adds an option to a verb's parser."""

Verbs = dict[str, tuple[str, *tuple[Option, ...]]]
"""Verb → its help and its options besides --home and --json; a verb of two words belongs to a group."""


def text(usage: str, help: str, **settings: Any) -> Option:
    """An option that takes a value, such as `--output FILE`, or an argument without dashes; help adds its default."""
    name, metavar = usage.split()
    shown = "" if settings.get("default") in (None, []) else " (default: %(default)s)"
    return lambda verb: verb.add_argument(name, metavar=metavar, help=f"{help}{shown}", **settings)


def choice(name: str, choices: Sequence[str], help: str, **settings: Any) -> Option:
    """An option with one of a few values."""
    return lambda verb: verb.add_argument(name, choices=choices, help=help, **settings)


def flag(name: str, help: str) -> Option:
    """An option without a value."""
    return lambda verb: verb.add_argument(name, action="store_true", help=help)


def several(usage: str, help: str) -> Option:
    """An option that takes several values and may be repeated, such as `--set KEY=VALUE`."""
    return text(usage, help, nargs="+", action="extend", default=[])


def number(name: str, least: int, default: int | None, help: str) -> Option:
    """An option that takes a whole number from `least` up."""
    return text(f"{name} N", help, type=at_least(least), default=default)


def either(*options: Option) -> Option:
    """Options that exclude each other."""

    def add(verb: argparse.ArgumentParser) -> None:
        group = verb.add_mutually_exclusive_group()
        for one in options:
            one(group)

    return add


def at_least(least: int) -> Callable[[str], int]:
    """The type of an option that takes a whole number from `least` up to LARGEST."""

    def parse(text: str) -> int:
        if not text.isdecimal() or len(text) > 10 or not least <= int(text) <= LARGEST:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} up to {LARGEST:,}")
        return int(text)

    return parse


def seconds(text: str) -> float:
    """The type of an option that takes a time, such as 30m, in seconds."""
    try:
        return lock.seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def memory(text: str) -> str:
    """The type of an option that takes an amount of memory, such as 2GB; DuckDB cannot do with 0, or with exabytes."""
    amount = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT])i?B", text, re.IGNORECASE)
    if not amount:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of memory, such as 2GB or 500MB")
    if not 1e6 <= float(amount[1]) * 1000 ** (1 + "KMGT".index(amount[2].upper())) <= 1e15:
        raise argparse.ArgumentTypeError(f"{text!r} is not from 1MB to 1000TB, such as 2GB or 500MB")
    return text


def share(text: str) -> float:
    """The type of an option that takes a share."""
    return _number(text, 0, 1, "share above 0, up to 1")


def speakers(text: str) -> int | str:
    """The type of an option that takes a number of speakers, all or none."""
    return text if text in ("all", "none") else at_least(1)(text)


def percentage(text: str) -> float:
    """The type of an option that takes a percentage, such as 5%, as a share."""
    number = re.fullmatch(r"(\d+(?:\.\d+)?)%", text)
    if not number or float(number[1]) > 100:
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage from 0% to 100%, such as 5%")
    return float(number[1]) / 100


def amount(text: str) -> float:
    """The type of an option that takes an amount of money."""
    return _number(text, 0, 1e9, "amount above 0")


def bound(text: str) -> float | None:
    """The type of an option that takes a coefficient, or None for no bound."""
    return None if text == "none" else _number(text, -1, 1, "number from -1 to 1")


def requirement(text: str) -> tuple[str, float]:
    """The type of an option that requires a measure of a validation to have a value, such as spearman=.5."""
    name, equals, value = text.partition("=")
    if equals and name not in REQUIRABLE:
        near = did_you_mean(name, REQUIRABLE)
        raise argparse.ArgumentTypeError(
            f"there is no measure {name!r}{near}; the measures are {', '.join(REQUIRABLE)}"
        )
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not MEASURE=VALUE, such as spearman=.5")
    return name, _number(value, -1, 1, f"value of {name}, a number from -1 to 1")


def _number(text: str, low: float, high: float, description: str) -> float:
    """A number from low, or above it where it is 0, to high."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high or value == low == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no {description}")
    return value


RAW = flag("--raw", "in CSV, write text as it is, even where a spreadsheet would take it for a formula")
HOME = text(
    "--home FOLDER",
    "home folder; $SSREM_HOME sets the default",
    type=Path,
    default=Path(os.environ.get("SSREM_HOME", "warehouse")),
)
JSON = flag("--json", "print JSON instead of tables")
CORPORA = text("--corpus NAME", "corpora (default: all that have landed)", nargs="+")
SEED = number("--seed", 0, 0, "seed of every draw")
CONTEXT_TURNS = number("--context-turns", 1, 5, "turns of a context at most")
ADDRESSEES = choice(
    "--addressees",
    ("all", "stated"),
    "turns in SP, the same-partner sets: all, or only those whose addressee the dump states or that reply to a "
    "message (default: %(default)s; the addressee of the others is the previous speaker)",
    default="all",
)
SIMILARITY = text(
    "--similarity SPEAKERS",
    "measure how similar the turns in the speakers' sets are: for how many speakers, drawn by --seed, for all, or for "
    f"none (default: {SIMILARITY_SPEAKERS:,})",
    type=speakers,
)
LAYOUT = text(
    "--layout LAYOUT",
    "layout of annotated sets: eval, usr, fed, grade, grade:PART, humod, csv, tsv, parquet or jsonl (default: guessed "
    "from the content)",
)
ENCODER = text(
    "--encoder SPEC",
    "wordllama, word2vec, glove-6b-50d, all-minilm-l6-v2, a vectors file, a transformer's folder or hf:NAME, a "
    "gensim.downloader name, or A+B (default: wordllama)",
)
MARGINS = several(
    "--margin MEASURE=VALUE",
    "how much worse than the version in use a promoted version may be: in identification (share of negatives that the "
    "true response is above, default 0.01) and in agreement (Spearman with human scores, default 0.05)",
)
PSEUDONYM_KEY = text(
    "--pseudonym-key FILE",
    "file with the key of the pseudonyms, outside the home folder (default: $SSREM_PSEUDONYM_KEY is the key)",
)
WAIT = text(
    "--wait TIME",
    "how long to wait for another writer, such as 90, 30m or 6h (default: $SSREM_WAIT, or not at all)",
    type=seconds,
)
RESOURCES = (
    WAIT,
    flag("--no-prefect", "run here, though PREFECT_API_URL names a Prefect server to run under"),
    text(
        "--memory-limit SIZE",
        "memory above which DuckDB spills to disk (default: by stage, 2GB at most)",
        type=memory,
    ),
    number("--threads", 1, None, "threads of DuckDB (default: all cores)"),
)
RUNNER = (
    choice(
        "--runner",
        ("process", "dask"),
        "where to encode and score: in this process, or on workers of Dask, which must all see the home folder under "
        "the same path (default: %(default)s)",
        default="process",
    ),
    text("--runner-address ADDRESS", "a running cluster (default: workers here)"),
    number("--workers", 1, 2, "workers started here"),
)
ASKING = (
    several(
        "--set KEY=VALUE",
        "settings of an evaluator that learns nothing, such as model=NAME base_url=URL prompt=FILE of judge "
        "(docs/judge.md)",
    ),
    number(
        "--max-requests", 1, None, "requests to an endpoint at most; a rerun goes on where this one stopped"
    ),
    text(
        "--max-cost AMOUNT",
        "what the requests may cost at most, by the prices of --set prices=FILE",
        type=amount,
    ),
    flag("--send-texts", "send texts to an endpoint though they are pseudonymised or marked private"),
    flag("--dry-run", "say how many requests, tokens and how much money it would take, and ask nothing"),
)
SOURCE = text(
    "source SOURCE",
    "dump of conversations: a file, folder, archive, pattern of files such as 'logs/*.txt', URL, or - for what is "
    "piped in; several are one corpus; chitchat comes with the install",
    nargs="*",
)
DUMP = (
    text(
        "--format FORMAT",
        "a format that docs/formats.md lists, such as jsonl or slack (default: guessed from the content)",
    ),
    several("--map FIELD=COLUMN", "which column is which field; FIELD=A+B joins columns to a key"),
    text(
        "--encoding NAME",
        "encoding of text, such as cp1252 or shift_jis (default: UTF-8, UTF-16 by its mark, cp1252 where the content "
        "is like it)",
    ),
    text(
        "--time-format FORMAT",
        "how times are written, such as '%%d.%%m.%%Y %%H:%%M' (default: any common form)",
    ),
    text("--name NAME", "name of the corpus (default: that of the file, or of the folder of several)"),
    choice(
        "--speakers",
        ("auto", "person", "conversation"),
        "what a speaker id names: a person, whatever the conversation, or a seat in one conversation (default: person, "
        "but ids that look like seats stop the ingest)",
        default="auto",
    ),
    several(
        "--not-people NAME",
        "speakers that are not people, such as bots, besides those that the format knows, such as AutoModerator: their "
        "turns serve only as context; none: everyone is a person",
    ),
    text(
        "--max-quarantine PERCENT",
        "refuse a dump if more than this share of its messages cannot land; 100%% lands the rest, however small",
        type=percentage,
        default="5%",
    ),
    flag(
        "--pseudonymise",
        "land keyed hashes instead of ids, and mask e-mail addresses, phone numbers and user handles",
    ),
    PSEUDONYM_KEY,
)
