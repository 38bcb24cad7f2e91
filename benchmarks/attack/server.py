"""Runs commands in processes forked from one that has imported what they import, to save their start-up.

python -m benchmarks.attack.server MODULES

reads a command a line, JSON, from stdin; answers with its process id, then with how it ended. MODULES: a file of the
names of modules to import first.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import shutil
import signal
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Any


def watch(log: Path) -> None:
    """Log when this process renames files, in seconds from now, and copy the lake at every publish."""
    begun = time.monotonic()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.rename":
            with (log / "renames").open("a") as file:
                file.write(f"{time.monotonic() - begun}\n")
            if str(arguments[1]).endswith("catalog.duckdb"):
                shutil.copytree(
                    Path(arguments[1]).parent / "lake", log / f"{time.monotonic():020.6f}" / "lake"
                )

    sys.addaudithook(hook)


def begin(job: dict[str, Any]) -> None:
    """Make this process, newly forked, the command: a session, terminal or files, folder and variables of its own."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    terminal = job.get("terminal")
    output = os.open(terminal or job["output"], os.O_RDWR | (0 if terminal else os.O_CREAT | os.O_TRUNC))
    if terminal:
        fcntl.ioctl(output, termios.TIOCSCTTY, 0)
    os.dup2(output if terminal else os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(job["cwd"])
    os.environ.update(job["environment"])
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, mode) for n, mode in enumerate("rww"))
    sys.argv = ["ssrem", *job["arguments"]]
    if job.get("watch"):
        watch(Path(job["watch"]))


def load(names: list[str]) -> None:
    """Import the modules that there are."""
    for name in names:
        with suppress(Exception):
            importlib.import_module(name)


def main() -> int:
    """Serve commands until stdin ends; in a forked process: the command's exit status."""
    modules = Path(sys.argv[1])
    while line := sys.stdin.readline():
        load(json.loads(modules.read_text()) if modules.exists() else [])
        if not (process := os.fork()):
            job = json.loads(line)
            begin(job)
            from ssrem.cli.main import main as command

            status = command()
            if job.get("watch"):
                known = set(json.loads(modules.read_text())) if modules.exists() else set()
                modules.write_text(json.dumps(sorted(known | set(sys.modules))))
            return status
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
