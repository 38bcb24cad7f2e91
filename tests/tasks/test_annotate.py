"""A batch from published tables, out and back, through the command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ssrem.annotated_sets import read_set
from ssrem.annotation.batch import Batch
from ssrem.annotation.sheets import ANSWERS_FORMAT
from ssrem.cli.main import main
from support.paths import ROOT
from support.small_home import Made


def export(made: Made, folder: Path, *more: str) -> Batch:
    assert main(["ratings", "collect", str(folder), "--home", str(made.home.root), *more]) == 0
    return Batch.from_json((folder / "key.json").read_text(), "key.json")


def answered(batch: Batch, folder: Path, careless: str = "") -> list[str]:
    """A file of each rater, who pass the checks; the careless one always chooses the lowest score."""
    files, items = [], batch.by_id
    for number, (rater, sheet) in enumerate(batch.sheets.items()):
        answers = []
        for one in sheet:
            score = 1 + (len(items[one].response) + number // 2) % 5
            if (expected := items[one].expected) is not None:
                score = expected[0]
            answers.append({"item": one, "score": 1 if rater == careless else score})
        saved = {"format": ANSWERS_FORMAT, "batch": batch.id, "rater": rater, "answers": answers}
        (folder / f"{rater}.json").write_text(json.dumps(saved))
        files.append(str(folder / f"{rater}.json"))
    return files


def test_out_and_back(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    batch = export(made, folder, "--contexts", "8")
    assert {s for item in batch.items for s in item.systems} == {"ground-truth", "bm25"}
    assert (folder / "key.json").stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in (folder / "raters").iterdir()) == [
        "items.jsonl", "page.html", "rater-1.csv", "rater-2.csv", "rater-3.csv",
    ]  # fmt: skip
    turns = dict(made.home.query("SELECT turn_id, text FROM turns"))
    people = {p for (p,) in made.home.query("SELECT DISTINCT speaker FROM turns")}
    span = {at: more for at, *more in made.home.query("SELECT response_id, context, split FROM responses")}
    train = {turns[at] for at, (_, split) in span.items() if split == "train"}
    for item in batch.items:
        context, split = span[item.context.response_id]
        assert split == "test"
        assert item.context.texts == tuple(turns[at] for at in context)
        assert item.context.truth == turns[item.context.response_id]
        assert {seat for seat, _ in item.context.turns} | {item.context.responder} <= {"A", "B"}
        assert item.context.responder != item.context.turns[-1][0]  # who answers is not who spoke last
        if "bm25" in item.systems:
            assert item.response in train
    page = (folder / "raters" / "page.html").read_text()
    assert not [person for person in people if f'"{person}"' in page]

    answers = answered(batch, tmp_path, careless="rater-3")
    home = ["--home", str(made.home.root)]
    capsys.readouterr()
    assert main(["ratings", "import", *answers, "--batch", str(folder), "--kappa", "none", *home]) == 0
    said = capsys.readouterr().out
    assert "passed 2 of 4 attention checks" in said
    assert "2 kept of 3" in said
    rows = read_set(folder / "mine_eval.json").rows
    assert len(rows) == 16
    assert {len(row.ratings["overall"]) for row in rows} == {2}
    noted = json.loads((folder / "import.json").read_text())
    assert [one["rater"] for one in noted["dropped"]] == ["rater-3"]
    every = (folder / "ratings.csv").read_text().splitlines()
    assert len(every) == 1 + sum(map(len, batch.sheets.values()))  # nobody's answer is lost


def test_systems_that_answer_the_contexts_are_rated_on_them(made: Made, tmp_path: Path) -> None:
    first, again = (export(made, tmp_path / name, "--contexts", "5", "--seed", "3") for name in "ab")
    for path in (tmp_path / "a").rglob("*.*"):  # the same seed gives the same files
        assert path.read_bytes() == (tmp_path / "b" / path.relative_to(tmp_path / "a")).read_bytes()
    rows = [json.loads(line) for line in (tmp_path / "a" / "contexts.jsonl").read_text().splitlines()]
    own = tmp_path / "own.jsonl"
    own.write_text("\n".join(json.dumps({**row, "response": f"mine {n}"}) for n, row in enumerate(rows)))
    batch = export(made, tmp_path / "c", "--contexts", "5", "--seed", "3", "--responses", f"own={own}")
    drawn, before = (
        {item.context.response_id for item in one.items if not item.expected} for one in (batch, again)
    )
    assert drawn == before and first == again
    said = {item.context.texts: item.response for item in batch.items if item.systems == ("own",)}
    expected = {tuple(row["context"]): f"mine {n}" for n, row in enumerate(rows)}
    assert len(said) == 5
    assert all(expected[context] == response for context, response in said.items())


def test_what_cannot_be_drawn_is_said_in_one_line(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = ["ratings", "collect", str(tmp_path / "new"), "--home", str(made.home.root)]
    (mine := tmp_path / "mine.jsonl").write_text('{"context": ["a"], "response": "b"}')
    for arguments, says in (
        (["--contexts", "5000"], "ask for fewer with --contexts"),
        (["--corpus", "nope"], "no corpus 'nope' has landed"),
        (["--responses", "bm25=x.jsonl"], "x.jsonl does not exist"),
        (["--responses", f"Gold={mine}"], "--responses Gold=…: the batch has that system already"),
        (["--redundancy", "4"], "3 raters cannot give 4 ratings"),
    ):
        assert main([*new, *arguments]) in (1, 2)
        error = capsys.readouterr().err
        assert says in error and error.count("\n") == 1
        assert list(tmp_path.iterdir()) == [mine]


def test_what_a_killed_command_left_beside_the_batch_goes_and_it_loads_nothing_heavy(
    made: Made, tmp_path: Path
) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom ssrem.cli.main import main\n"
        "heavy = {'prefect', 'torch', 'great_expectations'}\n"
        "Path.rename = lambda *_: os.kill(os.getpid(), 3 if heavy & set(sys.modules) else 9)\n"
        f"main(['ratings', 'collect', {str(tmp_path / 'mine')!r}, '--home', {str(made.home.root)!r}])"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == -9
    assert [path.name for path in tmp_path.iterdir()] != []
    export(made, tmp_path / "mine", "--contexts", "4")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_no_folder_is_overwritten_and_wrong_answers_write_nothing(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, empty = tmp_path / "mine", tmp_path / "empty"
    batch = export(made, folder, "--contexts", "4")
    files = answered(batch, tmp_path)
    empty.mkdir()
    monkeypatch.chdir(empty)
    before = sorted(tmp_path.rglob("*"))
    for wrong, why in (
        (["collect", str(folder)], "is there already"),
        (["collect", "."], "ssrem: . is the current folder; name a new folder for the batch\n"),
        (["collect", str(empty)], "is the current folder"),
        (["import", *files, files[0], "--batch", str(folder)], "rater-1"),
        (["import", *files, "--batch", str(tmp_path)], "key.json cannot be read"),
    ):
        assert main(["ratings", *wrong, "--home", str(made.home.root)]) == 1
        assert why in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before
