"""The conversations of Topical-Chat (Gopalakrishnan et al. 2019): train.json, valid_freq.json and the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from ssrem.readers.base import Reader, Record, problem
from ssrem.readers.json.values import one_object
from ssrem.readers.metadata import escaped_member


class TopicalChatReader(Reader):
    """For each conversation its 'conversation' record (metadata: article, configuration, ratings), then its messages.

    `agent_1` and `agent_2` are seats: who the workers were is not published. `line` counts the messages of the file, or
    the conversations for a conversation's own record.
    """

    format: ClassVar[str] = "topical-chat"
    describes: ClassVar[str] = "a file of conversations of Topical-Chat, as published"
    aliases: ClassVar = {"speaker": ("agent",), "text": ("message",)}

    @classmethod
    def sniff(cls, path: Path) -> bool:
        first = next(iter(one_object(path).values()), None)
        return isinstance(first, dict) and "content" in first

    def records(self) -> Iterator[Record]:
        line = 0
        for ordinal, (id, content) in enumerate(self.members(self.path), 1):
            about = dict(content) if isinstance(content, dict) else {}
            messages = about.pop("content", None)
            if not isinstance(messages, list):
                yield problem("malformed_row", self.file, ordinal, escaped_member(id, content))
                continue
            conversation = self.conversation(self.file, ordinal, id, about, content)
            yield conversation
            for message in messages if "problem" not in conversation else ():
                line += 1
                yield self.message(self.file, line, message, conversation_id=id)
