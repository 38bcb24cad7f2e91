"""Progress without a terminal: a line when work starts and ends, and in between as often as the heartbeat says."""

from __future__ import annotations

import re
import time

import pytest

from ssrem.tasks.stage import progress as module
from ssrem.tasks.stage.progress import lines_without_terminal, progress, staged


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.02)


def test_a_stage_is_silent_unless_lines_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    with staged("tables a") as work, progress("building", 10) as advance:
        advance(5)
        work.counts = {"turns": 3}
    assert capsys.readouterr() == ("", "")


def test_it_says_when_a_stage_starts_and_ends_and_what_it_published(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with lines_without_terminal(), staged("tables a{}") as work:  # {}: a name keeps what stands for the time
        with progress("building"):
            pass
        work.counts = {"turns": 3, "candidates": 12_000}
        work.started -= 125
    first, last = capsys.readouterr().err.splitlines()
    assert first == "ssrem: tables a{}: started"
    assert re.fullmatch(r"ssrem: tables a\{\}: done in 2 min 0[5-9] s \(turns 3, candidates 12,000\)", last)


@pytest.mark.usefixtures("quick")
def test_it_says_again_and_again_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    with lines_without_terminal(), staged("train a"):
        with progress("training a", 8) as advance:
            advance(2)
            time.sleep(0.2)
            advance(1, 4)
            time.sleep(0.2)
        with progress("publishing"):
            time.sleep(0.2)
    _, *between, _ = capsys.readouterr().err.splitlines()
    kinds = {re.sub(r"\d+\.\d s", "…", line) for line in between}
    kinds.discard("ssrem: train a: … so far")  # a line that falls between the two steps
    says = ("training a (25%)", "training a, part 2 (25%)", "publishing")
    assert kinds == {f"ssrem: train a: … so far, {what}" for what in says}


@pytest.mark.usefixtures("quick")
def test_nothing_follows_work_that_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="wrong"), lines_without_terminal(), staged("train a"):
        raise ValueError("wrong")
    time.sleep(0.1)
    assert capsys.readouterr().err == "ssrem: train a: started\n"


def test_work_does_not_wait_for_lines_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(line: str) -> None:
        raise BrokenPipeError(line)

    monkeypatch.setattr(module, "say", broken)
    with lines_without_terminal(), staged("tables a") as work:
        pass
    assert work.what == "tables a"


def test_a_terminal_has_bars_instead(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with lines_without_terminal(), staged("ingest a"):
        pass
    assert capsys.readouterr().err == ""
