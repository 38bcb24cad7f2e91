"""Votes on pairs of responses: the share of pairs that an evaluator orders as people do, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ssrem.cli.main import main
from ssrem.tasks.warehouse.home import Warehouse

LONG, SHORT = "It leaves from the old harbour", "From there"


def pair(number: int, one: str, other: str, winner: str, judge: str = "ann") -> dict[str, object]:
    said = {"a": one, "b": other}
    conversations = {
        f"conversation_{side}": [
            {"role": "user", "content": f"Where from, on day {number % 5}?"},
            {"role": "assistant", "content": text},
        ]
        for side, text in said.items()
    }
    models = {"model_a": f"m{number % 2}", "model_b": f"m{number % 2 + 1}"}
    return {"question_id": number, "winner": winner, "judge": judge, **models, **conversations}


def test_the_share_of_pairs_that_length_orders_as_people_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of six pairs length orders four as people do, one the other way round, and ties one that they tie. Two pairs
    share a context: responses of different pairs, which nobody compared, must not count."""
    votes = [
        pair(1, LONG, SHORT, "model_a"),
        pair(2, LONG, SHORT, "model_a"),
        pair(3, SHORT, LONG, "model_b"),
        pair(4, LONG, SHORT, "model_a"),
        pair(4, SHORT, LONG, "model_b", "bob"),  # in the other order: the models are exchanged, too
        pair(5, LONG, SHORT, "model_b"),
        pair(5, LONG, SHORT, "model_b", "bob"),
        pair(6, SHORT, "That way", "tie"),
    ]
    votes[4]["model_a"], votes[4]["model_b"] = votes[3]["model_b"], votes[3]["model_a"]
    path = tmp_path / "votes.jsonl"
    path.write_text("\n".join(map(json.dumps, votes)))
    home = tmp_path / "home"
    assert main(["correlate", str(path), "--evaluator", "length", "--home", str(home), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["pairs"]
    assert (row["dataset"], row["evaluator"], row["pairs"]) == ("votes", "length", 6)
    assert row["share"] == pytest.approx(5 / 6)
    assert row["low"] < row["share"] < row["high"]
    assert row["alpha"] == 1  # ann and bob agree on both pairs that both saw
    ratings = Warehouse.at(str(home)).query("SELECT count(*), count(DISTINCT rater) FROM ratings")
    assert ratings == [(16, 2)]
