"""Conversations with replies against a brute-force reading of the definitions: trees, damaged trees and order."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ssrem.samples import Candidates
from ssrem.settings import TableSettings
from ssrem.tables.candidates import load_candidates
from ssrem.tables.speaker_sets import create_tables
from ssrem.tasks.ingest import land
from ssrem.tasks.settings import DumpSettings, Resources
from ssrem.tasks.stage.stage import Stage
from ssrem.tasks.warehouse.home import Warehouse
from support.random_examples import TIMES
from support.speaker_sets import Turn, check_draws, context_of, fetch, own_sets, responses_of
from support.stages import staging

Message = dict[str, Any]
TEXTS = ("lol", "LOL", "ok", "no")
NO_PERSON = "unknown"
REMOVED = "[deleted]"
"""A text, and the speaker of every message of a deleted account."""


@st.composite
def dumps(draw: st.DrawFn) -> list[Message]:
    """Four to twelve conversations whose messages reply to others, to themselves, to nothing, and to what is not there.

    Some of them are by nobody in particular, or removed.
    """
    rows: list[Message] = []
    for conversation in range(draw(st.integers(4, 12))):
        size = draw(st.integers(1, 14))
        for n in range(size):
            one = {"conversation": f"c{conversation}", "id": f"{conversation}-{n}"}
            one["speaker"] = draw(st.sampled_from([*"AABCD", NO_PERSON, REMOVED]))
            one["text"] = draw(st.sampled_from([*TEXTS, *[f"text {conversation} {n}"] * 3, REMOVED]))
            match draw(st.sampled_from(("earlier",) * 6 + ("order",) * 3 + ("any", "absent", "elsewhere"))):
                case "earlier" if n:
                    one["reply_to"] = f"{conversation}-{draw(st.integers(0, n - 1))}"
                case "any":
                    one["reply_to"] = f"{conversation}-{draw(st.integers(0, size - 1))}"
                case "absent":
                    one["reply_to"] = "deleted"
                case "elsewhere" if conversation:
                    one["reply_to"] = f"{conversation - 1}-0"
            if draw(st.integers(0, 9)) == 0:
                one["addressee"] = draw(st.sampled_from([*"ABCDE", NO_PERSON]))
            rows.append(one)
    return rows


def landing(rows: Sequence[Message]) -> tuple[dict[str, str], dict[str, list[Message]]]:
    """Id → reason of the messages that do not land; conversation → the others, each behind what it replies to."""
    by_id = {row["id"]: row for row in rows if row["text"] != REMOVED}
    rejected = {}
    for row in rows:
        seen, at = [], row
        while at["id"] not in seen and at.get("reply_to") in by_id:
            seen.append(at["id"])
            at = by_id[at["reply_to"]]
        if at["id"] == row["id"] and seen:
            rejected[row["id"]] = "reply_cycle"
        if row["text"] == REMOVED:
            rejected[row["id"]] = "removed_text"
    conversations: dict[str, list[Message]] = defaultdict(list)
    for row in rows:
        if row["id"] not in rejected:
            conversations[row["conversation"]].append(row)
    return rejected, {name: in_order(said) for name, said in conversations.items()}


def in_order(said: Sequence[Message]) -> list[Message]:
    """The messages in order; one that precedes what it replies to follows it at once. If there is such a message,
    replies to what is not there follow the first message that replies to nothing."""
    place = {row["id"]: n for n, row in enumerate(said)}
    here = {*place}
    parents = {row["id"]: row["reply_to"] for row in said if "reply_to" in row}
    if any(place[id] < place.get(parent, 0) for id, parent in parents.items()):
        opening = next((id for id in place if id not in parents), None)
        parents = {id: parent if parent in here else opening for id, parent in parents.items()}
    waiting: dict[str, list[Message]] = defaultdict(list)
    ordered: list[Message] = []
    out: set[str] = set()
    for row in said:
        parent = parents.get(row["id"])
        if parent in here and parent not in out:
            waiting[parent].append(row)
            continue
        level = [row]
        while level:
            ordered += level
            out |= {one["id"] for one in level}
            level = [one for before in level for one in waiting.pop(before["id"], ())]
            level.sort(key=said.index)
    return ordered


def turns_of(conversations: Mapping[str, Sequence[Message]], everyone: Mapping[str, Message]) -> list[Turn]:
    """The turns by definition. everyone: every message of the dump by id, landed or not."""
    turns: list[Turn] = []
    for name, said in conversations.items():
        first, place = len(turns), {row["id"]: n for n, row in enumerate(said)}
        blocks: list[list[int]] = []
        answered: list[int | None] = []  # the message that each message answers
        of: dict[int, int] = {}  # message → block
        for n, row in enumerate(said):
            replies = row.get("reply_to") is not None
            answered.append(place.get(row["reply_to"]) if replies else n - 1 if n else None)
            same = n > 0 and said[n - 1]["speaker"] == row["speaker"] != REMOVED
            if same and answered[n] is not None and answered[n] in (n - 1, answered[n - 1]):
                blocks[-1].append(n)
            else:
                blocks.append([n])
            of[n] = len(blocks) - 1
        for rank, block in enumerate(blocks):
            at = answered[block[0]]
            lines = [said[n] for n in block]
            to, known_from = next(filter(None, (named(line, everyone) for line in lines)), (None, None))
            turns.append(
                Turn(
                    first + rank,
                    name,
                    rank,
                    lines[0]["speaker"],
                    to,
                    " ".join(line["text"] for line in lines),
                    len(block),
                    None if at is None else first + of[at],
                    known_from,
                    lines[0]["speaker"] not in (NO_PERSON, REMOVED),
                )
            )
        for turn in turns[first:]:
            if turn.addressee is None and (guess := guessed(turns, turn)) is not None:
                object.__setattr__(turn, "addressee", guess)
                object.__setattr__(turn, "addressee_from", "previous_speaker")
    return turns


def named(message: Message, everyone: Mapping[str, Message]) -> tuple[str, str] | None:
    """Whom a message names, or replies to in its conversation, and which of both; None where that is its speaker."""
    parent = everyone.get(message.get("reply_to", ""), {})
    answered = parent.get("speaker") if parent.get("conversation") == message["conversation"] else None
    to = message.get("addressee") or answered
    if to is None or to == message["speaker"]:
        return None
    return to, "stated" if message.get("addressee") else "reply"


def guessed(turns: Sequence[Turn], turn: Turn) -> str | None:
    """Whom a turn addresses that names nobody: the speaker that it answers, or whom that turn of its own addresses; an
    opening turn the first other who answers it."""
    if turn.answers is not None:
        before = turns[turn.answers]
        return before.speaker if before.speaker != turn.speaker else before.addressee
    if turn.rank:
        return None
    later = (t for t in turns if t.answers == turn.id and t.speaker != turn.speaker)
    return next((t.speaker for t in later), None)


@contextmanager
def tables_of(rows: Sequence[Message], context_turns: int, addressees: str = "all") -> Iterator[Stage]:
    """A stage in which the dump has landed and its speaker tables are built."""
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "toy.jsonl"
        dump.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        home = Warehouse.at(Path(folder) / "home")
        # The values of a small dump may contradict the names of its columns.
        fields = {name: name for name in ("id", "addressee") if any(name in row for row in rows)}
        land(str(dump), str(home.root), DumpSettings(max_quarantine=1.0, speakers="person", map=fields))
        with staging(home, "tables", resources=Resources(threads=1)) as stage:
            settings = TableSettings(context_turns=context_turns, addressees=addressees)
            create_tables(stage, "toy", "person", settings)
            yield stage


@settings(max_examples=3 * TIMES, suppress_health_check=[HealthCheck.too_slow])
@given(
    rows=dumps(), context_turns=st.sampled_from((1, 2, 5, 50)), addressees=st.sampled_from(("all", "stated"))
)
def test_threads_are_what_the_definitions_say(
    rows: list[Message], context_turns: int, addressees: str
) -> None:
    # A message that replies to itself is the first of its thread.
    said = [{k: v for k, v in row.items() if k != "reply_to" or v != row["id"]} for row in rows]
    rejected, conversations = landing(said)
    if len(rejected) == len(rows):
        return
    everyone = {row["id"]: row for row in said}
    turns = turns_of(conversations, everyone)
    with tables_of(rows, context_turns, addressees) as stage:
        assert (
            dict(
                fetch(
                    stage, "SELECT json_extract_string(decode(raw), '$.utterance_id'), reason FROM quarantine"
                )
            )
            == rejected
        )
        assert fetch(
            stage,
            "SELECT utterance_id, reply_absent, is_person, addressee, addressee_from FROM utterances "
            "ORDER BY conversation_no, position",
        ) == [
            (
                row["id"],
                row.get("reply_to") not in {None, *(one["id"] for one in said)},
                row["speaker"] not in (NO_PERSON, REMOVED),
                *(named(row, everyone) or (None, None)),
            )
            for said in conversations.values()
            for row in said
        ]
        assert fetch(
            stage,
            "SELECT turn_id, conversation_id, turn, speaker, addressee, text, messages, answers, addressee_from, "
            "is_person FROM turns ORDER BY 1",
        ) == [astuple(t) for t in turns]
        responses = responses_of(turns)
        contexts = [context_of(turns, t, context_turns) for t in responses]
        assert fetch(stage, "SELECT response_id, context FROM responses ORDER BY 1") == [
            (t.id, context) for t, context in zip(responses, contexts, strict=True)
        ]
        for kind, sets in own_sets(turns, "person", addressees).items():
            assert fetch(stage, f"SELECT set_id, turn_id FROM {kind.lower()} ORDER BY set_id, position") == [
                (min(ids), turn_id) for ids in sorted(sets.values()) for turn_id in ids
            ], kind
        check_draws(stage, turns, "person", context_turns, addressees)
        loaded = load_candidates(stage.connection, ["toy"])
        assert read_contexts(loaded) == [tuple(turns[at].text for at in context) for context in contexts]
        stage.connection.execute("CREATE TABLE vector_norms AS SELECT 1.0::DOUBLE AS norm")
        stage.gate()


def read_contexts(candidates: Candidates) -> list[tuple[str, ...]]:
    spans = zip(candidates.context_start, candidates.context_stop, strict=True)
    return [tuple(candidates.texts[start:stop]) for start, stop in spans]


def test_a_reply_is_answered_by_its_own_chain_alone() -> None:
    said = [
        ("a", "ann", None),
        ("b", "bob", "a"),
        ("c", "cat", "a"),
        ("d", "ann", "b"),
        ("e", "ann", "c"),  # of the same speaker as the message before it, in another chain
        ("f", "bob", "d"),
        ("g", "cat", "gone"),
        ("h", "bob", "g"),
    ]
    rows = [
        {"conversation": "t", "id": id, "speaker": who, "text": id} | ({"reply_to": to} if to else {})
        for id, who, to in said
    ]
    with tables_of(rows, 5) as stage:
        assert fetch(
            stage,
            "SELECT t.text, list(c.text ORDER BY c.turn_id) FROM (SELECT response_id, unnest(context) AS turn_id "
            "FROM responses) AS r JOIN turns AS t ON r.response_id = t.turn_id "
            "JOIN turns AS c ON r.turn_id = c.turn_id "
            "GROUP BY ALL ORDER BY 1",
        ) == [
            ("b", ["a"]),
            ("c", ["a"]),
            ("d", ["a", "b"]),
            ("e", ["a", "c"]),
            ("f", ["a", "b", "d"]),
            ("h", ["g"]),
        ]
        assert fetch(stage, "SELECT text FROM utterances WHERE reply_absent") == [("g",)]
