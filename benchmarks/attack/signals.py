"""Ctrl-C and SIGTERM at any moment of every stage, on a pseudo-terminal: one line, 130 or 143, within two seconds."""

from __future__ import annotations

import os
import pty
import random
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks.attack.bench import ROOT, STAGES, VERBS, Bench

CASES = ("Ctrl-C", "SIGTERM", "Ctrl-C twice")
WITHIN = 2.0
"""Seconds in which a command ends after a signal."""

AT_ONCE = 0.5
"""Seconds in which it ends after a second Ctrl-C."""

STARTING = "while Python started"
"""A signal before the command can catch any: Python's own traceback, or none, is its answer."""

LEADER = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_IGN)
if not (child := os.fork()):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execvp(sys.argv[2], sys.argv[2:])
print(child, file=(report := open(int(sys.argv[1]), "w")), flush=True)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=report, flush=True)
signal.pause()
"""
"""Takes the terminal, as a shell does, runs the command, and writes its process and its exit status to a file
descriptor. Then it waits: the kernel drops what a terminal has not shown yet where the leader of its session ends."""

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\^C")


def signals(bench: Bench, first: int, count: int, seed: int) -> Iterator[tuple[str, list[str]]]:
    """The signals `first` to `first + count`: what was sent to what, and what was wrong."""
    for number in range(first, first + count):
        stage, case = STAGES[number % len(STAGES)], CASES[number // len(STAGES) % len(CASES)]
        bench.prepare([stage])
        draw = random.Random(f"{seed} signal {number}")
        for _ in range(8):
            if (wrong := send(bench, stage, case, draw)) is not None:
                what = f"{stage}, {case}"
                if wrong == [STARTING]:
                    yield f"{what}, {STARTING}", []
                else:
                    yield what, [f"#{number} {what} {text}" for text in wrong]
                break
            bench.expected[stage].pace *= 0.8  # it ended before its signal
        else:
            yield "ended before its signal", []


def send(bench: Bench, stage: str, case: str, draw: random.Random) -> list[str] | None:
    """Start the stage on a terminal and send it the signal; what was wrong, None if it ended before."""
    bench.reset(VERBS[stage][0])
    screen, terminal = pty.openpty()
    mode = termios.tcgetattr(terminal)
    mode[3] |= termios.NOFLSH  # else Ctrl-C drops what the command wrote and nobody has read yet
    termios.tcsetattr(terminal, termios.TCSANOW, mode)
    reading, writing = os.pipe()
    leader = subprocess.Popen(
        [
            *(sys.executable, "-c", LEADER, str(writing)),
            *(str(Path(sys.executable).with_name("ssrem")), *bench.command(stage)),
        ],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        pass_fds=[writing],
        start_new_session=True,
        cwd=bench.work,
        env=bench.environment(PYTHONPATH=str(ROOT)),
    )
    os.close(terminal)
    os.close(writing)
    try:
        with os.fdopen(reading) as report:
            process = int(report.readline())
            moment = draw.uniform(0, bench.expected[stage].seconds * bench.expected[stage].pace)
            _shown(screen, moment, reading)
            starting = not _catches(process)
            sent = time.monotonic()
            if case == "SIGTERM":
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)
            else:
                os.write(screen, b"\x03")
            text = ""
            if case == "Ctrl-C twice":
                text = _shown(screen, draw.uniform(0, 0.3), reading)
                sent = time.monotonic()
                os.write(screen, b"\x03")
            text += _shown(screen, 30, reading)
            seconds = time.monotonic() - sent
            text += _shown(screen, 0.2)
            status = int(report.readline())
    finally:
        leader.kill()
        leader.wait()
        os.close(screen)
    if status == 0:
        return None
    if starting and status in (-signal.SIGINT, -signal.SIGTERM, 1):
        return [STARTING]
    wrong = []
    expected, word = (143, "terminated") if case == "SIGTERM" else (130, "interrupted")
    lines = [line.strip() for line in re.split(r"[\r\n]+", ESCAPES.sub("", text))]
    messages = [line for line in lines if line.startswith("ssrem: ")]
    if status != expected:
        wrong.append(f"at {moment:.2f} s: exit {status}")
    if len(messages) != 1 or not messages[0].startswith(f"ssrem: {word}") or "Traceback" in text:
        wrong.append(f"at {moment:.2f} s: it said {text[-400:]!r}")
    if seconds > (AT_ONCE if case == "Ctrl-C twice" else WITHIN):
        wrong.append(f"at {moment:.2f} s: it took {seconds:.2f} s to end")
    return wrong + [f"still lives: {name}" for name in bench.alive()]


def _catches(process: int) -> bool:
    """Whether the process has a handler of SIGTERM, or has ended."""
    with suppress(OSError):
        (mask,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{process}/status").read_text())
        return bool(int(mask, 16) >> signal.SIGTERM - 1 & 1)
    return True


def _shown(screen: int, seconds: float, ended: int | None = None) -> str:
    """What the terminal shows within so long, or until there is something to read from `ended`."""
    text, deadline = b"", time.monotonic() + seconds
    watched = [screen] if ended is None else [screen, ended]
    while (left := deadline - time.monotonic()) > 0 and (ready := select.select(watched, [], [], left)[0]):
        if screen in ready:
            text += os.read(screen, 65_536)
        if ended in ready:
            break
    return text.decode("utf-8", "replace")
