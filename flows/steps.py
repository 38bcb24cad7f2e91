"""The stages of ssrem.tasks as Prefect tasks: tried again where a disk or network failed, and named by what they work
on. The ledger in the home folder, not a cache of Prefect, says what is done."""

from collections.abc import Sequence
from typing import Any

from prefect import Task, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun

from ssrem.settings import TableSettings
from ssrem.tasks import correlate as agreement
from ssrem.tasks import ingest, promote, report, score, tables
from ssrem.tasks import study as studies
from ssrem.tasks import train as training
from ssrem.tasks.settings import (
    AgreementSettings,
    AnnotatedSets,
    DumpSettings,
    Margins,
    Resources,
    TrainSettings,
)
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.prune import prune as delete_unused


def of_disk_or_network(_: Task[..., Any], __: TaskRun, state: State[Any]) -> bool:
    """Whether a task run failed of an error that may pass."""
    return isinstance(state.result(raise_on_failure=False), OSError)


AGAIN: dict[str, Any] = {
    "retries": 2,
    "retry_delay_seconds": 5,
    "retry_condition_fn": of_disk_or_network,
    "cache_policy": NO_CACHE,
}


@task(name="land", task_run_name="land {source}", tags=["ingest"], **AGAIN)
def land(source: str | list[str], home: str, dump: DumpSettings, *, resources: Resources) -> tuple[str, bool]:
    """Land a dump; returns the corpus's name and whether it is new."""
    return ingest.land(source, home, dump, resources=resources)


@task(name="build tables", task_run_name="build tables of {corpus}", tags=["tables"], **AGAIN)
def build_tables(corpus: str, home: str, settings: TableSettings, *, resources: Resources) -> bool:
    """Build the speaker tables of a corpus; False if they are published already."""
    return tables.build(corpus, home, settings, resources=resources)


@task(name="train evaluator", task_run_name="train {name}", tags=["train"], **AGAIN)
def train_evaluator(
    name: str, corpora: Sequence[str], home: str, settings: TrainSettings, *, resources: Resources
) -> tuple[int, bool]:
    """Train an evaluator; returns its version and whether it is new."""
    return training.train(name, corpora, home, settings, resources=resources)


@task(name="score test split", task_run_name="score {corpus} with {name} {version}", tags=["score"], **AGAIN)
def score_test_split(name: str, version: int, corpus: str, home: str, *, resources: Resources) -> bool:
    """Score a corpus's test split; False if its scores are published already."""
    return score.score_corpus(name, version, corpus, home, resources=resources)


@task(name="decide", tags=["train"], **AGAIN)
def decide(home: str, evaluators: Sequence[str], margins: Margins, *, resources: Resources) -> dict[str, str]:
    """Decide on the versions that wait; returns each one's decision and its reason."""
    return promote.decide_all(home, evaluators, margins, resources=resources)


@task(name="correlate", task_run_name="correlate {file}", tags=["correlate"], **AGAIN)
def correlate_set(
    file: str,
    versions: Sequence[tuple[str, int]],
    home: str,
    sets: AnnotatedSets,
    settings: AgreementSettings,
    *,
    resources: Resources,
) -> tuple[str, bool]:
    """Land, score and correlate an annotated set; returns its name and whether anything was new."""
    return agreement.correlate(file, versions, home, sets, settings, resources=resources)


@task(name="correlate", task_run_name="correlate landed sets", tags=["correlate"], **AGAIN)
def correlate_landed(home: str, *, resources: Resources) -> list[str]:
    """Update the figures of all annotated sets; returns the names of those that were out of date."""
    return agreement.correlate_all(home, resources=resources)


@task(name="study", task_run_name="study behaviour", tags=["study"], **AGAIN)
def study(home: str, *, resources: Resources) -> bool:
    """Study the behaviour of the evaluators in use; False if nothing was new."""
    return studies.study_behaviour(home, resources=resources)


@task(name="write report", tags=["report"], **AGAIN)
def write_report(home: str, figures: str | None, *, raw: bool, anew: bool) -> str:
    """Write the report, and its figures into a folder if one is given; returns the report's path."""
    path = report.write_report(home, anew=anew)
    if figures is not None:
        report.write_figures(home, figures, raw=raw)
    return path


@task(name="prune", tags=["prune"], **AGAIN)
def prune(home: str, keep_runs: int, keep_failures: int) -> dict[str, int]:
    """Delete unused files; returns how many, and their bytes."""
    pruned = delete_unused(Warehouse.at(home), keep_runs, keep_failures)
    return {"removed": len(pruned.removed), "bytes": pruned.bytes}
