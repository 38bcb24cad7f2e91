"""Promotion: a challenger that is not worse comes into use, one that may be worse does not; by hand, either way."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from ssrem.errors import EvaluatorError, GateError
from ssrem.samples import TEST
from ssrem.settings import TableSettings
from ssrem.sql import statement
from ssrem.tables.candidates import load_candidates
from ssrem.tasks import correlate as correlation
from ssrem.tasks.annotated import landed_contexts
from ssrem.tasks.correlate import correlate, correlate_all, correlate_landed
from ssrem.tasks.ingest import land
from ssrem.tasks.promote import Challenge, challenges, decide, decide_all, promote, refused_in_a_row, retire
from ssrem.tasks.score import score_test_splits
from ssrem.tasks.settings import Margins
from ssrem.tasks.stage.stage import Output, last_parameters
from ssrem.tasks.tables import build, build_missing, without_tables
from ssrem.tasks.train import retrain, train
from ssrem.tasks.versions import context_hashes, outdated, promoted, versions
from ssrem.tasks.warehouse.catalog import PartitionKey, of_turns
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import Made, annotated_rows, copied
from support.stages import staging

pytestmark = pytest.mark.xdist_group("small-home")


@pytest.fixture(scope="module")
def scored_again(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A second version of ssrem waits: the same training once more, so that the two are the same, by a clock that
    stood still for years; both are scored on all that the only challenge is decided by."""
    home = copied(made.home, tmp_path_factory.mktemp("scored") / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssrem.tasks.train.published_keys", lambda *_: [])
        patch.setattr("ssrem.tasks.stage.stage.utc_now", lambda: datetime(2001, 1, 1))
        assert train("ssrem", ["tiny"], str(home.root)) == (2, True)
    (challenge,) = challenges(home)
    assert vars(challenge) == vars(Challenge("ssrem", 2, 1, ("tiny",), ("people",)))
    both = [("ssrem", 1), ("ssrem", 2)]
    score_test_splits("ssrem", 2, ["tiny"], str(home.root))
    assert score_test_splits("ssrem", 1, ["tiny"], str(home.root)) == []  # as the run before did
    with pytest.MonkeyPatch.context() as patch:  # the figure that decides
        patch.setattr("ssrem.agreement.figures.MEASURES", ("spearman",))
        assert correlate_landed("people", both, str(home.root)) is True
        assert correlate_landed("people", both, str(home.root)) is False
    return home


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


def test_an_equal_challenger_is_promoted_by_the_figures_of_the_published_tables(scored: Warehouse) -> None:
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
    of_new = "evaluator = 'ssrem' AND version = 2 AND dataset"
    ((rho,),) = scored.query(
        f"SELECT spearman FROM correlations WHERE {of_new} = 'people' AND level = 'segment' AND aggregation = 'mean' "
        "AND score = 'h'"
    )
    scores = scored.query(f"SELECT response_id, kind, f FROM scores WHERE {of_new} = 'tiny'")
    with scored.reader() as reader:
        responses = len(load_candidates(reader, ["tiny"]).rows(TEST))
    truth = {r: f for r, kind, f in scores if kind == "GT"}
    shares: dict[str, list[float]] = {}
    for response, kind, f in scores:
        if kind not in ("GT", "Context"):
            shares.setdefault(response, []).append(0.5 * ((truth[response] > f) + (truth[response] >= f)))
    assert people["challenger"] == pytest.approx(rho)
    assert split["n"] == len(shares) == responses
    assert split["challenger"] == pytest.approx(np.mean([np.mean(s) for s in shares.values()]))


def check_refused(home: Warehouse, why: str, worse_on: str, not_on: str) -> None:
    assert why.startswith(f"may be worse than version 1 {worse_on}") and not_on not in why
    assert promoted(home, ["ssrem"]) == [("ssrem", 1)]
    assert (row(home, 2)["why"], row(home, 2)["promoted_at"]) == (why, None)
    assert challenges(home) == []  # decided: it does not come up again


def test_a_challenger_that_agrees_less_with_people_is_refused(scored: Warehouse) -> None:
    (challenge,) = challenges(scored)
    publish_scores(scored, "CASE WHEN kind = 'response' THEN 1 - h ELSE h END AS h")
    done, why = decide(challenge, str(scored.root), Margins(identification=1, agreement=0))
    assert not done
    check_refused(scored, why, "on people (spearman", "tiny")


def test_refusals_in_a_row_are_told_with_their_reason(
    scored: Warehouse, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ssrem.tasks.promote.SERIES", 1)
    publish_scores(scored, "CASE WHEN kind = 'GT' THEN -1 ELSE f END AS f")
    for name in ("score_test_splits", "correlate_landed", "correlate_all"):  # those scores stay
        monkeypatch.setattr(f"ssrem.tasks.promote.{name}", lambda *_, **__: False)
    assert refused_in_a_row(scored) == []
    (decision,) = decide_all(str(scored.root), margins=Margins(identification=0.01, agreement=1)).values()
    refused, _, why = decision.partition(": ")
    assert refused == "not promoted"
    check_refused(scored, why, "on tiny (share above 0.", "people")
    assert refused_in_a_row(scored) == [("ssrem", 1, why)]
    assert refused_in_a_row(scored, ["rsrem"]) == []
    said = capsys.readouterr().err
    assert "ssrem: ssrem: the last 1 versions were refused (may be worse than version 1 on tiny" in said
    assert "ssrem evaluators promote ssrem 2 overrules" in said
    promote("ssrem", 2, str(scored.root))
    assert refused_in_a_row(scored) == []


def add(home: Warehouse, *numbers: int, **about: Any) -> None:
    """Publish versions that are as the first one is but for their number and what they are about."""
    with staging(home, "train", {"added": numbers}) as stage:
        waits = {"promoted": False, "promoted_at": None, "decided_at": None}
        rows = [{**row(home, 1), **waits, **about, "version": number} for number in numbers]
        stage.create_from_rows("evaluators", rows)
        keys = [PartitionKey(evaluator="ssrem", version=number) for number in numbers]
        stage.publish([Output("evaluators", key, f"version = {key.version}") for key in keys])


def test_a_set_that_one_of_them_learned_from_does_not_count(scored: Warehouse) -> None:
    add(scored, 3, labelled=sorted(context_hashes(list(landed_contexts(scored, "people"))[:3])))
    assert {one.version: one.datasets for one in challenges(scored)} == {2: ("people",), 3: ()}


def test_by_hand_and_back_in_order_whatever_the_clock_does(
    scored: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssrem.tasks.stage.stage.utc_now", lambda: datetime(2001, 1, 1))
    monkeypatch.setattr("ssrem.tasks.promote.correlate_all", lambda *_, **__: [])
    root = str(scored.root)
    assert row(scored, 1)["promoted_at"] < row(scored, 2)["trained_at"]
    with pytest.raises(EvaluatorError, match="nothing to roll back to"):
        promote("ssrem", None, root)
    with pytest.raises(EvaluatorError, match=r"no version 7 .* \(versions: 1, 2\)"):
        promote("ssrem", 7, root)
    for asked, chosen, why in (
        (2, 2, "promoted by hand over version 1"),
        (1, 1, "promoted by hand over version 2"),
        (None, 2, "rolled back from version 1 by hand"),
    ):
        before = max(row(scored, 1)["promoted_at"], row(scored, 2)["trained_at"])
        assert promote("ssrem", asked, root) == (chosen, 3 - chosen)
        now = row(scored, chosen)
        assert now["why"] == why and before < now["promoted_at"] == now["decided_at"]
        assert promoted(scored, ["ssrem", "rsrem"]) == [("rsrem", 1), ("ssrem", chosen)]
    assert promote("ssrem", 2, root) == (2, None)
    assert challenges(scored) == []


def test_rankings_follow_the_version_in_use_also_after_a_rollback_was_killed(
    scored: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    root, model = str(scored.root), scored.models / "ssrem" / "2"
    model.rename(scored.root / "elsewhere")
    with pytest.raises(EvaluatorError, match=r"ssrem version 2: .*no such file"):
        promote("ssrem", 2, root)
    (scored.root / "elsewhere").rename(model)
    assert promote("ssrem", 2, root) == (2, 1)
    ranked = "SELECT evaluator, version FROM rankings WHERE level = 'segment' ORDER BY ALL"
    others = [("cosine", 1), ("length", 1), ("rsrem", 1)]
    assert scored.query(ranked) == [*others, ("ssrem", 2)]
    assert correlate_all(root) == []
    with monkeypatch.context() as patch:
        patch.setattr("ssrem.tasks.promote.correlate_all", killed)
        with pytest.raises(KeyboardInterrupt):
            promote("ssrem", None, root)
    assert promoted(scored, ["ssrem"]) == [("ssrem", 1)]
    assert scored.query(ranked) == [*others, ("ssrem", 2)]
    assert promote("ssrem", 1, root) == (1, None)
    assert scored.query(ranked) == [*others, ("ssrem", 1)]
    measured = scored.query("SELECT DISTINCT evaluator, version FROM agreement ORDER BY ALL")
    assert measured == [*others, ("ssrem", 1), ("ssrem", 2)]  # those that are not in use stay, too


def test_old_versions_are_retired_with_what_they_scored(
    scored: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssrem.tasks.promote.correlate_all", lambda *_, **__: [])
    root = str(scored.root)
    add(scored, 2, 3, 4, 5, 6, decided_at=datetime(2001, 1, 1))
    add(scored, 7)
    shutil.copytree(scored.models / "ssrem" / "1", scored.models / "ssrem" / "4")
    assert promote("ssrem", 4, root) == (4, 1)
    assert retire(root, 4) == 0
    assert retire(root, 2) == 2
    kept = {p.key.version for p in scored.partitions() if p.key.evaluator == "ssrem"}
    assert kept == {1, 4, 5, 6, 7}, "1 was in use, and 7 waits"


def test_what_has_not_seen_a_corpus_is_retrained_and_test_splits_are_compared_together(
    copy: Warehouse, write_dump: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small corpus alone can never show that a version is not worse; six of its kind stopped promotion for good."""
    monkeypatch.setattr("ssrem.tasks.promote.landed_sets", lambda _: {})
    monkeypatch.setattr("ssrem.tasks.promote.correlate_all", lambda *_, **__: [])
    assert outdated(copy) == {}
    turns = [(n, t) for n in range(30) for t in range(4)]
    said = [
        {"conversation_id": f"c{n}", "speaker": f"q{(n + t % 2) % 7}", "text": f"well {n} {t}"}
        for n, t in turns
    ]
    land(write_dump(said, "second"), str(copy.root))
    stale = outdated(copy)
    encoders = {"ssrem": "wordllama-minilm", "rsrem": "wordllama"}
    assert {name: own and own.encoder for name, own in stale.items()} == encoders
    assert stale["ssrem"] and stale["ssrem"].set["seed"] == 0
    assert list(outdated(copy, ["rsrem"])) == ["rsrem"]
    (outcome,) = retrain(str(copy.root), ["ssrem"]).values()
    assert "version 1 on 2 corpora (share above 0." in outcome
    (split,) = json.loads(row(copy, 2)["comparison"])
    sizes = dict(copy.query("SELECT corpus, count(*) FROM responses WHERE split = 'test' GROUP BY corpus"))
    assert (split["dataset"], split["n"]) == ("2 corpora", sizes["tiny"] + sizes["second"])
    assert min(sizes.values()) > 0


def test_tables_with_other_settings_take_scores_along_and_are_learned_from_anew(
    copy: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(copy.root)
    scores = "SELECT count(*) FROM scores WHERE dataset = 'tiny'"
    of_corpus = f"SELECT ({scores}), (SELECT count(*) FROM identification)"
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


def test_retraining_first_decides_on_what_waits_and_a_set_that_fails_stops_no_promotion(
    scored: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ssrem.agreement.figures.MEASURES", ("spearman",))
    file = tmp_path / "broken_eval.json"
    file.write_text(json.dumps(annotated_rows()[:3]))
    assert correlate(str(file), [("ssrem", 1)], str(scored.root)) == ("broken", True)
    sound = correlation._Job.run

    def failing(job: Any, resources: Any) -> bool:
        if job.dataset == "broken":
            raise GateError("gate of correlate: a figure is infinite")
        return sound(job, resources)

    monkeypatch.setattr(correlation._Job, "run", failing)
    (name, why), *others = retrain(str(scored.root)).items()
    assert (name, others) == ("ssrem 2", []) and why.startswith("promoted: not worse than version 1 on ")
    assert {one["dataset"] for one in json.loads(row(scored, 2)["comparison"])} == {"tiny", "people"}
    line = "broken is left out: gate of correlate: a figure is infinite"
    assert set(capsys.readouterr().err.splitlines()) == {f"ssrem: {line}"}


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
