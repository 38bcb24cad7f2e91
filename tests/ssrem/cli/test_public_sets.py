"""`ssrem ratings`: public sets, and annotated sets of other layouts as the command's options give them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from ssrem.annotated_sets.known import KnownSet
from ssrem.cli.main import main
from ssrem.tasks.annotated import annotated_file
from ssrem.tasks.warehouse.home import Warehouse

Capture = pytest.CaptureFixture[str]

CONTENT = b'[{"context": "a", "responses": [{"response": "b", "model": "m", "Overall": [1, 2]}]}]'
DIGEST = hashlib.sha256(CONTENT).hexdigest()
TABLE = b"en_ctx,en_res,ratings\nHi!,Hello,3\nHi!,Ho ho,1\n"
MAPPING = {"context": "en_ctx", "response": "en_res", "score": "ratings"}


@pytest.fixture(autouse=True)
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two known sets at their authors', who are a folder here, and one that nobody has checked."""
    source, table = tmp_path / "authors.json", tmp_path / "authors.csv"
    source.write_bytes(CONTENT)
    table.write_bytes(TABLE)
    digest = hashlib.sha256(TABLE).hexdigest()
    known = (
        KnownSet("mine", source.as_uri(), DIGEST, len(CONTENT), "usr", 1, "CC BY 4.0", "Me: Mine. 2020."),
        KnownSet("other", "https://x.invalid/o.json", None, None, "usr", 1, "none stated", "You. 2020."),
        KnownSet("table", table.as_uri(), digest, len(TABLE), "csv", 2, "none", "Me.", MAPPING),
    )
    for module in ("annotated_sets.known", "tasks.annotated"):
        monkeypatch.setattr(f"ssrem.{module}.known_sets", lambda: {one.name: one for one in known})


def said(capsys: Capture, *arguments: object, status: int = 1) -> str:
    assert main([str(a) for a in arguments]) == status
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_pull_shows_checksum_licence_and_citation(home: Warehouse, tmp_path: Path, capsys: Capture) -> None:
    pull = ["ratings", "pull", "mine", "--home", str(home.root)]
    assert main([*pull, "--to", str(tmp_path / "x")]) == 0
    assert (tmp_path / "x" / "mine.json").exists() and not home.root.exists()
    assert "ssrem correlate FILE" in capsys.readouterr().out
    assert main(pull) == 0
    shown = capsys.readouterr().out
    path = home.root / "annotated-sets" / "mine.json"
    assert path.read_bytes() == CONTENT
    for word in (f"mine: fetched, {path}", "CC BY 4.0", "Me: Mine. 2020.", DIGEST):
        assert word in shown
    assert shown.endswith(f"next: ssrem correlate mine --home {home.root}\n")
    assert main([*pull, "--json"]) == 0
    (again,) = json.loads(capsys.readouterr().out)
    assert (again["new"], again["file"], again["licence"]) == (False, str(path), "CC BY 4.0")


def test_a_pulled_table_brings_its_mapping(home: Warehouse, capsys: Capture) -> None:
    assert main(["ratings", "pull", "table", "--home", str(home.root)]) == 0
    read = annotated_file(home, "table").read
    assert [row.response for row in read.rows] == ["Hello", "Ho ho"]
    assert "score from 'ratings'" in read.summary


def test_list_says_what_is_there(home: Warehouse, capsys: Capture) -> None:
    for pulled in (False, True):
        assert main(["ratings", "list", "--home", str(home.root), "--json"]) == 0
        there = {row["name"]: row["pulled"] for row in json.loads(capsys.readouterr().out)}
        assert there == {"mine": pulled, "other": False, "table": False}
        main(["ratings", "pull", "mine", "--home", str(home.root)])
        capsys.readouterr()
    assert main(["ratings", "list", "--home", str(home.root)]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["mine", "1", "usr", "yes", "CC", "BY", "4.0"] in shown
    assert ["other", "1", "usr", "by", "hand", "none", "stated"] in shown


def test_run_has_one_map_for_dump_and_annotated_sets(
    home: Warehouse, tmp_path: Path, capsys: Capture
) -> None:
    dump, table = tmp_path / "dump.csv", tmp_path / "table.csv"
    dump.write_text("c,s,t\n1,ann,hi\n")
    table.write_text("before,answer,stars\nhi,ho,4\n")
    fields = ["--map", "conversation=c", "speaker=s", "text=t"]

    def refusal(*pairs: str, status: int = 1) -> str:
        files = ("--annotations", table) if status == 1 else ()
        return said(capsys, "run", dump, *files, *fields, *pairs, "--home", home.root, status=status)

    assert "'stars!', which is not there" in refusal("context=before", "response=answer", "score=stars!")
    assert "score=… is about annotated sets; give one with --annotations" in refusal("score=stars", status=2)
    assert "there is no field 'answer'" in refusal("answer=answer")
