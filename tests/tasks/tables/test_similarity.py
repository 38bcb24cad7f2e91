"""Of which speakers the stage measures the similarity within their sets, and what it says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ssrem.encoders.words import WordAverage
from ssrem.errors import SsremError
from ssrem.settings import TableSettings
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.tables import build
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import COMMON, Made

FIGURES = "SELECT kind, mean, low, high, speakers, of_speakers, sets, pairs FROM set_similarity ORDER BY kind"


@pytest.fixture(autouse=True)
def no_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stage, "gate", lambda stage: None)


def built(home: Warehouse, **settings: Any) -> bool:
    return build("tiny", str(home.root), TableSettings(**settings))


def measured(home: Warehouse) -> dict[str, tuple[Any, ...]]:
    """The published figures by kind."""
    return {kind: tuple(figures) for kind, *figures in home.query(FIGURES)}


def test_a_sample_says_of_how_many_speakers_it_is_and_the_seed_decides_which(
    copy: Warehouse, made: Made
) -> None:
    found = []
    for settings in ({"similarity": 4}, {"similarity": 4, "seed": 1}, {"similarity": "all"}):
        assert built(copy, **settings)
        found.append(measured(copy))
    assert not built(copy, similarity="all")
    sampled, other, everyone = found
    assert {row[3:5] for row in sampled.values()} == {(4, 12)}
    assert other["SC"] != sampled["SC"], "another seed draws others"
    assert {row[3:5] for row in everyone.values()} == {(12, 12)}
    by_default = {row[3:5] for row in measured(made.home).values()}
    assert by_default == {(12, 12)}, "a corpus of fewer speakers than the default is measured whole"


def test_none_measures_nothing_and_loads_no_encoder(copy: Warehouse) -> None:
    assert built(copy, encoder="file:none.vec", similarity="none")
    assert copy.query("SELECT count(*) FROM set_similarity") == [(0,)]
    assert copy.query("SELECT count(*) > 0 FROM candidates") == [(True,)]
    assert not built(copy, encoder="file:none.vec", similarity="none")


def test_an_encoder_that_learns_inside_the_stage_says_so(
    copy: Warehouse, made: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def learned(spec: str, *, train_texts: list[str], seed: int) -> WordAverage:
        assert len(train_texts) > 300
        return WordAverage(spec, list(COMMON), np.eye(len(COMMON)))

    assert "word2vec" not in made.said.stderr, "the default encoder learns nothing"
    monkeypatch.setattr("ssrem.tasks.caches.load_encoder", learned)
    assert built(copy, encoder="word2vec")
    assert "ssrem: the encoder word2vec is trained first, on " in capsys.readouterr().err


@pytest.mark.parametrize("similarity", [0, "some", 1.5])
def test_another_choice_is_refused(similarity: Any) -> None:
    with pytest.raises(SsremError, match=r"^similarity: .* or input should be 'all' or 'none', not "):
        TableSettings(similarity=similarity)
