"""The `ssrem` command in a process of its own, with old names of verbs and options spelled as the code has them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from benchmarks.same_results.renames import RENAMES

ROOT = Path(__file__).resolve().parents[2]
SSREM = Path(sys.executable).with_name("ssrem")


def ssrem(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, computing on one thread, without settings of the caller's."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "SSREM_"))}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [str(SSREM), *arguments],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment, cwd=ROOT, check=False,
    )  # fmt: skip


@cache
def usage(verb: str) -> str:
    """The help text of a verb; empty where the command has no such verb."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", ssrem(*verb.split(), "--help").stdout)
    return text if re.search(rf"usage: (\S*/)?ssrem {verb}(?![\w-]| [a-z])", text, re.IGNORECASE) else ""


def spelled(arguments: tuple[str, ...]) -> list[str]:
    """The arguments with the new names of the verb and of its options, where the command knows them."""
    line, verb = list(arguments), arguments[0]
    for old, new in sorted(RENAMES["verbs"].items(), key=lambda pair: -len(pair[0])):
        words = old.split()
        if line[: len(words)] == words:
            verb = new if usage(new) else old
            line = [*verb.split(), *line[len(words) :]]
            break
    for old, new in RENAMES["options"].items():
        if old in line and new in usage(verb) and old not in usage(verb):
            line[line.index(old)] = new
    return line
