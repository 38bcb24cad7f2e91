"""Who is a person and who a partner, from the command line: `--not-people`, `--addressees`, and what status shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ssrem.cli.main import main
from ssrem.errors import SsremError
from ssrem.flows.orchestration.options import PipelineOptions, TableOptions
from ssrem.tables.speaker_sets import TableSettings
from ssrem.tasks.warehouse.home import Warehouse
from support.stages import query


def dump(folder: Path) -> str:
    """Conversations in which ann answers bob's opening, cat names ann, dan names nobody, and a bot says goodbye."""
    path = folder / "talk.jsonl"
    lines: list[dict[str, Any]] = []
    for n in range(6):
        said: list[dict[str, Any]] = [
            {"id": f"{n}-0", "speaker": "bob", "text": f"Who is there, {n}?"},
            {"id": f"{n}-1", "speaker": "ann", "text": f"I am, {n}.", "reply_to": f"{n}-0"},
            {"id": f"{n}-2", "speaker": "cat", "text": f"So am I, {n}.", "addressee": "ann"},
            {"id": f"{n}-3", "speaker": "dan", "text": f"And I, {n}."},
            {"id": f"{n}-4", "speaker": "bye", "text": "Goodbye."},
        ]
        lines += ({"conversation": f"c{n}", **row} for row in said)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def test_names_and_addressees_from_the_command_line(
    tmp_path: Path, home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ["--home", str(home.root)]
    assert main(["ingest", dump(tmp_path), "--not-people", "Bye", "--speakers", "person", *at]) == 0
    assert (
        "not counted as people, so their turns are context alone: 'bye' (6 messages)"
        in capsys.readouterr().err
    )
    counts = []
    for wanted in ("stated", "stated", "all"):
        build = ["tables", "--addressees", wanted, "--encoder", "glove-6b-50d"]
        assert main([*build, *at]) == 0
        counts.append("talk: there already" in capsys.readouterr().out)
        speakers = query(home, "SELECT DISTINCT speaker FROM sp JOIN turns USING (turn_id) ORDER BY 1")
        stated = [("ann",), ("cat",)]
        assert speakers == (stated if wanted == "stated" else [*stated[:1], ("bob",), *stated[1:], ("dan",)])
    assert counts == [False, True, False]
    assert main(["status", *at]) == 0
    out = capsys.readouterr().out.splitlines()
    shares = out[next(n for n, line in enumerate(out) if line.startswith("addressees:")) + 1 :]
    assert shares[0].split() == ["corpus", "stated", "reply", "previous_speaker", "turns"]
    assert shares[2].split() == ["talk", "20.0%", "20.0%", "60.0%", "30"]
    assert main(["status", "--json", *at]) == 0
    (row,) = json.loads(capsys.readouterr().out)["addressees"]
    assert row == {"corpus": "talk", "stated": 0.2, "reply": 0.2, "previous_speaker": 0.6, "turns": 30}


def test_addressees_that_are_neither_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["tables", "--addressees", "guessed"])
    assert "choose from" in capsys.readouterr().err
    with pytest.raises(ValidationError):
        TableOptions.model_validate({"addressees": "guessed"})
    assert PipelineOptions.model_validate({"addressees": "stated"}).addressees == "stated"
    with pytest.raises(SsremError, match="addressees 'guessed': expected one of all, stated"):
        TableSettings(addressees="guessed")
