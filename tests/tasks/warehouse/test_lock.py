"""Two writers: the second is told who holds the home folder, or waits; what it decides, it decides under the lock."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ssrem.errors import DumpError, HomeError
from ssrem.tasks.ingest import land
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.warehouse import home as home_module
from ssrem.tasks.warehouse.home import VARIABLE, Warehouse
from support.stages import held


def landed_at_once(home: Warehouse, dumps: list[str], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What writers return or raise of which each has looked before the lock: nothing had landed."""
    waiting = threading.Semaphore(0)
    results: list[Any] = []
    monkeypatch.setattr(home_module, "say", lambda line: waiting.release())
    monkeypatch.setattr(Stage, "gate", lambda stage: None)
    monkeypatch.setenv(VARIABLE, "60")

    def write(dump: str) -> None:
        try:
            results.append(land(dump, str(home.root)))
        except DumpError as error:
            results.append(error)

    writers = [threading.Thread(target=write, args=[dump]) for dump in dumps]
    with home.lock("train"):
        for writer in writers:
            writer.start()
            assert waiting.acquire(timeout=60)
    for writer in writers:
        writer.join(timeout=60)
    return results


ROWS = [
    {"conversation_id": "c", "utterance_id": str(n), "speaker": f"p{n}", "text": f"text {n}"}
    for n in range(4)
]


def test_a_writer_waits_for_the_holder_and_says_for_whom(
    home: Warehouse, write_dump: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setenv(VARIABLE, "1h")
    with held(home) as other:

        def say(line: str) -> None:
            assert other.stdin is not None
            said.append(line)
            other.stdin.write("\n")
            other.stdin.flush()

        monkeypatch.setattr(home_module, "say", say)
        assert land(write_dump(ROWS), str(home.root)) == ("dump", True)
    (line,) = said
    assert f"waiting for process {other.pid} on " in line and "(train since " in line


def test_the_same_dump_lands_once_from_writers_at_the_same_time(
    home: Warehouse, write_dump: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = landed_at_once(home, [write_dump(ROWS, "a"), write_dump(ROWS, "b")], monkeypatch)
    assert sorted(new for _, new in results) == [False, True]
    assert len({name for name, _ in results}) == 1
    assert home.query("SELECT (SELECT count(*) FROM corpora), (SELECT count(*) FROM runs)") == [(1, 1)]


def test_other_content_of_the_same_name_is_refused_even_after_waiting(
    home: Warehouse, write_dump: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = write_dump(ROWS)
    (tmp_path / "other").mkdir()
    other_dump = tmp_path / "other" / "dump.jsonl"
    other_dump.write_text(json.dumps({**ROWS[0], "text": "another"}) + "\n")
    results = landed_at_once(home, [dump, str(other_dump)], monkeypatch)
    (refused,) = [result for result in results if result != ("dump", True)]
    assert len(results) == 2 and "a corpus 'dump' with other content has landed before" in str(refused)


def test_a_writer_without_patience_is_told_at_once(home: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(time, "sleep", lambda duration: pytest.fail("it waited"))
    says = rf"in use by process {os.getpid()} on \S+ \(train since [-\d]+ [:\d]+ UTC\); .*--wait"
    with home.lock("train"), pytest.raises(HomeError, match=says), home.lock("ingest"):
        pass


def test_waiting_ends_and_does_not_look_at_the_clock(
    home: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [1000.0]

    def sleep(duration: float) -> None:
        assert duration > 0
        now[0] += duration

    # Without time(): the time of day, which may jump, is not asked for.
    monkeypatch.setattr(home_module, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    monkeypatch.setenv(VARIABLE, "1.5m")
    says = r"still in use by process .* after 90 s"
    with home.lock("train"), pytest.raises(HomeError, match=says), home.lock("ingest"):
        pass
    assert now[0] == pytest.approx(1090)
    assert capsys.readouterr().err.count("waiting for process") == 1


def test_a_dump_that_changes_while_it_is_read_does_not_land(
    home: Warehouse, write_dump: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = write_dump(ROWS)
    hashed = Warehouse.lock

    def lock(self: Warehouse, what: str) -> object:
        with Path(dump).open("a") as more:  # after its content was hashed
            more.write(json.dumps({**ROWS[0], "utterance_id": "late"}) + "\n")
        return hashed(self, what)

    monkeypatch.setattr(Warehouse, "lock", lock)
    with pytest.raises(DumpError, match="changed while it was read"):
        land(dump, str(home.root))
    assert home.partitions() == []


@pytest.mark.parametrize("text", ["h", "-1", "6 hours", "nan"])
def test_a_wait_that_is_no_duration_is_refused(
    home: Warehouse, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(HomeError, match=rf"\${VARIABLE}: '{text}' is no duration"), home.lock("ingest"):
        pass
