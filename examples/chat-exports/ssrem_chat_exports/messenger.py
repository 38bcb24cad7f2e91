"""Chats of Facebook Messenger and Instagram, as their "download your information" writes them: message_1.json, …"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from ssrem.readers.base import Reader, Record, problem
from ssrem.readers.files.streams import DumpFile

_NOTICES = {"Call", "Subscribe", "Unsubscribe"}
_REACTION = re.compile(r"Liked a message|Reacted [^\s\x00-\x7f]+ to your message ?")
"""What the export writes as a message's text when somebody reacted; in English, since other languages are not known."""


class MessengerReader(Reader):
    """One conversation a file: its 'conversation' record (metadata: title), then its messages, the oldest first.

    The export lists the newest message first, in message_1.json those after message_2.json, and writes the bytes of
    UTF-8 as characters; all of that is put right. Speakers are names. Messages have no ids in it, so they become
    CHAT/TIME. `line` counts the messages of the file. Calls, reactions and notices, and messages that are pictures,
    stickers or links alone, are left out.
    """

    format: ClassVar[str] = "messenger"
    not_people: ClassVar = ("Facebook User", "Instagram User", "Meta AI")
    describes: ClassVar[str] = "message_1.json of Facebook Messenger or Instagram"

    @classmethod
    def sniff(cls, file: DumpFile) -> bool:
        return (
            b'"sender_name"' in file.head
            and b'"timestamp_ms"' in file.head
            and {"participants", "messages"} <= file.members.keys()
        )

    @classmethod
    def order_of(cls, file: DumpFile) -> int:
        number = re.search(r"_(\d+)\.json", file.path.name)
        return -int(number[1]) if number else 0

    def records(self, file: DumpFile) -> Iterator[Record]:
        about = {name: _mended(file.members.get(name)) for name in ("title", "thread_path")}
        path, messages = about.pop("thread_path"), file.members["messages"]
        chat = path if isinstance(path, str) and path else file.name
        yield self.conversation(file.name, 1, chat, about)
        seen = Counter[object]()
        for line in range(len(messages), 0, -1) if isinstance(messages, list) else ():
            if record := self._message(file.name, line, messages[line - 1], chat, seen):
                yield record

    def _message(self, file: str, line: int, row: object, chat: str, seen: Counter[object]) -> Record | None:
        """seen: how many messages there were at each time so far, which tells their ids apart."""
        if not isinstance(row, dict):
            return problem("malformed_row", file, line, row, conversation_id=chat)
        text = _mended(row.get("content"))
        is_call = row.get("call_duration") is not None  # newer exports give messages no type
        if row.get("type") in _NOTICES or is_call or (isinstance(text, str) and _REACTION.fullmatch(text)):
            self.left_out["service messages"] += 1
            return None
        if not text:
            self.left_out["messages without text"] += 1
            return None
        time = row.get("timestamp_ms")
        seen[time] += 1
        again = f"-{seen[time]}" if seen[time] > 1 else ""
        fields = {
            "id": f"{chat}/{time}{again}",
            "speaker": _mended(row.get("sender_name")),
            "text": text,
            "time": time,
        }
        return self.message(file, line, fields, row, conversation_id=chat)


def _mended(text: object) -> object:
    """Decode a text in which each byte of UTF-8 was written as a character; return anything else unchanged."""
    if not isinstance(text, str) or text.isascii():
        return text
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text
