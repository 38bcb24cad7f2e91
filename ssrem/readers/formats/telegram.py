"""Chats as Telegram Desktop exports them in JSON: result.json of one chat, or of all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ssrem.readers.base import Reader, Record, problem
from ssrem.readers.json.values import one_object
from ssrem.readers.metadata import escaped

_LISTS = ("", "chats.list.item.", "left_chats.list.item.")
"""Places of chats in the file, which is one chat or lists several."""
_ABOUT = ("name", "type", "id")


class TelegramReader(Reader):
    """One conversation a chat: its 'conversation' record (metadata: name, type), then its messages.

    Speakers are ids, with the name as metadata. Ids of messages, which start again in each chat, become CHAT/ID. Times
    are those in UTC where the export has them. `line` counts the messages of the file. Service messages, and messages
    that are pictures, voice or stickers alone, are left out.
    """

    format: ClassVar[str] = "telegram"
    # Telegram's notifications, and the accounts in place of anonymous administrators, channels and replies.
    not_people: ClassVar = ("user777000", "user1087968824", "user136817688", "user1271266957")
    describes: ClassVar[str] = "result.json of Telegram Desktop, of one chat or of all"

    @classmethod
    def sniff(cls, path: Path) -> bool:
        names = one_object(path).keys()
        return {"name", "type", "id", "messages"} <= names or bool({"chats", "left_chats"} & names)

    def records(self) -> Iterator[Record]:
        line, last = 0, ""
        about: dict[str, object] = {}
        described = False  # whether the record of the current chat was yielded
        places = [at + name for at in _LISTS for name in (*_ABOUT, "messages.item")]
        for place, value in self.elements(self.path, places):
            if not place.endswith("messages.item"):
                name = place.rpartition(".")[2]
                if name == "name" or (name == "type" and last != "name"):  # where a chat begins
                    about, described = {}, False
                about[name] = value
                last = name
                continue
            line += 1
            id = about.get("id", about.get("name"))
            chat = str(id) if isinstance(id, str | int) else None
            if not described:
                described = True
                yield self.conversation(self.file, line, chat, about)
            if record := self._message(line, value, chat):
                yield record

    def _message(self, line: int, row: object, chat: str | None) -> Record | None:
        known = {} if chat is None else {"conversation_id": chat}
        text = _joined(row.get("text")) if isinstance(row, dict) else None
        if not isinstance(row, dict) or (text is None and row.get("type") == "message"):
            return problem("malformed_row", self.file, line, escaped(row), **known)
        if row.get("type") != "message":
            self.left_out["service messages"] += 1
            return None
        if text == "":
            self.left_out["messages without text"] += 1
            return None
        answered = row.get("reply_to_message_id")
        elsewhere = row.get("reply_to_peer_id") is not None  # the message answered is in another chat
        fields = {
            "id": _scoped(chat, row.get("id")),
            "speaker": row.get("from_id"),
            "text": text,
            "time": row.get("date_unixtime") or row.get("date"),
            "reply_to": None if elsewhere else _scoped(chat, answered),
            "name": row.get("from"),
        }
        return self.message(self.file, line, fields, escaped(row), **known)


def _joined(text: object) -> str | None:
    """A text, or the parts of one (texts, and objects with a link, mention or style as `text`); None for neither."""
    if isinstance(text, str):
        return text
    if not isinstance(text, list):
        return None
    parts = [part.get("text") if isinstance(part, dict) else part for part in text]
    texts = [part for part in parts if isinstance(part, str)]
    return "".join(texts) if len(texts) == len(parts) else None


def _scoped(chat: str | None, id: object) -> object:
    return f"{chat}/{id}" if isinstance(id, str | int) and not isinstance(id, bool) else id
