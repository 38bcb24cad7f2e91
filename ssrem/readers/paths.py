"""Reads what `--map` names in nested rows: dotted keys, places in lists, all members of a list (`*`), several texts."""

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

    paths: field → its paths. members: the path of the list whose members are messages; None if no path has a `*`.
    """

    paths: Mapping[str, tuple[KeyPath, ...]]
    members: KeyPath | None

    @classmethod
    def of(cls, mapping: Mapping[str, Sequence[str]], columns: Collection[str]) -> Paths | None:
        """The paths of a mapping; None if plain columns suffice: each field is in columns of the rows, the text in one.

        DumpError if paths lead to the members of two lists, or if one path has two `*`.
        """
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
        """The mapping for FieldNames: field → the key under which `messages` stores its value."""
        return {field: (OF_PATH + field,) for field in self.paths}

    def missing(self, rows: Sequence[Mapping[str, Any]]) -> str | None:
        """The first path that leads to no value in any of the rows, as the user wrote it; None if all lead to one."""
        for each in self.paths.values():
            for path in each:
                if all(next(values_at(row, path), None) is None for row in rows):
                    return ".".join(path)
        return None

    def messages(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any] | None]:
        """What a row says of its conversation, and its messages; these are None if it lacks the list of members."""
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
        """Yield the messages of a member: one for each text path with one of these numbers. Of several texts, empty
        ones are skipped."""
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
        """The numbers of the text paths that lie beside the list of members, and of those that lead into members."""
        texts = list(enumerate(self.paths.get("text", ())))
        inside = [number for number, path in texts if self.members is None or MEMBERS in path]
        return [number for number, _ in texts if number not in inside], inside

    @cached_property
    def _seats(self) -> list[str]:
        """The speaker of each of several texts: the role in the name of its key, such as `user_message`, or the whole
        name if the roles do not differ. If `person` is mapped, but no name is one of HOLDERS, the first is `user`."""
        names = [path[-1] for path in self.paths["text"]]
        roles = [next((part for part in normalise(name).split("_") if part in ROLES), name) for name in names]
        chosen = roles if len({*roles}) == len(roles) else names
        return ["user", *chosen[1:]] if "person" in self.paths and HOLDERS.isdisjoint(chosen) else chosen

    def _value(self, field: str, row: Mapping[str, Any], member: Any) -> Any:
        """The value of a field; values of several paths are joined by colons. None if any path leads to no value."""
        values = [self._one(path, row, member) for path in self.paths.get(field, ())]
        if len(values) < 2:
            return values[0] if values else None
        return None if None in values else ":".join(map(str, values))

    def _one(self, path: KeyPath, row: Mapping[str, Any], member: Any) -> Any:
        inside = self.members is not None and MEMBERS in path
        return next(values_at(member, self._below(path)) if inside else values_at(row, path), None)

    def _below(self, path: KeyPath) -> KeyPath:
        """The part of a path to follow within a member: what follows `*`, or all of it if `members` is None."""
        return path[path.index(MEMBERS) + 1 :] if MEMBERS in path else path if self.members is None else ()


def values_at(value: Any, path: KeyPath) -> Iterator[Any]:
    """Yield the values at a path. A text on the way that is a list or object is parsed, keys may contain dots, and `*`
    stands for all members of a list or an object."""
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
    """An object without the values at the used paths, and without inner objects that become empty."""
    rest = {}
    for key, member in value.items():
        parts = tuple(key.split("."))
        below = [path[len(parts) :] for path in used if path[: len(parts)] == parts]
        if not below:
            rest[key] = member
        elif () not in below and (inner := _rest(member, below) if isinstance(member, Mapping) else member):
            rest[key] = inner
    return rest
