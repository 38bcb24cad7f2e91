"""What the home folder still holds of a run: published, replaced and deleted partitions."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import pytest

from ssrem.errors import HomeError
from ssrem.tasks.report import compare_runs
from ssrem.tasks.report.compare_runs import LATEST, find
from ssrem.tasks.stage.ledger import read_outputs
from ssrem.tasks.warehouse.home import Warehouse, records
from support.small_home import Made


def run(run_id: str, stage: str = "train") -> dict[str, Any]:
    return {"run_id": run_id, "stage": stage}


def side(home: Warehouse, stage: str) -> Any:
    with home.reader() as connection:
        runs = records(connection, "SELECT * FROM runs ORDER BY started")
        chosen = next(row for row in runs if row["stage"] == stage)
        return compare_runs._side(home, connection, chosen, runs)


def test_a_run_is_found_by_its_id_or_an_unambiguous_prefix(home: Warehouse) -> None:
    runs = [run("20260101T1-a"), run("20260101T1-ab"), run("20260202T2-c", "correlate")]
    assert find(runs, "20260101T1-a", home) is runs[0]
    assert find(runs, "202602", home) is runs[2]
    with pytest.raises(
        HomeError, match=r"2 runs begin with '202601'; the latest are 20260101T1-ab \(train\), "
    ):
        find(runs, "202601", home)
    for name in ("nothing", ""):
        with pytest.raises(
            HomeError, match=r"no run '.*' in .*; the latest are 20260202T2-c \(correlate\), "
        ):
            find(runs, name, home)
    with pytest.raises(HomeError, match="no run has published in"):
        find([], "x", home)
    with pytest.raises(HomeError) as error:
        find([run(f"r{n}") for n in range(20)], "x", home)
    assert str(error.value).count("(train)") == LATEST


def test_a_published_run_is_known_completely(made: Made) -> None:
    known = side(made.home, "correlate")
    assert {row["state"] for row in known.outputs} == {"published"}
    assert {row["table"]: row["rows"] for row in known.outputs if row["table"] == "rated_responses"} == {
        "rated_responses": 30
    }
    assert {(row["evaluator"], row["version"]) for row in known.evaluators} == {
        *(("ssrem", 1), ("rsrem", 1), ("cosine", 1), ("length", 1))
    }
    assert {row["aggregation"] for row in known.correlations} == {"mean"}
    assert {row["dataset"] for row in known.correlations} == {"people"}
    assert known.gates and known.lost == []
    trained = side(made.home, "train")  # it computed no correlations: those of its version count
    ((name, version),) = {(row["evaluator"], row["version"]) for row in trained.evaluators}
    assert {(row["evaluator"], row["version"]) for row in trained.correlations} == {(name, version)}


def test_replaced_partitions_are_reported_and_counted_while_their_files_exist(copy: Warehouse) -> None:
    before = side(copy, "correlate")
    run_id = before.run["run_id"]
    parts = copy.partitions()
    moved = {}
    for part in parts:
        if part.table in ("agreement", "rated_responses") and part.run == run_id:
            target = copy.root / part.path.replace(run_id, "20990101T000000-new")
            target.parent.mkdir(exist_ok=True)
            shutil.copy(copy.root / part.path, target)
            moved[part] = replace(part, path=str(target.relative_to(copy.root)))
    copy.write_catalog([moved.get(part, part) for part in parts])
    after = side(copy, "correlate")
    replaced = [row for row in after.outputs if row["table"] in ("agreement", "rated_responses")]
    assert {row["state"] for row in replaced} == {
        "replaced by 20990101T000000-new (a run that is not in the ledger)"
    }
    assert after.correlations == before.correlations and after.lost == []
    assert [row["rows"] for row in after.outputs] == [row["rows"] for row in before.outputs]

    for part in moved:
        (copy.root / part.path).unlink()
    gone = side(copy, "correlate")
    keys = [key for table, key in read_outputs(gone.run["outputs"]) if table == "agreement"]
    assert gone.correlations == []
    assert gone.lost == [
        *(f"its correlations of {key}, which a later run replaced" for key in keys),
        "the number of rows that it wrote to agreement",
    ]
    # Its gate still knows how many rows the only part of a table had.
    assert [row["rows"] for row in gone.outputs if row["table"] == "rated_responses"] == [30]
