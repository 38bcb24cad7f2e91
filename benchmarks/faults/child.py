"""Runs stages in processes of their own that benchmarks.faults kills; forked from one that has loaded everything.

python -m benchmarks.faults.child reads a job a line, JSON, from stdin; it answers with the process that the job runs
in, then with how that ended.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

STAGES = ("ingest", "tables", "train", "score", "correlate", "report")
ENCODER = "word2vec"
CORPUS = "tiny"


def run_stage(stage: str, home: str, dump: str, annotated: str) -> None:
    """One stage as its flow calls it, without Prefect."""
    from ssrem.tables.speaker_sets import TableSettings
    from ssrem.tasks.agreement.correlate import correlate
    from ssrem.tasks.ingest.land import land
    from ssrem.tasks.maintenance.repair import repair
    from ssrem.tasks.report.report import write_report
    from ssrem.tasks.scoring.test_split import score_corpus
    from ssrem.tasks.speaker_tables.build import build
    from ssrem.tasks.training.train import train
    from ssrem.tasks.training.versions import promoted
    from ssrem.tasks.warehouse.home import Warehouse

    repair(home)
    if stage == "ingest":
        land(dump, home, name=CORPUS)
    elif stage == "tables":
        build(CORPUS, home, settings=TableSettings(encoder=ENCODER))
    elif stage == "train":
        train("ssrem", [CORPUS], home, encoder=ENCODER, config={"epochs": 3})
    elif stage == "report":
        write_report(home)
    else:
        versions = promoted(Warehouse.at(home))
        if stage == "correlate":
            correlate(annotated, versions, home)
        for name, version in versions if stage == "score" else ():
            score_corpus(name, version, CORPUS, home)


def _shift_clock(seconds: float) -> None:
    """Shift every clock that ssrem reads by `seconds`."""
    import ssrem.tasks.maintenance.repair
    import ssrem.tasks.report.report
    import ssrem.tasks.stage.stage
    import ssrem.tasks.warehouse.home

    true_now, true_time = ssrem.tasks.warehouse.home.utc_now, time.time
    for module in (
        ssrem.tasks.warehouse.home,
        ssrem.tasks.maintenance.repair,
        ssrem.tasks.report.report,
        ssrem.tasks.stage.stage,
    ):
        module.utc_now = lambda: true_now() + timedelta(seconds=seconds)  # type: ignore[attr-defined]
    time.time = lambda: true_time() + seconds


def _time_publishing(moments: list[tuple[str, float]]) -> None:
    """Record when each publish begins and ends."""
    from ssrem.tasks.stage.stage import Stage

    publish = Stage.publish

    def timed(stage: Stage, *arguments: Any, **named: Any) -> None:
        moments.append(("publish", time.perf_counter()))
        publish(stage, *arguments, **named)
        moments.append(("published", time.perf_counter()))

    Stage.publish = timed  # type: ignore[method-assign]


def _do(job: Mapping[str, Any]) -> int:
    """Run the stages of a job; returns its exit status. Its output goes to the file `output`."""
    from ssrem.errors import SsremError

    os.setsid()
    output = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if job.get("clock"):
        _shift_clock(job["clock"])
    if job.get("room"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["room"], job["room"]))
    moments: list[tuple[str, float]] = []
    if job.get("moments"):
        _time_publishing(moments)
    try:
        for stage in job["stages"]:
            moments.append((stage, time.perf_counter()))
            run_stage(stage, job["home"], job["dump"], job["annotated"])
    except SsremError as error:
        print(f"ssrem: {error}", file=sys.stderr)
        return 1
    if job.get("moments"):
        moments.append(("end", time.perf_counter()))
        Path(job["moments"]).write_text(json.dumps({"moments": moments, "modules": list(sys.modules)}))
    return 0


def _load(modules: Sequence[str]) -> None:
    """Import what the stages need before forking, so that no job has to. Forks would lose a thread started here."""
    for name in modules:
        with suppress(Exception):
            importlib.import_module(name)


def main() -> None:
    """Run jobs until stdin ends."""
    _load(
        [
            "great_expectations",
            "gensim.models",
            "torch",
            "ssrem.tasks.agreement.correlate",
            "ssrem.tasks.report.report",
            "ssrem.tasks.training.train",
        ]
    )
    for line in sys.stdin:
        job = json.loads(line)
        _load(job.get("modules", ()))
        if not (process := os.fork()):
            status = 70
            try:
                status = _do(job)
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
