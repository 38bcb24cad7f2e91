"""Of which speakers the stage measures the similarity within their sets, and what it says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ssrem.errors import SsremError
from ssrem.settings import TableSettings
from ssrem.tasks.ingest import land
from ssrem.tasks.tables import build
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import copied, write_conversations

COLUMNS = "kind, mean, low, high, speakers, of_speakers, sets, pairs"


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A home folder with a landed corpus of 12 people."""
    folder = tmp_path_factory.mktemp("landed")
    write_conversations(folder / "tiny.jsonl", conversations=24)
    land(str(folder / "tiny.jsonl"), str(folder / "home"))
    return Warehouse.at(folder / "home")


@pytest.fixture
def home(landed: Warehouse, tmp_path: Path) -> str:
    return str(copied(landed, tmp_path / "home").root)


def measured(home: str, **settings: Any) -> dict[str, tuple[Any, ...]]:
    """The published rows by kind, of tables built with these settings."""
    assert build("tiny", home, TableSettings(encoder="glove-6b-50d", **settings))
    rows = Warehouse.at(home).query(f"SELECT {COLUMNS} FROM set_similarity ORDER BY kind")
    return {kind: tuple(figures) for kind, *figures in rows}


def test_a_sample_says_of_how_many_speakers_it_is_and_the_seed_decides_which(home: str) -> None:
    sampled = measured(home, similarity=4)
    assert {row[3:5] for row in sampled.values()} == {(4, 12)}
    assert not build("tiny", home, TableSettings(encoder="glove-6b-50d", similarity=4))
    everyone = measured(home, similarity="all")
    assert {row[3:5] for row in everyone.values()} == {(12, 12)}
    assert measured(home, similarity=4) == sampled
    assert measured(home, similarity=4, seed=1)["SC"] != sampled["SC"], "another seed draws others"
    assert measured(home) == everyone, "a corpus of fewer speakers than the default is measured whole"


def test_none_measures_nothing_and_loads_no_encoder(home: str) -> None:
    assert build("tiny", home, TableSettings(encoder="file:none.vec", similarity="none"))
    assert Warehouse.at(home).query("SELECT count(*) FROM set_similarity") == [(0,)]
    assert Warehouse.at(home).query("SELECT count(*) > 0 FROM candidates") == [(True,)]
    assert not build("tiny", home, TableSettings(encoder="file:none.vec", similarity="none"))


def test_an_encoder_that_learns_inside_the_stage_says_so(
    home: str, capsys: pytest.CaptureFixture[str]
) -> None:
    build("tiny", home)
    assert "word2vec" not in capsys.readouterr().err, "the default encoder learns nothing"
    build("tiny", home, TableSettings(encoder="word2vec"))
    assert "ssrem: the encoder word2vec is trained first, on " in capsys.readouterr().err


@pytest.mark.parametrize("similarity", [0, -1, "some", 1.5])
def test_another_choice_is_refused(similarity: Any) -> None:
    with pytest.raises(SsremError, match=r"^similarity: .* or input should be 'all' or 'none', not "):
        TableSettings(similarity=similarity)
