"""Which column of a dump is which field: `--map`, else well-known names; what is left over is metadata."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ssrem.errors import DumpError

#: Fields of `--map` → columns of RAW_SCHEMA.
FIELDS: Mapping[str, str] = {
    "conversation": "conversation_id",
    "id": "utterance_id",
    "speaker": "speaker",
    "addressee": "addressee",
    "reply_to": "reply_to",
    "text": "text",
    "time": "time",
}

#: Names that need no `--map`, best first, as `normalise` writes them.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "conversation": ("conversation_id", "conversation", "dialogue_id", "dialog_id", "conv_id", "thread_id"),
    "id": ("utterance_id", "id", "message_id", "utt_id"),
    "speaker": ("speaker", "speaker_id", "sender", "author", "user", "user_id"),
    "addressee": ("addressee", "addressee_id", "recipient", "listener"),
    "reply_to": ("reply_to", "replyto", "in_reply_to", "parent_id"),
    "text": ("text", "utterance", "message", "body", "content"),
    "time": ("time", "timestamp", "created_at", "datetime"),
}

#: What joins the parts of a composite key, where it is not a colon.
_JOINERS = {"text": " ", "time": " "}


def parse_mapping(
    options: Iterable[str], fields: Collection[str] = FIELDS.keys()
) -> dict[str, tuple[str, ...]]:
    """`["conversation=Season+Episode", …]`, as given to `--map`, → field → the columns that make it.

    fields: those there are. Raises DumpError on an option of another shape, an unknown field, or a field given twice.
    """
    mapping: dict[str, tuple[str, ...]] = {}
    for option in options:
        field, equals, columns = option.partition("=")
        parts = tuple(columns.split("+"))
        if not equals or not all(parts):
            raise DumpError(
                f"--map {option}: write FIELD=COLUMN or FIELD=COLUMN+COLUMN, for example speaker=Name"
            )
        if field in mapping:
            raise DumpError(f"--map gives {field} twice; join columns with +, as in {field}=A+B")
        mapping[field] = parts
    return checked_mapping(mapping, fields)


def checked_mapping(
    mapping: Mapping[str, str | Sequence[str]] | None, fields: Collection[str] = FIELDS.keys()
) -> dict[str, tuple[str, ...]]:
    """The mapping with every value a tuple of columns ("A+B" is split); DumpError on an unknown field."""
    checked: dict[str, tuple[str, ...]] = {}
    for field, columns in (mapping or {}).items():
        if field not in fields:
            raise DumpError(
                f"--map {field}=…: there is no field {field!r}; the fields are {', '.join(fields)}"
            )
        checked[field] = tuple(columns.split("+")) if isinstance(columns, str) else tuple(columns)
    return checked


def normalise(name: str) -> str:
    """A column's name as it is compared with well-known names: lower case, runs of other signs as one `_`."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


@dataclass(frozen=True)
class Plan:
    """Where the fields of rows with these columns come from.

    sources: field → columns, in order. metadata: the columns that no field uses. single: (column of
    RAW_SCHEMA, source column) of the text fields that are one column. composite: the other fields, but for a
    time in one column. ambiguous: some field has several well-known names among the columns, so that it
    depends on the row which is used.
    """

    sources: Mapping[str, tuple[str, ...]]
    metadata: tuple[str, ...]
    ambiguous: bool
    single: tuple[tuple[str, str], ...]
    composite: tuple[str, ...]


class Layout:
    """Finds the Plan for a set of columns.

    mapping: what the person said. aliases: well-known names a field. ignored: columns that are dropped.
    unwrapped: a column whose object's members become metadata themselves (ConvoKit's `meta`).
    """

    def __init__(
        self,
        mapping: Mapping[str, tuple[str, ...]] | None = None,
        *,
        aliases: Mapping[str, tuple[str, ...]] = ALIASES,
        ignored: Iterable[str] = (),
        unwrapped: str | None = None,
    ) -> None:
        self.mapping = dict(mapping or {})
        self.unwrapped = unwrapped
        self._aliases = aliases
        self._ignored = frozenset(ignored)
        self._taken = {column for columns in self.mapping.values() for column in columns}
        self._plans: dict[tuple[str, ...], Plan] = {}

    def plan(self, columns: tuple[str, ...]) -> Plan:
        """The Plan for rows with these columns."""
        found = self._plans.get(columns)
        if found is None:
            found = self._make(columns)
            if len(self._plans) < 1024:  # rows with ever new keys must not fill the memory
                self._plans[columns] = found
        return found

    def time_columns(self) -> frozenset[str]:
        """Columns that `--map` names as the time, alone."""
        columns = self.mapping.get("time", ())
        return frozenset(columns if len(columns) == 1 else ())

    def is_time(self, column: str) -> bool:
        """Whether `column` holds times when it is there."""
        if "time" in self.mapping:
            return column in self.time_columns()
        return column not in self._taken and normalise(column) in self._aliases.get("time", ())

    def _make(self, columns: tuple[str, ...]) -> Plan:
        sources: dict[str, tuple[str, ...]] = {}
        used = set(self._taken)
        ambiguous = False
        by_name: dict[str, list[str]] = {}
        for column in sorted(columns):
            if column not in self._taken and column not in self._ignored:
                by_name.setdefault(normalise(column), []).append(column)
        for field in FIELDS:
            if field in self.mapping:
                if all(column in columns for column in self.mapping[field]):
                    sources[field] = self.mapping[field]
                continue
            found = [column for name in self._aliases.get(field, ()) for column in by_name.get(name, ())]
            if found:
                sources[field] = (found[0],)
                used.add(found[0])
                ambiguous |= len(found) > 1
        rest = sorted(column for column in columns if column not in used and column not in self._ignored)
        single = [(FIELDS[f], parts[0]) for f, parts in sources.items() if len(parts) == 1 and f != "time"]
        composite = tuple(field for field, parts in sources.items() if len(parts) > 1)
        return Plan(sources, tuple(rest), ambiguous, tuple(single), composite)


def joiner(field: str) -> str:
    """What stands between the parts of a composite field."""
    return _JOINERS.get(field, ":")
