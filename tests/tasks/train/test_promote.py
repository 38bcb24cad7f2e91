"""Promotion: a challenger that is not worse comes into use, one that may be worse does not; by hand, either way."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from ssrem.errors import EvaluatorError, GateError, SsremError
from ssrem.samples import TEST
from ssrem.settings import TableSettings
from ssrem.sql import statement
from ssrem.tables.candidates import load_candidates
from ssrem.tasks import correlate as correlation
from ssrem.tasks.annotated import landed_contexts
from ssrem.tasks.correlate import correlate, correlate_landed
from ssrem.tasks.promote import Challenge, challenges, decide, decide_all, promote, refused_in_a_row
from ssrem.tasks.score import score_corpus
from ssrem.tasks.settings import Margins
from ssrem.tasks.stage.stage import Output, last_parameters
from ssrem.tasks.tables import build, build_missing, without_tables
from ssrem.tasks.train import retrain, train
from ssrem.tasks.versions import context_hashes, outdated, promoted, stage_version, versions
from ssrem.tasks.warehouse.catalog import PartitionKey, of_turns
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import Made, annotated_rows, copied
from support.stages import staging

pytestmark = pytest.mark.xdist_group("small-home")


@pytest.fixture(scope="module")
def trained_again(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A second version of ssrem waits: the same training once more, so that the two are the same."""
    home = copied(made.home, tmp_path_factory.mktemp("trained") / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssrem.tasks.train.published_keys", lambda *_: [])
        assert train("ssrem", ["tiny"], str(home.root)) == (2, True)
    return home


@pytest.fixture(scope="module")
def scored_again(trained_again: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """That home folder with both versions scored on all that the only challenge is decided by."""
    home = copied(trained_again, tmp_path_factory.mktemp("scored") / "home")
    (challenge,) = challenges(home)
    assert vars(challenge) == vars(Challenge("ssrem", 2, 1, ("tiny",), ("people",)))
    both = [("ssrem", 1), ("ssrem", 2)]
    score_corpus("ssrem", 2, "tiny", str(home.root))
    assert score_corpus("ssrem", 1, "tiny", str(home.root)) is False  # as the run before did
    assert correlate_landed("people", both, str(home.root)) is True
    assert correlate_landed("people", both, str(home.root)) is False
    return home


@pytest.fixture
def challenged(trained_again: Warehouse, tmp_path: Path) -> Warehouse:
    """A copy of the home folder with the second version, to write to."""
    return copied(trained_again, tmp_path / "challenged")


@pytest.fixture
def scored(scored_again: Warehouse, tmp_path: Path) -> Warehouse:
    """A copy of the home folder with both versions scored, to write to."""
    return copied(scored_again, tmp_path / "scored")


def row(home: Warehouse, version: int) -> dict[str, Any]:
    return next(r for r in versions(home, "ssrem") if r["version"] == version)


def publish_scores(home: Warehouse, change: str) -> None:
    """What would be published had version 2 scored differently."""
    with staging(home, "score", {"change": change}) as stage:
        outputs = []
        for dataset, of in (("tiny", "corpus"), ("people", "dataset")):
            key = PartitionKey(evaluator="ssrem", version=2, **{of: dataset})
            outputs.append(Output("scores", key, f"dataset = '{dataset}'"))
        stage.create("scores")
        stage.connection.execute(
            f"INSERT INTO main.scores BY NAME SELECT * REPLACE ({change}) FROM published.scores "
            "WHERE evaluator = 'ssrem' AND version = 2"
        )
        stage.publish(outputs)


def test_an_equal_challenger_is_promoted(scored: Warehouse) -> None:
    (challenge,) = challenges(scored)
    done, why = decide(challenge, str(scored.root), margins=Margins(identification=0, agreement=0))
    assert done
    assert why.startswith("not worse than version 1 on tiny (share above 0.")
    new, old = row(scored, 2), row(scored, 1)
    assert (new["promoted"], old["promoted"]) == (True, False)
    assert (new["compared_with"], new["why"], old["why"]) == (1, why, "replaced by version 2")
    assert new["decided_at"] == new["promoted_at"] >= new["trained_at"]
    split, people = json.loads(new["comparison"])
    assert (split["dataset"], split["measure"]) == ("tiny", "share above")
    assert (people["dataset"], people["measure"], people["n"]) == ("people", "spearman", 25)
    assert people["difference"] == people["low"] == 0
    assert challenges(scored) == []


def test_figures_are_those_of_the_published_tables(scored: Warehouse) -> None:
    (challenge,) = challenges(scored)
    decide(challenge, str(scored.root))
    split, people = json.loads(row(scored, 2)["comparison"])
    with scored.reader() as reader:
        (rho,) = reader.execute(
            "SELECT spearman FROM correlations WHERE evaluator = 'ssrem' AND version = 2 AND dataset = 'people' AND "
            "level = 'segment' AND aggregation = 'mean' AND score = 'h'"
        ).fetchall()[0]
        candidates = load_candidates(reader, ["tiny"])
        scores = reader.execute(
            "SELECT response_id, kind, k, f FROM scores WHERE evaluator = 'ssrem' AND version = 2 AND dataset = 'tiny'"
        ).fetchall()
    truth = {r: f for r, kind, _, f in scores if kind == "GT"}
    shares: dict[str, list[float]] = {}
    for response, kind, _, f in scores:
        if kind not in ("GT", "Context"):
            shares.setdefault(response, []).append(0.5 * ((truth[response] > f) + (truth[response] >= f)))
    assert people["challenger"] == pytest.approx(rho)
    assert split["n"] == len(shares) == len(candidates.rows(TEST))
    assert split["challenger"] == pytest.approx(np.mean([np.mean(s) for s in shares.values()]))


@pytest.mark.parametrize(
    ("change", "margins", "worse_on", "not_on"),
    [
        ("CASE WHEN kind = 'GT' THEN -1 ELSE f END AS f", (0.01, 1), "on tiny (share above 0.", "people"),
        ("CASE WHEN kind = 'response' THEN 1 - h ELSE h END AS h", (1, 0), "on people (spearman", "tiny"),
    ],
)
def test_a_worse_challenger_is_refused_and_says_why(
    scored: Warehouse, change: str, margins: tuple[float, float], worse_on: str, not_on: str
) -> None:
    (challenge,) = challenges(scored)
    publish_scores(scored, change)
    limits = Margins(identification=margins[0], agreement=margins[1])
    done, why = decide(challenge, str(scored.root), limits)
    assert not done
    assert why.startswith(f"may be worse than version 1 {worse_on}") and not_on not in why
    assert promoted(scored, ["ssrem"]) == [("ssrem", 1)]
    assert (row(scored, 2)["why"], row(scored, 2)["promoted_at"]) == (why, None)
    assert challenges(scored) == []  # decided: it does not come up again


def test_a_set_that_one_of_them_learned_from_does_not_count(
    copy: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    contexts = list(landed_contexts(copy, "people"))

    def labelled(stage: Any, evaluator: Any, settings: Any, learned: dict[str, Any], **more: Any) -> Any:
        learned["labelled"] = sorted(context_hashes(contexts[:3]))
        return stage_version(stage, evaluator, settings, learned, **more)

    monkeypatch.setattr("ssrem.tasks.train.published_keys", lambda *_: [])
    monkeypatch.setattr("ssrem.tasks.train.stage_version", labelled)
    train("ssrem", ["tiny"], str(copy.root))
    (challenge,) = challenges(copy)
    assert challenge.datasets == ()


def test_by_hand_and_back(challenged: Warehouse) -> None:
    with pytest.raises(EvaluatorError, match="nothing to roll back to"):
        promote("ssrem", None, str(challenged.root))
    with pytest.raises(EvaluatorError, match=r"no version 7 .* \(versions: 1, 2\)"):
        promote("ssrem", 7, str(challenged.root))
    assert promote("ssrem", 2, str(challenged.root)) == (2, 1)
    assert row(challenged, 2)["why"] == "promoted by hand over version 1"
    assert challenges(challenged) == []
    assert promote("ssrem", 2, str(challenged.root)) == (2, None)
    assert promote("ssrem", None, str(challenged.root)) == (1, 2)
    assert row(challenged, 1)["why"] == "rolled back from version 2 by hand"
    assert promoted(challenged, ["ssrem", "rsrem"]) == [("rsrem", 1), ("ssrem", 1)]
    assert promote("ssrem", None, str(challenged.root)) == (2, 1)


def test_rankings_that_a_killed_rollback_left_behind_follow_when_the_version_is_promoted(
    scored: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    root = str(scored.root)
    assert promote("ssrem", 2, root) == (2, 1)
    ranked = "SELECT DISTINCT version FROM rankings WHERE evaluator = 'ssrem'"
    with monkeypatch.context() as patch:
        patch.setattr("ssrem.tasks.promote.correlate_all", killed)
        with pytest.raises(KeyboardInterrupt):
            promote("ssrem", None, root)
    assert promoted(scored, ["ssrem"]) == [("ssrem", 1)]
    assert scored.query(ranked) == [(2,)]
    assert promote("ssrem", 1, root) == (1, None)
    assert scored.query(ranked) == [(1,)]


def test_versions_stay_in_order_whatever_the_clock_does(
    copy: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssrem.tasks.train.published_keys", lambda *_: [])
    monkeypatch.setattr("ssrem.tasks.stage.stage.utc_now", lambda: datetime(2001, 1, 1))
    assert train("ssrem", ["tiny"], str(copy.root)) == (2, True)
    first, second = row(copy, 1), row(copy, 2)
    assert first["promoted_at"] < second["trained_at"]
    for chosen in (2, 1):
        before = max(row(copy, 1)["promoted_at"], row(copy, 2)["trained_at"])
        assert promote("ssrem", chosen, str(copy.root)) == (chosen, 3 - chosen)
        assert before < row(copy, chosen)["promoted_at"] == row(copy, chosen)["decided_at"]
    assert promote("ssrem", None, str(copy.root)) == (2, 1)


def test_margins_that_do_not_exist() -> None:
    with pytest.raises(SsremError, match="no setting rho; there are identification, agreement"):
        Margins(rho=0.1)  # type: ignore[call-arg]
    with pytest.raises(SsremError, match="agreement: input should be less than or equal to 1, not 3"):
        Margins(agreement=3)


def test_what_has_not_seen_a_corpus(copy: Warehouse, write_dump: Any) -> None:
    from ssrem.tasks.ingest import land

    assert outdated(copy) == {}
    turns = [(n, t) for n in range(9) for t in range(4)]
    said = [
        {"conversation_id": f"x{n}", "speaker": f"q{(n + t) % 7}", "text": f"well {n} {t}"} for n, t in turns
    ]
    land(write_dump(said, "second"), str(copy.root))
    stale = outdated(copy)
    assert [(name, own and own.encoder) for name, own in stale.items()] == [
        ("ssrem", "wordllama-minilm"),
        ("rsrem", "wordllama"),
    ]
    assert stale["ssrem"] and stale["ssrem"].set["seed"] == 0
    assert list(outdated(copy, ["rsrem"])) == ["rsrem"]


def test_tables_with_other_settings_take_scores_along_and_are_learned_from_anew(
    copy: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(copy.root)
    of_corpus = (
        "SELECT (SELECT count(*) FROM scores WHERE dataset = 'tiny'), (SELECT count(*) FROM identification)"
    )
    assert min(copy.query(of_corpus)[0]) > 0
    settings = TableSettings(seed=1, similarity="none")
    assert build("tiny", root, settings) and not build("tiny", root, settings)
    assert copy.query(of_corpus) == [(0, 0)]
    said = capsys.readouterr().err
    assert "tiny: agreement, identification, scores of the tables before are gone; ssrem score-corpus" in said
    assert set(outdated(copy)) == {"ssrem", "rsrem"}
    # Missing tables are built as they were, not with default settings.
    with staging(copy, "tables") as stage:
        stage.publish([], retired=of_turns(stage.partitions, "tiny"))
    build_missing(root, ["tiny"])
    assert last_parameters(copy, "tiny", "tables")["seed"] == 1 and not without_tables(root, ["tiny"])
    with pytest.raises(EvaluatorError, match="no evaluator 'ssrm'; did you mean ssrem"):
        outdated(copy, ["ssrm"])


def test_an_annotated_set_that_fails_stops_no_promotion(
    challenged: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broken_eval.json"
    file.write_text(json.dumps(annotated_rows()))
    assert correlate(str(file), [("ssrem", 1)], str(challenged.root)) == ("broken", True)
    sound = correlation._Job.run

    def failing(job: Any, resources: Any) -> bool:
        if job.dataset == "broken":
            raise GateError("gate of correlate: a figure is infinite")
        return sound(job, resources)

    monkeypatch.setattr(correlation._Job, "run", failing)
    (why,) = decide_all(str(challenged.root)).values()
    assert why.startswith("promoted: not worse than version 1 on ")
    assert {one["dataset"] for one in json.loads(row(challenged, 2)["comparison"])} == {"tiny", "people"}
    line = "broken is left out: gate of correlate: a figure is infinite"
    assert set(capsys.readouterr().err.splitlines()) == {f"ssrem: {line}"}


def test_test_splits_are_compared_together(copy: Warehouse, write_dump: Any) -> None:
    """A small corpus alone can never show that a version is not worse; six of its kind stopped promotion for good."""
    from ssrem.tasks.ingest import land

    land(write_dump(conversations(40), "second"), str(copy.root))
    (outcome,) = retrain(str(copy.root), ["ssrem"]).values()
    assert "version 1 on 2 corpora (share above 0." in outcome
    split, _ = json.loads(row(copy, 2)["comparison"])
    sizes = dict(copy.query("SELECT corpus, count(*) FROM responses WHERE split = 'test' GROUP BY corpus"))
    assert (split["dataset"], split["n"]) == ("2 corpora", sizes["tiny"] + sizes["second"])
    assert min(sizes.values()) > 0


def conversations(count: int) -> list[dict[str, Any]]:
    turns = [(n, t) for n in range(count) for t in range(6)]
    return [
        {"conversation_id": f"c{n}", "speaker": f"q{(n + t % 2) % 7}", "text": f"well {n} {t}"}
        for n, t in turns
    ]


def test_refusals_in_a_row_are_told_with_their_reason(
    scored: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ssrem.tasks.promote.SERIES", 1)
    publish_scores(scored, "CASE WHEN kind = 'GT' THEN -1 ELSE f END AS f")
    monkeypatch.setattr("ssrem.tasks.promote.score_corpus", lambda *_, **__: False)  # those scores stay
    assert refused_in_a_row(scored) == []
    (decision,) = decide_all(str(scored.root)).values()
    assert decision.startswith("not promoted: may be worse than version 1 on tiny")
    assert refused_in_a_row(scored) == [("ssrem", 1, row(scored, 2)["why"])]
    assert refused_in_a_row(scored, ["rsrem"]) == []
    said = capsys.readouterr().err
    assert "ssrem: ssrem: the last 1 versions were refused (may be worse than version 1 on tiny" in said
    assert "ssrem evaluators promote ssrem 2 overrules" in said
    promote("ssrem", 2, str(scored.root))
    assert refused_in_a_row(scored) == []


def test_an_endless_conversation_is_compared_part_by_part() -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE turns AS SELECT 'chat' AS corpus, turn_id, turn_id AS turn, 'general' AS conversation_id "
            "FROM range(1_250) AS t (turn_id)"
        )
        connection.execute(
            "CREATE TABLE scores AS SELECT 'ssrem' AS evaluator, 'chat' AS dataset, version, "
            "turn_id::VARCHAR AS response_id, kind, 0 AS k, 0.5 AS f "
            "FROM turns, (VALUES (1), (2)) AS v (version), (VALUES ('GT'), ('SC')) AS k (kind)"
        )
        names = {"evaluator": "ssrem", "dataset": "chat", "champion": 1, "challenger": 2}
        rows = connection.execute(statement("4_promotion/shares_above"), names).fetchall()
    responses_of_units = Counter(unit for _response, unit, _old, _new in rows)
    assert responses_of_units == {"general": 1_000, "general/10": 100, "general/11": 100, "general/12": 50}
