"""Score: the published scores against the evaluator, identification against SQL, ratings left untouched."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from scipy import stats

from ssrem.cli.main import main
from ssrem.errors import GateError
from ssrem.evaluators import load_evaluator
from ssrem.samples import KINDS, TEST, Sample
from ssrem.schemas import TABLES
from ssrem.tables.candidates import load_candidates
from ssrem.tasks.ingest import land
from ssrem.tasks.score import conversation_rows, score_test_splits
from ssrem.tasks.warehouse.catalog import PartitionKey
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import Made, write_conversations


def test_scores_are_those_of_the_evaluator(made: Made) -> None:
    """By way of `score`, turn by turn, where the task goes by way of candidates."""
    evaluator = load_evaluator(made.home.models / "ssrem" / "1")
    rows = made.home.query(
        """SELECT s.kind, s.f, t.text,
            (SELECT list(c.text ORDER BY c.turn_id) FROM turns AS c WHERE list_contains(r.context, c.turn_id))
        FROM scores AS s
        INNER JOIN responses AS r ON r.response_id = s.response_id::BIGINT
        INNER JOIN candidates AS d ON d.response_id = r.response_id AND d.kind = s.kind AND d.k = s.k
        INNER JOIN turns AS t ON t.turn_id = d.turn_id
        WHERE s.evaluator = 'ssrem' AND s.dataset = 'tiny' ORDER BY hash(s.response_id, s.kind, s.k) LIMIT 60"""
    )
    assert {row[0] for row in rows} == set(KINDS)
    again = evaluator.score([Sample(tuple(context), text) for _, _, text, context in rows])
    assert again == pytest.approx([f for _, f, _, _ in rows], abs=1e-6)


def test_every_candidate_of_the_test_split_is_scored_once(made: Made) -> None:
    counts = made.home.query(
        "SELECT kind, count(*) FROM scores WHERE evaluator = 'ssrem' AND dataset = 'tiny' AND kind <> 'Context' "
        "GROUP BY kind ORDER BY kind"
    )
    assert counts == made.home.query(
        "SELECT c.kind, count(c.turn_id) FROM candidates AS c INNER JOIN responses AS r USING (corpus, response_id) "
        "WHERE r.split = 'test' GROUP BY c.kind ORDER BY c.kind"
    )
    assert len(counts) == len(KINDS)


def test_identification_follows_from_the_scores(made: Made) -> None:
    published = made.home.query(
        "SELECT kind, mean, low, high, gt_above, n FROM identification WHERE evaluator = 'ssrem' ORDER BY kind"
    )
    by_sql = made.home.query(
        """WITH s AS (SELECT * FROM scores WHERE evaluator = 'ssrem' AND dataset = 'tiny'),
        means AS (SELECT kind, response_id, avg(f) AS f FROM s GROUP BY ALL),
        truth AS (SELECT response_id, f FROM s WHERE kind = 'GT'),
        above AS (
            SELECT s.kind, avg(CASE WHEN truth.f > s.f THEN 1 WHEN truth.f = s.f THEN .5 ELSE 0 END) AS share
            FROM s INNER JOIN truth USING (response_id) WHERE s.kind <> 'GT' GROUP BY s.kind)
        SELECT kind, avg(f), avg(f) - 1.959964 * stddev_samp(f) / sqrt(count(*)),
            avg(f) + 1.959964 * stddev_samp(f) / sqrt(count(*)), any_value(share), count(*)
        FROM means LEFT JOIN above USING (kind) GROUP BY kind ORDER BY kind"""
    )
    assert len(published) == len(KINDS) + 1
    for one, other in zip(published, by_sql, strict=True):
        assert one == pytest.approx(other)


def test_small_corpora_share_a_stage_and_a_damaged_one_is_scored_again_alone(
    copy: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of a corpus that it did not learn from (experiment 3 of the paper), with scores that say so."""
    write_conversations(tmp_path / "other.jsonl", conversations=20, people=6)
    land(str(tmp_path / "other.jsonl"), str(copy.root))
    kept = [p for p in copy.partitions() if (p.key.evaluator, p.key.corpus) != ("ssrem", "tiny")]
    copy.write_catalog(kept)  # as if it had never been scored
    stages = "SELECT count(*) FROM runs WHERE stage = 'score'"
    ((before,),) = copy.query(stages)
    assert main(["score-corpus", "--evaluator", "ssrem", "--home", str(copy.root)]) == 0
    assert copy.query(stages) == [(before + 1,)]
    said = capsys.readouterr().out
    assert {"tiny: scored by ssrem", "other: scored by ssrem"} <= {*said.splitlines()}
    assert re.search(r"^ssrem +other +tiny +GT ", said, re.MULTILINE)
    for table, column in (("scores", "dataset"), ("identification", "corpus")):
        of_other = f"SELECT DISTINCT evaluator, learned_from FROM {table} WHERE {column} = 'other'"
        assert copy.query(of_other) == [("ssrem", "tiny")]
    with copy.reader() as reader:
        candidates = load_candidates(reader, ["other"])
    of_truth = "WHERE evaluator = 'ssrem' AND corpus = 'other' AND kind = 'GT'"
    ((mean,),) = copy.query(f"SELECT mean FROM identification {of_truth}")
    evaluator: Any = load_evaluator(copy.models / "ssrem" / "1")
    assert mean == pytest.approx(evaluator.score_candidates(candidates, TEST)["GT"].mean(), abs=1e-6)
    scored = "SELECT dataset, count(*) FROM scores WHERE evaluator = 'ssrem' GROUP BY ALL ORDER BY ALL"
    counts = copy.query(scored)
    key = PartitionKey(corpus="other", evaluator="ssrem", version=1)
    (damaged,) = (p for p in copy.partitions() if (p.table, p.key) == ("scores", key))
    (copy.root / damaged.path).unlink()
    for new in (["other"], []):
        assert score_test_splits("ssrem", 1, ["tiny", "other"], str(copy.root)) == new
    assert copy.query(scored) == counts


def test_what_needs_a_reference_cannot_score_a_corpus(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score-corpus", "--evaluator", "bleu-2", "--home", str(made.home.root)]) == 1
    assert "bleu-2 compares responses with a reference alone" in capsys.readouterr().err


@pytest.mark.parametrize("format", ["chitchat", "jsonl"])
def test_ratings_at_the_default_are_left_out_where_there_is_one(format: str) -> None:
    ratings = [1, 5, 9, 5, 4, 8, None, "2", "NaN"]
    draw = np.random.default_rng(0)
    with duckdb.connect() as connection:

        def insert(table: str, **values: Any) -> None:
            columns = ", ".join(f"${name} AS {name}" for name in values)
            connection.execute(f"INSERT INTO {table} BY NAME SELECT {columns}", values)

        for name in ("conversations", "corpora", "turns", "scores", "evaluators"):
            connection.execute(TABLES[name].ddl())
        insert("corpora", corpus="c", format=format, sha256="a" * 64)
        insert("evaluators", evaluator="ssrem", version=1, signature="weights", corpora="{}")
        f: dict[int, float] = {}
        for number, rating in enumerate(ratings):
            given = None if rating is None else json.dumps({"witty": rating})
            insert("conversations", corpus="c", conversation_id=str(number), ratings=given)
            values = draw.uniform(-1, 1, 3)
            f[number] = float(values[:2].mean())  # the third is a negative's
            for at, (kind, value) in enumerate(zip(("GT", "GT", "SC"), values.tolist(), strict=True)):
                turn, of = number * 10 + at, {"evaluator": "ssrem", "version": 1, "dataset": "c"}
                insert("turns", corpus="c", turn_id=turn, conversation_id=str(number))
                insert("scores", **of, response_id=str(turn), kind=kind, f=value)
        rows = {row["measure"]: row for row in conversation_rows(connection, ("ssrem", 1), "c")}
    row = rows["spearman"]
    fair = [
        n for n, r in enumerate(ratings) if r not in (None, "NaN") and not (format == "chitchat" and r == 5)
    ]
    expected = stats.spearmanr([f[n] for n in fair], [float(ratings[n] or 0) for n in fair])
    assert (row["n"], row["excluded"]) == ((5, 2) if format == "chitchat" else (7, 0))
    assert (row["statistic"], row["p"]) == pytest.approx((expected.statistic, expected.pvalue))
    assert list(rows) == ["pearson", "spearman", "kendall"]
    assert (row["criterion"], row["aggregation"], row["level"]) == ("witty", "rating", "conversation")


def test_a_score_that_is_no_number_is_stopped_by_the_gate(
    copy: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ssrem.evaluators.bilinear import Bilinear

    with copy.reader() as reader:
        candidates = load_candidates(reader, ["tiny"])
    drawn = int(np.flatnonzero(candidates.negatives["SP"][candidates.rows(TEST), 0] >= 0)[0])
    sound = Bilinear.score_candidates

    def broken(self: Bilinear, *arguments: Any, **options: Any) -> Any:
        scores = sound(self, *arguments, **options)
        scores["SP"][drawn, 0] = np.nan
        return scores

    monkeypatch.setattr(Bilinear, "score_candidates", broken)
    # As if its scores had never been published.
    copy.write_catalog([p for p in copy.partitions() if p.table not in ("scores", "identification")])
    before, catalog = copy.partitions(), copy.catalog.read_bytes()
    with pytest.raises(GateError, match="nothing was published"):
        score_test_splits("ssrem", 1, ["tiny"], str(copy.root))
    assert (copy.partitions(), copy.catalog.read_bytes()) == (before, catalog)
