"""The speaker tables against a brute-force reading of their definitions, on small random corpora."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, groupby
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import chisquare

from ssrem.settings import TableSettings
from ssrem.sql import checks
from ssrem.tables.speaker_sets import DRAWS, KIND_CODES, create_tables, draw, seed_hash
from ssrem.tasks.settings import Resources
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.warehouse.home import Warehouse
from support.speaker_sets import (
    RAND,
    Message,
    Turn,
    built,
    check_draws,
    context_of,
    draws,
    fetch,
    own_sets,
    split_of,
)
from support.stages import staging

WORDS = ("lol", "LOL", " lol ", "lol", "ok", "É bien", "é BIEN", "why not?", "no")


def conversation_ids(split: str) -> Iterator[str]:
    """Names of conversations that fall into a split."""
    return (name for name in (f"c{i}" for i in count()) if split_of(name) == split)


def messages(conversations: Mapping[str, Sequence[tuple[Any, ...]]], corpus: str = "toy") -> list[Message]:
    """Rows of `utterances`: conversation → (speaker, text[, addressee]) in order."""
    rows = []
    for number, (name, said) in enumerate(conversations.items()):
        turn, before = -1, None
        for position, (speaker, text, *to) in enumerate(said):
            turn += speaker != before
            before = speaker
            rows.append(
                {
                    **{"corpus": corpus, "utterance_id": f"{name}#{position}", "conversation_id": name},
                    **{"conversation_no": number, "position": position, "turn": turn},
                    **{"answers": turn - 1 if turn else None, "speaker": speaker, "is_person": True},
                    **{"addressee": to[0] if to else None, "text": text},
                    **{"addressee_from": "stated" if to and to[0] else None, "reply_absent": False},
                    **{"reply_to": None, "time": None, "time_backwards": False, "metadata": None},
                }
            )
    return rows


def random_corpus(seed: int, *, seats: bool = False) -> list[Message]:
    """Up to nine conversations of one to four of five people, who mostly say the same things."""
    rng = random.Random(seed)
    conversations: dict[str, list[tuple[Any, ...]]] = {}
    for _ in range(rng.randint(1, 9)):
        name = f"c{rng.randrange(10**6)}"
        people = [f"{name}/{p}" if seats else p for p in rng.sample("ABCDE", rng.randint(1, 4))]
        said: list[tuple[Any, ...]] = []
        for i in range(rng.randint(1, 14)):
            speaker = rng.choice(people)
            others = [p for p in people if p != speaker]
            to = rng.choice(others) if others and rng.random() < 0.3 else None
            said.append((speaker, rng.choice([*WORDS, f"{name} {i}"]), to))
        conversations[name] = said
    return messages(conversations)


def turns_of(rows: Sequence[Message]) -> list[Turn]:
    """Neighbouring messages of one speaker joined; partner: who is addressed, else the latest other speaker."""
    turns: list[Turn] = []
    ordered = sorted(rows, key=lambda r: (r["conversation_no"], r["position"]))
    for name, talk in groupby(ordered, key=lambda r: r["conversation_id"]):
        blocks = [list(block) for _, block in groupby(talk, key=lambda r: r["speaker"])]
        for rank, block in enumerate(blocks):
            said = [r["addressee"] for r in block if r["addressee"] is not None]
            near = blocks[rank - 1] if rank else blocks[1] if len(blocks) > 1 else None
            addressee = said[0] if said else near[0]["speaker"] if near else None
            text = " ".join(r["text"] for r in block)
            answers = len(turns) - 1 if rank else None
            turns.append(
                Turn(len(turns), name, rank, block[0]["speaker"], addressee, text, len(block), answers)
            )
    return turns


@pytest.mark.parametrize("seed", range(2))
def test_tables_are_what_the_definitions_say(home: Warehouse, seed: int) -> None:
    scope, context_turns = (("conversation", 5), ("person", 2))[seed]
    turns = turns_of(rows := random_corpus(seed, seats=scope == "conversation"))
    settings = TableSettings(seed=seed, context_turns=context_turns)
    with built(home, rows, scope=scope, settings=settings) as stage:
        assert fetch(
            stage,
            "SELECT turn_id, conversation_id, turn, speaker, addressee, text, messages, split FROM turns ORDER BY 1",
        ) == [
            (t.id, t.conversation, t.rank, t.speaker, t.addressee, t.text, t.messages, t.split) for t in turns
        ]
        assert fetch(stage, "SELECT * EXCLUDE corpus FROM responses ORDER BY response_id") == [
            (t.id, context_of(turns, t, context_turns), t.conversation, t.speaker, t.addressee, t.split)
            for t in turns
            if t.rank > 0
        ]
        for kind, sets in own_sets(turns, scope).items():
            assert fetch(stage, f"SELECT * EXCLUDE corpus FROM {kind.lower()} ORDER BY set_id, position") == [
                (min(ids), position, len(ids), turn_id)
                for ids in sorted(sets.values())
                for position, turn_id in enumerate(ids)
            ], kind
        check_rand(stage, turns)
        check_draws(stage, turns, scope, context_turns)
        stage.connection.execute(
            "CREATE TABLE conversations AS SELECT corpus, conversation_id, count(*) AS messages "
            "FROM utterances GROUP BY ALL"
        )
        stage.connection.execute("CREATE TABLE vector_norms (turn_id BIGINT, norm DOUBLE)")
        stage.staged.remove("utterances")
        stage.gate()


def check_rand(stage: Stage, turns: Sequence[Turn]) -> None:
    """Rand holds turns of others in the split, as many as its speaker's own but at least 8."""
    own: dict[Any, list[Turn]] = defaultdict(list)
    for t in turns:
        own[t.speaker, t.split].append(t)
    stored = fetch(stage, f"SELECT speaker, split, set_id, position, size, turn_id FROM {RAND} ORDER BY ALL")
    members = {who: list(rows) for who, rows in groupby(stored, key=lambda row: row[:2])}
    assert members.keys() == {
        (who, split) for who, split in own if any(t.speaker != who and t.split == split for t in turns)
    }
    for (speaker, split), rows in members.items():
        size = max(8, len(own[speaker, split]))
        assert [row[2:5] for row in rows] == [(own[speaker, split][0].id, p, size) for p in range(size)]
        assert all(turns[row[5]].speaker != speaker and turns[row[5]].split == split for row in rows)


def test_splits_are_eighty_ten_ten_and_stay(home: Warehouse) -> None:
    names = [f"c{i}" for i in range(2000)]
    # Written down, so that no change of the hash goes by unseen.
    assert [i for i in range(40) if split_of(names[i]) == "valid"] == [3, 5, 12, 20, 21, 26, 30, 36]
    assert [i for i in range(40) if split_of(names[i]) == "test"] == [7, 22, 37]
    with built(home, messages({n: [("A", "hi")] for n in names})) as stage:
        stored = dict(fetch(stage, "SELECT conversation_id, split FROM turns"))
    assert stored == {n: split_of(n) for n in names}
    shares = [sum(s == split for s in stored.values()) / 2000 for split in ("train", "valid", "test")]
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.025)


def test_an_endless_conversation_is_in_every_split(home: Warehouse) -> None:
    rng, name = random.Random(0), "channel1"  # whose blocks after 1,000 turns are train, valid and test
    said = [("ABC"[i % 3], rng.choice([*WORDS, f"x {i}"])) for i in range(1250)]
    turns = turns_of(rows := messages({name: said}))
    with built(home, rows) as stage:
        stored = fetch(stage, "SELECT turn, split FROM turns ORDER BY 1")
        assert stored == [(t.rank, t.split) for t in turns]
        assert {split for turn, split in stored if turn < 1000} == {split_of(name)}
        assert {split for turn, split in stored if turn >= 1000} == {"train", "valid", "test"}
        check_draws(stage, turns, "person", 5)
        (check,) = (check for check in checks("tables") if check.name == "conversations_stay_in_one_split")
        assert fetch(stage, check.query) == []
        moved = "CASE WHEN turn = 1050 THEN if(split = 'train', 'test', 'train') ELSE split END AS split"
        leaky = check.query.replace("FROM turns", f"FROM (SELECT * REPLACE ({moved}) FROM turns)")
        assert len(fetch(stage, leaky)) == 1


def test_one_text_everywhere_leaves_nothing_to_draw(home: Warehouse) -> None:
    talk = {f"c{i}": [("A", "lol"), ("B", "LOL "), ("A", " lol"), ("B", "Lol")] for i in range(30)}
    with built(home, messages(talk)) as stage:
        assert fetch(stage, "SELECT kind, count(turn_id) FROM candidates GROUP BY ALL ORDER BY 1") == [
            ("GT", 90),
            ("Rand", 0),
            ("SC", 0),
            ("SP", 0),
            ("SS", 0),
        ]


def test_the_one_other_text_is_found(home: Warehouse) -> None:
    names = conversation_ids("train")
    talk: dict[str, Any] = {next(names): [("B", "eh"), ("A", "lol"), ("B", "lol")] for _ in range(150)}
    talk[next(names)] = [("A", "something else"), ("B", "indeed")]
    rows = messages(talk)
    with built(home, rows) as stage:
        check_draws(stage, turns_of(rows), "person", 5)
        assert fetch(
            stage, "SELECT count(turn_id) FROM candidates WHERE kind = 'SS' AND response_id = 1"
        ) == [(1,)]


def test_context_that_fills_the_others_set_is_skipped(home: Warehouse) -> None:
    # A's monologues make Rand_A large while its pool is few turns, one of them the context.
    names = conversation_ids("train")
    talk: dict[str, Any] = {next(names): [("A", f"monologue {i}")] for i in range(900)}
    talk |= {next(names): [("B", f"x {i}"), ("A", f"y {i}")] for i in range(2)}
    rows = messages(talk)
    with built(home, rows) as stage:
        check_draws(stage, turns_of(rows), "person", 5)


def test_context_longer_than_any_probe_is_skipped(home: Warehouse) -> None:
    talk = [(("A", "B")[i % 2], "lol" if i % 6 < 2 else f"text {i:03}") for i in range(330)]
    rows = messages({next(conversation_ids("train")): talk})
    with built(home, rows, settings=TableSettings(context_turns=280)) as stage:
        check_draws(stage, turns_of(rows), "person", 280)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    """The draws of a corpus with the usual seed."""
    with built(Warehouse.at(tmp_path_factory.mktemp("drawn") / "home"), random_corpus(7)) as stage:
        return draws(stage)


def test_draws_depend_neither_on_threads_nor_order_nor_another_corpus(
    home: Warehouse, drawn: list[tuple[Any, ...]]
) -> None:
    rows = random_corpus(7)
    random.Random(1).shuffle(rows)
    rows = [{**row, "corpus": "other", "text": "else"} for row in random_corpus(8)] + rows
    with built(home, rows, threads=4, options=["SET preserve_insertion_order = true"]) as stage:
        assert draws(stage) == drawn


@pytest.mark.slow
def test_many_threads_draw_as_one(tmp_path: Path) -> None:
    # More rows than one thread takes at a time (122,880), in an order that means nothing.
    generated = """
        INSERT INTO utterances BY NAME
        SELECT 'toy' AS corpus, 'u' || i AS utterance_id, 'c' || i // 8 AS conversation_id, i // 8 AS conversation_no,
            i % 8 AS position, i % 8 AS turn, nullif(i % 8 - 1, -1) AS answers, 's' ||
            (md5_number_lower((i // 8 * 2 + i % 2)::VARCHAR) % 500 * 2 + i % 2) AS speaker,
            CASE WHEN i % 3 = 0 THEN 'lol' ELSE 'text ' || i % 1000 END AS text, false AS reply_absent,
            true AS is_person,
            false AS time_backwards
        FROM range(131_072) AS r (i) ORDER BY hash(i + {shuffle})
    """
    stored = []
    for threads, shuffle in ((1, 0), (4, 1)):
        place = Warehouse.at(tmp_path / str(threads))
        with staging(place, "tables", resources=Resources(threads=threads)) as stage:
            stage.create("utterances")
            stage.connection.execute(generated.format(shuffle=shuffle))
            create_tables(stage, "toy", "person", TableSettings())
            stored += fetch(
                stage, "SELECT count(*), count(turn_id), bit_xor(hash(candidates)) FROM candidates"
            )
    assert stored[0][1] > 800_000
    assert stored[0] == stored[1]


def test_seeds_draw_differently(home: Warehouse, drawn: list[tuple[Any, ...]]) -> None:
    with built(home, random_corpus(7), settings=TableSettings(seed=1)) as stage:
        changed = sum(a != b for a, b in zip(draws(stage), drawn, strict=True))
    assert changed > len(drawn) / 8


@pytest.mark.parametrize(("kind", "seeds"), [("SS", 15), ("Rand", 6)])
def test_draws_are_uniform(home: Warehouse, kind: str, seeds: int) -> None:
    names, answers = conversation_ids("train"), 50
    talk = {next(names): [("B", f"question {i}"), ("A", f"answer {i}")] for i in range(answers)}
    with built(home, messages(talk)) as stage:
        table, n = kind.lower(), DRAWS[kind]
        members = [
            t
            for (t,) in fetch(
                stage,
                f"SELECT s.turn_id FROM {table} AS s INNER JOIN turns AS a ON s.set_id = a.turn_id "
                "WHERE a.speaker = 'A' ORDER BY s.position",
            )
        ]
        values = {
            "corpus": "toy",
            "kind": kind,
            "kind_code": KIND_CODES[kind],
            "draws": n,
            "context_turns": 5,
        }
        values |= {"speaker_scope": "person", "addressees": "all"}
        drawn = []
        for seed in range(100, 100 + seeds):
            draw(stage.create, values | {"seed_hash": seed_hash(stage.connection, seed)})
            drawn += fetch(stage, "SELECT response_id, turn_id FROM draws WHERE turn_id IS DISTINCT FROM -1")
            drawn += fetch(stage, "SELECT response_id, turn_id FROM redraws")
    if kind == "SS":
        # The rank among what is left, which is every answer but the response's own.
        observed = [0] * (answers - 1)
        for response, turn in drawn:
            observed[[m for m in members if m != response].index(turn)] += 1
        expected = [len(drawn) / len(observed)] * len(observed)
    else:
        # Rand_A is itself a draw, so a turn weighs as often as it is a member; contexts are left out.
        observed = [sum(t == m for _, t in drawn) for m in sorted(set(members))]
        weights = [
            sum(
                members.count(m) / (len(members) - members.count(r - 1))
                for r in range(1, 2 * answers, 2)
                if r - 1 != m
            )
            for m in sorted(set(members))
        ]
        expected = [len(drawn) * w / sum(weights) for w in weights]
    assert sum(observed) == len(drawn) == seeds * answers * n
    assert chisquare(observed, expected).pvalue > 1e-3
