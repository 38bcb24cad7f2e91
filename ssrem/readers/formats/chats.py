"""Chat logs: a row is a conversation with a list of messages, whose speakers are roles.

ChatReader is also the base of readers of chat programs' exports, in which some entries are not what anybody said.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ssrem.errors import DumpError
from ssrem.readers.base import Reader, Record, malformed, problem
from ssrem.readers.fields import ALIASES, SILENT_ROLES, USER_ROLES, FieldNames, check_header
from ssrem.readers.files.streams import DumpFile
from ssrem.readers.rows import MalformedRowError, id_of, joined_text

_LISTS = ("messages", "conversation", "conversations", "items")
"""The keys of a row that may hold its messages, best first."""
_SILENT = (*SILENT_ROLES, "function_call", "tool_call", "observation", "function_response")
_SPOKEN = ("text", "input_text", "output_text", "refusal", "audio_transcription")
"""Types of the parts of a content that hold words."""
_OWNERS = {
    "conversation": (*ALIASES["conversation"], "conversation_hash", "id"),
    "speaker": (*ALIASES["speaker"], "owner", "owner_id", "hashed_ip"),
}
"""Field → the keys of a row, or of its `metadata`, that hold it, best first."""


Said = tuple[dict[str, Any], dict[str, Any]]
"""The fields of a message, which `Reader.message` takes as its `row`, and the columns that it takes as `known`."""


class ChatReader(Reader):
    """Reads chats entry by entry."""

    @abstractmethod
    def said(self, entry: Any, chat: str | None) -> Said | list[str]:
        """The fields of an entry that is a message; for an entry that nobody said, the kinds of what is left out.

        Raises MalformedRowError, AttributeError, KeyError or TypeError for an entry of another form.
        """

    def entry(self, file: str, line: int, entry: object, chat: str | None) -> Iterator[Record]:
        """Yield the record of an entry of the conversation `chat`, or count it if it is left out."""
        known: dict[str, object] = {} if chat is None else {"conversation_id": chat}
        try:
            said = self.said(entry, chat)
        except (MalformedRowError, AttributeError, KeyError, TypeError):
            yield problem("malformed_row", file, line, entry, **known)
            return
        if isinstance(said, list):
            self.left_out.update(said)
        else:
            yield self.message(file, line, said[0], entry, **known, **said[1])


class OpenaiReader(ChatReader):
    """Chat logs in the form of OpenAI's API, in which WildChat and LMSYS-Chat-1M are published: a 'conversation' record
    for each row, then its messages, all with the number of the row.

    A conversation's id is that of the row, or the row's number if the first rows have no ids. Speakers are roles; but
    if the first rows name an owner, such as `user_id`, the owner speaks the turns of the role user, and the other roles
    are seats of the conversation alone. A message's own `name` takes precedence over both. Messages of systems and
    tools, tool calls, and content parts without text, such as images, are left out and counted. A row with the id of an
    earlier one is a 'duplicate_conversation', since its messages would continue that one; the ids are in memory.
    """

    format: ClassVar[str] = "openai"
    describes: ClassVar[str] = "chat logs, JSON lines or an array, with `messages` of `role` and `content`"
    takes_mapping: ClassVar[bool] = True
    aliases: ClassVar = {"id": ("id", "message_id"), "time": ALIASES["time"]}
    keys: ClassVar[tuple[str, str]] = ("role", "content")
    """The keys of a message that hold its role and its text."""

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        messages = (message for row in file.first_rows for message in cls.messages(row) or ())
        return any(isinstance(message, dict) and {*cls.keys} <= message.keys() for message in messages)

    @classmethod
    def messages(cls, row: Mapping[str, Any]) -> list[Any] | None:
        """The messages of a row; None if it has no list of messages."""
        return next((row[key] for key in _LISTS if isinstance(row.get(key), list)), None)

    def check(self, file: DumpFile) -> None:
        if self.mapping.keys() - _OWNERS.keys() or self.layout.instead:
            raise DumpError(
                f"{self.format} takes --map conversation=KEY and speaker=KEY alone, with keys of a conversation"
            )
        self.layout.map({})  # the keys in `--map` are those of rows, not of messages
        keys = list(dict.fromkeys(key for row in file.first_rows for key in _fields(row)))
        check_header(file.path, keys, self.mapping, DumpError, "key")
        self._sources = FieldNames(self.mapping, _OWNERS, _LISTS).plan(tuple(keys)).sources
        owners = self._sources.get("speaker", ())
        self.persons = bool(owners)
        if owners and "speaker" not in self.mapping:
            self.notes.append(
                f"the turns of users are those of {owners[0]!r} of their conversation; --map speaker=KEY names another"
            )

    @property
    def ways_to_people(self) -> str:
        return "name the key of who speaks as user with --map speaker=KEY, or give conversations one such as user_id"

    def records(self, file: DumpFile) -> Iterator[Record]:
        owned = {key for keys in self._sources.values() for key in keys}
        ids: set[str | None] = set()
        for number, row, raw in file.rows():
            if not isinstance(row, dict):
                yield malformed(file.name, number, raw, "broken_json")
                continue
            listed, fields = self.messages(row), dict.fromkeys(owned) | _fields(row)
            for key in self._sources.get("speaker", ()):
                fields[key] = id_of(owner) if isinstance(owner := fields[key], dict) else owner
            try:
                named = {field: joined_text(fields, keys, field) for field, keys in self._sources.items()}
            except MalformedRowError:
                listed = None
            if listed is None:
                yield problem("malformed_row", file.name, number, raw)
                continue
            id, self._owner = named.get("conversation", str(number)) or None, named.get("speaker") or None
            dropped = {*owned, *self.ignored}
            answered, messages = self._answered(row, listed)
            about = {
                key: row[key]
                for key in row
                if row[key] is not listed and key != answered and key not in dropped
            }
            conversation = self.conversation(file.name, number, id, about, row)
            if id in ids and id is not None and "problem" not in conversation:
                conversation = problem("duplicate_conversation", file.name, number, raw, conversation_id=id)
            ids.add(id)
            yield conversation
            for message in messages if "problem" not in conversation else ():
                yield from self.entry(file.name, number, message, id)

    def _answered(self, row: Mapping[str, Any], messages: list[Any]) -> tuple[str, list[Any]]:
        """If the last message is a user's and the row has the answer under another key: that key, and the messages
        followed by the answer. Else "" and the messages."""
        last = messages[-1] if messages and isinstance(messages[-1], dict) else {}
        role, content = self.keys
        for key in ALIASES["response"] if last.get(role) in USER_ROLES else ():
            answer = row.get(key)
            answer = answer[0] if isinstance(answer, list) and len(answer) == 1 else answer
            answer = {role: "assistant", content: answer} if isinstance(answer, str) else answer
            if isinstance(answer, dict) and {*self.keys} <= answer.keys():
                note = f"where messages end with the user, {key!r} beside them is the answer"
                self.notes += [note] if note not in self.notes else []
                return key, [*messages, answer]
        return "", messages

    def said(self, entry: Any, chat: str | None) -> Said | list[str]:
        role, name, content = entry.get(self.keys[0]), entry.get("name"), entry.get(self.keys[1])
        if not isinstance(role, str | None) or not isinstance(content, str | list | None):
            raise MalformedRowError
        if role in _SILENT:
            return [f"messages of {role}"]
        calls = entry.get("tool_calls") or entry.get("function_call") or []
        left_out = ["calls of tools"] * (len(calls) if isinstance(calls, list) else 1)
        texts = []
        for part in content if isinstance(content, list) else [content or ""]:
            about: Mapping[str, Any] = part if isinstance(part, dict) else {"type": "text", "text": part}
            kind = about.get("type", about.get("content_type", "text" if "text" in about else "other"))
            if kind in _SPOKEN:
                texts.append(about.get("text", about.get("refusal")))
            else:
                left_out.append(f"parts of type {kind[:40]}")
        text = "\n".join(texts) or None
        if left_out and text is None:
            return left_out
        self.left_out.update(left_out)
        taken = (*self.keys, "name", "tool_calls", "function_call")
        fields = {key: value for key, value in entry.items() if key not in taken}
        named = isinstance(name, str) and name
        if named or self._owner is not None:
            fields["role"] = role
        speaker, person = (name, None) if named else (role, self._owner)
        return fields, {"speaker": speaker, "person": person, "text": text}


class SharegptReader(OpenaiReader):
    """Chat logs in the form of ShareGPT."""

    format: ClassVar[str] = "sharegpt"
    describes: ClassVar[str] = "chat logs, JSON lines or an array, with `conversations` of `from` and `value`"
    keys: ClassVar[tuple[str, str]] = ("from", "value")


class ChatgptReader(OpenaiReader):
    """ChatGPT's export, conversations.json. Of each conversation the branch that ends in `current_node` is read, as the
    messages of a chat log. Left out are answers that were later regenerated and what followed them, tool calls, and
    what the chat does not show, such as thoughts and custom instructions."""

    format: ClassVar[str] = "chatgpt"
    describes: ClassVar[str] = "ChatGPT's export, conversations with a tree of messages under `mapping`"
    ignored: ClassVar = ("mapping", "current_node")

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        return any({"mapping", "current_node"} <= row.keys() for row in file.first_rows)

    @classmethod
    def messages(cls, row: Mapping[str, Any]) -> list[Any] | None:
        nodes = row.get("mapping")
        return list(_branch(nodes, row.get("current_node")))[::-1] if isinstance(nodes, dict) else None

    def said(self, entry: Any, chat: str | None) -> Said | list[str]:
        return [entry["unsaid"]] if "unsaid" in entry else super().said(entry, chat)


_SHOWN, _CALLS = ("text", "multimodal_text"), ("code", "execution_output")
"""Types of content that the chat shows, and types of content of tool calls and their results."""


def _branch(nodes: Mapping[str, Any], last: object) -> Iterator[dict[str, Any]]:
    """Yield the messages from the node `last` back to the first one, without empty ones, such as the root's. A message
    that is left out is replaced by {"unsaid": kind of what is left out}."""
    for _ in nodes:
        node = nodes.get(last) if isinstance(last, str) else None
        if not isinstance(node, dict):
            return
        last, message = node.get("parent"), node.get("message")
        if isinstance(message, dict):
            parts = (message.get(key) for key in ("author", "content", "metadata"))
            author, content, about = (part if isinstance(part, dict) else {} for part in parts)
            kind = str(content.get("content_type", "text"))
            if author.get("role") not in _SILENT:
                if kind in _CALLS or message.get("recipient") not in (None, "all"):
                    yield {"unsaid": "calls of tools"}
                    continue
                if kind not in _SHOWN or about.get("is_visually_hidden_from_conversation") is True:
                    yield {"unsaid": f"hidden messages of type {kind[:40]}"}
                    continue
            yield {
                "id": message.get("id"),
                "role": author.get("role"),
                "content": content.get("parts", content.get("text")),
                "create_time": message.get("create_time"),
            }


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row says of its conversation: its members, and those of its `metadata`."""
    about = row.get("metadata")
    return {**row, **about, **row} if isinstance(about, dict) else {**row}
