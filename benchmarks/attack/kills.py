"""SIGKILL at any moment of every verb: the tables read as before or after, and the same verb run again succeeds."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

from benchmarks.attack.bench import VERBS, Bench
from benchmarks.attack.inputs import content
from ssrem.errors import SsremError

LONG = ("run", "tables", "train", "correlate", "forget", "evaluators retrain")
ROUND = [*VERBS, *2 * [verb for verb in VERBS if verb not in LONG]]
"""Verbs in the order in which they are killed: those that take long get a third as many kills as the others."""


def kills(bench: Bench, first: int, count: int, seed: int) -> Iterator[tuple[str, list[str]]]:
    """The kills `first` to `first + count`: what was killed, and what was wrong after it."""
    for number in range(first, first + count):
        yield kill(bench, number, seed)


def kill(bench: Bench, number: int, seed: int) -> tuple[str, list[str]]:
    """Kill one verb, judge what it left, run it again, and judge that."""
    verb = ROUND[number % len(ROUND)]
    bench.prepare([verb])
    expected = bench.expected[verb]
    draw = random.Random(f"{seed} {number}")
    turn = number // len(ROUND)
    group, publishing = bool(turn % 2), turn % 4 >= 2 and bool(expected.publishing)
    for _ in range(6):  # a run that ended before its kill is repeated with an earlier one
        moment = draw.uniform(0, expected.seconds * expected.pace)
        if publishing:
            moment = max(0.0, draw.choice(expected.publishing) * expected.pace + draw.uniform(-0.03, 0.03))
        bench.reset(VERBS[verb][0])
        process = bench.start(bench.command(verb))
        time.sleep(moment)
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL) if group else os.kill(process, signal.SIGKILL)
        if bench.ended() == -signal.SIGKILL:
            break
        expected.pace *= 0.8
    else:
        return "ended before its kill", []
    what = f"{verb}, {'whole group' if group else 'main process'}{', publishing' if publishing else ''}"
    return what, [f"#{number} {verb} at {moment:.3f} s: {wrong}" for wrong in judge(bench, verb)]


def judge(bench: Bench, verb: str) -> list[str]:
    """What is wrong after a kill of the verb."""
    expected = bench.expected[verb]
    wrong = [f"still lives: {name}" for name in bench.alive()]
    published = False
    if verb != "home repair":  # a damaged table reads only after the repair
        try:
            now = content(bench.home)
        except SsremError as error:
            return [*wrong, f"tables do not read: {error}"]
        if now not in expected.snapshots:
            names = [name for name, digest in now.items() if digest != expected.snapshots[0][name]]
            wrong.append(f"tables are those of no snapshot; {', '.join(names)} differ from those before")
        published = now == expected.snapshots[-1] != expected.snapshots[0]
    began = time.monotonic()
    status = bench.run(bench.command(verb))
    expected.pace = (expected.pace + (time.monotonic() - began) / expected.seconds) / 2
    refused = "already" in bench.output() or "exist" in bench.output() or "not empty" in bench.output()
    if status and status == expected.statuses[1] and refused and not published:
        if bench.targets() != expected.targets:
            wrong.append(f"a target is not whole: {bench.targets()}")
        shutil.rmtree(bench.work / "out")
        (bench.work / "out").mkdir()
        status = bench.run(bench.command(verb))
    if status not in ((0, expected.statuses[1]) if published else (0,)):
        wrong.append(f"run again it ended with {status}: {bench.output()}")
    try:
        after = content(bench.home)
    except SsremError as error:
        return [*wrong, f"tables do not read after the second run: {error}"]
    if after != (expected.again if published else expected.snapshots[-1]):
        reference = expected.again if published else expected.snapshots[-1]
        wrong.append(f"tables differ: {[name for name in after if after[name] != reference[name]]}")
    left = {
        name: n for name, n in bench.tree().items() if n > max(tree.get(name, 0) for tree in expected.trees)
    }
    wrong += [f"left behind: {name}" for name in sorted(left)[:5]]
    if bench.targets() != expected.targets:
        wrong.append(f"targets differ: {bench.targets()[:5]}")
    return wrong
