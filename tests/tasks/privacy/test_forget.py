"""Forgetting: a person is nowhere afterwards, everybody else is where an ingest without them would have put them."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections.abc import Callable
from typing import Any

import pytest

from ssrem.encoders import load_encoder
from ssrem.encoders.store import VectorStore, text_hashes
from ssrem.errors import DumpError, PrivacyError
from ssrem.evaluators.judge.endpoint import Journal
from ssrem.privacy.key import PseudonymKey
from ssrem.settings import TableSettings
from ssrem.tasks.ingest import land as land_dump
from ssrem.tasks.privacy import forget
from ssrem.tasks.settings import DumpSettings
from ssrem.tasks.stage.stage import Output
from ssrem.tasks.tables import build
from ssrem.tasks.versions import next_version, versions
from ssrem.tasks.warehouse.catalog import PartitionKey
from ssrem.tasks.warehouse.home import Warehouse
from support.small_home import Made, called, copied
from support.stages import run_python, staging
from support.whole_home import contents, occurrences

pytestmark = pytest.mark.xdist_group("small-home")  # the other worker does not wait for it

Dump = Callable[..., str]

SECRET = "f00dcafe" * 8
PEOPLE = ["zed_target", "ann", "bob", "cy"]


def land(source: str, home: str, **settings: Any) -> tuple[str, bool]:
    return land_dump(source, home, DumpSettings(**settings))


def store_vectors(home: Warehouse) -> None:
    """Cache the vectors of all turns, as an encoder does that is slow."""
    encoder = load_encoder("wordllama")
    VectorStore(home.vectors).encode(encoder, [text for (text,) in home.query("SELECT text FROM turns")])


def talk(seed: int, conversations: int = 12) -> list[Any]:
    """Conversations in which anyone may say, answer or be quarantined for anything; some name the target elsewhere."""
    draw = random.Random(seed)
    rows: list[Any] = []
    for number in range(conversations):
        people = draw.sample(PEOPLE, draw.choice([1, 2, 3, 3]))
        said: list[dict[str, Any]] = []
        for position in range(draw.randint(1, 8)):
            who = draw.choice(people)
            row = {"id": f"{who}:{number}:{position}", "speaker": who, "likes": draw.sample(PEOPLE, 2)}
            row["addressee"] = draw.choice([None, *PEOPLE])
            row["reply_to"] = draw.choice([None, "elsewhere", *(one["id"] for one in said)]) if said else None
            row["text"] = draw.choice(["", "yes", f"what {who} said {number} {position}"])
            said.append({**row, "time": f"2020-01-01T00:{draw.randint(0, 59):02}:00"})
        name = f"{'+'.join(people)}-{number}" if number % 2 else f"c{number}"
        rows.append({"conversation_id": name, "ratings": {"fun": number}, "with": people, "utterances": said})
    return [*rows, b'{"speaker": "zed_target", ', b'{"speaker": "ann", ']


COLUMNS = """utterance_id, conversation_id, conversation_no, position, turn, answers, speaker, is_person, addressee,
    addressee_from, reply_to, reply_absent, text, time, time_backwards, metadata"""


def landed(home: Warehouse) -> list[list[tuple[Any, ...]]]:
    """What is published of the only corpus, but for the numbers of quarantined rows."""
    return [
        home.query(f"SELECT {COLUMNS} FROM utterances ORDER BY conversation_no, position"),
        home.query("SELECT * FROM conversations ORDER BY conversation_no"),
        home.query("SELECT reason, raw FROM quarantine WHERE record = 'message' ORDER BY ALL"),
        home.query("SELECT * EXCLUDE (landed_at) FROM corpora"),
    ]


@pytest.mark.parametrize("scope", ["person", "conversation"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3))])
def test_everybody_else_is_as_if_they_had_never_been_there(
    home: Warehouse, write_dump: Dump, seed: int, scope: str
) -> None:
    source, where = write_dump(talk(seed)), str(home.root)
    land(source, where, max_quarantine=1.0, speakers=scope)
    before = home.query("SELECT messages_read FROM corpora")
    seats = home.query("SELECT DISTINCT speaker FROM utterances WHERE contains(speaker, '/zed_target')")
    for id in sorted(id for (id,) in seats)[:2] if scope == "conversation" else ["zed_target", "bob"]:
        assert forget(id, where)["corpora"].keys() == {"dump"}
    if scope == "person":
        assert occurrences(home.root, ["zed_target"]) == []
    counts = home.query("SELECT utterances + quarantined FROM corpora")
    assert counts == before
    forgotten = landed(home)
    land(source, where, replace=True, max_quarantine=1.0, speakers=scope)
    assert landed(home) == forgotten  # the list keeps them out


def test_what_a_quarantined_row_says_of_them_goes_however_it_is_written(
    home: Warehouse, write_dump: Dump
) -> None:
    said = [
        {"conversation_id": "c", "id": "1", "speaker": "Zoë_T", "text": "only Zoë says this"},
        {"conversation_id": "c", "id": "2", "speaker": "Zoë_T", "text": " "},
        {"conversation_id": "c", "id": "3", "speaker": "ann", "text": "fine", "reply_to": "2"},
        {"conversation_id": "c", "id": "4", "speaker": "ann", "text": "", "addressee": "Zoë_T"},
        {"conversation_id": "c", "id": "5", "speaker": "ann", "text": "ok", "reply_to": "4"},
        '"Zoë_T"'.encode(),
        b'{"speaker": "Zo\\u00eb_T", "text": ',
        b'{"log": "{\\"speaker\\": \\"Zo\\\\u00eb_T\\"',
        b'{"text": "only Zo\\u00EB says this"',
        b'{"text": "ann says that"',
        {"conversation_id": "d", "id": "6", "speaker": "bob", "text": "ok"},
    ]
    land(write_dump(said), str(home.root), max_quarantine=1.0)
    forget("Zoë_T", str(home.root))
    rows = home.query("SELECT row_no < 0, reason, octet_length(raw) > 0 FROM quarantine ORDER BY row_no")
    assert rows[:3] == [(True, "forgotten", False), (False, "forgotten", False), (False, "no_text", True)]
    assert rows[3:] == [*[(False, "broken_json", False)] * 4, (False, "broken_json", True)]
    replies = home.query("SELECT utterance_id, reply_to FROM utterances ORDER BY 1")
    assert replies == [("3", None), ("5", "4"), ("6", None)]
    ((row,),) = home.query("SELECT raw FROM quarantine WHERE reason = 'no_text'")
    assert json.loads(row)["addressee"] is None
    assert occurrences(home.root, ["Zoë_T", "Zo\\u00eb", "only Zo"]) == []


@pytest.fixture(scope="module")
def forgotten(made: Made, tmp_path_factory: pytest.TempPathFactory) -> tuple[Warehouse, Any, list[str]]:
    """The small home without p3: what the command said, and what only p3 said."""
    assert made.said.returncode == 0, made.said.stderr
    copy = copied(made.home, tmp_path_factory.mktemp("forgotten") / "home")
    theirs = copy.query("SELECT text FROM utterances WHERE speaker = 'p3'")
    others = {text for (text,) in copy.query("SELECT text FROM utterances WHERE speaker <> 'p3'")}
    words = sorted({text for (text,) in theirs} - others)
    for folder in ("failures/run", "masked-lm/x", "lm/x", "checkpoints/x", "encoders/x"):
        (copy.root / folder).mkdir(parents=True)
        (copy.root / folder / "file").write_text(words[0])
    for key, text in (("a", words[0]), ("b", min(others))):
        Journal(copy.judgments / "judge.jsonl").add({"key": key, "texts": text_hashes([text]).tolist()})
    shutil.copytree(next(copy.lake.glob("run=*")), copy.lake / "run=20200101T000000-000000")
    store_vectors(copy)
    done = called("forget", "p3", "--home", str(copy.root), "--json")
    assert done.returncode == 0, done.stderr
    return copy, json.loads(done.stdout), words


def test_a_person_is_nowhere_afterwards(made: Made, forgotten: tuple[Warehouse, Any, list[str]]) -> None:
    home, said, words = forgotten
    assert len(words) > 20
    # A search that finds nothing proves nothing.
    assert any(words[0] in text for _, text in contents(made.home.lake))
    assert occurrences(home.root, words) == []
    assert home.query("SELECT count(*) FROM utterances WHERE speaker = 'p3' OR addressee = 'p3'") == [(0,)]
    assert {path.suffix for path, _ in contents(home.root)} >= {".parquet", ".duckdb"}
    assert not (home.lake / "run=20200101T000000-000000").exists()
    assert said["corpora"]["tiny"]["utterances"] == 600 - home.query("SELECT count(*) FROM utterances")[0][0]
    assert said["deleted"] == {"judgments": 1} and not home.vectors.exists()
    ((parameters,),) = home.query("SELECT parameters FROM runs WHERE stage = 'forget'")
    assert json.loads(parameters) == {"corpus": "tiny"}


def test_what_was_derived_is_gone_and_the_number_of_a_version_is_used_once(
    made: Made, forgotten: tuple[Warehouse, Any, list[str]]
) -> None:
    home, said, _ = forgotten
    assert said["evaluators"] == [{"evaluator": name, "version": 1} for name in ("rsrem", "ssrem")]
    assert not (home.models / "ssrem").exists() or not list((home.models / "ssrem").iterdir())
    published = {partition.address for partition in home.partitions()}
    assert ("candidates", PartitionKey(corpus="tiny")) not in published
    assert ("scores", PartitionKey(dataset="people", evaluator="ssrem", version=1)) not in published
    assert ("scores", PartitionKey(dataset="people", evaluator="length", version=1)) in published
    for table in ("rankings", "comparisons", "identification", "learning_curves"):
        assert home.query(f"SELECT count(*) FROM {table}") == [(0,)], table
    assert home.query("SELECT count(*) FROM evaluators WHERE evaluator = 'ssrem'") == [(0,)]
    assert next_version(home, "ssrem") == 2
    assert next_version(made.home, "ssrem") == 2 and next_version(made.home, "bleu-2") == 1


def test_the_version_before_is_in_use_again(copy: Warehouse) -> None:
    """Of versions whose newest one leaves with the corpus that it learned from."""
    (newest,) = versions(copy, "rsrem")
    older = newest | {
        "signature": "older",
        "corpora": "{}",
        "promoted": False,
        "why": "replaced by version 2",
    }
    with staging(copy, "train", {"add": 2}) as stage:
        stage.create_from_rows("evaluators", [older, newest | {"version": 2}])
        keys = [PartitionKey(evaluator="rsrem", version=number) for number in (1, 2)]
        stage.publish([Output("evaluators", key, f"version = {key.version}") for key in keys])
    forget("p3", str(copy.root))
    assert [(row["version"], row["promoted"]) for row in versions(copy, "rsrem")] == [(1, True)]
    assert versions(copy, "rsrem")[0]["why"].startswith("in use again")


def test_nobody_of_that_name(home: Warehouse, made: Made) -> None:
    with pytest.raises(PrivacyError, match="no corpus has landed"):
        forget("nobody", str(home.root))
    with pytest.raises(PrivacyError, match="did you mean 'p3'"):
        forget("P3", str(made.home.root))


def test_one_corpus_leaves_the_others_alone_and_goes_with_its_only_person(
    home: Warehouse, write_dump: Dump
) -> None:
    for name in ("one", "two"):
        said = [{"conversation_id": "c", "speaker": who, "text": f"{who}, {name}"} for who in ("ann", "bob")]
        land(write_dump(said, name), str(home.root))
    forget("ann", str(home.root), ["one"])
    hers = [{"conversation_id": "d", "speaker": "ann", "text": "anything at all"}]
    with pytest.raises(DumpError, match="1 forgotten"):
        land(write_dump(hers, "one"), str(home.root), replace=True)
    alone = write_dump(hers, "three")
    land(alone, str(home.root))
    left = [("one", "bob"), ("three", "ann"), ("two", "ann"), ("two", "bob")]
    assert home.query("SELECT corpus, speaker FROM utterances ORDER BY ALL") == left
    forget("ann", str(home.root))
    assert home.query("SELECT corpus, speaker FROM utterances ORDER BY ALL") == [
        ("one", "bob"),
        ("two", "bob"),
    ]
    assert home.query("SELECT corpus FROM corpora ORDER BY ALL") == [("one",), ("two",)]
    assert occurrences(home.root, ["anything at all"]) == []
    with pytest.raises(DumpError, match="1 forgotten"):
        land(alone, str(home.root))


def test_a_pseudonym_is_found_by_the_key(
    home: Warehouse, write_dump: Dump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", SECRET)
    said = [{"conversation_id": "c", "speaker": who, "text": f"{n}"} for n, who in enumerate(["ann", "bob"])]
    source = write_dump(said)
    land(source, str(home.root), pseudonymise=True)
    forget("ann", str(home.root))
    bob = [(PseudonymKey(SECRET.encode()).pseudonym("bob"),)]
    assert home.query("SELECT speaker FROM utterances") == bob
    land(source, str(home.root), pseudonymise=True, replace=True)
    assert home.query("SELECT speaker FROM utterances") == bob
    monkeypatch.delenv("SSREM_PSEUDONYM_KEY")
    with pytest.raises(PrivacyError, match="--pseudonym-key"):
        forget("bob", str(home.root))
    monkeypatch.setenv("SSREM_PSEUDONYM_KEY", SECRET[::-1])
    with pytest.raises(PrivacyError, match=f"another key.*{PseudonymKey(SECRET.encode()).fingerprint}"):
        forget("bob", str(home.root))


KILLED = """
import os, signal, sys
from ssrem.tasks.privacy import forget
from ssrem.tasks.warehouse.home import Warehouse

publish, publishes = Warehouse.write_catalog, 0

def killed(home, partitions):
    global publishes
    publishes += 1
    if publishes > int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    publish(home, partitions)
    if publishes == 2:
        os.kill(os.getpid(), signal.SIGKILL)

Warehouse.write_catalog = killed
forget("zed_target", sys.argv[2])
"""


@pytest.mark.parametrize("kills", [(1,), pytest.param((0, 2), marks=pytest.mark.slow)])
def test_a_killed_run_is_completed_by_another(
    home: Warehouse, write_dump: Dump, kills: tuple[int, ...]
) -> None:
    for seed, corpus in enumerate(("one", "two")):
        rows = [row for row in talk(seed) if isinstance(row, dict)]
        land(write_dump(rows, corpus), str(home.root), max_quarantine=1.0)
    build(corpus, str(home.root), TableSettings(context_turns=3, similarity="none"))
    home.vectors.mkdir()
    (home.vectors / "text").write_text("zed_target")
    before = home.query("SELECT corpus, count(*) FROM utterances GROUP BY ALL ORDER BY ALL")
    for publishes in kills:
        done = run_python(KILLED, publishes, home.root)
        assert done.returncode == -signal.SIGKILL, done.stderr
        left = home.query("SELECT corpus, count(*) FROM utterances GROUP BY ALL ORDER BY ALL")
        kept = [one == other for one, other in zip(left, before, strict=True)]
        assert kept == [publishes < 1, publishes < 2]
    forget("zed_target", str(home.root))
    assert occurrences(home.root, ["zed_target"]) == []
    assert not list(home.staging.glob("*"))
