"""Who is a person and who a partner, from the command line: `--not-people`, `--addressees`, and what status shows."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ssrem.cli.main import main
from ssrem.tasks.warehouse.home import Warehouse


def test_names_and_addressees_from_the_command_line(
    write_dump: Callable[..., str], home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    """In each of six conversations ann answers bob's opening, cat names ann, dan names nobody, a bot says goodbye."""
    said = [
        ("bob", "Who is there?", {}),
        ("ann", "I am.", {"reply_to": "{}-0"}),
        ("cat", "So am I.", {"addressee": "ann"}),
        ("dan", "And I.", {}),
        ("bye", "Goodbye.", {}),
    ]
    rows = [
        {"conversation": f"c{c}", "id": f"{c}-{n}", "speaker": who, "text": f"{text} {c}"}
        | {field: whom.format(c) for field, whom in to.items()}
        for c in range(6)
        for n, (who, text, to) in enumerate(said)
    ]
    at = ["--home", str(home.root)]
    dump = write_dump(rows)
    assert main(["ingest", dump, "--name", "talk", "--not-people", "Bye", "--speakers", "person", *at]) == 0
    landed = capsys.readouterr()
    assert "their turns are context alone: 'bye' (6 messages)" in landed.err
    assert "turns" not in next(line for line in landed.out.splitlines() if line.startswith("corpus ")).split()
    assert main(["tables", "--addressees", "stated", "--similarity", "none", *at]) == 0
    speakers = home.query("SELECT DISTINCT speaker FROM sp JOIN turns USING (turn_id) ORDER BY 1")
    assert speakers == [("ann",), ("cat",)]
    capsys.readouterr()
    assert main(["status", *at]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["talk", "20.0%", "20.0%", "60.0%", "30"] in shown
    assert "turns" in next(words for words in shown if words[:1] == ["corpus"])
    assert main(["status", "--json", *at]) == 0
    (row,) = json.loads(capsys.readouterr().out)["addressees"]
    assert row == {"corpus": "talk", "stated": 0.2, "reply": 0.2, "previous_speaker": 0.6, "turns": 30}
