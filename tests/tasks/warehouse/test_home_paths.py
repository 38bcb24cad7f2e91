"""Paths of a home folder: one works, or is refused before anything is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ssrem.cli.main import main


def test_a_path_that_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.jsonl"
    dump.write_text('{"conversation_id": "c", "speaker": "p", "text": "hi"}\n')
    home = str(tmp_path / """ä b#c'd%41"e$f;g{h,i}""")
    assert main(["ingest", str(dump), "--home", home, "--speakers", "person"]) == 0
    capsys.readouterr()
    assert main(["sql", "SELECT text FROM utterances", "--home", home, "--csv"]) == 0
    assert capsys.readouterr() == ("text\nhi\n", "")


@pytest.mark.parametrize("verb", [["ingest", "chitchat"], ["status"], ["sql", "SELECT 1"]])
def test_a_path_that_is_refused(tmp_path: Path, verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a?b", "a*b", "a[b]", "a\\b", "a\nb", os.fsdecode(b"a\xff")):
        assert main([*verb, "--home", str(tmp_path / name)]) == 1
        said = capsys.readouterr().err
        assert said.startswith("ssrem: a home folder cannot lie at ")
        assert said.endswith("choose another --home\n") and said.count("\n") == 1
        assert list(tmp_path.iterdir()) == []
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert main([*verb, "--home", str(loop)]) == 1
    assert capsys.readouterr().err == f"ssrem: {loop} is not a folder; choose another --home\n"


def test_the_folder_of_an_unknown_user_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--home", "~nouser/x"]) == 1
    message = "~nouser/x: the home folder ~nouser is not known; write the path without ~nouser"
    assert capsys.readouterr().err == f"ssrem: {message}\n"
