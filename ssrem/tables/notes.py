"""Sentences on what the user of a landed dump should check, or for which it is refused: speaker ids that name seats,
speakers who are no people, one-sided conversations, replies to nothing, times that run backwards, and repetitions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from ssrem.errors import counted, first_of
from ssrem.readers.fields import HOLDERS
from ssrem.readers.people import NONE
from ssrem.registry import did_you_mean
from ssrem.sql import statement
from ssrem.tables.builder import TableBuilder
from ssrem.tables.landing import Landed

_MOST_NAMED = 5


def seats(tables: TableBuilder, roles: Collection[str] | None) -> str | None:
    """A sentence if the speaker ids name seats, such as user and agent; None if they name people. They name seats if
    all of them are names of roles, which `roles` then holds, if two of them both speak in nearly every conversation, or
    if the name of a role that people have speaks in most conversations."""
    if roles:
        return f"speaker ids {' and '.join(map(repr, sorted(roles)))} are roles; they name seats, not people"
    rows = tables.connection.execute(statement("1_ingest/seats")).fetchall()
    if not rows:
        return _seat_among_names(tables)
    (first, count, conversations), (second, other, _) = rows
    return (
        f"speaker ids {first!r} and {second!r} speak in {min(count, other):,} of {conversations:,} conversations; they "
        "seem to name seats, not people"
    )


def _seat_among_names(tables: TableBuilder) -> str | None:
    """A sentence if the name of a role that people have, such as user, speaks in most conversations."""
    query = """
    SELECT speaker, count(*) AS spoken, (SELECT count(DISTINCT conversation_no) FROM spoken) AS conversations
    FROM spoken
    WHERE is_person AND list_contains(?, lower(speaker)) GROUP BY speaker
    HAVING spoken >= 5 AND 2 * spoken > conversations ORDER BY spoken DESC, speaker
    """
    rows = tables.connection.execute(query, [sorted(HOLDERS)]).fetchall()
    if not rows:
        return None
    role, spoken, conversations = rows[0]
    return f"speaker id {role!r} speaks in {spoken:,} of {conversations:,} conversations; it names a seat, not a person"


def one_sided(tables: TableBuilder) -> str | None:
    """A sentence if in nearly every conversation of several messages one speaker says everything; None if not. Fewer
    than five such conversations are no evidence."""
    query = "SELECT count_if(participants = 1), count(*) FROM conversations WHERE messages > 1"
    ((alone, all_),) = tables.connection.execute(query).fetchall()
    if all_ < 5 or alone < 0.95 * all_:
        return None
    return f"in {alone:,} of {all_:,} conversations of several messages one speaker says everything"


def replies_notes(tables: TableBuilder, landed: Landed) -> Iterator[str]:
    """A sentence on the messages that reply to themselves, if there are any, and one if more than half of the replies
    among the `utterances` are to messages that have not landed."""
    if landed.self_replies:
        yield f"{landed.self_replies:,} messages reply to themselves, and are read as ones that reply to nothing"
    query = statement("1_ingest/absent_replies")
    absent, replies, example = tables.connection.execute(query).fetchall()[0]
    if 2 * absent > replies:
        such = f", such as {example!r}" if example else ""
        way_out = "no column is taken for the id of a message; name it with --map id=COLUMN"
        if landed.has_ids:
            way_out = "compare what messages reply to with their ids"
        yield (
            f"{absent:,} of {replies:,} replies are to messages that have not landed{such}, and so answer nothing; "
            f"{way_out}"
        )


def order_note(tables: TableBuilder) -> str | None:
    """A sentence if more than a twentieth of the `utterances` that reply to no message are older than an earlier one of
    their conversation; None if not. This is so where a dump lists the newest message first, or one speaker's messages
    after the other's."""
    backwards, timed = tables.connection.execute(statement("1_ingest/backwards")).fetchall()[0]
    if 20 * backwards <= timed:
        return None
    return (
        f"{backwards:,} of {timed:,} messages are older than one before them in their conversation: the dump is not in "
        "the order in which they were said, and contexts would hold what was said later; sort it by time and land it "
        "again"
    )


def repeated_notes(tables: TableBuilder) -> Iterator[str]:
    """A sentence if more than a hundredth of the messages are in the dump twice, one if more than a hundredth of the
    conversations are, and one if more than a twentieth of the conversations are the beginning of another one."""
    repeats, timed, beginnings, conversations, copies = tables.connection.execute(
        statement("1_ingest/repeated")
    ).fetchall()[0]
    if 100 * repeats > timed:
        yield (
            f"{repeats:,} of {timed:,} messages have the conversation or id, speaker, time and text of another one; if "
            "the dump has them twice, take them out and land it again"
        )
    if 100 * copies > conversations:
        yield (
            f"{copies:,} of {conversations:,} conversations have the texts of another one, or their own twice, so that "
            "the same texts are learned from and tested on; take the copies out and land it again"
        )
    if 20 * beginnings > conversations:
        yield (
            f"{beginnings:,} of {conversations:,} conversations are the beginning of another one, so that the same "
            "texts are learned from and tested on; if rows repeat a chat that grows, keep the last row of each and "
            "land it again"
        )


def landed_note(tables: TableBuilder, corpus: str) -> str | None:
    """A sentence if more than a twentieth of the conversations have landed in another corpus, too."""
    rows = tables.connection.execute(statement("1_ingest/landed_too"), {"corpus": corpus}).fetchall()
    if not rows or 20 * rows[0][1] <= rows[0][2]:
        return None
    other, there, conversations = rows[0]
    return (
        f"{there:,} of {conversations:,} conversations have landed in the corpus {other!r}, too, and count twice; if "
        f"this dump is that one grown, land it in its place with --name {other} --replace"
    )


def alike_note(tables: TableBuilder) -> str | None:
    """A sentence if speakers differ by case and blanks alone; None if not."""
    query = """
    SELECT list_sort(list(speaker))[:3], count(*) OVER () FROM (SELECT DISTINCT speaker FROM spoken WHERE is_person)
    GROUP BY lower(regexp_replace(trim(speaker), '\\s+', ' ', 'g')) HAVING count(*) > 1 ORDER BY ALL
    """
    rows = tables.connection.execute(query).fetchall()
    if not rows:
        return None
    names, count = rows[0]
    return (
        f"{' and '.join(map(repr, names))} are read as different people, though they differ by case and blanks alone "
        f"(such names: {count:,}); write each one way in the dump if they are one person"
    )


def people_notes(
    tables: TableBuilder,
    scope: str,
    named: Sequence[str],
    option: Callable[[Sequence[str]], str],
    *,
    hidden: bool = False,
) -> list[str]:
    """Notes on the speakers of the `utterances` that do not count as people, on chosen names that no speaker has, and
    on speakers that probably are not people.

    Each gives counts and how to choose names. named: the names that were chosen as no people; if they say that everyone
    is a person, nobody is suspected. option: turns names into the option that chooses them. scope: person or
    conversation, as in `corpora`. hidden: whether speakers have landed under pseudonyms, which cannot be compared with
    the chosen names.
    """
    notes, values = [], {"speaker_scope": scope}
    if excluded := tables.connection.execute(statement("1_ingest/not_people"), values).fetchall():
        counts = [f"{speaker!r} ({counted(messages, 'message')})" for speaker, messages in excluded]
        notes.append(
            f"not counted as people, so their turns are context alone: {first_of(counts, _MOST_NAMED)}; "
            f"{option([NONE])} counts everyone"
        )
    found = {NONE, *(speaker.lower() for speaker, _ in excluded)}
    if not hidden and (absent := [name for name in named if name.lower() not in found]):
        speakers = "SELECT speaker FROM utterances GROUP BY 1 ORDER BY count(*) DESC LIMIT 5_000"
        near = did_you_mean(absent[0], (name for (name,) in tables.connection.execute(speakers).fetchall()))
        notes.append(
            f"not counted as people, but no speaker is called so: {first_of([*map(repr, absent)], _MOST_NAMED)}{near}"
        )
    if NONE not in named and (
        rows := tables.connection.execute(statement("1_ingest/probably_not_people"), values).fetchall()
    ):
        choice = option([speaker for speaker, *_ in rows[:_MOST_NAMED]])
        notes.append(
            f"probably no people: {first_of([_suspect(*row) for row in rows], _MOST_NAMED)}; if so, give {choice}"
        )
    return notes


def _suspect(
    speaker: str,
    conversations: int | None,
    of_conversations: int | None,
    texts: int | None,
    same: int | None,
    messages: int | None,
) -> str:
    """A row of 1_ingest/probably_not_people in words: the speaker, and why it is probably not a person."""
    reasons = []
    if conversations is not None:
        reasons.append(f"in {conversations:,} of {of_conversations:,} conversations")
    if texts is not None:
        reasons.append(f"{counted(texts, 'text')} in {same:,} of {messages:,} messages")
    return f"{speaker!r} ({', '.join(reasons)})"
