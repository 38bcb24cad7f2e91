"""The stages of ssrem.tasks as Prefect tasks: tried again where a disk or network failed, and named by what they work
on. The ledger in the home folder, not a cache of Prefect, says what is done."""

from typing import Any

from prefect import Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun

from ssrem.tasks import correlate as agreement
from ssrem.tasks import ingest, promote, report, score, study, tables, train
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


# Each takes the parameters of the function that it calls.
land = Task(ingest.land, name="land", task_run_name="land {source}", tags=["ingest"], **AGAIN)
build_tables = Task(
    tables.build, name="build tables", task_run_name="build tables of {corpus}", tags=["tables"], **AGAIN
)
train_evaluator = Task(
    train.train, name="train evaluator", task_run_name="train {name}", tags=["train"], **AGAIN
)
score_test_split = Task(
    score.score_corpus,
    name="score test split",
    task_run_name="score {corpus} with {name} {version}",
    tags=["score"],
    **AGAIN,
)
score_baselines = Task(score.score_baselines, name="score baselines", tags=["score"], **AGAIN)
decide = Task(promote.decide_all, name="decide", tags=["train"], **AGAIN)
correlate_set = Task(
    agreement.correlate, name="correlate", task_run_name="correlate {file}", tags=["correlate"], **AGAIN
)
correlate_landed = Task(
    agreement.correlate_all,
    name="correlate",
    task_run_name="correlate landed sets",
    tags=["correlate"],
    **AGAIN,
)
study_behaviour = Task(
    study.study_behaviour, name="study", task_run_name="study behaviour", tags=["study"], **AGAIN
)
write_report = Task(report.write_report, name="write report", tags=["report"], **AGAIN)
write_figures = Task(report.write_figures, name="write figures", tags=["report"], **AGAIN)
prune = Task(delete_unused, name="prune", tags=["prune"], **AGAIN)
