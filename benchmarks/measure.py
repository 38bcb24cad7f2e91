"""Measure a command in a process of its own: wall seconds, CPU seconds and peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Measured:
    """One run: seconds of wall clock and CPU, peak memory in bytes, and its output."""

    wall: float
    cpu: float
    peak: int
    output: str

    def __str__(self) -> str:
        return f"{self.wall:8.1f} s wall {self.cpu:8.1f} s CPU {self.peak / 1e9:6.2f} GB"


def measure(arguments: Sequence[str]) -> Measured:
    """Run a Python module or script with arguments; raises if it fails."""
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)} ended with status {process.returncode}")
    return Measured(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, output)
