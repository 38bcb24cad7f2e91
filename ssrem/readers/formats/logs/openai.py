"""Chat logs as OpenAI's interfaces take and write them, and as WildChat and LMSYS-Chat-1M are published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ssrem.readers.formats.logs.chats import ChatLogReader
from ssrem.readers.rows import MalformedRowError

_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}
"""Type of a part with words → the key that holds them."""


class OpenaiReader(ChatLogReader):
    """Rows of `messages` with `role` and `content`: a text, or a list of parts.

    Parts with text are joined by newlines; others, such as images, are left out and counted.
    """

    format: ClassVar[str] = "openai"
    describes: ClassVar[str] = (
        "chat logs, JSON lines or one array of objects with `messages` of `role` and `content`"
    )
    lists: ClassVar = ("messages", "conversation", "conversations")
    role: ClassVar = "role"
    taken: ClassVar = ("role", "content", "name", "tool_calls", "function_call")

    def text(self, message: Mapping[str, Any]) -> str | None:
        calls = message.get("tool_calls") or message.get("function_call")
        if calls:
            self.left_out["calls of tools"] += len(calls) if isinstance(calls, list) else 1
        content = message.get("content")
        if not isinstance(content, list):
            if not isinstance(content, str | None):
                raise MalformedRowError
            return content or None
        texts = []
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else "text"
            words = (
                part.get(_TEXTS.get(kind, "")) if isinstance(part, dict) and isinstance(kind, str) else part
            )
            if isinstance(words, str):
                texts.append(words)
            elif isinstance(kind, str) and kind not in _TEXTS:
                self.left_out[f"parts of type {kind[:40]}"] += 1
            else:
                raise MalformedRowError
        return "\n".join(texts) or None
