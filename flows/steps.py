"""The stages of ssrem.tasks as Prefect tasks: tried again where a disk or network failed, and named by what they work
on. The ledger in the home folder, not a cache of Prefect, says what is done."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from prefect import Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun

from ssrem.tasks import correlate as agreement
from ssrem.tasks import ingest, promote, report, score, study, tables, train
from ssrem.tasks.warehouse.prune import prune as delete_unused

P = ParamSpec("P")
R = TypeVar("R")


def of_disk_or_network(_: Task[..., Any], __: TaskRun, state: State[Any]) -> bool:
    """Whether a task run failed with an OSError, which may be temporary, or with an error that an OSError caused."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, OSError) or isinstance(getattr(error, "__cause__", None), OSError)


AGAIN: dict[str, Any] = {
    "retries": 2,
    "retry_delay_seconds": 5,
    "retry_condition_fn": of_disk_or_network,
    "cache_policy": NO_CACHE,
    "log_prints": True,
}


def _step(function: Callable[P, R], name: str, *, run: str | None = None) -> Task[P, R]:
    """A Prefect task that takes the parameters of the function. run: template for the names of its runs.

    It has no tags, since Prefect opens another client for each combination of tags, to ask the server for their limits:
    with two tags the eleven tasks of `pipeline` took 15 seconds longer.
    """
    return Task(function, name=name, task_run_name=run, **AGAIN)


land = _step(ingest.land, "land", run="land {source}")
build_tables = _step(tables.build, "build tables", run="build tables of {corpus}")
train_evaluator = _step(train.train, "train evaluator", run="train {name}")
score_test_splits = _step(
    score.score_test_splits, "score test splits", run="score test splits with {name} {version}"
)
score_baselines = _step(score.score_baselines, "score baselines")
decide = _step(promote.decide_all, "decide")
retire = _step(promote.retire, "retire versions")
correlate_set = _step(agreement.correlate, "correlate", run="correlate {file}")
correlate_landed = _step(agreement.correlate_all, "correlate", run="correlate landed sets")
study_behaviour = _step(study.study_behaviour, "study", run="study behaviour")
write_report = _step(report.write_report, "write report")
write_figures = _step(report.write_figures, "write figures")
prune = _step(delete_unused, "prune")
