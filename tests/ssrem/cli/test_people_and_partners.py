"""What status shows of whom turns address."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ssrem.cli.main import main
from ssrem.tasks.warehouse.home import Warehouse


def test_status_says_how_many_addressees_are_stated_or_guessed(
    write_dump: Callable[..., str], home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    """In each conversation ann answers bob's opening, cat names ann, dan names nobody."""
    said = [("bob", {}), ("ann", {"reply_to": "{}-0"}), ("cat", {"addressee": "ann"}), ("dan", {})]
    rows = [
        {"conversation": f"c{c}", "id": f"{c}-{n}", "speaker": who, "text": f"Number {n} of {c}."}
        | {field: whom.format(c) for field, whom in to.items()}
        for c in range(3)
        for n, (who, to) in enumerate(said)
    ]
    at = ["--home", str(home.root)]
    assert main(["ingest", write_dump(rows), "--name", "talk", *at]) == 0
    landed = capsys.readouterr().out
    assert "turns" not in next(line for line in landed.splitlines() if line.startswith("corpus ")).split()
    assert main(["tables", "--similarity", "none", *at]) == 0
    capsys.readouterr()
    assert main(["status", *at]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["talk", "25.0%", "25.0%", "50.0%", "12"] in shown
    assert "turns" in next(words for words in shown if words[:1] == ["corpus"])
    assert main(["status", "--json", *at]) == 0
    (row,) = json.loads(capsys.readouterr().out)["addressees"]
    assert row == {"corpus": "talk", "stated": 0.25, "reply": 0.25, "previous_speaker": 0.5, "turns": 12}
