"""Gates: every rule of every contract and every SQL check, seen to fail on data broken for it alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import duckdb
import pytest

from ssrem.errors import GateError
from ssrem.schemas import TABLES
from ssrem.schemas.contract import (
    WHO,
    Between,
    Finite,
    NotEmpty,
    OneOf,
    Ranks,
    References,
    Table,
    WithinBounds,
    columns,
)
from ssrem.sql import checks
from ssrem.tables.speaker_sets import DRAWS
from ssrem.tasks.stage import gate
from ssrem.tasks.stage.gate import (
    Rule,
    broken_rows,
    check_tables,
    create_shared,
    evaluated_by,
    offending_rows,
    rules,
)
from ssrem.tasks.stage.stage import Output, Stage
from ssrem.tasks.warehouse.catalog import PartitionKey
from ssrem.tasks.warehouse.home import Warehouse
from support.paths import ROOT
from support.stages import staging

CHECKS = ROOT / "sql" / "checks"

# Two conversations of the training split, one of the validation split; ann answers bob, and bob ann.
TURNS = """INSERT INTO turns BY NAME SELECT * FROM (VALUES
    ('t', 0, 'c', 0, NULL, 'ann', 'bob', 'one', 1, 1, 'train'), ('t', 1, 'c', 1, 0, 'bob', 'ann', 'two', 2, 1, 'train'),
    ('t', 2, 'c', 2, 1, 'ann', 'bob', 'three', 3, 1, 'train'),
    ('t', 3, 'd', 0, NULL, 'bob', 'ann', 'four', 4, 1, 'train'),
    ('t', 4, 'd', 1, 3, 'ann', 'bob', 'five', 5, 2, 'train'),
    ('t', 5, 'd', 2, 4, 'bob', 'cy', 'six', 6, 1, 'train'), ('t', 6, 'd', 3, 5, 'ann', 'cy', 'seven', 7, 1, 'train'),
    ('t', 7, 'v', 0, NULL, 'ann', 'bob', 'eight', 8, 1, 'valid')
) AS v (corpus, turn_id, conversation_id, turn, answers, speaker, addressee, text, text_hash, messages, split)"""

RESPONSES = """INSERT INTO responses BY NAME SELECT a.corpus, a.turn_id AS response_id,
    (SELECT list(b.turn_id ORDER BY b.turn) FROM turns AS b
     WHERE b.conversation_id = a.conversation_id AND b.turn < a.turn) AS context,
    a.conversation_id, a.speaker, a.addressee, a.split FROM turns AS a WHERE a.turn > 0"""
CORPUS = """INSERT INTO corpora BY NAME SELECT 't' AS corpus, 'person' AS speaker_scope, {read} AS messages_read,
    {landed} AS utterances, {read} - {landed} AS quarantined, {conversations} AS conversations, 2 AS speakers"""
MEMBERS = """INSERT INTO {table} (corpus, set_id, position, size, turn_id)
    SELECT corpus, min(turn_id) OVER w, row_number() OVER w - 1, count(*) OVER (PARTITION BY {owner}), turn_id
    FROM turns WINDOW w AS (PARTITION BY {owner} ORDER BY turn_id)"""
EVALUATOR = """INSERT INTO evaluators BY NAME SELECT 'e' AS evaluator, 1 AS version, -1 AS low, 1 AS high,
    0.5 AS valid_loss, 1 AS best_epoch, 2 AS epochs, true AS promoted"""

SOUND = {
    "ingest": [
        CORPUS.format(read=3, landed=2, conversations=1),
        """INSERT INTO conversations BY NAME SELECT 't' AS corpus, 'c' AS conversation_id, 0 AS conversation_no,
            2 AS messages, 2 AS participants""",
        """INSERT INTO utterances BY NAME SELECT * FROM (VALUES
            ('t', 'a', 'c', 0, 0, 0, 'ann', 'gone', 'hi', true), ('t', 'b', 'c', 0, 1, 1, 'bob', 'a', 'ho', false))
            AS v (corpus, utterance_id, conversation_id, conversation_no, position, turn, speaker, reply_to, text,
            reply_absent)""",
        """INSERT INTO quarantine (corpus, row_no, record, file, line, reason, raw) VALUES
            ('t', 2, 'message', 'f', 3, 'no_text', encode('{"utterance_id":"gone"}')),
            ('t', 3, 'conversation', 'f', 4, 'no_messages', encode('{"utterance_id":null}')),
            ('t', 4, 'conversation', 'f', 5, 'undecodable', '\\xFF'::BLOB)""",
    ],
    "tables": [
        CORPUS.format(read=9, landed=9, conversations=3),
        """INSERT INTO conversations BY NAME SELECT 't' AS corpus, c AS conversation_id, n AS conversation_no,
            m AS messages, 2 AS participants FROM (VALUES ('c', 0, 3), ('d', 1, 5), ('v', 2, 1)) AS v (c, n, m)""",
        TURNS,
        RESPONSES,
        MEMBERS.format(table="sc", owner="conversation_id, speaker"),
        MEMBERS.format(table="sp", owner="split, speaker, addressee"),
        MEMBERS.format(table="ss", owner="split, speaker"),
        "INSERT INTO rand (corpus, set_id, position, size, turn_id) VALUES ('t', 0, 0, 2, 5), ('t', 0, 1, 2, 5)",
        """INSERT INTO candidates BY NAME
            SELECT corpus, response_id, 'GT' AS kind, 0 AS k, response_id AS turn_id FROM responses""",
        """INSERT INTO candidates (corpus, response_id, kind, k, turn_id) VALUES
            ('t', 2, 'SC', 0, 0), ('t', 2, 'SP', 0, 4), ('t', 2, 'SS', 0, 6), ('t', 2, 'Rand', 0, 3),
            ('t', 1, 'SC', 0, NULL)""",
        "CREATE OR REPLACE TABLE vector_norms AS SELECT turn_id, 1.0::DOUBLE AS norm FROM turns",
        "UPDATE candidates SET turn_id = NULL WHERE kind = 'SC'",
    ],
    "negatives": [
        TURNS,
        RESPONSES,
        """INSERT INTO negatives BY NAME SELECT 't' AS corpus, 2 AS response_id, 'random-1' AS generator, 0 AS k,
            'what nobody said' AS text, 3 AS replaced, 3 AS tokens""",
    ],
    "score": [
        """INSERT INTO responses BY NAME SELECT 't' AS corpus, i AS response_id, 'test' AS split
            FROM range(1, 4) AS r (i)""",
        EVALUATOR,
        """INSERT INTO identification BY NAME
            SELECT 'e' AS evaluator, 1 AS version, 't' AS corpus, 'GT' AS kind, 0.5 AS mean, 3 AS n""",
        """INSERT INTO scores (evaluator, version, dataset, response_id, kind, k, f, f_unit) VALUES
            ('e', 1, 't', '1', 'GT', 0, 0.5, 0.25), ('e', 1, 't', '2', 'GT', 0, 0.5, 0.25),
            ('e', 1, 't', '3', 'GT', 0, 0.5, 0.25), ('e', 1, 'd', '1', 'response', 0, 0.5, 0.25)""",
    ],
    "correlate": [
        EVALUATOR,
        """INSERT INTO rated_responses BY NAME
            SELECT 'd' AS dataset, i::VARCHAR AS response_id, i = 4 AS ground_truth FROM range(5) AS r (i)""",
        """INSERT INTO agreement BY NAME SELECT 'e' AS evaluator, 1 AS version, 'd' AS dataset, 'segment' AS level,
            m AS measure, s AS statistic, s - 0.1 AS low, s + 0.1 AS high, 4 AS n, 0 AS missing, 1 AS excluded,
            false AS ground_truth_kept, o AS outcome, r AS reason
            FROM (VALUES ('pearson', 0.5, 'ok', NULL), ('kendall', NULL, 'constant', 'the scores are all the same'))
            AS v (m, s, o, r)""",
        """INSERT INTO comparisons BY NAME SELECT 'd' AS dataset, 'overall' AS criterion, 'mean' AS aggregation,
            'segment' AS level, 'e' AS first, 1 AS first_version, 'o' AS second, 1 AS second_version""",
        """INSERT INTO rankings BY NAME SELECT 'd' AS dataset, 'overall' AS criterion, 'mean' AS aggregation,
            'segment' AS level, e AS evaluator, 1 AS version, p AS place
            FROM (VALUES ('e', 1), ('o', 2)) AS v (e, p)""",
        """INSERT INTO scores (evaluator, version, dataset, response_id, kind, k, f, f_unit, g_unit, h) VALUES
            ('e', 1, 'd', '1', 'response', 0, 4, 0.25, 0.75, 0.5),
            ('e', 1, 'd', '2', 'response', 0, NULL, NULL, NULL, NULL),
            ('adem', 1, 'd', '1', 'response', 0, 2, 0.25, 0.75, 4.5),
            ('blend-ref', 1, 'd', '1', 'response', 0, NULL, NULL, NULL, 0.5)""",
        """INSERT INTO rater_agreement BY NAME SELECT 'd' AS dataset, m AS measure, v AS value, o AS outcome,
            r AS reason FROM (VALUES ('one_rater', 0.4, 'ok', NULL), ('fleiss_kappa', NULL, 'too_few', 'one rater'))
            AS v (m, v, o, r)""",
        """INSERT INTO judgments BY NAME SELECT 'e' AS evaluator, 1 AS version, 'd' AS dataset, i AS response_id,
            s AS score, r AS reason FROM (VALUES ('1', 4, NULL), ('2', NULL, 'refused')) AS v (i, s, r)""",
    ],
    "train": [
        EVALUATOR,
        """INSERT INTO learning_curves (evaluator, version, epoch, split, loss) VALUES
            ('e', 1, 1, 'valid', 0.5), ('e', 1, 2, 'valid', 0.6),
            ('e', 1, 1, 'train', 0.4), ('e', 1, 2, 'train', 0.3)""",
    ],
    "study": [
        EVALUATOR,
        """INSERT INTO studies BY NAME SELECT * FROM (VALUES
            ('length', 'words', 0, 'spearman', -0.5, -0.7, -0.2),
            ('distribution', 'all', 0, 'sd_unscaled', 2.5, NULL, NULL),
            ('distribution', 'all', 1, 'q0.5', 0.4, NULL, NULL),
            ('injection', 'claim', 0, 'shift', -3, -4.5, -1.5))
            AS v (study, condition, position, measure, value, low, high)""",
    ],
}


SOUND["forget"] = [*SOUND["ingest"], "CREATE OR REPLACE TABLE forgotten_people (id VARCHAR)"]

BREAKS = {
    "ingest": {
        "counts_are_conserved": [
            "UPDATE corpora SET messages_read = 4",
            "UPDATE corpora SET messages_read = 4, utterances = 3",
            "UPDATE corpora SET utterances = 1, quarantined = 2",
        ],
        "messages_are_in_conversations": [
            "UPDATE conversations SET messages = 3",
            "INSERT INTO conversations SELECT * REPLACE (1 AS conversation_no) FROM conversations",
        ],
        "replies_are_accounted_for": [
            "UPDATE utterances SET reply_to = 'never' WHERE utterance_id = 'b'",
            "UPDATE utterances SET reply_absent = false WHERE utterance_id = 'a'",
        ],
        "turns_answer_earlier_turns": [
            "UPDATE utterances SET answers = 1 WHERE utterance_id = 'b'",
            "UPDATE utterances SET answers = -1 WHERE utterance_id = 'a'",
        ],
    },
    "tables": {
        "contexts_stay_in_the_conversation": [
            "UPDATE responses SET context = [2, 3] WHERE response_id = 4",
            "UPDATE responses SET context = [0] WHERE response_id = 2",
            "UPDATE responses SET context = [] WHERE response_id = 2",
            "UPDATE turns SET answers = NULL WHERE turn_id = 2",
            "UPDATE responses SET conversation_id = 'd' WHERE response_id = 1",
        ],
        "conversations_stay_in_one_split": [
            "TRUNCATE sc; TRUNCATE sp; TRUNCATE ss; TRUNCATE rand; UPDATE turns SET split = 'test' WHERE turn_id = 0"
        ],
        "every_response_has_its_truth": [
            "DELETE FROM candidates WHERE kind = 'GT' AND response_id = 4",
            "UPDATE candidates SET turn_id = 0 WHERE kind = 'GT' AND turn_id = 2",
            "INSERT INTO candidates SELECT * REPLACE (1 AS k) FROM candidates WHERE kind = 'GT'",
            "DELETE FROM responses WHERE response_id = 6",
        ],
        "messages_are_in_turns": [
            "UPDATE turns SET messages = 2 WHERE turn_id = 0",
            "INSERT INTO conversations SELECT * REPLACE ('e' AS conversation_id) FROM conversations LIMIT 1",
        ],
        "negatives_are_not_in_the_context": [
            "UPDATE candidates SET turn_id = 0 WHERE kind = 'SC' AND response_id = 2",
            "UPDATE candidates SET turn_id = 1 WHERE kind = 'Rand'",
        ],
        "negatives_are_not_the_response": [
            "UPDATE candidates SET turn_id = 2 WHERE kind = 'SS'",
            "UPDATE turns SET text_hash = 3 WHERE turn_id = 6",
        ],
        "negatives_have_the_right_speaker": [
            "UPDATE candidates SET turn_id = 6 WHERE kind = 'Rand'",
            "UPDATE candidates SET turn_id = 3 WHERE kind = 'SS'",
            "UPDATE candidates SET turn_id = 6 WHERE kind = 'SP'",
            "UPDATE candidates SET turn_id = 4 WHERE kind = 'SC' AND response_id = 2",
        ],
        "negatives_stay_in_the_split": ["UPDATE candidates SET turn_id = 7 WHERE kind = 'SS'"],
        "sets_hold_people": [
            "UPDATE turns SET is_person = false WHERE turn_id = 3",
            "UPDATE turns SET is_person = false WHERE turn_id = 4",
        ],
        "sets_have_one_speaker": [
            "UPDATE rand SET turn_id = 4",
            "UPDATE rand SET turn_id = 7",
            "UPDATE rand SET set_id = 8",
            "UPDATE sp SET set_id = 6 - set_id WHERE set_id IN (0, 6)",
            "UPDATE ss SET set_id = 7 - set_id WHERE set_id IN (0, 7)",
            "UPDATE sc SET set_id = 4 - set_id WHERE set_id IN (0, 4)",
        ],
        "sets_nest": ["DELETE FROM ss"],
        "sizes_count_members": [
            "UPDATE rand SET size = 1",
            "UPDATE rand SET size = 3 WHERE position = 0",
            "DELETE FROM sc WHERE turn_id = 2",
        ],
        "turns_answer_earlier_turns": [
            "UPDATE turns SET answers = 2 WHERE turn_id = 3",
            "UPDATE turns SET answers = 3 WHERE turn_id = 3",
        ],
        "turns_are_consecutive": [
            "UPDATE turns SET turn = 1 WHERE turn_id = 7",
            "UPDATE turns SET turn = 2 WHERE turn_id = 6",
        ],
        "vectors_are_finite": ["UPDATE vector_norms SET norm = 'NaN' WHERE turn_id = 4"],
    },
    "negatives": {
        "generated_are_not_blank": ["UPDATE negatives SET text = chr(10)"],
        "no_more_replaced_than_there_are": ["UPDATE negatives SET replaced = 4"],
        "generated_are_not_the_response": [
            "UPDATE negatives SET text = ' ' || upper((SELECT text FROM turns WHERE turn_id = 2))"
        ],
        "generated_are_not_in_the_context": [
            "UPDATE negatives SET text = (SELECT text FROM turns WHERE turn_id = 1)"
        ],
    },
    "train": {
        "kept_epoch_is_the_best": [
            "UPDATE learning_curves SET loss = 0.4 WHERE split = 'valid' AND epoch = 2",
            "UPDATE evaluators SET best_epoch = 2",
            "UPDATE evaluators SET valid_loss = NULL",
            "DELETE FROM learning_curves WHERE split = 'valid' AND epoch = 1",
        ],
        "one_version_is_promoted": [
            "UPDATE evaluators SET promoted = false",
            "INSERT INTO evaluators SELECT * REPLACE (2 AS version) FROM evaluators",
        ],
    },
    "score": {
        "every_test_response_is_scored": [
            "UPDATE identification SET n = 2",
            "UPDATE identification SET kind = 'SC'",
            "DELETE FROM identification",
            "DELETE FROM scores",
            "UPDATE scores SET f = NULL WHERE response_id = '2'",
        ],
    },
    "correlate": {
        "h_lies_between_its_parts": [
            "UPDATE scores SET h = 0.76, evaluator = 'ruber' WHERE h IS NOT NULL",
            "UPDATE scores SET h = NULL, evaluator = 'ruber'",
            "UPDATE scores SET h = 0.51, evaluator = 'ssrem' WHERE h IS NOT NULL",
        ],
        "answers_score_or_say_why": [
            "UPDATE judgments SET score = 1 WHERE response_id = '2'",
            "UPDATE judgments SET reason = NULL WHERE response_id = '2'",
        ],
        "judged_scores_have_answers": [
            "UPDATE scores SET f = 3 WHERE response_id = '2'",
            "DELETE FROM judgments WHERE response_id = '1'",
        ],
        "figures_or_reasons": [
            "UPDATE agreement SET statistic = 0.5",
            "UPDATE agreement SET reason = NULL",
            "UPDATE agreement SET high = NULL",
            "UPDATE agreement SET low = 0.7 WHERE low IS NOT NULL",
        ],
        "raters_have_values_or_reasons": [
            "UPDATE rater_agreement SET value = 0.1",
            "UPDATE rater_agreement SET reason = NULL",
        ],
        "compared_are_ranked": [
            "UPDATE rankings SET place = 3 - place",
            "UPDATE rankings SET place = NULL WHERE evaluator = 'e'",
            "DELETE FROM rankings WHERE evaluator = 'o'",
        ],
        "enough_pairs": ["UPDATE agreement SET n = 2 WHERE outcome = 'ok'"],
        "ground_truth_is_excluded": [
            "UPDATE agreement SET n = 5 WHERE outcome = 'ok'",
            "UPDATE agreement SET missing = 1 WHERE outcome = 'ok'",
            "UPDATE agreement SET ground_truth_kept = true",
        ],
    },
    "study": {
        "values_lie_within_their_range": [
            "UPDATE studies SET value = 1.1 WHERE measure = 'spearman'",
            "UPDATE studies SET low = -1.1 WHERE measure = 'spearman'",
            "UPDATE studies SET value = -1 WHERE measure = 'sd_unscaled'",
            "UPDATE studies SET value = -0.4 WHERE measure = 'q0.5'",
            "UPDATE studies SET low = 0.5, high = 0.4 WHERE measure = 'spearman'",
            "UPDATE studies SET measure = 'fooled', value = -0.5, low = NULL WHERE measure = 'spearman'",
        ]
    },
    "forget": {
        "forgotten_rows_are_empty": ["UPDATE quarantine SET reason = 'forgotten' WHERE row_no = 3"],
        "nobody_speaks_to_the_forgotten": ["INSERT INTO forgotten_people VALUES ('ann')"],
    },
}
"""Stage → check → statements of which each makes sound data break that check alone."""

CASES = [
    (stage, check, statement)
    for stage, of_stage in BREAKS.items()
    for check, statements in of_stage.items()
    for statement in statements
]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse as a stage sees it: every published table empty, nothing staged."""
    connection = with_nothing_staged()
    yield connection
    for table in TABLES:
        connection.execute(f"DROP TABLE IF EXISTS main.{table}")


@lru_cache
def with_nothing_staged() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE SCHEMA published")
    connection.execute("SET search_path = 'main,published'")
    for table in TABLES.values():
        connection.execute(f"CREATE VIEW published.{table.name} AS {table.empty_select()}")
    return connection


@lru_cache
def with_sound_data(stage: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for table in TABLES.values():
        connection.execute(table.ddl())
    for statement in SOUND[stage]:
        connection.execute(statement)
    return connection


@pytest.fixture
def sound(stage: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables of a stage with sound data, as they were after the test."""
    connection = with_sound_data(stage).begin()
    yield connection
    connection.rollback()


def failing(connection: duckdb.DuckDBPyConnection, stage: str) -> set[str]:
    create_shared(connection, stage)
    return {check.name for check in checks(stage) if connection.execute(check.query).fetchall()}


def test_every_check_has_a_case_that_breaks_it() -> None:
    files = {(path.parent.name, path.stem) for path in CHECKS.glob("*/*.sql")}
    assert files == {(stage, check) for stage, check, _ in CASES}


@pytest.mark.parametrize(("stage", "check", "statement"), CASES)
def test_a_check_sees_what_breaks_it_alone(
    sound: duckdb.DuckDBPyConnection, stage: str, check: str, statement: str
) -> None:
    sound.execute(statement)
    assert failing(sound, stage) == {check}


@pytest.mark.parametrize("stage", SOUND)
def test_sound_data_pass_and_the_engine_counts_what_breaks_every_check(
    sound: duckdb.DuckDBPyConnection, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert failing(sound, stage) == set()
    for statements in BREAKS[stage].values():
        sound.execute(statements[-1])
    broken = failing(sound, stage)
    monkeypatch.setattr(gate, "RESPONSES_AT_ONCE", 1)  # in as many parts as there are responses
    results = check_tables(sound, stage, "r", [])
    said = {r.row["expectation"].split(":")[0].removeprefix("no row of "): r.row for r in results}
    assert said.keys() == {check.name for check in checks(stage)}
    assert {name for name, row in said.items() if not row["passed"]} == broken != set()
    for check in checks(stage):
        assert said[check.name]["unexpected"] == len(sound.execute(check.query).fetchall())


# A table with a rule of each kind, and two sound rows of it.
RULED = Table(
    *("ruled", "One row is a place.", ("corpus", "place")),
    columns(corpus="VARCHAR: c", place="BIGINT: p", kind="VARCHAR: k", share="DOUBLE?: s", **WHO),
    (
        *(NotEmpty(), Ranks("place"), OneOf("kind", ("a", "b")), Between("share", 0, 1), Finite(("share",))),
        *(WithinBounds(("share",)), References(("evaluator", "version"), "evaluators")),
        References(("corpus", "place"), "turns", ("corpus", "turn_id"), ranks=True),
    ),
)
ROWS = """CREATE OR REPLACE TABLE ruled AS
    SELECT 't' AS corpus, i AS place, 'a' AS kind, 0.25::DOUBLE AS share, 'e' AS evaluator, 1 AS version
    FROM range(2) AS r (i);
    CREATE OR REPLACE TABLE evaluators AS SELECT 'e' AS evaluator, 1 AS version, 0 AS low, 0.5 AS high;
    CREATE OR REPLACE TABLE turns AS SELECT 't' AS corpus, i AS turn_id FROM range(2) AS r (i)"""
GAP, SHARE = "place to run from 0 without a gap", "share to be at least 0 and at most 1"
BOUNDS, VERSIONS = (
    "(share) to be in the range of evaluators",
    "(evaluator, version) to be found in evaluators",
)
TURNS_THERE = "(corpus, place) to be found in turns"


@pytest.mark.parametrize(
    ("statement", "broken"),
    [
        ("UPDATE ruled SET share = NULL", {}),
        ("INSERT INTO ruled FROM ruled WHERE place = 1", {"(corpus, place) to be unique": 1, GAP: 1}),
        ("UPDATE ruled SET kind = NULL WHERE place = 1", {"kind not to be null": 1}),
        ("DELETE FROM ruled", {"at least one row": 1}),
        ("UPDATE ruled SET place = 2 WHERE place = 1", {GAP: 1, TURNS_THERE: 1}),
        ("UPDATE ruled SET kind = 'c'", {"kind to be one of a, b": 2}),
        ("UPDATE ruled SET share = -0.1", {SHARE: 2, BOUNDS: 2}),
        ("UPDATE ruled SET share = 1.1 WHERE place = 0", {SHARE: 1, BOUNDS: 1}),
        ("UPDATE ruled SET share = 'NaN' WHERE place = 0", {SHARE: 1, BOUNDS: 1, "(share) to be finite": 1}),
        ("UPDATE ruled SET share = 0.75 WHERE place = 0", {BOUNDS: 1}),
        ("UPDATE evaluators SET high = NULL", {}),
        ("UPDATE ruled SET version = 2 WHERE place = 0", {VERSIONS: 1}),
        ("DELETE FROM turns WHERE turn_id = 1", {TURNS_THERE: 1}),
        ("UPDATE turns SET corpus = 'other'", {TURNS_THERE: 2}),
    ],
)
def test_a_rule_finds_the_rows_that_break_it(
    connection: duckdb.DuckDBPyConnection, statement: str, broken: dict[str, int]
) -> None:
    connection.execute(ROWS)
    connection.execute(statement)
    wanted = list(rules(RULED))
    counts = broken_rows(connection, wanted)
    assert {rule.says: rows for rule, rows in zip(wanted, counts, strict=True) if rows} == broken
    assert counts == [len(connection.execute(rule.offending).fetchall()) for rule in wanted]


def test_every_rule_of_every_contract_can_be_evaluated() -> None:
    wanted = [rule for table in TABLES.values() for rule in rules(table)]
    with duckdb.connect() as connection:
        for table in TABLES.values():
            connection.execute(table.ddl())
        broken = broken_rows(connection, wanted)
    assert {rule.says for rule, rows in zip(wanted, broken, strict=True) if rows} == {NotEmpty.says}


def test_a_key_is_unique_whatever_its_last_columns_hold(connection: duckdb.DuckDBPyConnection) -> None:
    """More combinations than the bits by which the rule finds what may be repeated, and one row of them twice."""
    table = TABLES["candidates"]
    rule = next(rules(table))
    connection.execute(table.ddl())
    connection.execute(
        "INSERT INTO candidates SELECT 't', r, kind, k, 0 "
        "FROM range(3) AS a (r), unnest(['GT', 'SC', 'Rand']) AS b (kind), range(50) AS c (k)"
    )
    assert connection.execute(rule.offending).fetchall() == []
    connection.execute("INSERT INTO candidates VALUES ('t', 2, 'SC', 49, 1), ('t', 3, 'SC', 49, 1)")
    assert connection.execute(rule.offending).fetchall() == [("t", 2, "SC", 49, 2)]


def test_each_candidate_of_a_response_has_a_bit_of_its_own(connection: duckdb.DuckDBPyConnection) -> None:
    """Else uniqueness is checked by whole keys, which takes three times as long."""
    drawn = ", ".join(f"('{kind}', {k})" for kind, draws in {"GT": 1, **DRAWS}.items() for k in range(draws))
    bits = f"SELECT count(*), count(DISTINCT hash(kind, k::BIGINT) % 64) FROM (VALUES {drawn}) AS v (kind, k)"
    assert connection.execute(bits).fetchall() == [(8, 8)]


@pytest.mark.parametrize("stage", ["tables"])
def test_the_gate_reads_what_checks_share(sound: duckdb.DuckDBPyConnection, stage: str) -> None:
    sound.execute(BREAKS[stage]["negatives_stay_in_the_split"][0])
    results = check_tables(sound, stage, "r", [])
    (broken,) = (r for r in results if not r.row["passed"])
    assert broken.row["expectation"].startswith("no row of negatives_stay_in_the_split:")
    assert offending_rows(sound, broken) == "(response_id=2, kind=SS, k=0, turn_id=7)"


def stage_runs(home: Warehouse, text: str | None, **more: Any) -> Stage:
    """Gate and publish a learning curve of one epoch, whose split is `text`."""
    row = {"evaluator": "e", "version": 1, "epoch": 0, "split": text, "loss": 0.5} | more
    with staging(home, "train", {"split": text}) as stage:
        evaluator = {c.name: 1 for c in TABLES["evaluators"].columns if c.type in ("BIGINT", "DOUBLE")}
        evaluator |= {c.name: "e" for c in TABLES["evaluators"].columns if c.type == "VARCHAR"}
        evaluator |= {
            "promoted": True,
            "labelled": ["a"],
            "trained_at": stage.started,
            "decided_at": None,
            "promoted_at": None,
        }
        stage.create_from_rows("evaluators", [evaluator])
        stage.create_from_rows("learning_curves", [row])
        stage.gate()
        key = PartitionKey(evaluator="e", version=1)
        stage.publish([Output("evaluators", key), Output("learning_curves", key)])
    return stage


@pytest.fixture
def no_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "checks", lambda stage: [])


@pytest.mark.usefixtures("no_checks")
def test_a_failed_gate_publishes_nothing_and_shows_the_rows(home: Warehouse) -> None:
    stage_runs(home, "train")
    before = home.partitions()
    with home.reader() as reader:
        gates = reader.execute("SELECT count(*), bool_and(passed) FROM check_results").fetchone()
    assert gates is not None and gates[0] > 20 and gates[1]
    with pytest.raises(GateError) as error:
        stage_runs(home, "dev\r\nset", loss=float("inf"))
    text = str(error.value)
    assert "table learning_curves: expected split to be one of train, valid" in text
    assert "broken by 1 rows" in text and "split=dev" in text and "(and 1 more)" in text
    assert len(text.splitlines()) == 1
    assert home.partitions() == before
    (folder,) = home.failures.iterdir()
    assert str(folder) in text
    assert "dev" in (folder / "1-learning_curves.csv").read_text()
    assert "inf" in (folder / "2-learning_curves.csv").read_text()
    assert "false" in (folder / "check_results.csv").read_text()
    assert not list(home.staging.iterdir())
    assert {f.name for f in home.lake.glob("run=*")} == {p.path.split("/")[1] for p in before}


def test_a_rule_that_cannot_be_checked_is_one_line(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE corpora (corpus VARCHAR)")
    with pytest.raises(GateError, match="corpora") as error:
        check_tables(connection, "ingest", "r", ["corpora"])
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.usefixtures("no_checks")
def test_another_evaluator_of_rules_decides_as_long_as_its_block_lasts(home: Warehouse) -> None:
    seen: list[str] = []

    def evaluate(connection: duckdb.DuckDBPyConnection, wanted: Sequence[Rule]) -> list[int]:
        seen.extend(rule.says for rule in wanted)
        assert connection.execute("SELECT count(*) FROM learning_curves").fetchone() == (1,)
        return [2 * rule.says.startswith("split") for rule in wanted]

    with evaluated_by(evaluate), pytest.raises(GateError, match=r"expected split .* broken by 2 rows"):
        stage_runs(home, "train")
    assert len(seen) > 20
    stage_runs(home, "train")
