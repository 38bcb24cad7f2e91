"""A channel of Discord as DiscordChatExporter writes it in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from ssrem.readers.base import Reader, Record, problem
from ssrem.readers.json.values import one_object
from ssrem.readers.metadata import escaped

_REPLIES = ("Reply", "19")
"""Types of replies; versions of the exporter that did not know them write Discord's number."""
_WRITTEN_BY_PEOPLE = ("Default", *_REPLIES)
"""Types of messages that people write; all others are notices (joins, pins, calls, boosts) or commands to bots."""


class DiscordReader(Reader):
    """One conversation a channel: its 'conversation' record (metadata: guild, channel), then its messages.

    Speakers are ids; a message's metadata hold the name that was shown, and `bot` if the author is a bot. Bots are not
    people, nor is 'Deleted User', the one account in place of all deleted ones. `line` counts the messages of the file.
    Notices, and messages that are pictures or stickers alone, are left out.
    """

    format: ClassVar[str] = "discord"
    describes: ClassVar[str] = "a channel that DiscordChatExporter wrote as JSON"
    not_people: ClassVar = ("456226577798135808",)  # Deleted User

    @classmethod
    def sniff(cls, path: Path) -> bool:
        return {"guild", "channel"} <= one_object(path).keys()

    def records(self) -> Iterator[Record]:
        line = 0
        about: dict[str, object] = {}
        channel: str | None = None
        for place, value in self.elements(self.path, ("guild", "channel", "messages.item")):
            if place != "messages.item":
                about[place] = value
                continue
            line += 1
            if line == 1:
                described = about.get("channel")
                id = described.get("id") if isinstance(described, dict) else None
                channel = str(id) if isinstance(id, str | int) else None
                yield self.conversation(self.file, 1, channel, about)
            if record := self._message(line, value, channel):
                yield record

    def _message(self, line: int, row: object, channel: str | None) -> Record | None:
        known: dict[str, object] = {} if channel is None else {"conversation_id": channel}
        author = row.get("author") if isinstance(row, dict) else None
        if not isinstance(row, dict) or not isinstance(author, dict):
            return problem("malformed_row", self.file, line, escaped(row), **known)
        kind = row.get("type", "Default")
        if kind not in _WRITTEN_BY_PEOPLE:
            self.left_out["notices"] += 1
            return None
        if row.get("content") == "":
            self.left_out["messages without text"] += 1
            return None
        reference = row.get("reference")
        answered = reference.get("messageId") if isinstance(reference, Mapping) else None
        fields = {
            "id": row.get("id"),
            "speaker": author.get("id"),
            "text": row.get("content"),
            "time": row.get("timestamp"),
            "reply_to": answered if kind in _REPLIES else None,
            "name": author.get("nickname") or author.get("name"),
            "bot": True if author.get("isBot") is True else None,
        }
        if fields["bot"]:
            known = {**known, "is_person": False}
        return self.message(self.file, line, fields, escaped(row), **known)
