"""Turns, contexts, speaker sets and draws by their definitions, in plain Python, and the tables to compare with."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ssrem.settings import TableSettings
from ssrem.tables.speaker_sets import DRAWS, create_tables
from ssrem.tasks.settings import Resources
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.warehouse.home import Warehouse
from support.stages import staging

Message = Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    """A turn as the definitions read it."""

    id: int
    conversation: str
    rank: int
    speaker: str
    addressee: str | None
    text: str
    messages: int
    answers: int | None
    addressee_from: str | None = None
    is_person: bool = True

    @property
    def split(self) -> str:
        return split_of(self.conversation, self.rank)

    @property
    def says(self) -> str:
        return self.text.strip(" ").lower()


def split_of(conversation: str, turn: int = 0) -> str:
    """80/10/10 by the last eight bytes of the md5 of the conversation's id; after 1,000 turns 100 by 100."""
    digest = int.from_bytes(hashlib.md5(conversation.encode()).digest()[8:], "little")
    block = turn // 100 if turn >= 1000 else 0
    return {8: "valid", 9: "test"}.get((digest + block) % 10, "train")


def context_of(turns: Sequence[Turn], turn: Turn, most: int) -> list[int]:
    """The newest `most` turns along the chain that the turn answers, newest last."""
    chain: list[int] = []
    at = turn.answers
    while at is not None and len(chain) < most:
        chain.insert(0, at)
        at = turns[at].answers
    return chain


def partners_of(turns: Sequence[Turn], addressees: str = "all") -> list[str | None]:
    """The person to whom each turn is addressed; nobody where that is guessed and only what is stated counts."""
    nobody = {t.speaker for t in turns if not t.is_person}
    if addressees == "stated":
        turns = [replace(t, addressee=None) if t.addressee_from == "previous_speaker" else t for t in turns]
    return [None if t.addressee in nobody else t.addressee for t in turns]


def own_sets(turns: Sequence[Turn], scope: str, addressees: str = "all") -> dict[str, dict[Any, list[int]]]:
    """Kind → who and where → turn ids of people, in order."""
    sets: dict[str, dict[Any, list[int]]] = {kind: defaultdict(list) for kind in ("SC", "SP", "SS")}
    partners = partners_of(turns, addressees)
    for t in (t for t in turns if t.is_person):
        sets["SC"][t.conversation, t.speaker, t.split].append(t.id)
        if scope == "person":
            sets["SS"][t.speaker, t.split].append(t.id)
            if (partner := partners[t.id]) is not None:
                sets["SP"][t.speaker, partner, t.split].append(t.id)
    return sets


@contextmanager
def built(
    home: Warehouse,
    rows: Sequence[Message],
    *,
    scope: str = "person",
    settings: TableSettings | None = None,
    threads: int | None = 1,
    options: Sequence[str] = (),
) -> Iterator[Stage]:
    """A stage in which the speaker tables of `rows`, of `utterances`, are built."""
    with staging(home, "tables", resources=Resources(threads=threads)) as stage:
        for option in options:
            stage.connection.execute(option)
        stage.create_from_rows("utterances", rows)
        create_tables(stage, "toy", scope, settings or TableSettings())
        yield stage


def fetch(stage: Stage, query: str) -> list[tuple[Any, ...]]:
    return stage.connection.execute(query).fetchall()


# A set is named after its speaker's first turn in it.
RAND = "(SELECT s.*, t.speaker, t.split FROM rand AS s INNER JOIN turns AS t ON s.set_id = t.turn_id)"


def draws(stage: Stage) -> list[tuple[Any, ...]]:
    return fetch(stage, "SELECT response_id, kind, k, turn_id FROM candidates ORDER BY ALL")


def responses_of(turns: Sequence[Turn]) -> list[Turn]:
    """The turns of people that answer another one."""
    return [t for t in turns if t.answers is not None and t.is_person]


def check_draws(
    stage: Stage, turns: Sequence[Turn], scope: str, context_turns: int, addressees: str = "all"
) -> None:
    """Every draw is valid, and null where, and only where, its set has nothing valid left."""
    sets = own_sets(turns, scope, addressees)
    others = defaultdict(set)
    for speaker, split, turn_id in fetch(stage, f"SELECT speaker, split, turn_id FROM {RAND}"):
        others[speaker, split].add(turn_id)
    drawn = {(r, kind, k): t for r, kind, k, t in draws(stage)}
    responses, says, partners = responses_of(turns), [t.says for t in turns], partners_of(turns, addressees)
    expected = {(r.id, "GT", 0) for r in responses}
    expected |= {(r.id, kind, k) for r in responses for kind, n in DRAWS.items() for k in range(n)}
    assert drawn.keys() == expected
    for r in responses:
        assert drawn[r.id, "GT", 0] == r.id
        of_kind = {
            "SC": sets["SC"].get((r.conversation, r.speaker, r.split), ()),
            "SP": sets["SP"].get((r.speaker, partners[r.id], r.split), ()),
            "SS": sets["SS"].get((r.speaker, r.split), ()),
            "Rand": others[r.speaker, r.split],
        }
        left_out = {r.id, *context_of(turns, r, context_turns)}
        for kind, members in of_kind.items():
            valid = {m for m in members if m not in left_out and says[m] != says[r.id]}
            for k in range(DRAWS[kind]):
                turn_id = drawn[r.id, kind, k]
                sound = turn_id in valid if valid else turn_id is None
                assert sound, (
                    f"response {r.id}, {kind} {k}: {turn_id} of {sorted(members)}, valid {sorted(valid)}"
                )
                assert turn_id is None or turns[turn_id].split == r.split, (r.id, kind, k)
