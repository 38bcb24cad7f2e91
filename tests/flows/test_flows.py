"""Flows under Prefect: their runs and tasks have names, they leave the ledger of the command, show what they did and
refuse what they cannot use."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import Mock

import duckdb
import pytest

from ssrem.errors import AnnotationError, DumpError, GateError
from ssrem.schemas import TABLES
from ssrem.tasks.settings import AnnotatedSets, DumpSettings
from ssrem.tasks.stage import gate
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import Made, draw_little

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.xdist_group("prefect"),
    pytest.mark.usefixtures("prefect_server"),
]

OF_A_RUN = {"run_id", "started", "ended", "trained_at", "decided_at", "promoted_at", "landed_at", "seconds"}
"""Columns that differ between two runs of the same work."""


class Shown(NamedTuple):
    """What Prefect's page shows: names of flow runs and of task runs, and artifacts."""

    flows: set[str]
    tasks: set[str]
    artifacts: list[Any]


def shown(since: datetime) -> Shown:
    """What was started since then: where the server is slow to answer, Prefect's client asks a second time for a flow
    run, and one of the two is never started."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        flows = [run for run in client.read_flow_runs() if run.created >= since and run.start_time]
        tasks = [run for run in client.read_task_runs() if run.created >= since]
        artifacts = [one for one in client.read_artifacts() if one.created >= since]
    return Shown(
        {run.name for run in flows},
        # A run of a flow that another one calls is a task run as well.
        {run.name for run in tasks if run.state and not run.state.state_details.child_flow_run_id},
        artifacts,
    )


Flown = tuple[Warehouse, Shown]


@pytest.fixture(scope="module")
def flown(made: Made, prefect_server: None, tmp_path_factory: pytest.TempPathFactory) -> Flown:
    """What the flow `pipeline` leaves of the dump and the annotated set of `ssrem run`, whose texts are encoded."""
    from ssrem.flows.pipeline import pipeline

    home, since = Warehouse.at(tmp_path_factory.mktemp("flown") / "home"), datetime.now(UTC)
    shutil.copytree(made.home.root / "vectors", home.root / "vectors")
    with pytest.MonkeyPatch.context() as patch:
        draw_little(patch)
        patch.setattr("ssrem.flows.expectations.Gates.write", lambda gates: gates.folder / "index.html")
        path = pipeline(str(made.dump), str(home.root), annotations=[str(made.annotated)])
    assert path == str(home.reports / "report.html")
    return home, shown(since)


def contents(home: Warehouse) -> dict[str, list[Any]]:
    """Table → its rows, runs in their order, without what differs between two runs of the same work."""
    found = {}
    with home.reader() as reader:
        for name, table in TABLES.items():
            columns = ", ".join(f'"{column}"' for column in table.column_names if column not in OF_A_RUN)
            order = "started" if name == "runs" else "ALL"
            found[name] = reader.execute(f'SELECT {columns} FROM "{name}" ORDER BY {order}').fetchall()
    return found


def test_the_pipeline_leaves_what_the_command_leaves(flown: Flown, made: Made) -> None:
    """The same ledger, the same tables, and the same results of gates, which Great Expectations has evaluated."""
    left = contents(flown[0])
    assert len(left["runs"]) == 12
    for table, rows in contents(made.home).items():
        assert left[table] == rows, table


def test_runs_are_named_by_what_they_work_on(flown: Flown) -> None:
    _, page = flown
    assert page.flows == {
        *("pipeline-tiny.jsonl", "ingest-tiny.jsonl", "tables-tiny", "train-ssrem+rsrem"),
        *("correlate-people_eval.json", "report-home"),
    }
    assert {
        "train ssrem",
        "train rsrem",
        "score test splits with ssrem 1",
        "build tables of tiny",
    } < page.tasks
    first_words = {name.split(" ")[0] for name in page.tasks}
    assert first_words == {"land", "build", "train", "score", "correlate", "study", "write"}


def test_each_run_shows_its_figures_and_gates(flown: Flown) -> None:
    home, page = flown
    artifacts = {one.key: one for one in page.artifacts}
    assert {"corpora", "speaker-sets", "evaluators", "identification", "agreement", "best"} < set(artifacts)
    assert "tiny" in artifacts["corpora"].data
    assert "report.html" in artifacts["report"].data
    for stage in ("ingest", "tables", "train", "correlate", "study"):
        assert "to be unique" in artifacts[f"gate-{stage}"].data
        index = home.reports / "expectations" / stage / "index.html"
        assert index.as_uri() in artifacts[f"expectations-{stage}"].data


def test_a_second_run_publishes_nothing(flown: Flown) -> None:
    """As at night, where nothing has landed since."""
    from ssrem.flows.pipeline import pipeline

    home, _ = flown
    before, since = home.partitions(), datetime.now(UTC)
    pipeline(None, str(home.root), retrain_outdated=True)
    page = shown(since)
    assert home.partitions() == before
    assert page.flows == {"pipeline-landed", "train-ssrem+rsrem", "retrain-all", "report-home"}
    assert "expectations-train" not in {one.key for one in page.artifacts}


def test_a_failed_gate_shows_the_rows_and_is_told_once(
    home: Warehouse, made: Made, web: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ssrem.flows.hooks import VARIABLE
    from ssrem.flows.pipeline import pipeline

    url, posted = web
    monkeypatch.setenv(VARIABLE, url)
    query = "SELECT conversation_id, 'a|b' AS shown FROM conversations LIMIT 30"
    check = SimpleNamespace(table="conversations", name="none", why="of a test", query=query)
    monkeypatch.setattr("ssrem.tasks.stage.gate.checks", lambda stage: [check])
    since = datetime.now(UTC)
    with pytest.raises(GateError, match="expected no row of none: of a test, broken by 30 rows"):
        pipeline(str(made.dump), str(home.root))
    assert home.partitions() == []
    artifacts = {one.key: one for one in shown(since).artifacts}
    rows = json.loads(artifacts["gate-ingest-1-conversations"].data)
    assert len(rows) == 20 and rows[0]["shown"] == "a|b"
    index = home.reports / "expectations" / "ingest" / "index.html"
    assert index.as_uri() in artifacts["expectations-ingest"].data and index.exists()
    (message,) = posted
    assert (message["flow"], message["run"]) == ("pipeline", "pipeline-tiny.jsonl")
    assert message["message"].startswith("gate of ingest: table conversations: expected no row of none")


def none_broken(gates: Any, connection: Any, rules: Sequence[Any]) -> list[int]:
    """What a gate finds that every row passes, for tests of something else."""
    return [0] * len(rules)


def test_landing_is_announced_once_and_not_by_the_pipeline(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, emitted, root = import_module("ssrem.flows.ingest"), Mock(), str(home.root)
    dumps, land = ["tiny.jsonl", "more.jsonl"], Mock(return_value=("tiny", True))
    monkeypatch.setattr(module, "emit_event", emitted)
    monkeypatch.setattr(module, "land", land)
    assert module.ingest(dumps, root) == module.ingest.fn(dumps, root, announce=False) == ("tiny", True)
    land.return_value = ("tiny", False)
    assert module.ingest.fn(dumps, root) == ("tiny", False)
    about = {"resource": {"prefect.resource.id": "corpus.tiny"}, "payload": {"name": "tiny", "home": root}}
    emitted.assert_called_once_with(event="corpus.landed", **about)


def test_without_room_for_pages_a_landed_corpus_is_announced_and_notes_stand_in_the_log(
    home: Warehouse, made: Made, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module, emitted, full = import_module("ssrem.flows.ingest"), Mock(), OSError(28, "No space left")
    monkeypatch.setattr(module, "emit_event", emitted)
    monkeypatch.setattr("ssrem.flows.expectations.Gates.write", Mock(side_effect=full))
    monkeypatch.setattr("ssrem.flows.expectations.Gates.broken_rows", none_broken)
    assert module.ingest(str(made.dump), str(home.root)) == ("tiny", True)
    assert emitted.call_count == 1
    assert "the pages about gates were not written: No space left" in caplog.text  # said by the flow
    assert "read conversation from 'conversation_id'" in caplog.text  # said by a task


def test_refusals_in_a_row_are_an_event(home: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    module, emitted = import_module("ssrem.flows.train"), Mock()
    monkeypatch.setattr(module, "emit_event", emitted)
    monkeypatch.setattr(module, "train_all", lambda *_, **__: {"ssrem": (4, True), "rsrem": (1, False)})
    monkeypatch.setattr(module, "refused_in_a_row", lambda _, names: [(name, 3, "why") for name in names])
    module.train(home=str(home.root))
    payload = {"evaluator": "ssrem", "refused": 3, "why": "why", "home": str(home.root)}
    about = {"resource": {"prefect.resource.id": "evaluator.ssrem"}, "payload": payload}
    emitted.assert_called_once_with(event="challengers.refused", **about)


def test_the_options_of_a_dump_reach_the_inbox(
    home: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ssrem.flows.drop_folder import drop_folder

    monkeypatch.setattr("ssrem.flows.expectations.Gates.broken_rows", none_broken)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    rows = "".join(f"c{n // 4},{'ab'[n % 2]}{n % 5},text {n}\n" for n in range(80))
    (inbox / "chats.csv").write_text(f"thread,who,said\n{rows}")
    how = DumpSettings(map={"conversation": "thread", "speaker": "who", "text": "said"}, speakers="person")
    since = datetime.now(UTC)
    outcome = drop_folder(str(inbox), str(home.root), settle=0, dump=how, announce=False)
    assert outcome == {"chats.csv": "landed as chats"}
    page = shown(since)
    assert page.flows == {"drop-folder-inbox", "ingest-chats.csv"}
    assert "landed as chats" in {one.key: one for one in page.artifacts}["landed"].data


@pytest.mark.parametrize(
    ("flow", "given", "error", "says"),
    [
        ("pipeline", {"source": None, "dump": DumpSettings(format="csv")}, DumpError, "none is named"),
        ("pipeline", {"sets": AnnotatedSets(layout="usr")}, AnnotationError, "annotations names none"),
        ("correlate", {"files": []}, AnnotationError, "no annotated set is named"),
        ("correlate", {"files": ["nope.json"]}, AnnotationError, "does not exist"),
    ],
)
def test_what_cannot_be_used_is_refused_before_any_work(
    home: Warehouse, flow: str, given: dict[str, Any], error: type[Exception], says: str
) -> None:
    module = import_module(f"ssrem.flows.{flow}")
    with pytest.raises(error, match=says):
        getattr(module, flow).fn(home=str(home.root), **given)
    assert not home.root.exists()


def test_a_task_is_tried_again_after_an_error_of_a_disk_and_no_other() -> None:
    from prefect import Task, flow, task

    from ssrem.flows import steps

    of_stages = [one for one in vars(steps).values() if isinstance(one, Task)]
    assert len(of_stages) == 13
    assert {(one.retries, one.retry_delay_seconds, one.retry_condition_fn) for one in of_stages} == {
        (2, 5, steps.of_disk_or_network)
    }
    work = Mock(side_effect=[OSError("disk"), OSError("disk"), "done", ValueError("wrong")])

    @task(**{**steps.AGAIN, "retry_delay_seconds": 0})
    def again() -> Any:
        return work()

    @flow
    def works() -> Any:
        return again()

    assert (works(), work.call_count) == ("done", 3)
    with pytest.raises(ValueError, match="wrong"):
        works()
    assert work.call_count == 4


@pytest.mark.filterwarnings("error::FutureWarning")
def test_the_gates_of_a_submitted_task_are_evaluated_as_those_of_its_run(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect import flow, task

    from ssrem.flows import artifacts

    monkeypatch.setattr("ssrem.flows.expectations.Gates.broken_rows", lambda *given: [7] * len(given[-1]))

    @task
    def broken() -> set[int]:
        with duckdb.connect() as connection:
            connection.execute(TABLES["turns"].ddl())
            results = gate.check_tables(connection, "report", "r", ["turns"])
        return {result.row["unexpected"] for result in results}

    def checks() -> set[int]:
        with artifacts.shown(str(home.root), "ingest", []):
            return broken.submit().result()

    assert flow(checks, name="checks")() == {7}
