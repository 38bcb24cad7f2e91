"""Whether columns that were taken for a field by their well-known names hold it: the values of the first rows say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ssrem.readers.fields import Layout, normalise

Row = Mapping[str, Any]

_MOST_NAMED = 10
_VAGUE = ("recipient", "to")
"""Names of columns that may hold something else than the person addressed, such as a channel."""
FEW = 5
"""Fewer values contradict nothing."""


def weigh(layout: Layout, rows: Sequence[Row], conversations: Sequence[object]) -> None:
    """Make the layout pass over columns that its well-known names take for a field, but whose values contradict.

    A text is no list or object. An addressee is somebody who speaks. An id is that of one message of its conversation.
    Of several columns for the speaker, the first is taken in which most conversations have several speakers, or else an
    id that names the same people. conversations: shape (rows,), what tells the conversations of the rows apart where no
    column does.
    """
    columns = tuple(dict.fromkeys(name for row in rows for name in row))

    def values(field: str) -> list[Any]:
        names = layout.plan(columns).sources.get(field, ())
        parts = [[_plain(row.get(name)) for name in names] for row in rows]
        return [
            None if None in part or not part else part[0] if len(part) == 1 else tuple(part) for part in parts
        ]

    of = [
        one if known is None else known
        for one, known in zip(conversations, values("conversation"), strict=True)
    ]
    candidates = layout.known("speaker", columns)
    if len(candidates) > 1:
        chosen = _speaker({name: [_plain(row.get(name)) for row in rows] for name in candidates}, of)
        layout.pass_over(name for name in candidates[: candidates.index(chosen)])
    while (known := layout.known("text", columns)) and not _are_texts([row.get(known[0]) for row in rows]):
        layout.pass_over(known[:1])
    speakers = values("speaker")
    while known := layout.known("addressee", columns):
        if _are_speakers(values("addressee"), speakers, normalise(known[0]) in _VAGUE):
            break
        layout.pass_over(known[:1])
    while (known := layout.known("id", columns)) and not _are_ids(values("id"), of):
        layout.pass_over(known[:1])


def _plain(value: Any) -> Any:
    """A value that can be compared; of an object, such as one about a person, its text."""
    return str(value) if isinstance(value, list | dict | bool) else None if value == "" else value


def _speaker(candidates: Mapping[str, list[Any]], conversations: Sequence[object]) -> str:
    """The column that names the speaker."""
    several = [name for name in candidates if _differs(candidates[name], conversations)]
    chosen = several[0] if several else next(iter(candidates))
    for name in several:
        if normalise(name).endswith("id") and not normalise(chosen).endswith("id"):
            names = defaultdict(set)
            for id, shown in zip(candidates[name], candidates[chosen], strict=True):
                names[id].add(shown)
            if all(len(one) == 1 for one in names.values()):
                return name
    return chosen


def _differs(values: Sequence[Any], conversations: Sequence[object]) -> bool:
    """Whether there are several values in most of the conversations with several rows."""
    of: dict[object, list[Any]] = defaultdict(list)
    for conversation, value in zip(conversations, values, strict=True):
        of[conversation].append(value)
    long = [said for said in of.values() if len(said) > 1]
    return 2 * sum(len(set(said)) > 1 for said in long) >= max(1, len(long))


def _are_texts(values: Sequence[Any]) -> bool:
    """Whether most of the values, nulls aside, are neither lists nor objects."""
    given = [value for value in values if value is not None]
    return len(given) < FEW or 2 * sum(isinstance(value, list | dict) for value in given) <= len(given)


def _are_speakers(named: Sequence[Any], speakers: Sequence[Any], vague: bool) -> bool:
    """Whether most of those who are addressed speak; where the name is vague, to others than themselves, since numbers
    of something else may be those of speakers by chance."""
    told = [(str(by), str(to)) for by, to in zip(speakers, named, strict=True) if to is not None]
    known = set(map(str, speakers))
    speak, selves = sum(to in known for _, to in told), sum(to == by for by, to in told)
    return len(told) < FEW or (2 * speak >= len(told) and not (vague and 50 * selves >= len(told)))


def _are_ids(ids: Sequence[Any], conversations: Sequence[object]) -> bool:
    """Whether most messages of a conversation have an id of their own."""
    given = [(one, id) for one, id in zip(conversations, ids, strict=True) if id is not None]
    return len(given) < FEW or 2 * len(set(given)) > len(given)


def told(sources: Mapping[str, Sequence[str]], unused: Sequence[str]) -> str:
    """A sentence: which columns are taken for which field, and which are not used."""
    read = ", ".join(f"{field} from {'+'.join(names)!r}" for field, names in sources.items())
    left = [name or "a column without a name" for name in unused]
    more = f" and {len(left) - _MOST_NAMED:,} more" if len(left) > _MOST_NAMED else ""
    return f"read {read}" + (f"; not used: {', '.join(left[:_MOST_NAMED])}{more}" if left else "")
