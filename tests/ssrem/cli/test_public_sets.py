"""`ssrem ratings`: public sets, and annotated sets of other layouts as the command's options give them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from ssrem.annotated_sets.known import KnownSet
from ssrem.cli.commands import correlate, ratings, run
from ssrem.cli.main import main
from ssrem.tasks.training.settings import Margins
from ssrem.tasks.warehouse.home import Warehouse

CONTENT = b'[{"context": "a", "responses": [{"response": "b", "model": "m", "Overall": [1, 2]}]}]'


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, KnownSet]:
    """Two known sets: one at its authors', who are a folder here, and one that nobody has checked."""
    source = tmp_path / "authors.json"
    source.write_bytes(CONTENT)
    digest = hashlib.sha256(CONTENT).hexdigest()
    mine = KnownSet("mine", source.as_uri(), digest, len(CONTENT), "usr", 1, "CC BY 4.0", "Me: Mine. 2020.")
    other = KnownSet("other", "https://x.invalid/o.json", None, None, "usr", 1, "none stated", "You. 2020.")
    sets_by_name = {one.name: one for one in (mine, other)}
    monkeypatch.setattr(ratings, "known_sets", lambda: sets_by_name)
    return sets_by_name


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.usefixtures("sets")
def test_pull_shows_checksum_licence_and_citation(
    home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ratings", "pull", "mine", "--home", str(home.root)]) == 0
    shown = capsys.readouterr().out
    path = home.root / "annotated-sets" / "mine.json"
    assert path.read_bytes() == CONTENT
    for word in (
        f"mine: fetched, {path}",
        "CC BY 4.0",
        "Me: Mine. 2020.",
        hashlib.sha256(CONTENT).hexdigest(),
    ):
        assert word in shown
    assert shown.endswith("next: ssrem correlate mine\n")
    assert main(["ratings", "pull", "mine", "--home", str(home.root), "--json"]) == 0
    (again,) = json.loads(capsys.readouterr().out)
    assert (again["new"], again["file"], again["licence"]) == (False, str(path), "CC BY 4.0")


@pytest.mark.usefixtures("sets")
def test_pull_to_another_folder(home: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ratings", "pull", "mine", "--to", str(tmp_path / "x"), "--home", str(home.root)]) == 0
    assert (tmp_path / "x" / "mine.json").exists()
    assert not home.root.exists()
    assert "ssrem correlate FILE" in capsys.readouterr().out


@pytest.mark.usefixtures("sets")
def test_list_says_what_is_there(home: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    def listed() -> dict[str, Any]:
        assert main(["ratings", "list", "--home", str(home.root), "--json"]) == 0
        return {row["name"]: row for row in json.loads(capsys.readouterr().out)}

    assert {name: row["pulled"] for name, row in listed().items()} == {"mine": False, "other": False}
    main(["ratings", "pull", "mine", "--home", str(home.root)])
    capsys.readouterr()
    assert {name: row["pulled"] for name, row in listed().items()} == {"mine": True, "other": False}
    assert main(["ratings", "list", "--home", str(home.root)]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["mine", "1", "usr", "yes", "CC", "BY", "4.0"] in shown
    assert ["other", "1", "usr", "by", "hand", "none", "stated"] in shown


@pytest.mark.usefixtures("sets")
def test_pull_of_what_cannot_be(home: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    line = said(capsys, "ratings", "pull", "bogus", "--home", home.root)
    assert line == "ssrem: there is no set 'bogus'; the sets are mine, other"
    line = said(capsys, "ratings", "pull", "other", "--home", home.root)
    assert "no checksum is registered" in line


# Other layouts


@pytest.mark.parametrize(
    ("name", "content", "options", "named"),
    [
        ("t.csv", "a,b,c\nx,y,1\n", [], "no column is known as context or response or score"),
        (
            "t.csv",
            "a,b,c\nx,y,1\n",
            ["--map", "context=z"],
            "'z', which is not there; the columns are a, b, c",
        ),
        ("t.csv", "a,b,c\nx,y,1\n", ["--map", "speaker=a"], "there is no field 'speaker'"),
        ("t.json", CONTENT.decode(), ["--map", "score=Overall"], "--map does not apply to usr"),
        ("t.json", CONTENT.decode(), ["--layout", "fed"], "row 1: no annotations"),
        ("t.json", CONTENT.decode(), ["--layout", "bogus"], "there is no layout 'bogus'"),
        ("t.dat", "words\n", [], "of no known layout; the layouts are "),
    ],
)
def test_what_agree_cannot_read(
    made: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: str,
    options: list[str],
    named: str,
) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert named in said(capsys, "correlate", path, *options, "--home", made.home.root)


def test_labels_are_read_as_annotated_sets_are(
    made: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(CONTENT)
    line = said(
        capsys, "train", "ssrem", "--labels", path, "--criterion", "Natural", "--home", made.home.root
    )
    assert line.endswith("no criterion 'Natural'; name one of Overall")


def test_run_has_one_map_for_dump_and_annotated_sets(
    home: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump, table = tmp_path / "dump.csv", tmp_path / "table.csv"
    dump.write_text("c,s,t\n1,ann,hi\n")
    table.write_text("before,answer,stars\nhi,ho,4\n")
    fields = ["--map", "conversation=c", "speaker=s", "text=t"]

    def refusal(*pairs: str, files: tuple[object, ...] = ("--annotations", table)) -> str:
        return said(capsys, "run", dump, *files, *fields, *pairs, "--home", home.root)

    assert "'stars!', which is not there" in refusal("context=before", "response=answer", "score=stars!")
    assert "score=… is about annotated sets; give one with --annotations" in refusal("score=stars", files=())
    assert "there is no field 'answer'" in refusal("answer=answer")


# What reaches the flows


Called = dict[str, dict[str, Any]]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Called:
    """Flow to the arguments that a command called it with, instead of running it."""
    calls: Called = {}

    def flow(name: str) -> Callable[..., Any]:
        taken = signature(getattr(import_module(f"flows.{name}"), name))

        def record(*values: Any, **named: Any) -> Any:
            calls[name] = taken.bind(*values, **named).arguments
            return "report.html" if name == "pipeline" else {}

        return record

    monkeypatch.setattr(run, "flow", flow)
    monkeypatch.setattr(correlate, "flow", flow)
    return calls


def test_layout_and_mapping_reach_the_flow_correlate(
    made: Any, tmp_path: Path, called: Called, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("before,answer,r1,r2\nhi,ho,4,5\n")
    pairs = ["context=before", "response=answer", "score.overall=r1+r2", r"separator=\t"]
    home = str(made.home.root)
    arguments = ["correlate", str(table), "--layout", "csv", "--map", *pairs, "--replace", "--home", home]
    assert main(arguments) == 0
    assert called["correlate"]["annotated_sets"].model_dump() == {
        "files": [str(table)],
        "layout": "csv",
        "mapping": dict(pair.split("=") for pair in pairs),
        "replace": True,
    }
    assert capsys.readouterr().err == "ssrem: beside the untrained baselines cosine and length\n"


def test_run_divides_the_mapping(
    home: Warehouse, tmp_path: Path, called: Called, capsys: pytest.CaptureFixture[str]
) -> None:
    dump, table = tmp_path / "dump.csv", tmp_path / "table.csv"
    dump.write_text("c,s,t\n1,ann,hi\n")
    table.write_text("before,answer,stars\nhi,ho,4\n")
    fields = ["conversation=c", "speaker=s", "text=t", "context=before", "response=answer", "score=stars"]
    annotations = ["--annotations", str(table), "--layout", "csv", "--seed", "3", "--margin", "agreement=0.2"]
    assert main(["run", str(dump), *annotations, "--map", *fields, "--home", str(home.root)]) == 0
    assert "report: report.html\n" in capsys.readouterr().out
    settings = called["pipeline"]
    assert settings["source"] == str(dump)
    assert settings["dump"].mapping == {"conversation": "c", "speaker": "s", "text": "t"}
    assert settings["annotated_sets"].mapping == {"context": "before", "response": "answer", "score": "stars"}
    assert settings["annotated_sets"].layout == "csv"
    assert (settings["options"].seed, settings["options"].margins) == (3, Margins(0.01, 0.2))
