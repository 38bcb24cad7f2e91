"""Whatever dies or is damaged: the last snapshot answers, status tells, the next run repairs, no message is lost.

A short form of `python -m benchmarks.faults`: a handful of kills, and every other fault once.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.attack.bench import Bench as Attacked
from benchmarks.attack.fuzz import KINDS, fuzz
from benchmarks.attack.inputs import content
from benchmarks.attack.kills import kills
from benchmarks.attack.signals import signals
from benchmarks.faults import damage
from benchmarks.faults.__main__ import kill, prepared
from benchmarks.faults.child import CORPUS, STAGES
from benchmarks.faults.home import Bench
from ssrem.cli.main import main
from ssrem.errors import HomeError
from ssrem.tasks.ingest.drop_folder import DONE
from ssrem.tasks.maintenance.health import health
from ssrem.tasks.query.sandbox import ask
from ssrem.tasks.warehouse.incidents import incidents

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="jobs are forked"),
    pytest.mark.xdist_group("faults"),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with prepared(tmp_path_factory.mktemp("faults"), 0) as ready:
        ready.mounts = False
        yield ready


@pytest.fixture
def whole(bench: Bench) -> Bench:
    bench.reset(len(STAGES))
    return bench


def part_of(bench: Bench, table: str) -> Path:
    (path,) = {bench.home.root / part.path for part in bench.home.partitions() if part.table == table}
    return path


def test_kills(bench: Bench) -> None:
    for outcome in kill(bench, 4, random.Random(1)):
        assert not outcome.missed, outcome


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Attacked:
    made = Attacked(tmp_path_factory.mktemp("attack"))
    made.prepare([])
    return made


def test_kills_of_commands(attacked: Attacked) -> None:
    for what, wrong in kills(attacked, first=1, count=4, seed=1):
        assert not wrong, what


def test_signals_to_commands(attacked: Attacked) -> None:
    for what, wrong in signals(attacked, first=0, count=3, seed=1):
        assert not wrong, what


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_inputs(attacked: Attacked, kind: str) -> None:
    ends, wrong = fuzz(attacked, kind, first=0, count=20 if kind == "landings" else 300, seed=1, seconds=60)
    assert not wrong
    assert ends["refused"] and ends["read"]


@pytest.mark.parametrize("fault", damage.FAULTS)
def test_other_faults(bench: Bench, fault: damage.Fault) -> None:
    times = len(STAGES) if fault is damage.full_disk else 1
    for outcome in fault(bench, times, random.Random(2)):
        assert not outcome.missed, outcome


def test_a_dump_that_changed_is_not_what_repairs(whole: Bench) -> None:
    dump = whole.dump.path.read_bytes()
    part_of(whole, "utterances").unlink()
    try:
        whole.dump.path.write_bytes(dump + b"\n")
        assert whole.child.run(whole.home, ["tables"]) == 0  # it is done, and needs none of it
    finally:
        whole.dump.path.write_bytes(dump)
    (_, message) = incidents(whole.home.root)[-1]
    assert (
        "has changed since it landed" in message
        and f"--name {CORPUS} --replace" in message
        and "backup" in message
    )
    with pytest.raises(HomeError, match=r"utterances\.parquet .* is missing"):
        ask(whole.home, "SELECT count(*) FROM utterances")
    assert ask(whole.home, "SELECT count(*) > 0 FROM turns")[1] == [(True,)]
    whole.home.write_catalog(whole.home.partitions())  # others go on publishing
    assert whole.child.run(whole.home, ["tables"]) == 0  # the dump is back
    assert content(whole.home) == whole.contents[-1]


def test_a_dump_that_was_filed_away_repairs(whole: Bench) -> None:
    done = whole.dump.path.parent / DONE
    done.mkdir()
    filed = whole.dump.path.rename(done / whole.dump.path.name)
    part_of(whole, "utterances").unlink()
    try:
        assert whole.child.run(whole.home, ["tables"]) == 0
        (_, message) = incidents(whole.home.root)[-1]
        assert "made again" in message
        assert ask(whole.home, "SELECT count(*) > 0 FROM utterances")[1] == [(True,)]
    finally:
        filed.rename(whole.dump.path)
        done.rmdir()


def test_what_was_landed_otherwise_is_not_read_from_the_dump_again(whole: Bench) -> None:
    # As where ids were replaced, or somebody was forgotten, since: the dump knows better than it should.
    parts = [part for part in whole.home.partitions() if part.table == "conversations"]
    other = next(part.run for part in whole.home.partitions() if part.table == "runs")
    moved = whole.home.lake / f"run={other}" / "conversations.parquet"
    part_of(whole, "conversations").rename(moved)
    named = replace(parts[0], path=f"lake/run={other}/{moved.name}")
    whole.home.write_catalog([named if p in parts else p for p in whole.home.partitions()])
    part_of(whole, "utterances").unlink()
    assert whole.child.run(whole.home, ["tables"]) == 0
    assert "restore" in incidents(whole.home.root)[-1][1]
    with pytest.raises(HomeError):
        ask(whole.home, "SELECT * FROM utterances")


def test_what_a_disk_changed_in_silence_is_found_by_reading_deep(whole: Bench) -> None:
    path = part_of(whole, "turns")
    before = path.stat()
    damage.flip(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not any("damaged" in note for note in health(whole.home))
    assert any("turns.parquet" in note for note in health(whole.home, deep=True))
    with pytest.raises(HomeError, match=r"turns\.parquet"):
        ask(whole.home, "SELECT * FROM turns")
    assert whole.child.run(whole.home, ["tables"]) == 0
    assert content(whole.home) == whole.contents[-1]
    assert health(whole.home, deep=True) == health(whole.home)


def test_a_table_in_two_copies_survives_the_loss_of_one(whole: Bench) -> None:
    path = part_of(whole, "runs")
    damage.cut(path)
    with pytest.raises(HomeError, match=r"runs\.parquet"):
        ask(whole.home, "SELECT * FROM runs")
    assert whole.child.run(whole.home, ["tables"]) == 0
    assert path.read_bytes() == path.with_name("runs.parquet.copy").read_bytes()
    assert content(whole.home) == whole.contents[-1]


def test_a_corpus_without_its_row_lands_again(whole: Bench) -> None:
    path = part_of(whole, "corpora")
    path.unlink()
    path.with_name("corpora.parquet.copy").unlink()
    assert whole.child.run(whole.home, ["report"]) == 0
    assert content(whole.home) == whole.contents[-1]


def test_all_that_an_annotated_set_lost_is_made_again(whole: Bench) -> None:
    lost = [p for p in whole.home.partitions() if p.key.dataset and p.table in ("scores", "agreement")]
    assert len(lost) == 2
    for part in lost:
        path = whole.home.root / part.path
        path.unlink()
        path.with_name(f"{path.name}.copy").unlink(missing_ok=True)
    assert whole.child.run(whole.home, ["correlate"]) == 0
    # The ledger has one more run, which published these two partitions and not the ratings.
    assert {**content(whole.home), "runs": ""} == {**whole.contents[-1], "runs": ""}


def test_a_damaged_list_of_evaluators_does_not_stop_its_repair(whole: Bench) -> None:
    damage.flip(part_of(whole, "evaluators"))
    assert whole.child.run(whole.home, ["correlate"]) == 0
    assert content(whole.home) == whole.contents[-1]


def test_a_ledger_without_copies_gives_way_to_the_one_before(whole: Bench) -> None:
    path = part_of(whole, "runs")
    path.unlink()
    path.with_name("runs.parquet.copy").unlink()
    assert whole.child.run(whole.home, ["tables"]) == 0
    stages = ask(whole.home, "SELECT stage FROM runs ORDER BY started")[1]
    assert [stage for (stage,) in stages] == ["ingest", "tables", "train", "score"]
    assert whole.child.run(whole.home) == 0
    assert content(whole.home)["scores"] == whole.contents[-1]["scores"]


def test_a_model_that_is_missing_is_told_and_trained_again(whole: Bench) -> None:
    model = whole.home.models / "ssrem" / "1"
    weights = model / "weights.safetensors"
    damage.flip(weights)
    assert not any("ssrem version 1" in note for note in health(whole.home))
    assert any("ssrem version 1 is in use" in note for note in health(whole.home, deep=True))
    weights.unlink()
    assert any(f"{weights} is missing" in note for note in health(whole.home))
    assert whole.child.run(whole.home, ["train"]) == 0
    assert not any("ssrem version" in note for note in health(whole.home))
    assert (whole.home.models / "ssrem" / "2" / "weights.safetensors").exists()


@pytest.mark.parametrize("harm", damage.DAMAGES)
def test_a_damaged_encoder_is_trained_again(bench: Bench, harm: damage.Damage) -> None:
    bench.reset(STAGES.index("train"))
    (file,) = bench.home.root.glob("encoders/*/encoder.safetensors")
    harm(file)
    assert bench.child.run(bench.home, ["train"]) == 0, bench.child.output.read_text()
    assert content(bench.home)["evaluators"] == bench.contents[STAGES.index("train") + 1]["evaluators"]


def test_a_report_sweeps_up_after_one_that_was_killed(whole: Bench) -> None:
    left = whole.home.reports / f"report.html.{2**22 + 1}.tmp"  # above what a kernel gives out
    mine = whole.home.reports / f"report.html.{os.getpid()}.tmp"
    left.touch()
    mine.touch()
    assert whole.child.run(whole.home, ["report"]) == 0
    assert sorted(path.name for path in whole.home.reports.iterdir()) == ["report.html", mine.name]


def test_status_and_sql_say_it_in_a_line(whole: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    damage.cut(part_of(whole, "turns"))
    home = ["--home", str(whole.home.root)]
    assert main(["status", *home]) == 0
    status = capsys.readouterr().out
    assert "progress" in status and f"(table turns, corpus {CORPUS}) has" in status
    assert main(["sql", "SELECT count(*) FROM utterances", *home]) == 0
    assert main(["sql", "SELECT count(*) FROM turns", *home]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "turns.parquet" in line and "repairs it" in line
    assert main(["status", "--deep", *home]) == 0
    assert "turns.parquet" in capsys.readouterr().out


def test_the_log_of_incidents_survives_a_half_written_line(tmp_path: Path) -> None:
    from datetime import datetime

    from ssrem.tasks.warehouse.incidents import log_incident

    log_incident(tmp_path, datetime(2026, 1, 1), "one")
    with (tmp_path / "incidents.jsonl").open("ab") as log:
        log.write(b'{"at": "2026')
    log_incident(tmp_path, datetime(2026, 1, 2), "two")
    log_incident(tmp_path, datetime(2026, 1, 3), "two")
    assert incidents(tmp_path) == [("2026-01-01 00:00:00", "one"), ("2026-01-02 00:00:00", "two")]
