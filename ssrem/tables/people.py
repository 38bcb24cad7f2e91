"""Notes on speakers that do not count as people, and on those that probably are not people."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ssrem.readers.people import NONE
from ssrem.sql import statement
from ssrem.tables.builder import TableBuilder

_MOST_NAMED = 5


def people_notes(
    tables: TableBuilder, named: Sequence[str], option: Callable[[Sequence[str]], str]
) -> list[str]:
    """Notes on the speakers of the table `raw` that do not count as people, and on those that probably are not.

    Each gives the counts and, by `option`, how to choose names. named: the names that were chosen; if they say that
    everyone is a person, nobody is suspected.
    """
    notes = []
    if excluded := tables.connection.execute(statement("1_ingest/not_people")).fetchall():
        counts = [
            f"{speaker!r} ({messages:,} message{'s' * (messages != 1)})" for speaker, messages in excluded
        ]
        notes.append(
            f"not counted as people, so their turns are context alone: {_listed(counts)}; "
            f"{option([NONE])} counts everyone"
        )
    if NONE not in named and (
        rows := tables.connection.execute(statement("1_ingest/probably_not_people")).fetchall()
    ):
        choice = option([speaker for speaker, *_ in rows[:_MOST_NAMED]])
        notes.append(f"probably no people: {_listed([_suspect(*row) for row in rows])}; if so, give {choice}")
    return notes


def _suspect(
    speaker: str,
    conversations: int | None,
    of_conversations: int | None,
    texts: int | None,
    same: int | None,
    messages: int | None,
) -> str:
    """A row of 1_ingest/probably_not_people."""
    reasons = []
    if conversations is not None:
        reasons.append(f"in {conversations:,} of {of_conversations:,} conversations")
    if texts is not None:
        reasons.append(f"{texts} text{'s' * (texts > 1)} in {same:,} of {messages:,} messages")
    return f"{speaker!r} ({', '.join(reasons)})"


def _listed(named: Sequence[str]) -> str:
    more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
    return ", ".join(named[:_MOST_NAMED]) + more
