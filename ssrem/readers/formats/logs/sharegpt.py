"""Chat logs in the form of ShareGPT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ssrem.readers.formats.logs.chats import ChatLogReader
from ssrem.readers.rows import MalformedRowError


class SharegptReader(ChatLogReader):
    """Rows of `conversations` with `from` and `value`; function calls and their results are left out and counted."""

    format: ClassVar[str] = "sharegpt"
    describes: ClassVar[str] = (
        "chat logs, JSON lines or one array of objects with `conversations` of `from` and `value`"
    )
    lists: ClassVar = ("conversations", "conversation", "items")
    role: ClassVar = "from"
    silent: ClassVar = (
        *ChatLogReader.silent,
        "function_call",
        "tool_call",
        "observation",
        "function_response",
    )
    taken: ClassVar = ("from", "value", "name")

    def text(self, message: Mapping[str, Any]) -> str | None:
        value = message.get("value")
        if not isinstance(value, str | None):
            raise MalformedRowError
        return value or None
