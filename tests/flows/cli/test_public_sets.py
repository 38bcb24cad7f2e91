"""`ssrem annotations`, and annotated sets of other layouts as the command's options give them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from flows.cli.main import main
from flows.orchestration import settings
from ssrem.annotated_sets import known
from ssrem.annotated_sets.known import KnownSet
from tasks.warehouse.home import Warehouse

CONTENT = b'[{"context": "a", "responses": [{"response": "b", "model": "m", "Overall": [1, 2]}]}]'


@pytest.fixture(autouse=True)
def no_prefect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "prepare", lambda root: pytest.fail("Prefect was to start"))


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, KnownSet]:
    """Two known sets: one at its authors', who are a folder here, and one that nobody has checked."""
    source = tmp_path / "authors.json"
    source.write_bytes(CONTENT)
    digest = hashlib.sha256(CONTENT).hexdigest()
    mine = KnownSet("mine", source.as_uri(), digest, len(CONTENT), "usr", 1, "CC BY 4.0", "Me: Mine. 2020.")
    other = KnownSet("other", "https://x.invalid/o.json", None, None, "usr", 1, "none stated", "You. 2020.")
    found = {one.name: one for one in (mine, other)}
    monkeypatch.setattr(known, "known_sets", lambda: found)
    return found


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(a) for a in arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.usefixtures("sets")
def test_pull_shows_checksum_licence_and_citation(
    home: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["annotations", "pull", "mine", "--home", str(home.root)]) == 0
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
    assert shown.endswith("next: ssrem agree mine\n")
    assert main(["annotations", "pull", "mine", "--home", str(home.root), "--json"]) == 0
    (again,) = json.loads(capsys.readouterr().out)
    assert (again["new"], again["file"], again["licence"]) == (False, str(path), "CC BY 4.0")


@pytest.mark.usefixtures("sets")
def test_pull_to_another_folder(home: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["annotations", "pull", "mine", "--to", str(tmp_path / "x"), "--home", str(home.root)]) == 0
    assert (tmp_path / "x" / "mine.json").exists()
    assert not home.root.exists()
    assert "ssrem agree FILE" in capsys.readouterr().out


@pytest.mark.usefixtures("sets")
def test_list_says_what_is_there(home: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    def listed() -> dict[str, Any]:
        assert main(["annotations", "list", "--home", str(home.root), "--json"]) == 0
        return {row["name"]: row for row in json.loads(capsys.readouterr().out)}

    assert {name: row["pulled"] for name, row in listed().items()} == {"mine": False, "other": False}
    main(["annotations", "pull", "mine", "--home", str(home.root)])
    capsys.readouterr()
    assert {name: row["pulled"] for name, row in listed().items()} == {"mine": True, "other": False}
    assert main(["annotations", "list", "--home", str(home.root)]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["mine", "1", "usr", "yes", "CC", "BY", "4.0"] in shown
    assert ["other", "1", "usr", "by", "hand", "none", "stated"] in shown


@pytest.mark.usefixtures("sets")
def test_pull_of_what_cannot_be(home: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    told = said(capsys, "annotations", "pull", "bogus", "--home", home.root)
    assert told == "ssrem: there is no set 'bogus'; the sets are mine, other"
    told = said(capsys, "annotations", "pull", "other", "--home", home.root)
    assert "no checksum is registered" in told


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
        ("t.dat", "words\n", [], "of no known layout; the layouts are eval, usr, fed"),
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
    assert named in said(capsys, "agree", path, *options, "--home", made.home.root)


def test_labels_are_read_as_annotated_sets_are(
    made: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(CONTENT)
    told = said(
        capsys, "train", "ssrem", "--labels", path, "--criterion", "Natural", "--home", made.home.root
    )
    assert told.endswith("no criterion 'Natural'; name one of Overall")


def test_run_has_one_map_for_dump_and_annotated_sets(
    home: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump, table = tmp_path / "dump.csv", tmp_path / "table.csv"
    dump.write_text("c,s,t\n1,ann,hi\n")
    table.write_text("before,answer,stars\nhi,ho,4\n")
    fields = ["--map", "conversation=c", "speaker=s", "text=t"]

    def told(*pairs: str, files: tuple[object, ...] = ("--annotations", table)) -> str:
        return said(capsys, "run", dump, *files, *fields, *pairs, "--home", home.root)

    assert "'stars!', which is not there" in told("context=before", "response=answer", "score=stars!")
    assert "score=… is about annotated sets; give one with --annotations" in told("score=stars", files=())
    assert "there is no field 'answer'" in told("answer=answer")


# What reaches the flows


def test_layout_and_mapping_reach_the_flow_agree(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import flows.correlate

    given: dict[str, Any] = {}
    monkeypatch.setattr(settings, "prepare", lambda root: None)
    monkeypatch.setattr(flows.correlate, "agree", lambda *_, **options: given.update(options) or {})
    table = tmp_path / "table.csv"
    table.write_text("before,answer,r1,r2\nhi,ho,4,5\n")
    pairs = ["context=before", "response=answer", "score.overall=r1+r2", r"separator=\t"]
    arguments = ["agree", str(table), "--layout", "csv", "--map", *pairs, "--home", str(made.home.root)]
    assert main(arguments) == 0
    assert given["layout"] == "csv"
    assert given["mapping"] == dict(pair.split("=") for pair in pairs)
    assert capsys.readouterr().err == ""


def test_the_pipeline_divides_the_mapping(
    home: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib import import_module

    module = import_module("flows.pipeline")
    given: dict[str, dict[str, Any]] = {}

    def record(name: str, answer: Any) -> None:
        def called(*_: Any, **options: Any) -> Any:
            given[name] = options
            return answer

        monkeypatch.setattr(module, name, called)

    for name, answer in (("ingest", ("c", True)), ("tables", {}), ("train", {}), ("agree", {})):
        record(name, answer)
    record("measure_all", None)
    record("report", "report.html")
    table = tmp_path / "table.csv"
    table.write_text("before,answer,stars\nhi,ho,4\n")
    mapping = {"speaker": "s", "text": "t", "context": "before", "response": "answer", "score": "stars"}
    done = module.pipeline.fn("dump.csv", str(home.root), [str(table)], mapping=mapping, layout="csv")
    assert done == "report.html"
    assert given["ingest"]["mapping"] == {"speaker": "s", "text": "t"}
    assert given["agree"]["mapping"] == {"context": "before", "response": "answer", "score": "stars"}
    assert given["agree"]["layout"] == "csv"
