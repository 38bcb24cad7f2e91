"""Negatives of a corpus as a gated, published table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ssrem.errors import GateError
from ssrem.negatives.base import BATCH, Case, Negative
from ssrem.negatives.turns import DropGolden, SpeakerSet
from ssrem.schemas import LANDED
from ssrem.tasks.ingest import land
from ssrem.tasks.query import summary
from ssrem.tasks.settings import DumpSettings, NegativeSettings
from ssrem.tasks.tables import make_negatives
from ssrem.tasks.warehouse.home import Warehouse

CORPUS = "tiny"


def test_negatives_land_once_for_each_generator(copy: Warehouse) -> None:
    home, generator, settings = str(copy.root), "random-2+drop-golden", NegativeSettings(responses=40)
    assert make_negatives(CORPUS, home, generator, settings)
    assert not make_negatives(CORPUS, home, generator, settings), "the same again is there already"
    counts = copy.query("SELECT generator, k, count(*) FROM negatives GROUP BY ALL ORDER BY ALL")
    assert [row[:2] for row in counts] == [("drop-golden", 0), ("random-2", 0), ("random-2", 1)]
    assert all(count > 30 for *_, count in counts)
    query = "SELECT DISTINCT r.split FROM negatives INNER JOIN responses AS r USING (corpus, response_id)"
    assert copy.query(query) == [("train",)]
    assert make_negatives(CORPUS, home, "copied+own+generic", settings), "copied turns are published"
    kinds = {row["generator"] for row in summary(copy, ["negatives"])["negatives"]}
    assert kinds - {"generic"} == {"copied", "own", "random-2", "drop-golden"}, "the others stay"
    drawn = "SELECT DISTINCT response_id FROM negatives WHERE generator = 'random-2' ORDER BY ALL"
    before = copy.query(drawn)
    assert make_negatives(CORPUS, home, generator, NegativeSettings(responses=40, seed=1))
    assert copy.query(drawn) != before, "another seed draws others"


def test_what_a_killed_run_has_made_with_a_model_is_not_made_again(
    copy: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is left out: drop-golden stands for a generator that is as slow as one with a model."""
    made: list[int] = []

    class Slow(DropGolden):
        def negatives(self, case: Case, seed: int) -> Iterable[Negative]:
            if len(made) == BATCH + 3:
                raise KeyboardInterrupt
            made.append(case.row)
            return super().negatives(case, seed)

    monkeypatch.setattr("ssrem.tasks.tables.needs_model", lambda spec: True)
    monkeypatch.setattr("ssrem.tasks.tables.load_generator", lambda spec, model: Slow())
    settings = NegativeSettings(responses=40, model="folder")
    with pytest.raises(KeyboardInterrupt):
        make_negatives(CORPUS, str(copy.root), "drop-golden", settings)
    assert not copy.query("FROM negatives")
    made.clear()
    assert make_negatives(CORPUS, str(copy.root), "drop-golden", settings)
    assert len(made) == 40 - BATCH
    assert not list((copy.root / "checkpoints").glob("*"))
    resumed = copy.query("FROM negatives ORDER BY ALL")
    monkeypatch.undo()
    make_negatives(CORPUS, str(copy.root), "drop-golden", NegativeSettings(responses=40))
    assert copy.query("FROM negatives ORDER BY ALL") == resumed


def test_other_turns_under_the_name_leave_nothing_of_those_before(copy: Warehouse, tmp_path: Path) -> None:
    """Scores, identification and negatives of the corpus go with its tables."""
    home = str(copy.root)
    assert make_negatives(CORPUS, home, "random-2", NegativeSettings(responses=40))
    tables = {p.table for p in copy.partitions() if p.key.corpus == CORPUS}
    assert {"negatives", "candidates"} < tables
    rows = [{"conversation": f"c{n // 6}", "speaker": "abc"[n % 3], "text": f"other {n}"} for n in range(60)]
    (tmp_path / "dump.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    land(str(tmp_path / "dump.jsonl"), home, DumpSettings(name=CORPUS, replace=True, speakers="person"))
    assert {p.table for p in copy.partitions() if p.key.corpus == CORPUS} == set(LANDED)


def test_a_generator_that_hands_back_the_response_or_makes_nothing_is_not_published(
    copy: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: SpeakerSet, candidates: Any, chosen: Any, **_: Any) -> Iterator[list[Negative]]:
        text = candidates.texts[int(candidates.response[int(chosen[0])])]
        yield [Negative(int(chosen[0]), "random-1", 0, text, 1, 1)]

    before = copy.partitions()
    for generate, says in (
        (broken, "generated_are_not_the_response"),
        (lambda *_, **__: iter([[]]), "negatives: expected at least one row"),
    ):
        monkeypatch.setattr(SpeakerSet, "generate", generate)
        with pytest.raises(GateError, match=says):
            make_negatives(CORPUS, str(copy.root), "random-1")
        assert copy.partitions() == before
