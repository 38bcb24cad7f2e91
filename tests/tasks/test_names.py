"""Names of corpora and sets: lines of text, never paths; a bad one is one line, and nothing lands."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ssrem.errors import AnnotationError, DumpError
from ssrem.tasks.correlate import correlate
from ssrem.tasks.ingest import corpus_name, land
from ssrem.tasks.settings import DumpSettings
from ssrem.tasks.warehouse.home import Warehouse

BAD = {
    **dict.fromkeys(("../../x", "a\\b", ".."), "is a path"),
    **dict.fromkeys(("", "  "), "is empty"),
    " x": "begins or ends with a blank",
    **dict.fromkeys(("a\0b", "a\x1b[31mb", "a\ud800"), "cannot be printed"),
    "x" * 201: "more than 200",
}
RESERVED = dict.fromkeys(("tables", "labels"), "is one that ssrem uses itself")  # of corpora alone
GOOD = ["all", "O'Brien\"; DROP TABLE corpora -- $corpus %s {0} naïve 会話 😀@b"]


def test_a_name_that_is_none_is_one_line(home: Warehouse, write_dump: Callable[..., str]) -> None:
    dump = write_dump([{"conversation": "c", "speaker": "a", "text": "x"}])
    for name, why in (BAD | RESERVED).items():
        with pytest.raises(DumpError, match=r"^a corpus cannot be called .*--name$") as error:
            land(dump, str(home.root), DumpSettings(name=name))
        assert why in str(error.value) and str(error.value).isprintable()
        assert not home.root.exists()


def test_odd_names_are_kept_as_they_are(home: Warehouse, write_dump: Callable[..., str]) -> None:
    for number, name in enumerate(GOOD):
        dump = write_dump([{"conversation": f"c{number}", "speaker": "a", "text": "x"}])
        assert land(dump, str(home.root), DumpSettings(name=name)) == (name, True)
    names = home.query("SELECT corpus FROM utterances SEMI JOIN corpora USING (corpus)")
    assert sorted(names) == sorted((name,) for name in GOOD)
    assert {path.parent.parent for path in home.root.rglob("*.parquet")} == {home.lake}


def test_a_file_that_cannot_name_its_corpus(home: Warehouse, tmp_path: Path) -> None:
    row = json.dumps({"conversation": "c", "speaker": "a", "text": "x"})
    for file in (os.fsdecode(b"a\xffb.jsonl"), "x\ny.csv", " .jsonl"):
        (tmp_path / file).write_text(row + "\n")
        with pytest.raises(DumpError, match="--name"):
            land(str(tmp_path / file), str(home.root))
    with pytest.raises(DumpError, match="has no name; name the corpus with --name"):
        land("-", str(home.root))
    dump = tmp_path / os.fsdecode(b"a\xffb.jsonl")
    assert land(str(dump), str(home.root), DumpSettings(name="n", speakers="person")) == ("n", True)
    assert home.query("SELECT source FROM corpora") == [(f"{tmp_path}/a\\xffb.jsonl",)]


def test_a_file_names_its_corpus_without_the_suffix_of_its_format_and_a_folder_by_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = ("chat.log", "chat.jsonl.gz", "logs/#a.2024-01-05.log")
    assert [corpus_name([source]) for source in sources] == ["chat", "chat", "#a.2024-01-05"]
    (tmp_path / "talks" / "in").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "talks" / "in")
    assert [corpus_name([source]) for source in (".", "..", "../", "../../talks")] == ["in", *3 * ["talks"]]


def test_an_annotated_set_that_may_not_be_called_so(home: Warehouse, tmp_path: Path) -> None:
    rows = [{"context": "hi", "response": "ho", "annotations": {"overall": [1]}}]
    for name in ("_eval.json", ".json", " _eval.json", "a\nb_eval.json"):
        (tmp_path / name).write_text(json.dumps(rows))
        with pytest.raises(AnnotationError, match="rename the file") as error:
            correlate(str(tmp_path / name), [], str(home.root))
        assert str(error.value).isprintable()
        assert not home.root.exists()
