"""Negatives of a corpus as a gated, published table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ssrem.errors import EvaluatorError, GateError
from ssrem.negatives.base import Negative
from ssrem.negatives.speaker_sets import SpeakerSet
from ssrem.tasks.query.summaries import summary
from ssrem.tasks.speaker_tables.negatives import NegativeSettings, make_negatives
from ssrem.tasks.warehouse.home import Warehouse

CORPUS = "tiny"


def rows(home: Warehouse, query: str) -> list[Any]:
    with home.reader() as connection:
        return connection.execute(query).fetchall()


def test_negatives_land_once_for_each_generator(copy: Warehouse) -> None:
    settings = NegativeSettings("random-2+drop-golden", responses=40)
    assert make_negatives(CORPUS, str(copy.root), settings)
    assert not make_negatives(CORPUS, str(copy.root), settings), "the same again is there already"
    counts = rows(copy, "SELECT generator, k, count(*) FROM negatives GROUP BY ALL ORDER BY ALL")
    assert [(generator, k) for generator, k, _ in counts] == [
        ("drop-golden", 0),
        ("random-2", 0),
        ("random-2", 1),
    ]
    assert all(count > 30 for *_, count in counts)
    splits = rows(
        copy,
        "SELECT DISTINCT r.split FROM negatives AS n INNER JOIN responses AS r USING (corpus, response_id)",
    )
    assert splits == [("train",)]
    assert make_negatives(CORPUS, str(copy.root), NegativeSettings("sc", responses=40))
    assert len(rows(copy, "SELECT DISTINCT generator FROM negatives")) == 3, "the others stay"
    assert {row["generator"] for row in summary(copy, ["negatives"])["negatives"]} == {
        "sc",
        "random-2",
        "drop-golden",
    }


def test_copied_turns_are_published(copy: Warehouse) -> None:
    assert make_negatives(CORPUS, str(copy.root), NegativeSettings("copied+own+generic", responses=40))
    generators = {name for (name,) in rows(copy, "SELECT DISTINCT generator FROM negatives")}
    assert {"copied", "own"} <= generators


def test_the_seed_draws_the_responses(copy: Warehouse) -> None:
    def drawn(seed: int) -> set[int]:
        make_negatives(CORPUS, str(copy.root), NegativeSettings("random-1", responses=20, seed=seed))
        return {number for (number,) in rows(copy, "SELECT response_id FROM negatives")}

    assert drawn(0) != drawn(1)


def test_a_generator_that_hands_back_the_response_is_not_published(
    copy: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: SpeakerSet, candidates: Any, chosen: Any, *, seed: int) -> Iterator[list[Negative]]:
        text = candidates.texts[int(candidates.response[int(chosen[0])])]
        yield [Negative(int(chosen[0]), "random-1", 0, text, 1, 1)]

    monkeypatch.setattr(SpeakerSet, "generate", broken)
    before = copy.partitions()
    with pytest.raises(GateError, match="generated_are_not_the_response"):
        make_negatives(CORPUS, str(copy.root), NegativeSettings("random-1"))
    assert copy.partitions() == before


def test_a_generator_that_makes_nothing_is_not_published(
    copy: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SpeakerSet, "generate", lambda *_, **__: iter([[]]))
    with pytest.raises(GateError, match="negatives: expected at least one row"):
        make_negatives(CORPUS, str(copy.root), NegativeSettings("random-1"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"generator": "randm-1"}, "did you mean random"),
        ({"generator": "sc", "split": "dev"}, "no split 'dev'; one of train, valid, test"),
        ({"generator": "sc", "seed": -1}, "must not be negative"),
    ],
)
def test_what_cannot_be_made_is_told_at_once(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(EvaluatorError, match=said):
        NegativeSettings(**settings)
