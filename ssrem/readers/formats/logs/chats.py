"""What chat logs share: a row is a conversation with a list of messages, whose speakers are roles."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from ssrem.errors import DumpError
from ssrem.readers.base import Reader, Record, no_object, problem
from ssrem.readers.fields import ALIASES, SILENT_ROLES, Layout, check_header
from ssrem.readers.json.rows import first_objects
from ssrem.readers.metadata import escaped
from ssrem.readers.rows import MalformedRowError, joined_text

_SAMPLE_ROWS = 1_000
_OWNED = ("conversation", "speaker")


class ChatLogReader(Reader):
    """A 'conversation' record for each row, then its messages; all with the number of the row.

    A conversation's id is that of the row, or the row's number if the first rows have no ids. Speakers are roles; but
    if the first rows name an owner, such as `user_id`, the owner speaks the turns of the role user, and the others are
    seats of the conversation. A message's own `name` takes precedence over both. Messages of systems and tools, and
    calls of tools, are left out and counted. A row with the id of an earlier one is a 'duplicate_conversation', since
    its messages would continue another one; the ids are in memory.
    """

    takes_mapping: ClassVar[bool] = True
    lists: ClassVar[tuple[str, ...]]
    """The keys of a row that may hold its messages."""
    role: ClassVar[str]
    """The key of a message that holds its role."""
    taken: ClassVar[tuple[str, ...]]
    """The keys of a message that do not become metadata."""
    silent: ClassVar[tuple[str, ...]] = SILENT_ROLES
    """Roles that do not speak."""
    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "id": ("id", "message_id"),
        "time": ALIASES["time"],
    }
    owners: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "conversation": (*ALIASES["conversation"], "conversation_hash", "id"),
        "speaker": (*ALIASES["speaker"], "owner", "owner_id", "hashed_ip"),
    }
    """Field → the keys of a row, or of its `metadata`, that hold it, best first."""

    def __init__(
        self, path: Path, *, mapping: Mapping[str, tuple[str, ...]] | None = None, batch_rows: int = 65_536
    ) -> None:
        super().__init__(path, batch_rows=batch_rows)
        if wrong := [field for field in mapping or {} if field not in _OWNED]:
            raise DumpError(
                f"--map {wrong[0]}=…: {self.format} takes --map conversation=KEY and speaker=KEY alone"
            )
        self._rows = Layout(mapping, self.owners, self.lists)
        if self._rows.conversations:
            raise DumpError(
                f"--map conversation={self._rows.conversations}: each row of {self.format} is a conversation"
            )

    @abstractmethod
    def text(self, message: Mapping[str, Any]) -> str | None:
        """The text of a message; None if it has none. Counts what it leaves out. Raises MalformedRowError."""

    @classmethod
    def sniff(cls, path: Path) -> bool:
        return any(cls._is_log(row) for row in first_objects(path))

    @classmethod
    def near_miss(cls, path: Path) -> str | None:
        for number, row in enumerate(first_objects(path), 1):
            if key := next((key for key in cls.lists if isinstance(row.get(key), list)), None):
                return f"row {number} has {key!r}, but its entries have no {cls.role!r}"
        return None

    @classmethod
    def _is_log(cls, row: Mapping[str, Any]) -> bool:
        messages = cls._messages(row)
        return any(isinstance(message, dict) and cls.role in message for message in messages or ())

    @classmethod
    def _messages(cls, row: Mapping[str, Any]) -> Sequence[Any] | None:
        return next((row[key] for key in cls.lists if isinstance(row.get(key), list)), None)

    def check(self) -> None:
        keys = self._keys()
        if keys:
            check_header(self.path, keys, self._rows.mapping, DumpError, "key")
        owners = self._rows.plan(tuple(keys)).sources.get("speaker")
        self.persons = owners is not None
        if owners and "speaker" not in self._rows.mapping:
            self.notes.append(
                f"the turns of users are those of {owners[0]!r} of their conversation; --map speaker=KEY names another"
            )

    @property
    def ways_to_people(self) -> str:
        keys = [key for key in self._keys() if key not in self.lists]
        if not keys:
            return "give each conversation a key such as user_id with the person who speaks as user"
        return (
            f"name the key that holds the person with --map speaker=KEY (the keys are {', '.join(keys[:20])})"
        )

    def _keys(self) -> list[str]:
        """The keys of the first rows and their `metadata`, in order."""
        rows = (row for _, row, _ in islice(self.rows(self.path), _SAMPLE_ROWS))
        keys = dict.fromkeys(key for row in rows if isinstance(row, dict) for key in _fields(row))
        self.bytes_read = 0
        return list(keys)

    def records(self) -> Iterator[Record]:
        sources = self._rows.plan(tuple(self._keys())).sources
        self.persons = "speaker" in sources
        ids: set[str | None] = set()
        for number, row, raw in self.rows(self.path):
            if not isinstance(row, dict):
                yield no_object(self.file, number, raw)
                continue
            messages = self._messages(row)
            try:
                named = [
                    _joined(_fields(row), sources[field], field) if field in sources else None
                    for field in _OWNED
                ]
            except MalformedRowError:
                messages = None
            if messages is None:
                yield problem("malformed_row", self.file, number, raw)
                continue
            id, owner = named
            if "conversation" not in sources:
                id = str(number)
            about = {key: value for key, value in row.items() if value is not messages}
            for key in (key for field in _OWNED for key in sources.get(field, ())):
                about.pop(key, None)
            conversation = self.conversation(self.file, number, id, about, row)
            if id in ids and id is not None and "problem" not in conversation:
                conversation = problem("duplicate_conversation", self.file, number, raw, conversation_id=id)
            ids.add(id)
            yield conversation
            if "problem" not in conversation:
                yield from self._turns(number, id, messages, owner)

    def _turns(
        self, number: int, id: str | None, messages: Sequence[Any], owner: str | None
    ) -> Iterator[Record]:
        for message in messages:
            role = message.get(self.role) if isinstance(message, dict) else None
            if isinstance(role, str) and role in self.silent:
                self.left_out[f"messages of {role}"] += 1
                continue
            try:
                if role is not None and not isinstance(role, str):
                    raise MalformedRowError
                before = self.left_out.total()
                text = self.text(message) if isinstance(message, dict) else None
            except MalformedRowError:
                yield problem("malformed_row", self.file, number, escaped(message), conversation_id=id)
                continue
            if text is None and self.left_out.total() > before:
                continue  # nothing but what was left out
            known: dict[str, Any] = {"conversation_id": id}
            rest = message
            if isinstance(message, dict):
                name = message.get("name")
                named = isinstance(name, str) and name
                known |= {
                    "speaker": name if named else role,
                    "person": None if named else owner,
                    "text": text,
                }
                rest = {key: value for key, value in message.items() if key not in self.taken}
                if named or owner is not None:
                    rest["role"] = role
            yield self.message(self.file, number, rest, escaped(message), **known)


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says of its conversation: its members, and those of its `metadata`."""
    about = row.get("metadata")
    return (
        {**row, **{key: about[key] for key in about if key not in row}}
        if isinstance(about, dict)
        else {**row}
    )


def _joined(row: Mapping[str, Any], columns: tuple[str, ...], field: str) -> str | None:
    return joined_text(row, columns, field) if all(column in row for column in columns) else None
