"""`--map` into nested rows: dotted keys, places in lists, `*` for the members of a list, several texts of a row."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ssrem.errors import DumpError
from ssrem.readers.fields import ALIASES, HOLDERS, OF_PATH, ROLES, normalise
from ssrem.readers.json_values import opened

KeyPath = tuple[str, ...]

MEMBERS = "*"
_PLACE = re.compile(r"-?\d{1,9}")


@dataclass(frozen=True)
class Paths:
    """Where the fields of `--map` are in nested rows.

    paths: field → its paths. members: the path of the list whose members are messages; None if a row is a message.
    """

    paths: Mapping[str, tuple[KeyPath, ...]]
    members: KeyPath | None

    @classmethod
    def of(cls, mapping: Mapping[str, Sequence[str]], columns: Collection[str]) -> Paths | None:
        """None if each field is in columns of the rows, and the text in one. DumpError for members of two lists."""
        paths = {
            field: tuple((name,) if name in columns else tuple(name.split(".")) for name in names)
            for field, names in mapping.items()
        }
        if all(len(path) == 1 for each in paths.values() for path in each) and len(paths.get("text", ())) < 2:
            return None
        for path in (path for each in paths.values() for path in each if path.count(MEMBERS) > 1):
            raise DumpError(
                f"--map names {'.'.join(path)!r}: a path has one *, that of the list whose members are messages; name "
                "a place in the other list by its number, such as parts.0, or take the lists apart with jq"
            )
        lists = {path[: path.index(MEMBERS)] for each in paths.values() for path in each if MEMBERS in path}
        if len(lists) > 1:
            named = " and ".join(sorted(".".join(path) for path in lists))
            raise DumpError(f"--map names members of two lists, {named}; the messages are in one of them")
        return cls(paths, next(iter(lists), None))

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """Field → the key of its value in the messages, as `FieldNames` takes it."""
        return {field: (OF_PATH + field,) for field in self.paths}

    def missing(self, rows: Sequence[Mapping[str, Any]]) -> str | None:
        """The first path that leads to nothing in all of the rows, as it is written."""
        for each in self.paths.values():
            for path in each:
                if all(next(values_at(row, path), None) is None for row in rows):
                    return ".".join(path)
        return None

    def messages(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any] | None]:
        """What a row says besides its messages, and these; None if it has no list of members."""
        members: Any = [row] if self.members is None else next(values_at(row, self.members), None)
        members = opened(members)
        if not isinstance(members, list):
            return {}, None
        used = [path for each in self.paths.values() for path in each]
        about = {} if self.members is None else _rest(row, [*used, self.members])
        id = self._value("conversation", row, None)
        if id is not None:
            about[OF_PATH + "conversation"] = id
        before, inside = self._texts
        turns = [turn for member in members for turn in self._turns(row, member, inside)]
        keys = {normalise(key) for member in members if isinstance(member, Mapping) for key in member}
        if "speaker" not in self.paths and len(inside) < 2 and keys.isdisjoint(ALIASES["speaker"]):
            turns = [{**turn, "speaker": "AB"[at % 2]} for at, turn in enumerate(turns)]
        return about, [*(self._turns(row, {}, before) if before else ()), *turns]

    def _turns(self, row: Mapping[str, Any], member: Any, numbers: Sequence[int]) -> Iterator[Any]:
        """The messages of a member: one for each of the paths of the text with these numbers, without those that are
        empty."""
        used = [self._below(path) for each in self.paths.values() for path in each]
        # A member that is no object may be a text, or a pair of speaker and text.
        rest = _rest(member, used) if isinstance(member, Mapping) else {}
        texts = self.paths.get("text", ())
        for at, number in enumerate(numbers or [0]):
            path = texts[number] if texts else None
            message = dict(rest)
            for field in self.paths:
                message[OF_PATH + field] = self._value(field, row, member)
            if path is not None and len(texts) > 1:
                message[OF_PATH + "text"] = self._one(path, row, member)
                if message[OF_PATH + "text"] in (None, ""):
                    continue
                speakers = self.paths.get("speaker", ())
                if len(speakers) == len(texts):
                    message[OF_PATH + "speaker"] = self._one(speakers[number], row, member)
                elif not speakers:
                    message["speaker"] = self._seats[number]
                if at:
                    message.pop(OF_PATH + "id", None)
            yield message

    @cached_property
    def _texts(self) -> tuple[list[int], list[int]]:
        """The numbers of the paths of texts that stand beside the list of members, and of those in each member."""
        texts = list(enumerate(self.paths.get("text", ())))
        inside = [number for number, path in texts if self.members is None or MEMBERS in path]
        return [number for number, _ in texts if number not in inside], inside

    @cached_property
    def _seats(self) -> list[str]:
        """Who speaks each of several texts: the roles in the names of their keys, such as `user_message`, if these
        differ, or else the names; where a person is named, the first text is a user's."""
        names = [path[-1] for path in self.paths["text"]]
        roles = [next((part for part in normalise(name).split("_") if part in ROLES), name) for name in names]
        chosen = roles if len({*roles}) == len(roles) else names
        return ["user", *chosen[1:]] if "person" in self.paths and HOLDERS.isdisjoint(chosen) else chosen

    def _value(self, field: str, row: Mapping[str, Any], member: Any) -> Any:
        """The value of a field, of several paths joined as a key; None if one of them leads to nothing."""
        values = [self._one(path, row, member) for path in self.paths.get(field, ())]
        if len(values) < 2:
            return values[0] if values else None
        return None if None in values else ":".join(map(str, values))

    def _one(self, path: KeyPath, row: Mapping[str, Any], member: Any) -> Any:
        inside = self.members is not None and MEMBERS in path
        return next(values_at(member, self._below(path)) if inside else values_at(row, path), None)

    def _below(self, path: KeyPath) -> KeyPath:
        """The part of a path below a member."""
        return path[path.index(MEMBERS) + 1 :] if MEMBERS in path else path if self.members is None else ()


def values_at(value: Any, path: KeyPath) -> Iterator[Any]:
    """The values at a path. A text on the way is read as the list or object that it is, a key may hold dots, and `*`
    are the members of a list, or of an object."""
    if not path:
        if value is not None:
            yield value
        return
    value = opened(value)
    key, *rest = path
    if key == MEMBERS:
        inside = value.values() if isinstance(value, Mapping) else value
        for member in inside if isinstance(value, list | Mapping) else ():
            yield from values_at(member, tuple(rest))
    elif isinstance(value, Mapping):
        sizes = (size for size in range(len(path), 0, -1) if ".".join(path[:size]) in value)
        if size := next(sizes, 0):
            yield from values_at(value[".".join(path[:size])], path[size:])
    elif isinstance(value, list) and _PLACE.fullmatch(key) and -len(value) <= int(key) < len(value):
        yield from values_at(value[int(key)], tuple(rest))


def _rest(value: Mapping[str, Any], used: Sequence[KeyPath]) -> dict[str, Any]:
    """An object without what is at the used paths, and without objects of which nothing else is left."""
    rest = {}
    for key, member in value.items():
        parts = tuple(key.split("."))
        below = [path[len(parts) :] for path in used if path[: len(parts)] == parts]
        if not below:
            rest[key] = member
        elif () not in below and (inner := _rest(member, below) if isinstance(member, Mapping) else member):
            rest[key] = inner
    return rest
