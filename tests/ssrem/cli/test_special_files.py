"""Pipes and folders where a command takes a file: refused at once, in one line, and left as they are."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from ssrem.cli.main import main
from support.stages import start_python

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

COMMANDS = """
ingest PIPE
correlate PIPE
score PIPE
train adem --labels PIPE
run dump.jsonl --annotations PIPE
evaluators import PIPE
ratings import PIPE --batch .
ratings import answers.json --batch PIPE
ratings collect batch --responses a=PIPE
forget ann --pseudonym-key PIPE
status --home PIPE
score responses.json --output PIPE
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Patch) -> Path:
    """The current folder, with a dump and responses in it; the home folder is new."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SSREM_HOME", str(tmp_path / "home"))
    row = {"conversation_id": "c", "speaker": "ann", "text": "hello"}
    (tmp_path / "dump.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "responses.json").write_text(json.dumps([{"context": ["hello"], "response": "hi"}]))
    return tmp_path


ANSWERS = """
import io, json, os, signal, sys
from contextlib import redirect_stderr
from ssrem.cli.main import main

os.chdir(sys.argv[1])
for line in sys.argv[2:]:
    signal.alarm(60)
    with redirect_stderr(io.StringIO()) as error:
        status = main(json.loads(line))
    print(json.dumps([status, error.getvalue()]), flush=True)
"""


def test_a_pipe_is_refused_at_once(folder: Path) -> None:
    """In a process of its own: a command that opens the pipe waits until the alarm ends the process."""
    os.mkfifo(folder / "pipe.tar")
    (folder / "key.json").symlink_to("pipe.tar")
    commands = [line.replace("PIPE", "pipe.tar").split() for line in COMMANDS.strip().splitlines()]
    with start_python(ANSWERS, folder, *map(json.dumps, commands)) as running:
        answers = map(json.loads, running.communicate()[0].splitlines())
    for command, (status, error) in zip(commands, answers, strict=True):
        assert status == 1, command
        assert error.startswith("ssrem: ") and error.count("\n") == 1, command
    assert stat.S_ISFIFO((folder / "pipe.tar").stat().st_mode)


def test_scores_are_not_computed_for_a_file_that_cannot_be_written(
    folder: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("ssrem.tasks.versions.created", lambda *_: pytest.fail("scored"))
    assert main(["score", "responses.json", "--output", "none/scores.tsv"]) == 1
    message = "cannot write none/scores.tsv: No such file or directory; choose another --output"
    assert capsys.readouterr().err == f"ssrem: {message}\n"


def test_too_little_memory_is_one_line(folder: Path, capsys: Capture, monkeypatch: Patch) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("ssrem.cli.main.run", exhausted)
    assert main(["status"]) == 1
    assert capsys.readouterr().err == "ssrem: not enough memory; give it more, or a smaller file\n"


def test_a_file_of_text_that_is_too_large_is_not_read(
    folder: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("ssrem.readers.table_rows.LARGEST_TEXT", 8 << 20)
    with (folder / "sparse.json").open("wb") as file:
        file.truncate(1 << 40)
    assert main(["score", "sparse.json"]) == 1
    assert "is one text or JSON value of more than 8 MB" in capsys.readouterr().err
