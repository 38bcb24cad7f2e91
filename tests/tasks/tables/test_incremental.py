"""A second corpus: only it is read, the first one's files stay, and the tables are those of a rebuild from scratch."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ssrem.samples import Candidates
from ssrem.schemas import LANDED, TABLES
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.ingest import land
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.tables import build
from ssrem.tasks.warehouse.catalog import PartitionKey
from ssrem.tasks.warehouse.home import Warehouse

SPEAKER_TABLES = ("turns", "responses", "sc", "sp", "ss", "rand", "candidates", "set_similarity")
NOT_CONTENT = {"corpora": ("landed_at", "source")}


def dump(folder: Path, name: str, people: str) -> Path:
    """Conversations among people of whom some speak in the other dump, too, and a row that cannot land."""
    draw = random.Random(name)
    path = folder / f"{name}.jsonl"
    rows: list[dict[str, Any]] = [{"conversation_id": "broken", "speaker": "a"}]
    words = "we went to see the new film and it was good".split()  # noqa: SIM905
    for number in range(12):
        pair = draw.sample(people, 2)
        for turn in range(8):
            text = " ".join(draw.choices(words, k=5))
            rows.append({"conversation_id": f"c{number}", "speaker": pair[turn % 2], "text": text})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def add(home: Warehouse, path: Path) -> None:
    corpus, _ = land(str(path), str(home.root))
    build(corpus, str(home.root))


def content(home: Warehouse) -> dict[str, Any]:
    """Every table that landing and building make, but for when and from where a dump landed."""
    tables = {}
    with home.reader() as reader:
        for table in (*LANDED, *SPEAKER_TABLES):
            left_out = NOT_CONTENT.get(table, ())
            columns = ", ".join(f'"{c}"' for c in TABLES[table].column_names if c not in left_out)
            tables[table] = reader.execute(f"SELECT {columns} FROM {table} ORDER BY ALL").fetchall()
    return tables


def files(home: Warehouse, corpus: str) -> dict[str, bytes]:
    return {
        p.path: (home.root / p.path).read_bytes()
        for p in home.partitions()
        if p.key == PartitionKey(corpus=corpus)
    }


def test_a_second_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stage, "gate", lambda stage: None)
    first, second = dump(tmp_path, "first", "abcdef"), dump(tmp_path, "second", "defghi")
    grown, rebuilt = Warehouse.at(tmp_path / "grown"), Warehouse.at(tmp_path / "rebuilt")
    add(grown, first)
    alone, before = content(grown), files(grown, "first")
    moved = first.rename(tmp_path / "first.jsonl.away")
    add(grown, second)  # the first dump is not there to be read again
    assert files(grown, "first") == before
    moved.rename(first)
    for path in (second, first):
        add(rebuilt, path)
    both_ways = content(grown)
    assert both_ways == content(rebuilt)
    for table, rows in both_ways.items():
        # Splits and draws of old responses stay.
        assert rows and set(map(repr, alone[table])) <= set(map(repr, rows)), table
    with grown.reader() as reader:  # what is learned from both is what is learned from each
        both = load_candidates(reader, ["first", "second"])
        each = [load_candidates(reader, [corpus]) for corpus in ("first", "second")]
        with_empty = load_candidates(reader, ["nothing", "first"])
    assert list(said(both)) == [row for part in each for row in said(part)]
    assert list(said(with_empty)) == list(said(each[0])), "a corpus without responses adds nothing"


def said(candidates: Candidates) -> Iterator[tuple[list[str], str, list[str | None], int]]:
    """Of each response: the turns before it, what it says, what each negative says, and its split."""
    texts = candidates.texts
    for row, response in enumerate(candidates.response):
        context = texts[candidates.context_start[row] : candidates.context_stop[row]]
        drawn = [turn for kind in sorted(candidates.negatives) for turn in candidates.negatives[kind][row]]
        negatives = [texts[turn] if turn >= 0 else None for turn in drawn]
        yield context, texts[response], negatives, int(candidates.split[row])
