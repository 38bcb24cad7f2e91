"""A home folder for queries, whose every text is hostile."""

from __future__ import annotations

import json

import pytest

from ssrem.tasks.ingest import land
from ssrem.tasks.settings import DumpSettings
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.warehouse.home import Warehouse

EVIL = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\x1b]0;title\x07\x1b[31mred\x1b[2J",
    "'; DROP TABLE corpora; --",
    "{{ 7*7 }} {% raw %} ${x} %s %n {0.__class__}",
    '=HYPERLINK("http://x") [bold]b[/bold] :smile: \u202e\u0000',
]
CORPUS = "<script>alert(1)<img src=x onerror=alert(2)>{{7*7}}'\""


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A home folder whose every text is hostile."""
    folder = tmp_path_factory.mktemp("sandbox")
    rows = [
        {"conversation": talk, "speaker": EVIL[n + at - 6], "text": text, "id": f"{n}{text}", "note": text}
        for n, talk in enumerate(EVIL)
        for at, text in enumerate(EVIL)
    ]
    (folder / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stage, "gate", lambda stage: stage.create("check_results"))
        land(str(folder / "dump.jsonl"), str(folder / "home"), DumpSettings(name=CORPUS, speakers="person"))
    return Warehouse.at(folder / "home")
