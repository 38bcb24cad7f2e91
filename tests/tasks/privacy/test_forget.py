"""Forgetting: a person is nowhere afterwards, everybody else is where an ingest without them would have put them."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchmarks.attack.inputs import content
from ssrem.encoders import load_encoder
from ssrem.encoders.store import VectorStore
from ssrem.errors import DumpError, PrivacyError
from ssrem.flows.forget import forget as forget_all
from ssrem.privacy.key import PseudonymKey
from ssrem.tables.speaker_sets import TableSettings
from ssrem.tasks.ingest.land import land
from ssrem.tasks.privacy.forget import forget
from ssrem.tasks.privacy.people import who_is
from ssrem.tasks.privacy.purge import held_texts
from ssrem.tasks.speaker_tables.build import build
from ssrem.tasks.training.outdated import outdated
from ssrem.tasks.warehouse.home import Warehouse
from ssrem.tasks.warehouse.partition import PartitionKey
from support.small_home import Made, command, copied
from support.stages import run_python
from support.whole_home import contents, occurrences

pytestmark = pytest.mark.xdist_group("small-home")  # the other worker does not wait for it

Dump = Callable[..., str]

SECRET = "f00dcafe" * 8
PEOPLE = ["zed_target", "ann", "bob", "cy"]


def fetch(home: Warehouse, query: str) -> list[tuple[Any, ...]]:
    with home.reader() as connection:
        return connection.execute(query).fetchall()


def store_vectors(home: Warehouse) -> None:
    """Cache the vectors of all turns, as an encoder does that is slow."""
    encoder = load_encoder("glove-6b-50d")
    VectorStore(home.vectors).encode(encoder, [text for (text,) in fetch(home, "SELECT text FROM turns")])


def talk(seed: int, conversations: int = 8) -> list[Any]:
    """Conversations in which anyone may say, answer or be quarantined for anything; some name the target elsewhere."""
    draw = random.Random(seed)
    rows: list[Any] = []
    for number in range(conversations):
        people = draw.sample(PEOPLE, draw.choice([1, 2, 3, 3]))
        name = f"{'+'.join(people)}-{number}" if number % 2 else f"c{number}"
        said: list[dict[str, Any]] = []
        for position in range(draw.randint(1, 8)):
            who = draw.choice(people)
            earlier = [row["id"] for row in said]
            said.append(
                {
                    "id": f"{who}:{number}:{position}",
                    "speaker": who,
                    "addressee": draw.choice([None, *PEOPLE]),
                    "reply_to": draw.choice([None, *earlier]) if earlier else None,
                    "text": draw.choice(["", "yes", f"what {who} said {number} {position}"]),
                    "time": f"2020-01-01T00:{draw.randint(0, 59):02}:00",
                    "likes": draw.sample(PEOPLE, 2),
                }
            )
        rows.append({"conversation_id": name, "ratings": {"fun": number}, "with": people, "utterances": said})
    return [*rows, b'{"speaker": "zed_target", ', b'{"speaker": "ann", ']


@pytest.mark.parametrize("seeds", [(0, 1), pytest.param((2, 3), marks=pytest.mark.slow)])
def test_everybody_else_is_as_if_they_had_never_been_there(
    home: Warehouse, write_dump: Dump, seeds: tuple[int, ...]
) -> None:
    for seed in seeds:
        source = write_dump(talk(seed), f"d{seed}")
        land(source, str(home.root), max_quarantine=1.0)
        before = fetch(home, f"SELECT messages_read FROM corpora WHERE corpus = 'd{seed}'")
        people = who_is(home, "zed_target")
        done = forget(people, str(home.root))
        assert occurrences(home.root, ["zed_target"]) == []
        assert (done["left"]["ids"], done["left"]["texts"], done["left"]["vectors"]) == (0, 0, 0)
        ((read, landed, quarantined),) = fetch(
            home, f"SELECT messages_read, utterances, quarantined FROM corpora WHERE corpus = 'd{seed}'"
        )
        assert [(read,)] == before
        assert read == landed + quarantined
        columns = """utterance_id, conversation_id, conversation_no, position, turn, speaker, is_person, addressee,
            addressee_from, reply_to, text, time, time_backwards, metadata"""
        tables = (
            f"SELECT {columns} FROM utterances WHERE corpus = 'd{seed}' ORDER BY conversation_no, position",
            f"SELECT * FROM conversations WHERE corpus = 'd{seed}' ORDER BY conversation_no",
            f"SELECT reason, count(*) FROM quarantine WHERE corpus = 'd{seed}' AND record = 'message' "
            "GROUP BY reason ORDER BY reason",
            f"SELECT * EXCLUDE (landed_at) FROM corpora WHERE corpus = 'd{seed}'",
        )
        forgotten = [fetch(home, query) for query in tables]
        again = land(source, str(home.root), replace=True, max_quarantine=1.0)
        assert again == (f"d{seed}", True)  # the list keeps them out
        assert [fetch(home, query) for query in tables] == forgotten
        assert occurrences(home.root, ["zed_target"]) == []


def test_what_a_quarantined_row_says_of_them_goes(home: Warehouse, write_dump: Dump) -> None:
    said = [
        {"conversation_id": "c", "id": "1", "speaker": "zed_target", "text": "only zed says this"},
        {"conversation_id": "c", "id": "2", "speaker": "zed_target", "text": " "},
        {"conversation_id": "c", "id": "3", "speaker": "ann", "text": "fine", "reply_to": "2"},
        {"conversation_id": "c", "id": "4", "speaker": "ann", "text": "", "addressee": "zed_target"},
        {"conversation_id": "c", "id": "5", "speaker": "ann", "text": "ok", "reply_to": "4"},
        b'"zed_target"',
        b'{"text": "only zed says this"',
        b'{"text": "ann says that"',
        {"conversation_id": "d", "id": "6", "speaker": "bob", "text": "ok"},
    ]
    land(write_dump(said), str(home.root), max_quarantine=1.0)
    forget(who_is(home, "zed_target"), str(home.root))
    rows = fetch(home, "SELECT reason, octet_length(raw) > 0 FROM quarantine ORDER BY row_no")
    assert rows == [
        ("forgotten", False),
        ("forgotten", False),
        ("no_text", True),
        ("broken_json", False),
        ("broken_json", False),
        ("broken_json", True),
    ]
    assert fetch(home, "SELECT utterance_id, reply_to FROM utterances ORDER BY 1") == [
        ("3", None),
        ("5", "4"),
        ("6", None),
    ]
    ((row,),) = fetch(home, "SELECT raw FROM quarantine WHERE reason = 'no_text'")
    assert json.loads(row)["addressee"] is None
    assert occurrences(home.root, ["zed_target", "only zed says this"]) == []


@pytest.fixture(scope="module")
def forgotten(
    made: Made, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Warehouse, list[str], dict[str, Any]]:
    """The small home without p3: what only p3 said, and what the command said."""
    assert made.said.returncode == 0, made.said.stderr
    copy = copied(made.home, tmp_path_factory.mktemp("forgotten") / "home")
    theirs = fetch(copy, "SELECT text FROM utterances WHERE speaker = 'p3'")
    others = {text for (text,) in fetch(copy, "SELECT text FROM utterances WHERE speaker <> 'p3'")}
    words = sorted({text for (text,) in theirs} - others)
    (copy.root / "failures" / "run").mkdir(parents=True)
    (copy.root / "failures" / "run" / "1-turns.csv").write_text(words[0])
    shutil.copytree(next(copy.lake.glob("run=*")), copy.lake / "run=20200101T000000-000000")
    store_vectors(copy)
    done = command("forget", "p3", "--home", str(copy.root), "--json")
    assert done.returncode == 0, done.stderr
    return copy, words, json.loads(done.stdout)


def test_a_person_is_nowhere_afterwards(
    made: Made, forgotten: tuple[Warehouse, list[str], dict[str, Any]]
) -> None:
    home, words, said = forgotten
    assert len(words) > 20
    assert occurrences(made.home.root, words[:1])  # a search that finds nothing proves nothing
    assert occurrences(home.root, words) == []
    for table in ("utterances", "turns", "responses"):
        assert fetch(home, f"SELECT count(*) FROM {table} WHERE speaker = 'p3' OR addressee = 'p3'") == [(0,)]
    assert {path.suffix for path, _ in contents(home.root)} >= {".parquet", ".duckdb"}
    assert not (home.lake / "run=20200101T000000-000000").exists()
    assert said["corpora"]["tiny"]["utterances"] == 600 - fetch(home, "SELECT count(*) FROM utterances")[0][0]
    assert said["left"] == {"files": said["left"]["files"], "ids": 0, "texts": 0, "vectors": 0}
    assert said["purged"]["vectors"] >= len(words)
    assert said["other_files"] == []


def test_what_was_built_is_built_anew_and_what_learned_is_listed(
    forgotten: tuple[Warehouse, list[str], dict[str, Any]],
) -> None:
    home, _, said = forgotten
    evaluators = [(row["evaluator"], row["version"], row["corpora"]) for row in said["evaluators"]]
    assert evaluators == [("rsrem", 1, ["tiny"]), ("ssrem", 1, ["tiny"])]
    assert said["next"] == ["ssrem train rsrem ssrem"]
    assert [(one.evaluator, one.unseen) for one in outdated(home)] == [
        ("ssrem", ("tiny",)),
        ("rsrem", ("tiny",)),
    ]
    assert (home.models / "ssrem" / "1").exists()
    published = {partition.address for partition in home.partitions()}
    ssrem = PartitionKey(evaluator="ssrem", version=1)
    assert ("candidates", PartitionKey(corpus="tiny")) in published
    assert ("scores", replace(ssrem, corpus="tiny")) not in published
    assert ("scores", replace(ssrem, dataset="people")) in published
    ((parameters,),) = fetch(home, "SELECT parameters FROM runs WHERE stage = 'forget'")
    assert json.loads(parameters)["corpus"] == "tiny"
    assert '"p3"' not in parameters
    turns = "SELECT count(*), sum(messages), count(DISTINCT conversation_id) FROM turns"
    ((_, messages, conversations),) = fetch(home, turns)
    assert [(messages, conversations)] == fetch(home, "SELECT utterances, conversations FROM corpora")


def test_vectors_of_others_stay(forgotten: tuple[Warehouse, list[str], dict[str, Any]]) -> None:
    import pyarrow.parquet as pq

    home, *_ = forgotten
    cached = [
        h for path in home.vectors.rglob("*.parquet") for h in pq.read_table(path)["text_hash"].to_pylist()
    ]
    assert set(cached) <= set(held_texts(home).tolist())
    assert len(cached) > 300


def test_nobody_of_that_name(home: Warehouse, write_dump: Dump) -> None:
    with pytest.raises(PrivacyError, match="no corpus has landed"):
        who_is(home, "nobody")
    land(write_dump([{"conversation_id": "c", "speaker": "ann", "text": "hi"}], "one"), str(home.root))
    with pytest.raises(PrivacyError, match="nobody is called 'nobody' in one; where") as error:
        who_is(home, "nobody")
    assert "\n" not in str(error.value)
    assert not (home.root / "forgotten.json").exists()


def test_the_only_person_takes_the_corpus_with_them(home: Warehouse, write_dump: Dump) -> None:
    source = write_dump([{"conversation_id": "c", "speaker": "ann", "text": "anything at all"}])
    land(source, str(home.root))
    forget(who_is(home, "ann"), str(home.root))
    assert fetch(home, "SELECT count(*) FROM corpora") == [(0,)]
    assert occurrences(home.root, ["anything at all"]) == []
    with pytest.raises(DumpError, match="1 forgotten"):
        land(source, str(home.root))


def test_forgetting_in_one_corpus_leaves_the_others(home: Warehouse, write_dump: Dump) -> None:
    for name in ("one", "two"):
        said = [
            {"conversation_id": "c", "speaker": who, "text": f"{who} in {name}"} for who in ("ann", "bob")
        ]
        land(write_dump(said, name), str(home.root))
    forget(who_is(home, "ann", ["one"]), str(home.root), corpora=["one"])
    assert fetch(home, "SELECT corpus, speaker FROM utterances ORDER BY ALL") == [
        ("one", "bob"),
        ("two", "ann"),
        ("two", "bob"),
    ]
    land(write_dump([{"conversation_id": "d", "speaker": "ann", "text": "back"}], "three"), str(home.root))
    assert fetch(home, "SELECT speaker FROM utterances WHERE corpus = 'three'") == [("ann",)]


def test_a_pseudonym_is_found_by_the_key(
    home: Warehouse, write_dump: Dump, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = PseudonymKey(SECRET.encode())
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", SECRET)
    said = [
        {"conversation_id": "c", "speaker": who, "text": f"{i} said"} for i, who in enumerate(["ann", "bob"])
    ]
    source = write_dump(said)
    land(source, str(home.root), pseudonymise=True)
    with pytest.raises(PrivacyError, match="--pseudonym-key"):
        who_is(home, "ann")
    forget(who_is(home, "ann", key=key), str(home.root))
    assert fetch(home, "SELECT speaker FROM utterances") == [(key.pseudonym("bob"),)]
    land(source, str(home.root), pseudonymise=True, replace=True)
    assert fetch(home, "SELECT speaker FROM utterances") == [(key.pseudonym("bob"),)]
    land(write_dump([*said, {"conversation_id": "d", "speaker": "cy", "text": "x"}], "clear"), str(home.root))
    assert fetch(home, "SELECT speaker FROM utterances WHERE corpus = 'clear' ORDER BY 1") == [
        ("bob",),
        ("cy",),
    ]


def test_forgetting_twice_finishes_what_was_broken_off(
    home: Warehouse, tmp_path: Path, write_dump: Dump
) -> None:
    said = [{"conversation_id": "c", "speaker": who, "text": f"{who} speaks"} for who in ("ann", "bob")]
    land(write_dump(said), str(home.root))
    before = tmp_path / "before"
    shutil.copytree(home.lake, before)
    forget(who_is(home, "ann"), str(home.root))
    # Killed before it was gone.
    shutil.copytree(
        next(before.glob("run=*/utterances.parquet")).parent, home.lake / "run=20200101T000000-000000"
    )
    assert occurrences(home.root, ["ann speaks"])
    done = forget(who_is(home, "ann"), str(home.root))
    assert done["corpora"] == {}
    assert occurrences(home.root, ["ann speaks"]) == []


KILLED = """
import os, signal, sys
from ssrem.flows.forget import forget
from ssrem.tasks.warehouse.home import Warehouse

publish, publishes = Warehouse.write_catalog, 0

def killed_after(home, partitions):
    global publishes
    publishes += 1
    publish(home, partitions)
    if publishes == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)

Warehouse.write_catalog = killed_after
forget(sys.argv[3:], sys.argv[2])
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with the speaker tables of two corpora, in both of which zed_target speaks."""
    folder = tmp_path_factory.mktemp("built")
    for seed, corpus in enumerate(("one", "two")):
        dump = folder / f"{corpus}.jsonl"
        dump.write_text("".join(json.dumps(row) + "\n" for row in talk(seed, 20) if isinstance(row, dict)))
        land(str(dump), str(folder / "home"), max_quarantine=1.0)
        build(corpus, str(folder / "home"), settings=TableSettings(seed=seed, context_turns=3))
    store_vectors(Warehouse.at(folder / "home"))
    return folder / "home"


def with_target(built: Path, root: Path) -> tuple[Warehouse, list[str]]:
    """A copy of the home folder, and the digests of zed_target in it."""
    home = copied(Warehouse.at(built), root)
    return home, who_is(home, "zed_target")


@pytest.fixture(scope="module")
def whole(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """That home folder without zed_target, whom an undisturbed run forgot."""
    home, people = with_target(built, tmp_path_factory.mktemp("whole") / "home")
    forget_all(people, str(home.root))
    return home


def cached(home: Warehouse) -> list[int]:
    """The hashes of the texts whose vectors are cached."""
    files = sorted(home.vectors.rglob("*.parquet"))
    return sorted(hash for path in files for hash in pq.read_table(path)["text_hash"].to_pylist())


# Corpus one, corpus two, tables of one, tables of two.
@pytest.mark.parametrize(
    "publishes",
    [pytest.param(1, marks=pytest.mark.slow), 2, 3, pytest.param(4, marks=pytest.mark.slow)],
)
def test_a_killed_run_is_completed_by_another(
    built: Path, whole: Warehouse, tmp_path: Path, publishes: int
) -> None:
    home, people = with_target(built, tmp_path / "home")
    assert occurrences(home.root, ["zed_target"])
    done = run_python(KILLED, publishes, home.root, *people)
    assert done.returncode == -signal.SIGKILL, done.stderr
    forget_all(who_is(home, "zed_target"), str(home.root))
    assert content(home) == content(whole)
    assert fetch(home, "SELECT DISTINCT corpus FROM candidates ORDER BY ALL") == [("one",), ("two",)]
    assert cached(home)
    assert set(cached(home)) <= set(held_texts(home).tolist())
    assert occurrences(home.root, ["zed_target"]) == []
    assert not list(home.staging.iterdir())


def test_a_conversation_named_after_them_stays_under_a_hashed_id(home: Warehouse, write_dump: Dump) -> None:
    place = {"conversation_id": "zed_target+bob"}
    said = [
        {**place, "id": "zed_target-1", "speaker": "zed_target", "text": "hi"},
        {**place, "id": "2", "speaker": "bob", "reply_to": "zed_target-1", "text": "ho"},
        {**place, "id": "3", "speaker": "bob", "reply_to": "2", "text": "and so on"},
    ]
    land(write_dump(said), str(home.root))
    forget(who_is(home, "zed_target"), str(home.root))
    conversations = home.query("SELECT conversation_id, messages FROM conversations")
    assert conversations == [(home.query("SELECT any_value(conversation_id) FROM utterances")[0][0], 2)]
    assert home.query("SELECT utterance_id, reply_to FROM utterances ORDER BY utterance_id")[1] == ("3", "2")
    assert occurrences(home.root, ["zed_target"]) == []


def test_a_failing_proof_is_an_error(
    home: Warehouse, write_dump: Dump, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [{"conversation_id": "c", "speaker": who, "text": f"{who} speaks"} for who in ("ann", "bob")]
    land(write_dump(said), str(home.root))
    shutil.copytree(home.lake, home.root / "elsewhere")  # where no purge looks
    with pytest.raises(PrivacyError, match="still holds 1 ids, 1 texts") as error:
        forget(who_is(home, "ann"), str(home.root))
    assert "\n" not in str(error.value)
    assert "ann" not in str(error.value)


def test_the_list_holds_no_id(home: Warehouse, write_dump: Dump) -> None:
    said = [
        {"conversation_id": "c", "speaker": who, "text": f"{i}"}
        for i, who in enumerate(["zed_target", "bob"])
    ]
    land(write_dump(said), str(home.root))
    forget(who_is(home, "zed_target"), str(home.root))
    assert "zed_target" not in (home.root / "forgotten.json").read_text()
    assert occurrences(home.root, ["zed_target"]) == []
